"""Section `nist`: NIST's nonlinear regressions, from two starts each, by Levenberg-Marquardt: how many are wrong; seconds."""

import importlib
import time
from typing import Any

from . import clock
from .executors import NUMPY
from .settings import Settings
from .worker import Prepared, workers

QUICK = ("Misra1a", "Chwirut2")
DIGITS = 4
"""Of every parameter that a fit has to have right."""


def prepare(names: list[str]) -> Prepared:
    """The fits that are wrong; the step is all of them."""
    regressions = importlib.import_module("tests.second_order.nist")
    chosen = [(name, start) for name in names or regressions.MODELS for start in (0, 1)]
    wrong: list[tuple[str, int]] = []

    def step() -> float:
        wrong[:] = [one for one in chosen if regressions.digits(one[0], regressions.fitted(*one)) < DIGITS]
        return len(wrong)

    start = time.perf_counter()
    step()
    return Prepared({"wrong": list(wrong), "fits": len(chosen), "first": time.perf_counter() - start}, step)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row of fits that are wrong, and one of seconds."""
    with workers("nist", {NUMPY.title: (QUICK if settings.quick else (),)}) as processes:
        answer = processes[NUMPY.title].answer
        seconds = {NUMPY.title: [answer["first"], *clock.compare(processes, 2, 0.0)[NUMPY.title]]}
    title = f"{answer['fits']} fits of NIST's nonlinear regressions"
    row = {"section": "nist", "problem": f"wrong of {title}", "candidate": NUMPY.title, "unit": "fits", "blocks": 1}
    wrong = {**row, "median": len(answer["wrong"]), "minimum": len(answer["wrong"]), "wrong": answer["wrong"]}
    return [wrong, *clock.rows("nist", title, seconds, NUMPY.title, unit="s")]
