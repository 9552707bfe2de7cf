"""Training."""

from .. import Row

TITLE = "Training"
ROWS = [
    Row(
        what="freezing layers after `compile`",
        code="""
model = keras.Sequential([keras.Input((1,)), L.Dense(1, kernel_initializer="ones"), L.Dense(1, kernel_initializer="ones")])
model.compile("sgd", "mse")
_ = model.fit(ones(2, 1), 2 * ones(2, 1), verbose=0)
model.layers[0].trainable = False
before = model.get_weights()[0].item()
_ = model.fit(ones(2, 1), 2 * ones(2, 1), verbose=0)
model.get_weights()[0].item() == before
""",
        ours="True",
        theirs="ValueError",
        why="each step asks which variables can be trained; there is nothing to compile again",
    ),
    Row(
        what="`SKLearnClassifier.decision_function` of two classes",
        code="""
def build(X, y):
    model = keras.Sequential([keras.Input((2,)), L.Dense(2, activation="softmax")])
    model.compile("sgd", "categorical_crossentropy")
    return model
classifier = keras.wrappers.SKLearnClassifier(build).fit(ones(4, 2), np.array([0, 1, 0, 1]), verbose=0)
classifier.decision_function(ones(4, 2)).shape
""",
        ours="(4,)",
        theirs="(4, 2)",
        why="scikit-learn's own classifiers give one number a row",
    ),
    Row(
        what="data parallelism",
        code="K.distribution.DataParallel(virtual_shards=2).data_shard_id",
        ours="0",
        theirs="TypeError: unexpected keyword",
        why="each device has a process of its own, which MPI starts; with virtual shards 1, 2 and 4 of them give the same bits",
    ),
]
