"""keras.ops, as far as the optimizers of `custom_optimizers.py` use it."""

from __future__ import annotations

from types import SimpleNamespace

import minikeras as tf

names = "abs add cast divide equal expand_dims maximum minimum multiply sign sqrt square subtract where zeros_like"
ops = SimpleNamespace(
    **{name: getattr(tf, name) for name in names.split()}, mean=tf.reduce_mean, sum=tf.reduce_sum, power=tf.pow
)
