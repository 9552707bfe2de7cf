"""Optimizers."""

from .. import Row

TITLE = "Optimizers"
ROWS = [
    Row(
        what="a step of `Ftrl` at a learning rate of 0",
        code="""
w = keras.layers.Dense(1)
w.build((None, 1))
optimizer = optimizers.Ftrl(0.0)
optimizer.apply([ones(1, 1), ones(1)], w.trainable_variables)
[bool(np.isnan(np.array(one)).all()) for one in w.get_weights()]
""",
        ours="ValueError: the learning rate is 0",
        theirs="[True, True]",
        why="the formula divides by it, and weights that are NaN stay so",
    ),
    Row(
        what="`learning_rate` of a `MultiOptimizer`",
        code="list(optimizers.MultiOptimizer(optimizers.OptimizerMap(optimizers.SGD(0.5))).learning_rate)[0][:3]",
        ours="sgd",
        theirs="AttributeError: cannot be accessed",
        why="a dict with the rate of each, as of `PerLayer`; a dict can be assigned, too",
    ),
    Row(
        what="a regular expression among the `exclude_layers` of `Muon`",
        code="optimizers.Muon(exclude_layers=['dense_(1|2)$']).exclude_layers",
        ours="ValueError: takes keywords",
        theirs="[dense_(1|2)$]",
        why="a model file could hold one that takes years to match; keywords are what the documentation asks for",
    ),
    Row(
        what="`keras.optimizers.legacy`",
        code="K.optimizers.legacy.SGD(0.5).learning_rate",
        ours="0.5",
        theirs="ImportError: not supported in Keras 3",
        why="the names are those of today's optimizers, so that programs for Keras 2 run",
    ),
]
