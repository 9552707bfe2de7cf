"""Images with augmentation: a network learns digits from 150 images, as they are and turned, moved and zoomed at random."""

import matplotlib.pyplot as plt
import numpy as np

import minikeras as tf

layers = tf.keras.layers
(x, y), (x_test, y_test) = tf.keras.datasets.digits.load_data()
x, x_test = [one.reshape(-1, 8, 8, 1) / 16 for one in (x, x_test)]
x, y = x[:150], y[:150]


def augmentation():
    moved = {"fill_mode": "constant"}
    return layers.Pipeline(
        [
            layers.RandomRotation(0.03, **moved, seed=1),
            layers.RandomTranslation(0.08, 0.08, **moved, seed=2),
            layers.RandomZoom(0.1, **moved, seed=3),
        ]
    )


accuracies = {}
for name, first in {"as they are": layers.Identity(), "augmented": augmentation()}.items():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            first,
            layers.Conv2D(16, 3, activation="relu"),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.003), loss, metrics=["accuracy"])
    model.fit(x, y, epochs=150, batch_size=50, verbose=0)
    accuracies[name] = model.evaluate(x_test, y_test, verbose=0)[1]
    print(f"150 images {name}: test accuracy {accuracies[name]:.3f}")

figure, axes = plt.subplots(3, 9, figsize=(9, 3.2), layout="constrained")
pipeline = augmentation()
for digit, row in enumerate(axes):
    image = x[np.flatnonzero(y == digit + 2)[0]]
    for place, one in enumerate(row):
        shown = image if place == 0 else pipeline(image, training=True).numpy()
        one.imshow(shown[..., 0], cmap="gray_r", vmin=0, vmax=1)
        one.set(xticks=[], yticks=[], title="given" if place == digit == 0 else "")
figure.suptitle("The first column as given, beside it as the network sees it in training")
figure.savefig("augment_images.png")
