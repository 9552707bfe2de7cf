"""One persistent tape, two optimizers, independent updates of the layers; and the same by `compile(optimizer={...})`."""

import numpy as np

import minikeras as tf

(x, y), _ = tf.keras.datasets.digits.load_data()
x, y = tf.constant(x / 16.0, tf.float32), tf.constant(y)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizers = tf.keras.optimizers


def network():
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(32, "relu", name="hidden"), tf.keras.layers.Dense(10, name="head")]
    return tf.keras.Sequential([tf.keras.Input((64,)), *layers])


by_hand = network()
hidden, head = by_hand.get_layer("hidden"), by_hand.get_layer("head")
adam, sgd = optimizers.Adam(3e-3), optimizers.SGD(0.3)
for step in range(100):
    with tf.GradientTape(persistent=True) as tape:
        loss = loss_of(y, by_hand(x, training=True))
    # One record serves both layers; the head is updated at every other step only.
    hidden_gradients = tape.gradient(loss, hidden.trainable_variables)
    head_gradients = tape.gradient(loss, head.trainable_variables)
    del tape
    adam.apply_gradients(zip(hidden_gradients, hidden.trainable_variables, strict=True))
    if step % 2 == 0:
        sgd.apply_gradients(zip(head_gradients, head.trainable_variables, strict=True))

model = network()
model.compile(optimizer={"hidden": optimizers.Adam(3e-3), "head": optimizers.Every(2, optimizers.SGD(0.3))}, loss=loss_of)
history = model.fit(x, y, batch_size=len(x), epochs=100, shuffle=False, verbose=0).history
model.summary()

print(f"loss {history['loss'][0]:.3f} -> {history['loss'][-1]:.3f}, by hand {float(loss):.3f}")
difference = max(np.abs(a - b).max() for a, b in zip(by_hand.get_weights(), model.get_weights(), strict=True))
print(f"largest difference between these weights and fit's: {difference}")
