"""Input-gradient regularization: a penalty on the input gradient makes the loss less sensitive to the input."""

import matplotlib.pyplot as plt

import minikeras as tf

(x, y), (x_test, y_test) = tf.keras.datasets.digits.load_data()
x, y = tf.constant(x[:400] / 16.0, tf.float32), y[:400]
x_test = tf.constant(x_test / 16.0, tf.float32)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def slope(model, images, labels):
    """Loss, and the mean squared norm of its gradient for each image."""
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(images)
        loss = loss_of(labels, model(images))
    gradient = tape.gradient(loss, images) * len(labels)
    return loss, tf.reduce_mean(tf.reduce_sum(gradient**2, axis=1))


def train(strength):
    """A network trained with that strength of the penalty; its slopes along the way."""
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(64, "tanh", name="hidden"), tf.keras.layers.Dense(10, name="head")]
    model = tf.keras.Sequential([tf.keras.Input((64,)), *layers])
    optimizer, slopes = tf.keras.optimizers.Adam(3e-3), []
    for _ in range(200):
        with tf.GradientTape() as tape:
            loss, steepness = slope(model, x, y)
            total = loss + strength * steepness
        optimizer.apply_gradients(zip(tape.gradient(total, model.trainable_variables), model.trainable_variables, strict=True))
        slopes.append(float(steepness))
    return model, slopes


figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
results = {}
for strength in (0.0, 0.3):
    model, slopes = train(strength)
    loss, steepness = slope(model, x_test, y_test)
    hits = (model(x_test).numpy().argmax(1) == y_test).mean()
    results[strength] = float(steepness)
    axes.semilogy(slopes, label=f"strength {strength}")
    print(f"strength {strength}: test accuracy {hits:.3f}, squared input gradient {steepness:.4f}")
axes.set(xlabel="step", ylabel="mean squared norm of the input gradient")
axes.legend()
figure.savefig("input_gradient_regularization.png")
print(f"the penalty divides it by {results[0.0] / results[0.3]:.1f}")
