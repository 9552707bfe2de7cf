"""Why is my gradient None? Six ways to lose one, and what `tape.explain` says of each."""

import numpy as np

import minikeras as tf

explained = {}


def show(title, tape, target, source):
    """Print that the gradient is None, and why."""
    gradient = tape.gradient(target, source)
    found = tape.explain(target, source)
    explained[title] = gradient is None and not found
    print(f"{title}: {gradient}\n  {found.reason}: {found.hint}")


w = tf.Variable([1.0, 2.0], name="w")
x = tf.constant([3.0, 4.0])

with tf.GradientTape(persistent=True) as tape:
    y = tf.reduce_sum(x * x)
show("a tensor that the tape does not watch", tape, y, x)

with tf.GradientTape(persistent=True, trace=True) as tape:
    y = tf.reduce_sum(tf.constant(np.square(w * 1.0)))
show("a detour through NumPy", tape, y, w)

with tf.GradientTape(persistent=True, trace=True) as tape:
    hits = tf.cast(tf.argmax(w) == 1, tf.float32)
show("an accuracy in place of a loss", tape, hits, w)

with tf.GradientTape(persistent=True, trace=True) as tape:
    y = tf.reduce_sum(tf.stop_gradient(w * w))
show("stop_gradient on the only path", tape, y, w)

counter = tf.Variable(3, name="counter")
with tf.GradientTape(persistent=True) as tape:
    y = tf.reduce_sum(w) * tf.cast(counter, tf.float32)
show("an integer", tape, y, counter)

frozen = tf.keras.layers.Dense(1)
frozen.trainable = False
with tf.GradientTape(persistent=True) as tape:
    y = tf.reduce_sum(frozen(x[None]))
show("a frozen layer", tape, y, frozen.kernel)

with tf.GradientTape() as tape:
    y = tf.reduce_sum(w * w)
print(f"and one that is there: {tape.gradient(y, w).numpy()}")
print(f"explained: {sum(explained.values())} of {len(explained)}")
