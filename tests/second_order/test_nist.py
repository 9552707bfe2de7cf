"""Levenberg-Marquardt fits NIST's nonlinear regressions, each from both of its starts."""

import pytest
from second_order.nist import MODELS, digits, regression

import minikeras as tf
from minikeras import keras

MOST = 1000
"""Steps of a fit; the longest takes 762."""


def fitted(name, start):
    """The parameters where steps have come to rest."""
    w, fit = regression(name, start)
    optimizer = keras.optimizers.LevenbergMarquardt(scaling=True, acceleration=0.75)
    optimizer.build([w])
    step, rest = tf.function(lambda: optimizer.minimize(fit, [w])), 0
    for _ in range(MOST):
        before = w.numpy()
        step()
        rest = rest + 1 if (abs(w.numpy() - before) < 1e-9 * abs(before)).all() else 0
        if rest == 3:
            break
    assert step.eager_calls == 0
    return w


@pytest.mark.parametrize("name", ["Misra1a", "MGH09", "MGH10"])
def test_regressions_of_every_difficulty_are_right_to_four_digits(name):
    """The first start of MGH10, far away at the end of a narrow, curved valley, is the hardest of all."""
    assert min(digits(name, fitted(name, start)) for start in (0, 1)) >= 4


@pytest.mark.slow
def test_all_regressions_are_right_to_four_digits():
    wrong = [(name, start) for name in MODELS for start in (0, 1) if digits(name, fitted(name, start)) < 4]
    assert not wrong
