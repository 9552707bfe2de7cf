"""Every golden case is of something that exists, so that the tests that go through the files leave none out."""

import pytest
from golden_numbers import golden

import minikeras as tf

FUNCTIONS = golden("activations_regularizers_constraints")
CASES = {
    "optimizers": (golden("optimizers")["cases"], "optimizer"),
    "losses": (golden("losses")["cases"], "loss"),
    "metrics": (golden("metrics")["cases"], "metric"),
    "layers": (golden("layers")["cases"] + golden("windows")["cases"] + golden("attention")["cases"], "layer"),
    "regularizers": (FUNCTIONS["regularizers"]["cases"], "class"),
    "constraints": (FUNCTIONS["constraints"]["cases"], "class"),
    "initializers": (golden("initializers")["cases"], "class"),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_class_of_every_case_exists(kind):
    cases, key = CASES[kind]
    assert cases
    assert {case[key] for case in cases if not hasattr(getattr(tf.keras, kind), case[key])} == set()


def test_every_section_of_callbacks_is_known():
    hooks = {"meta", "fit_hook_order", "evaluate_hook_order", "predict_hook_order"}
    data = {"validation_split", "class_weight_to_sample_weights"}
    decisions = {"sequences", "early_stopping", "reduce_lr_on_plateau", "model_checkpoint"}
    assert set(golden("callbacks")) == hooks | data | decisions


def test_every_activation_is_run():
    names = set(FUNCTIONS["activations"])
    assert {name for name in names if not hasattr(tf.keras.activations, name)} == {"relu_kwargs", "gelu_approx"}
