"""The shipped images can be learned: a perceptron in plain NumPy reaches the accuracy measured when they were chosen.

Nothing of minikeras but the loaders is used, so a failure here is a failure of the data.
"""

import numpy as np

from minikeras.keras import datasets


def test_accuracy_of_a_small_perceptron_on_digits():
    (x_train, y_train), (x_test, y_test) = datasets.digits.load_data()
    accuracy = accuracy_after_training(x_train / 16, y_train, x_test / 16, y_test, (64, 64, 10), epochs=30)
    assert accuracy >= 0.95


def test_accuracy_of_a_small_perceptron_on_the_fashion_subset():
    (x_train, y_train), (x_test, y_test) = datasets.fashion_mnist.load_data(subset="6k")
    x_train, x_test = (images.reshape(len(images), -1).astype(np.float32) / 255 for images in (x_train, x_test))
    accuracy = accuracy_after_training(x_train, y_train, x_test, y_test, (784, 64, 10), epochs=6)
    assert accuracy >= 0.80


def accuracy_after_training(x_train, y_train, x_test, y_test, widths, epochs):
    """Test accuracy of a ReLU network trained with Adam on batches of 32."""
    random = np.random.default_rng(0)
    shapes = list(zip(widths[:-1], widths[1:], strict=True))
    weights = [random.normal(0, (2 / fan_in) ** 0.5, (fan_in, fan_out)) for fan_in, fan_out in shapes]
    parameters = [array.astype(np.float32) for array in [*weights, *(np.zeros(fan_out) for _, fan_out in shapes)]]
    first, second = ([np.zeros_like(array) for array in parameters] for _ in range(2))
    step = 0
    for _ in range(epochs):
        for batch in np.array_split(random.permutation(len(x_train)), len(x_train) // 32):
            step += 1
            for position, gradient in enumerate(gradients(parameters, x_train[batch], y_train[batch])):
                first[position] += 0.1 * (gradient - first[position])
                second[position] += 0.001 * (gradient**2 - second[position])
                rate = 1e-3 * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
                parameters[position] -= rate * first[position] / (np.sqrt(second[position]) + 1e-7)
    return float((forward(parameters, x_test)[-1].argmax(axis=1) == y_test).mean())


def forward(parameters, x):
    """Outputs of every layer, the input first and the logits last."""
    layers = len(parameters) // 2
    outputs = [x.astype(np.float32)]
    for layer in range(layers):
        values = outputs[-1] @ parameters[layer] + parameters[layers + layer]
        outputs.append(values if layer == layers - 1 else np.maximum(values, 0))
    return outputs


def gradients(parameters, x, y):
    """Gradients of the mean cross-entropy, in the order of the parameters."""
    layers = len(parameters) // 2
    outputs = forward(parameters, x)
    exponentials = np.exp(outputs[-1] - outputs[-1].max(axis=1, keepdims=True))
    delta = exponentials / exponentials.sum(axis=1, keepdims=True)
    delta[np.arange(len(y)), y] -= 1
    delta /= len(y)
    weight_gradients, bias_gradients = [], []
    for layer in reversed(range(layers)):
        weight_gradients.insert(0, outputs[layer].T @ delta)
        bias_gradients.insert(0, delta.sum(axis=0))
        delta = (delta @ parameters[layer].T) * (outputs[layer] > 0)
    return [*weight_gradients, *bias_gradients]
