"""Jacobians, Hessians and curvature, from a tape or of a whole model in one call. May import `core`.

Read `hessian.py`, then `first_order.py` and `curvature.py`, which `tf.autodiff` publishes.
"""
