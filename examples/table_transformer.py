"""A small transformer over the columns of a table: every column is a token, and attention finds which belong together.

As in FT-Transformer (Gorishniy et al., 2021): a column's value times a vector of its own, plus another one, is its token; the
columns attend to one another, and the prediction reads a token that stands for the whole row. Tumours are told apart.
"""

import minikeras as tf

keras, layers = tf.keras, tf.keras.layers
WIDTH = 16

keras.utils.set_random_seed(0)
(x_train, y_train), (x_test, y_test) = keras.datasets.breast_cancer.load_data()
columns = x_train.shape[1]


@keras.saving.register_keras_serializable("examples")
class Tokens(layers.Layer):
    """(batch, columns) to (batch, columns + 1, width): a token for each column, and one for the row."""

    def __init__(self, width, **options):
        super().__init__(**options)
        self.width = width

    def build(self, input_shape):
        self.scale = self.add_weight((input_shape[-1] + 1, self.width), "glorot_uniform", name="scale")
        self.shift = self.add_weight((input_shape[-1] + 1, self.width), "glorot_uniform", name="shift")

    def call(self, x):
        of_row = tf.ones([x.shape[0], 1])
        return tf.concat([of_row, x], 1)[:, :, None] * self.scale + self.shift


def block(tokens):
    """Attention between the columns, then a network for each, both beside what they add to."""
    normal = layers.LayerNormalization()(tokens)
    tokens = layers.Add()([tokens, layers.MultiHeadAttention(num_heads=4, key_dim=4, dropout=0.1)(normal, normal)])
    hidden = layers.Dense(2 * WIDTH, activation="gelu")(layers.LayerNormalization()(tokens))
    return layers.Add()([tokens, layers.Dense(WIDTH)(hidden)])


normalize = layers.Normalization()
normalize.adapt(x_train)
row = keras.Input((columns,), name="row")
tokens = block(block(Tokens(WIDTH)(normalize(row))))
answer = layers.Dense(1, activation="sigmoid")(layers.LayerNormalization()(tokens[:, 0]))
model = keras.Model(row, answer)

model.compile(keras.optimizers.AdamW(2e-3, weight_decay=1e-3), "binary_crossentropy", metrics=["accuracy"], jit_compile=True)
model.fit(x_train, y_train, batch_size=32, epochs=10, verbose=0)
loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
print(f"{model.count_params():,} weights, test loss {loss:.3f}, test accuracy: {accuracy:.3f}")
