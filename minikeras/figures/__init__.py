# mypy: implicit-reexport
"""Pictures of derivatives and of training, drawn by matplotlib (extra `plot`), which is imported when one is asked for.

Every function takes `ax` or `axes` to draw into, makes its own figure without them, and returns what it drew on.
"""

from .matrices import plot_batch_jacobian, plot_hessian, plot_jacobian
from .runs import plot_bands, plot_comparison, plot_history, plot_parallel
