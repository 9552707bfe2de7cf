"""Every loss against its formula in NumPy, at full float64 accuracy, and its derivatives against difference quotients.

The golden numbers of losses were computed by Keras in single precision; here nothing is.
"""

import numpy as np
import pytest
from golden_numbers import golden

import minikeras as tf

LOSSES = golden("losses")
EPSILON = 1e-7


def inside(p):
    return np.clip(p, EPSILON, 1 - EPSILON)


def shares(p):
    return inside(p / p.sum(-1, keepdims=True))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def binary(y, p):
    return -(y * np.log(inside(p)) + (1 - y) * np.log(1 - inside(p)))


def smoothed(y, s, classes):
    return y * (1 - s) + s / classes


def focal(y, p, gamma):
    return (1 - (y * p + (1 - y) * (1 - p))) ** gamma * binary(y, p)


def signs(y):
    return 2 * y - 1 if set(np.unique(y)) <= {0, 1} else y


def huber(e, delta):
    return np.where(abs(e) <= delta, e**2 / 2, delta * abs(e) - delta**2 / 2)


def angles(y, p, axis):
    norms = np.linalg.norm(y, axis=axis) * np.linalg.norm(p, axis=axis)
    return -(y * p).sum(axis) / norms


def tversky(y, p, alpha, beta, axis):
    common = (y * p).sum(axis)
    return 1 - common / (common + alpha * ((1 - y) * p).sum(axis) + beta * (y * (1 - p)).sum(axis) + EPSILON)


def circle(y, x, gamma, margin):
    """Sun et al. (2020), equation (6), in logarithms of sums over pairs."""
    similarity = np.minimum(x @ x.T, 1)
    rows = []
    for i, row in enumerate(similarity):
        partners = [j for j in range(len(y)) if y[j] == y[i] and i != j]
        others = [j for j in range(len(y)) if y[j] != y[i]]
        near = np.exp(-gamma * np.maximum(1 + margin - row[partners], 0) * (row[partners] - 1 + margin)).sum()
        far = np.exp(gamma * np.maximum(row[others] + margin, 0) * (row[others] - margin)).sum()
        rows.append(np.log1p(near * far))
    return np.array(rows)


