"""Options of a Dataset, which TensorFlow's runtime follows."""

from __future__ import annotations

from types import SimpleNamespace


class Options(SimpleNamespace):
    """What TensorFlow's runtime can be told about a Dataset, accepted for compatibility: elements keep their order in any case,
    and each method says with `num_parallel_calls` how many threads it uses.

    >>> options = tf.data.Options()
    >>> options.deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    def __init__(self) -> None:
        parts = ("autotune", "experimental_distribute", "experimental_optimization", "threading")
        super().__init__(deterministic=None, **{name: SimpleNamespace() for name in parts})
