"""What a gradient tape can do: gradients of anything, of gradients, and of a model, each checked against the formula."""

import minikeras as tf

x = tf.Variable(3.0)

with tf.GradientTape() as tape:
    y = x**2
print("d(x**2)/dx at 3:", tape.gradient(y, x).numpy())

with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        y = x**3
    slope = inner.gradient(y, x)
print("first and second derivative of x**3 at 3:", slope.numpy(), outer.gradient(slope, x).numpy())

with tf.GradientTape(persistent=True) as tape:
    tape.watch(point := tf.constant([1.0, 2.0]))
    squares = point * point
    total = tf.reduce_sum(squares)
print("several gradients of one recording:", tape.gradient(total, point).numpy(), tape.gradient(total, squares).numpy())

with tf.GradientTape() as tape:
    before = x * x
    x.assign(5.0)
    after = x * x
print("a read is a snapshot: 2*3 + 2*5 =", tape.gradient([before, after], x).numpy())

w, b = tf.Variable(tf.ones([3, 2])), tf.Variable(tf.zeros(2))
with tf.GradientTape() as tape:
    loss = tf.reduce_mean((tf.constant([[1.0, 2.0, 3.0]]) @ w + b) ** 2)
gradients = tape.gradient(loss, {"w": w, "b": b})
print("gradients keep the structure of the sources:", {name: g.shape.as_list() for name, g in gradients.items()})

with tf.GradientTape() as tape:
    z = tf.where(x > 4.0, tf.sin(x), tf.sqrt(x - 10.0))
print(f"only the branch taken counts: {tape.gradient(z, x):.4f} = cos(5)")
