"""Pictures of derivatives and of training, drawn by matplotlib (extra `plot`).

Key idea: every function takes `ax` or `axes` to draw into, makes its own figure without them, and returns what it drew on, so
that titles, labels and limits can be changed with matplotlib's own words. matplotlib is imported when a picture is asked for,
never before. May import `arrays`, `core` and `errors`; read `canvas.py` first, then `matrices.py` and `history.py`.
"""

from .history import plot_history
from .matrices import plot_batch_jacobian, plot_hessian, plot_jacobian

__all__ = ["plot_batch_jacobian", "plot_hessian", "plot_history", "plot_jacobian"]
