"""Text with an embedding and a GRU: learn from labels alone that "not" turns the word behind it around."""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

generator = np.random.default_rng(1)
words = ["good", "bad", "not", "very", "film", "plot", "cast"]
texts, labels = [], []
for _ in range(1_000):
    nouns = generator.choice(["film", "plot", "cast"], generator.integers(1, 5))
    is_negated, is_bad, is_very = generator.integers(0, 2, 3)
    texts.append(" ".join([*nouns, *["not"] * is_negated, *["very"] * is_very, words[is_bad]]))
    labels.append(float(is_negated == is_bad))
labels = np.array(labels)[:, None]

tf.keras.utils.set_random_seed(1)
vectorize = tf.keras.layers.TextVectorization(vocabulary=words, output_sequence_length=8)
tokens = vectorize(texts)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(vectorize.vocabulary_size(), 8, mask_zero=True),
        tf.keras.layers.GRU(16),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(tf.keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
unseen = tokens[800:], labels[800:]
history = model.fit(tokens[:800], labels[:800], epochs=12, batch_size=32, validation_data=unseen, verbose=0).history
print(f"{history['val_accuracy'][-1]:.3f} of {len(unseen[1])} texts are read right")

probes = ["film good", "film not good", "film very bad", "film not very bad"]
likings = model.predict(vectorize(probes), verbose=0)[:, 0]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(range(1, 13), history["accuracy"], label="training")
left.plot(range(1, 13), history["val_accuracy"], label="texts not seen")
left.set(xlabel="epoch", ylabel="accuracy")
left.legend()
right.barh(probes[::-1], likings[::-1])
right.set(xlabel="probability of praise", xlim=(0, 1))
figure.savefig("read_text_gru.png")
