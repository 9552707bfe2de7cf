"""Every golden case is run or named as one for a later stage, and what is named really does not exist yet."""

from __future__ import annotations

import pytest
from golden_numbers import LATER_CLASSES, LATER_OPTIONS, golden, now

import minikeras as tf


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in LATER_CLASSES.items() for name in sorted(names)])
def test_what_is_left_for_later_does_not_exist_yet(kind, name):
    """Once it exists its golden cases must run: take it off the list."""
    assert not hasattr(getattr(tf.keras, kind), name)


@pytest.mark.parametrize(
    ("kind", "cases", "class_key", "left_out"),
    [
        ("optimizers", golden("optimizers")["cases"], "optimizer", 137),
        ("losses", golden("losses")["cases"], "loss", 27),
        ("metrics", golden("metrics")["cases"], "metric", 98),
        ("layers", golden("layers")["cases"], "layer", 16),
        ("regularizers", golden("activations_regularizers_constraints")["regularizers"]["cases"], "class", 2),
        ("constraints", golden("activations_regularizers_constraints")["constraints"]["cases"], "class", 0),
        ("initializers", golden("initializers")["cases"], "class", 0),
    ],
)
def test_the_number_of_cases_left_for_later_only_shrinks(kind, cases, class_key, left_out):
    assert len(cases) - len(now(cases, kind, class_key)) == left_out


def test_the_number_of_options_left_for_later_only_shrinks():
    optimizers = now(golden("optimizers")["cases"], "optimizers", "optimizer")
    assert sum(bool(LATER_OPTIONS["Optimizer"] & case["config"].keys()) for case in optimizers) == 15
    layers = now(golden("layers")["cases"], "layers", "layer")
    assert sum(any(case["config"].get(o) for o in LATER_OPTIONS["BatchNormalization"]) for case in layers) == 1


def test_the_sections_of_callbacks_left_for_later_are_those_of_missing_callbacks():
    done = {"meta", "fit_hook_order", "evaluate_hook_order", "predict_hook_order"}
    done |= {"validation_split", "class_weight_to_sample_weights"}
    later = {"sequences", "early_stopping", "reduce_lr_on_plateau", "model_checkpoint"}
    assert set(golden("callbacks")) == done | later


def test_every_activation_is_run_or_named_as_left_for_later():
    names = set(golden("activations_regularizers_constraints")["activations"])
    assert len(names & LATER_CLASSES["activations"]) == 13 == len(LATER_CLASSES["activations"])
