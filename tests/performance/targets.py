"""What the project aims at, beside what a run measured: by minima, since others use the computer too."""

from typing import Any, NamedTuple

from .busy import AT_ONCE
from .ensembles import ALONE, BEYOND, JAX, LOOP, MEMBERS, SWEEP, TOGETHER
from .executors import NATIVE, NUMPY, OWN
from .keras_models import MODELS
from .models import PREDICTS, TORCH
from .problems import PROBLEMS
from .ranks import NONE, ONE, TWO
from .training import FIT, KERAS, NATIVE_FIT

BY_HAND = "NumPy by hand, out="
SIZES = ("tiny", "small", "medium", "large")

Row = dict[str, Any]


class Target(NamedTuple):
    """A figure, and the most that it may be.

    Attributes:
        figure: in words.
        section: where it is measured.
        problem: how the problem's title begins; it begins so for one problem only.
        own: the candidate of this project.
        other: the candidate it is divided by, of several the fastest; None for a figure in the unit of the row.
        most: the ratio, or the figure.
    """

    figure: str
    section: str
    problem: str
    own: str
    other: str | tuple[str, ...] | None
    most: float

    @property
    def of(self) -> str:
        """What it is a ratio to, in words."""
        return self.other if isinstance(self.other, str) else " or ".join(self.other or ())


def _sizes(figure: str, section: str, problem: str, own: str, other: str, most: dict[str, float]) -> list[Target]:
    """One target for each size."""
    return [
        Target(f"{figure}, {size}", section, problem.format(PROBLEMS[size].title(size)), own, other, limit)
        for size, limit in most.items()
    ]


def _each(*limits: float) -> dict[str, float]:
    return dict(zip(SIZES, limits, strict=True))


def _ensembles(native: int, *limits: float) -> list[Target]:
    """How many times as long an epoch of all members takes as that of one, for each size."""
    own, other = list(TOGETHER)[native], list(ALONE)[native]
    return [
        Target(
            f"{count} {size} members{', native' * native}", "ensembles", f"epoch, {count} members, {size}", own, other, limit
        )
        for (size, count), limit in zip(MEMBERS.items(), limits, strict=True)
    ]


def _each_model(figure: str, task: str, own: str, other: str | tuple[str, ...], most: dict[str, float]) -> list[Target]:
    """One target for each of these models."""
    return [Target(f"{figure}, {label}", "models", f"{task}, {label}", own, other, limit) for label, limit in most.items()]


STEP, OF_FIT = "{}", "step of fit, {}"
ON_JAX = KERAS.format("jax")
BOTH = (ON_JAX, TORCH)
BESIDE_TORCH = ("convnet", "resnet", "autoencoder", "transformer", "mixer")
TARGETS = (
    *_sizes("native call", "steps", STEP, NATIVE.title, "JAX jit", _each(0.4, 0.45, 0.9, 1.0)),
    Target("native call, with BatchNormalization", "steps", "medium with", NATIVE.title, "JAX jit", 0.9),
    *_sizes("`fit`, native", "training", OF_FIT, NATIVE_FIT, ON_JAX, _each(0.06, 0.12, 0.85, 1.0)),
    *_sizes("`fit`, by default", "training", OF_FIT, FIT, ON_JAX, _each(0.3, 0.5, 1.2, 1.2)),
    *_sizes("call by NumPy", "steps", STEP, NUMPY.title, BY_HAND, _each(1.2, 1.0, 0.95, 0.9)),
    *_sizes("eager", "steps", STEP, OWN, TORCH, _each(0.65, 0.65, 1.0, 1.1)),
    *_each_model("native `fit` : Keras", "fit", NATIVE_FIT, ON_JAX, dict.fromkeys(MODELS, 0.7) | {"lstm": 0.8}),
    *_each_model("native `fit` : PyTorch", "fit", NATIVE_FIT, TORCH, dict.fromkeys(BESIDE_TORCH, 1.2)),
    *_each_model("`fit` by default : Keras", "fit", FIT, ON_JAX, dict.fromkeys(MODELS, 1.4) | {"lstm": 2.0}),
    *_each_model("native `predict` : faster one", "predict", PREDICTS[NATIVE_FIT], BOTH, dict.fromkeys(MODELS, 1.0)),
    *_each_model("`predict` by default : faster one", "predict", PREDICTS[FIT], BOTH, dict.fromkeys(MODELS, 2.0)),
    *[
        Target(f"`fit`, by default, {count} at once", "busy", "", f"{FIT}, {count} at once", FIT, limit)
        for count, limit in zip(AT_ONCE, (1.1, 2.3), strict=True)
    ],
    Target("one observation through a policy, `model(x)`", "predict", "one observation", f"{OWN} model(x)", TORCH, 1.0),
    Target("Adam, native, 1,000,000 weights", "optimizers", "Adam alone", NATIVE.title, "PyTorch, fused", 0.8),
    Target("Hessian of 1,015, native", "derivatives", "Hessian of 1,015", NATIVE.title, "torch.func", 0.8),
    Target("Newton step of 1,015, native", "newton", "Newton step of 1,015", NATIVE.title, "torch.func", 0.8),
    Target("Newton step of 4,929, native", "newton", "Newton step of 4,929", NATIVE.title, "JAX jit", 0.9),
    Target("Levenberg-Marquardt, a step on a curve, `minimize`", "curve", "", OWN, None, 0.25),
    Target("the same by `tf.function`", "curve", "", NUMPY.title, None, 0.25),
    Target("the same, native", "curve", "", NATIVE.title, None, 0.25),
    Target("NIST's regressions, wrong of 54 fits", "nist", "wrong of", NUMPY.title, None, 0.0),
    Target("all of NIST's regressions", "nist", "54 fits", NUMPY.title, None, 5.0),
    Target("100 multiplications and sines with gradient, eager", "chain", "", OWN, "PyTorch eager", 0.7),
    *_ensembles(1, 5.0, 6.0, 8.0),
    *_ensembles(0, 10.0, 9.0, 8.0),
    Target("memory of 8 members", "ensembles", "peak memory of", BEYOND, None, 50.0),
    Target("96 runs on digits", "ensembles", "96 runs on digits", SWEEP, LOOP, 0.25),
    Target("the same, beside Keras", "ensembles", "96 runs on digits", SWEEP, JAX, 0.05),
    Target("two ranks", "ranks", "", TWO, NONE, 0.62),
    Target("two ranks, native", "ranks", "", f"{TWO}, native", f"{NONE}, native", 0.62),
    Target("a strategy on one rank", "ranks", "", ONE, NONE, 1.03),
    Target("a strategy on one rank, native", "ranks", "", f"{ONE}, native", f"{NONE}, native", 1.03),
    Target("import beyond NumPy", "imports", "", OWN, None, 0.035),
    Target("the same with `keras`", "imports", "", f"{OWN}.keras", None, 0.1),
    Target("peak memory of the large loop, by NumPy", "memory", "peak of the large", NUMPY.title, None, 120.0),
    Target("peak memory of the large loop, native", "memory", "peak of the large", NATIVE.title, None, 200.0),
)


