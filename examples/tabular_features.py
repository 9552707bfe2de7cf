"""A table with text, integers and numbers: from its columns to a model that takes them directly.

Ice cream sells in summer at the sea and in winter in the mountains, so neither town nor month says much alone: a logistic
regression over both needs their cross, a column for each pair.
"""

import pathlib
import tempfile

import numpy as np

import minikeras as tf

keras = tf.keras
Space = keras.utils.FeatureSpace

generator = np.random.default_rng(0)
rows = 6000
table = {
    "town": generator.choice(["Rostock", "Husum", "Garmisch", "Oberstdorf"], rows),
    "month": generator.integers(1, 13, rows),
    "price": generator.uniform(1.0, 3.0, rows),
}
at_the_sea, summer = np.isin(table["town"], ["Rostock", "Husum"]), np.abs(table["month"] - 6.5) < 3
chance = 1.0 / (1.0 + np.exp(-(np.where(at_the_sea == summer, 4.0, -4.0) - 1.0 * (table["price"] - 2.0))))
sells = (generator.uniform(size=rows) < chance).astype("float32")


def part(start, stop):
    """Some rows of the table, as columns."""
    return {name: column[start:stop] for name, column in table.items()}


def trained(crosses):
    """A logistic regression that takes columns, and its accuracy on rows that it has not seen."""
    keras.utils.set_random_seed(0)
    kinds = {"town": "string_categorical", "month": "integer_categorical", "price": "float_normalized"}
    space = Space(kinds, crosses=crosses)
    space.adapt(part(0, 5000))
    answer = keras.layers.Dense(1, activation="sigmoid")(space.get_encoded_features())
    model = keras.Model(space.get_inputs(), answer)
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
    model.fit(part(0, 5000), sells[:5000], batch_size=100, epochs=10, verbose=0)
    return model, model.evaluate(part(5000, rows), sells[5000:], verbose=0)[1]


_, alone = trained(crosses=None)
model, crossed = trained(crosses=[Space.cross(("town", "month"), crossing_dim=256)])

path = pathlib.Path(tempfile.mkdtemp()) / "ice_cream.keras"
model.save(path)
loaded = keras.models.load_model(path)
july = {"town": np.array(["Husum", "Garmisch"]), "month": np.array([7, 7]), "price": np.array([2.0, 2.0])}
print("chances in July, Husum and Garmisch:", loaded.predict(july, verbose=0).ravel().round(2))
print(f"test accuracy of town and month alone {alone:.2f}, with their cross: {crossed:.3f}")
