"""A training step that Python runs once: its program, its counters, and losses that are the eager ones bit for bit."""

import minikeras as tf

(x, y), _ = tf.keras.datasets.digits.load_data()
x, y = tf.constant(x / 16.0, tf.float32), tf.constant(y)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make_step():
    """A network from the same seed, and a step that trains it."""
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(32, "relu", name="hidden"), tf.keras.layers.Dense(10, name="head")]
    model = tf.keras.Sequential([tf.keras.Input((64,)), *layers])
    optimizer = tf.keras.optimizers.Adam(3e-3)
    optimizer.build(model.trainable_variables)

    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def train(step):
    """The loss of each step in five epochs; the last batch of an epoch is smaller."""
    starts = list(range(0, len(x), 64)) * 5
    return [float(step(x[start : start + 64], y[start : start + 64])) for start in starts]


eager = train(make_step())
compiled_step = tf.function(make_step())
compiled = train(compiled_step)

print("The program of a step:")
for line in str(compiled_step.program(x[:64], y[:64])).splitlines():
    print(f"  {line[:110]}{'...' if len(line) > 110 else ''}")
print(compiled_step)
print(f"{compiled_step.kernels} calls, {compiled_step.buffers} pieces of memory, {compiled_step.bytes:,} bytes in two programs")
print(f"loss {compiled[0]:.3f} -> {compiled[-1]:.3f}")
print(f"steps whose loss differs from the eager one: {sum(a != b for a, b in zip(eager, compiled, strict=True))}")