def results(rows: list[Row], before: list[Row] | None = None) -> list[Row]:
    """For each target that the rows have numbers for: ratio or figure by minima and by medians, and whether it is reached.

    Args:
        rows: of all sections.
        before: results of an earlier run, to stand beside these.
    """
    earlier = {result["figure"]: result["minimum"] for result in before or []}
    found = []
    for target in TARGETS:
        own, others = _row(rows, target, target.own), _others(rows, target)
        if own is None or (target.other and not others):
            continue
        minimum, median = [own[key] / min([other[key] for other in others], default=1.0) for key in ("minimum", "median")]
        of = f"x {target.of}" if others else own["unit"]
        result = {"figure": target.figure, "of": of, "target": target.most, "minimum": minimum, "median": median}
        found.append({**result, "before": earlier.get(target.figure), "reached": minimum <= target.most})
    return found


def _others(rows: list[Row], target: Target) -> list[Row]:
    """The rows that a target's own is divided by; none if one of them is missing."""
    names = (target.other,) if isinstance(target.other, str) else target.other or ()
    found = [row for name in names if (row := _row(rows, target, name)) is not None]
    return found if len(found) == len(names) else []


def _row(rows: list[Row], target: Target, candidate: str) -> Row | None:
    """The row of a candidate that a target is about."""
    for row in rows:
        if (row["section"], row["candidate"]) == (target.section, candidate) and row["problem"].startswith(target.problem):
            return row
    return None


def model_of(row: Row) -> str:
    """The model of the section `models` that a result is about; an empty string for other sections."""
    label = row["figure"].rpartition(", ")[2]
    return label if label in MODELS else ""


def by_model(found: list[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The ratios of the section `models`: headings, and a line for each model; targets in brackets, misses in bold."""
    columns: dict[str, dict[str, str]] = {}
    for row in filter(model_of, found):
        number = f"{row['minimum']:.2f}" if row["reached"] else f"**{row['minimum']:.2f}**"
        columns.setdefault(row["figure"].rpartition(", ")[0], {})[model_of(row)] = f"{number} ({row['target']:g})"
    return ("", *columns), [(label, *(own.get(label, "") for own in columns.values())) for label in MODELS]


HEADINGS = ("figure", "unit", "target", "before", "measured", "by medians", "")


def cells(found: list[Row]) -> list[tuple[str, ...]]:
    """The table without its headings."""
    lines = []
    for row in found:
        numbers = [row[key] for key in ("target", "before", "minimum", "median")]
        lines.append((row["figure"], row["of"], *map(_number, numbers), "reached" if row["reached"] else "missed"))
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
