"""The pictures of a sweep: what `figures/runs.py` is given to draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures import plot_bands, plot_parallel
from .grid import cell, encoded
from .table import shown

if TYPE_CHECKING:
    from .results import RunResult, SweepResults

MOST = 8
"""Combinations with a colour of their own: more could not be told apart."""


def curves(results: SweepResults, names: str | Sequence[str], most: int = MOST, **options: Any) -> Any:
    """Mean and deviation over seeds of each combination, the best ones named."""
    chosen = [names] if isinstance(names, str) else list(names)
    groups = _by_parameters([one for one in results.ordered() if one.error is None])
    if not groups:
        raise _nothing(results)
    known = {name for group in groups for one in group for name in one.scalars}
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise ValueError(
            f"plot: there is no {', '.join(unknown) or 'name'} among the numbers in the logs, but {sorted(known)}."
        )
    order = _best_mean_first(groups, results)
    varied = _varied(results)
    labels = [_label(group[0], varied) if rank < most else None for rank, group in enumerate(order)]
    panels = {
        name: [_band(label, group, name) for label, group in zip(labels, order, strict=True) if name in group[0].history]
        for name in chosen
    }
    return plot_bands(panels, **options)


def parallel(results: SweepResults, **options: Any) -> Any:
    """Parameters that vary, the seed if there are several, and the objective."""
    good = [one for one in results if one.error is None]
    if not good:
        raise _nothing(results)
    columns: dict[str, list[Any]] = {name: [cell(one.parameters.get(name)) for one in good] for name in _varied(results)}
    if len({one.seed for one in good}) > 1 and len(columns) == 0:
        columns["seed"] = [one.seed for one in good]
    return plot_parallel(columns, results.objective, [one.metrics[results.objective] for one in good], results.mode, **options)


def _nothing(results: SweepResults) -> ValueError:
    told = f"all {len(results)} runs failed" if len(results) else "no run has ended yet"
    return ValueError(f"plot: {told}, so there is nothing to draw.")


def _by_parameters(found: Sequence[RunResult]) -> list[list[RunResult]]:
    together: dict[str, list[RunResult]] = {}
    for one in found:
        together.setdefault(repr(encoded(one.parameters)), []).append(one)
    return list(together.values())


def _best_mean_first(groups: list[list[RunResult]], results: SweepResults) -> list[list[RunResult]]:
    sign = -1.0 if results.mode == "max" else 1.0
    return sorted(groups, key=lambda group: sign * float(np.mean([one.metrics[results.objective] for one in group])))


def _varied(results: SweepResults) -> list[str]:
    """The parameters that are not the same in all runs."""
    names = dict.fromkeys(name for one in results for name in one.parameters)
    return [name for name in names if len({repr(encoded(one.parameters.get(name))) for one in results}) > 1]


def _label(one: RunResult, varied: Sequence[str]) -> str:
    found = [f"{name}={shown([cell(one.parameters[name])])[0]}" for name in varied if name in one.parameters]
    return ", ".join(found) or "all runs"


def _band(label: str | None, group: Sequence[RunResult], name: str) -> Any:
    """Mean and deviation at the epochs at which any run of a combination has the value."""
    from ..figures.runs import Band

    taken = [dict(zip(one.logged_at.get(name, ()), one.history.get(name, ()), strict=True)) for one in group]
    epochs = sorted({epoch for values in taken for epoch in values})
    columns = [[values[epoch] for values in taken if epoch in values] for epoch in epochs]
    mean = np.array([np.mean(column) for column in columns])
    several = any(len(column) > 1 for column in columns)
    deviation = np.array([np.std(column, ddof=1) if len(column) > 1 else 0.0 for column in columns])
    return Band(label, np.array(epochs), mean, deviation if several else None)
