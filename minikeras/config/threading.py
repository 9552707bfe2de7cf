# mypy: implicit-reexport
"""`tf.config.threading`: how many threads compute. Names only; definitions are in `parallel.py`."""

from ..parallel import (
    get_inter_op_parallelism_threads,
    get_intra_op_parallelism_threads,
    set_inter_op_parallelism_threads,
    set_intra_op_parallelism_threads,
)

__all__ = [name for name in dir() if not name.startswith("_")]
