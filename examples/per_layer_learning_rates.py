"""An optimizer for each layer: Fashion-MNIST with several ways to distribute the learning rates."""

import matplotlib.pyplot as plt

import minikeras as tf

(x, y), (x_test, y_test) = tf.keras.datasets.fashion_mnist.load_data()
x, y = x[:6000].reshape(-1, 784).astype("float32") / 255, y[:6000]
x_test = x_test.reshape(-1, 784).astype("float32") / 255

optimizers = tf.keras.optimizers
rules = {
    "Adam everywhere": "adam",
    "slow below, fast head": {"*": optimizers.Adam(1e-3), "hidden_1": 0.3, "head": 3.0},
    "Adam below, SGD head": {"hidden*": optimizers.Adam(1e-3), "head": optimizers.SGD(0.1, momentum=0.9)},
    "first layer frozen": {"hidden_1": None, "*": optimizers.Adam(1e-3)},
}
accuracies = {}
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, optimizer in rules.items():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((784,)),
            tf.keras.layers.Dense(128, "relu", name="hidden_1"),
            tf.keras.layers.Dense(64, "relu", name="hidden_2"),
            tf.keras.layers.Dense(10, name="head"),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])
    history = model.fit(x, y, batch_size=128, epochs=5, verbose=0)
    axes.plot(range(1, 6), history.history["loss"], marker=".", label=name)
    accuracies[name] = model.evaluate(x_test, y_test, verbose=0)[1]

axes.set(xlabel="epoch", xticks=range(1, 6), ylabel="training loss", title=f"Fashion-MNIST, {len(x):,} images")
axes.legend()
figure.savefig("per_layer_learning_rates.png")
for name, accuracy in accuracies.items():
    print(f"{name:24} {accuracy:.4f}")
print(f"frozen first layer behind training all: {accuracies['Adam everywhere'] - accuracies['first layer frozen']:.4f}")