FORMULAS = {
    ("MeanSquaredError", "reg"): ({}, lambda y, p: ((y - p) ** 2).mean(-1)),
    ("MeanAbsoluteError", "reg"): ({}, lambda y, p: abs(y - p).mean(-1)),
    ("MeanAbsolutePercentageError", "reg"): ({}, lambda y, p: 100 * abs((y - p) / np.maximum(abs(y), EPSILON)).mean(-1)),
    ("MeanSquaredLogarithmicError", "pos"): ({}, lambda y, p: ((np.log1p(y) - np.log1p(p)) ** 2).mean(-1)),
    ("CosineSimilarity", "reg"): ({}, lambda y, p: angles(y, p, -1)),
    ("Huber", "reg"): ({"delta": 0.4}, lambda y, p: huber(p - y, 0.4).mean(-1)),
    ("LogCosh", "reg"): ({}, lambda y, p: np.log(np.cosh(p - y)).mean(-1)),
    ("Poisson", "pos"): ({}, lambda y, p: (p - y * np.log(p + EPSILON)).mean(-1)),
    ("KLDivergence", "cat_prob"): (
        {},
        lambda y, p: (np.clip(y, EPSILON, 1) * np.log(np.clip(y, EPSILON, 1) / np.clip(p, EPSILON, 1))).sum(-1),
    ),
    ("Hinge", "hinge01"): ({}, lambda y, p: np.maximum(1 - signs(y) * p, 0).mean(-1)),
    ("Hinge", "hinge_pm"): ({}, lambda y, p: np.maximum(1 - y * p, 0).mean(-1)),
    ("SquaredHinge", "hinge01"): ({}, lambda y, p: (np.maximum(1 - signs(y) * p, 0) ** 2).mean(-1)),
    ("CategoricalHinge", "cat_logit"): (
        {},
        lambda y, p: np.maximum(((1 - y) * p).max(-1) - (y * p).sum(-1) + 1, 0),
    ),
    ("BinaryCrossentropy", "bin_prob"): ({}, lambda y, p: binary(y, p).mean(-1)),
    ("BinaryCrossentropy", "bin_logit"): (
        {"from_logits": True, "label_smoothing": 0.2},
        lambda y, x: (np.log1p(np.exp(x)) - x * smoothed(y, 0.2, 2)).mean(-1),
    ),
    ("BinaryFocalCrossentropy", "bin_prob"): (
        {"apply_class_balancing": True, "alpha": 0.3, "gamma": 1.5},
        lambda y, p: ((0.3 * y + 0.7 * (1 - y)) * focal(y, p, 1.5)).mean(-1),
    ),
    ("BinaryFocalCrossentropy", "bin_logit"): ({"from_logits": True}, lambda y, x: focal(y, sigmoid(x), 2).mean(-1)),
    ("CategoricalCrossentropy", "cat_unnorm"): ({}, lambda y, p: -(y * np.log(shares(p))).sum(-1)),
    ("CategoricalCrossentropy", "cat_logit"): (
        {"from_logits": True, "label_smoothing": 0.2},
        lambda y, x: -(smoothed(y, 0.2, 4) * np.log(softmax(x))).sum(-1),
    ),
    ("CategoricalFocalCrossentropy", "cat_prob"): (
        {"alpha": [0.1, 0.2, 0.3, 0.4], "gamma": 1.5},
        lambda y, p: -(np.array([0.1, 0.2, 0.3, 0.4]) * (1 - shares(p)) ** 1.5 * y * np.log(shares(p))).sum(-1),
    ),
    ("CategoricalFocalCrossentropy", "cat_logit"): (
        {"from_logits": True},
        lambda y, x: -(0.25 * (1 - shares(softmax(x))) ** 2 * y * np.log(shares(softmax(x)))).sum(-1),
    ),
    ("SparseCategoricalCrossentropy", "sparse_prob"): ({}, lambda y, p: -np.log(shares(p)[np.arange(len(y)), y])),
    ("SparseCategoricalCrossentropy", "sparse_logit"): (
        {"from_logits": True},
        lambda y, x: -np.log(softmax(x)[np.arange(len(y)), y]),
    ),
    ("CategoricalGeneralizedCrossEntropy", "sparse_prob"): (
        {"q": 0.7},
        lambda y, p: (1 - p[np.arange(len(y)), y] ** 0.7) / 0.7,
    ),
    ("Dice", "seg"): (
        {"axis": [1, 2, 3]},
        lambda y, p: 1 - 2 * (y * p).sum((1, 2, 3)) / (y.sum((1, 2, 3)) + p.sum((1, 2, 3)) + EPSILON),
    ),
    ("Tversky", "seg"): (
        {"alpha": 0.3, "beta": 0.7, "axis": [1, 2, 3]},
        lambda y, p: tversky(y, p, 0.3, 0.7, (1, 2, 3)),
    ),
    ("Circle", "circle"): (
        {"gamma": 4.0, "margin": 0.25},
        lambda y, x: circle(y, x, 4.0, 0.25),
    ),
}
"""(loss, data) to its options and formula."""


def made(key):
    """The loss without reduction, labels and predictions."""
    name, data = key
    loss = getattr(tf.keras.losses, name)(reduction=None, **FORMULAS[key][0])
    return loss, *(np.asarray(LOSSES["data"][data][part]) for part in ("y_true", "y_pred"))


@pytest.mark.parametrize("key", FORMULAS, ids="-".join)
def test_a_loss_is_its_formula(key, float64):
    loss, y_true, y_pred = made(key)
    values = FORMULAS[key][1](y_true, y_pred)
    np.testing.assert_allclose(loss(y_true, y_pred).numpy(), values, rtol=1e-11)
    weights = np.linspace(0.5, 2.0, len(values))
    counts = values > 0.0 if key[0] == "Circle" else np.ones(len(values))  # a row without partners does not count
    for reduction, expected in {
        "sum_over_batch_size": (values * weights).sum() / counts.sum(),
        "mean": (values * weights).sum() / counts.sum(),
        "sum": (values * weights).sum(),
        "mean_with_sample_weight": (values * weights).sum() / (counts * weights).sum(),
    }.items():
        loss.reduction = reduction
        np.testing.assert_allclose(loss(y_true, y_pred, weights).numpy(), expected, rtol=1e-11)
        np.testing.assert_allclose(loss(y_true, y_pred, weights[:, None]).numpy(), expected, rtol=1e-11)


@pytest.mark.parametrize("key", FORMULAS, ids="-".join)
def test_both_derivatives_of_a_loss_are_those_of_its_values(key):
    loss, y_true, y_pred = made(key)
    tf.test.check_gradients(lambda x: loss(y_true, x), y_pred, order=2)


def test_every_loss_has_a_formula():
    """All that are Losses, but those made of a user's function and the one of sequences, which has a file of its own."""
    names = {name for name, thing in vars(tf.keras.losses).items() if isinstance(thing, type)}
    assert names - {name for name, _ in FORMULAS} == {"Loss", "LossFunctionWrapper", "CTC", "Reduction"}
