"""What a command line changes about an experiment: its size, its parameters, which measurements are made."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from benchctl.errors import UsageError
from benchctl.experiment import form
from benchctl.nearest import suggestion
from benchctl.report.numbers import counted
from benchctl.results.experiment import ComparisonSpec, Expectation, ExperimentSpec, Measurement
from benchctl.results.model import MOST_FORKS
from benchctl.stats.multiplicity import FIRST_LOOK, MOST_BLOCKS

_FEWEST_FORKS = 1


@dataclass(frozen=True)
class Changes:
    """What replaces what the file says.

    Attributes:
        forks: None for the file's; the most of a side with `until_decided`.
        docs, heap_mb, seed: None for the file's.
        params: over those of the experiment and of its measurements.
        only: names of the measurements that are made; empty for all.
        until_decided: give forks to open expectations; all begin with as many as the first look takes.
    """

    forks: int | None = None
    docs: int | None = None
    heap_mb: int | None = None
    seed: int | None = None
    params: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    only: tuple[str, ...] = ()
    until_decided: bool = False


def change(spec: ExperimentSpec, changes: Changes) -> ExperimentSpec:
    """The experiment with what was asked for; comparisons without both measurements are left out.

    Raises:
        UsageError: a measurement does not exist, or there would be no fork, or more than can be.
    """
    decided = changes.until_decided
    fewest, most = (FIRST_LOOK, MOST_BLOCKS) if decided else (_FEWEST_FORKS, form.MOST_FORKS)
    if changes.forks is not None and not fewest <= changes.forks <= most:
        bound = f"at least {fewest}" if changes.forks < fewest else f"at most {most:,}"
        raise UsageError(f"--forks must be {bound}{' with --until-decided' if decided else ''}")
    sizes = {
        name: value
        for name, value in (
            ("forks", FIRST_LOOK if decided else changes.forks),
            ("most_forks", (changes.forks or MOST_FORKS) if decided else None),
            ("docs", changes.docs),
            ("heap_mb", changes.heap_mb),
            ("seed", changes.seed),
        )
        if value is not None
    }
    changed = msgspec.structs.replace(
        spec,
        params={**spec.params, **changes.params},
        measurements=tuple(_overridden(one, changes.params) for one in spec.measurements),
        until_decided=decided,
        **sizes,
    )
    return _narrowed(changed, changes.only) if changes.only else changed


def left_out(before: ExperimentSpec, after: ExperimentSpec) -> str:
    """What a narrower experiment does not ask any more, for readers; empty for nothing."""
    pairs = (
        ("measurement", len(before.measurements) - len(after.measurements)),
        ("comparison", len(before.comparisons) - len(after.comparisons)),
        ("expectation", _expectations(before) - _expectations(after)),
        ("call site", len(before.call_sites) - len(after.call_sites)),
    )
    return ", ".join(counted(number, word) for word, number in pairs if number)


def _expectations(spec: ExperimentSpec) -> int:
    return len(spec.expectations) + len(spec.fates)


def _overridden(measurement: Measurement, params: Mapping[str, Any]) -> Measurement:
    """With the command line's values in place of its own; what it does not set is the experiment's."""
    own = {name: params.get(name, value) for name, value in measurement.params.items()}
    return msgspec.structs.replace(measurement, params=own)


def _narrowed(spec: ExperimentSpec, only: Iterable[str]) -> ExperimentSpec:
    known = [one.name for one in spec.measurements]
    wanted = set(only)
    for name in only:
        if name not in known:
            raise UsageError(
                f"--measurement: '{spec.name}' has no measurement '{name}'", hint=suggestion(name, known)
            )
    measurements = tuple(one for one in spec.measurements if one.name in wanted)
    tables = tuple(
        msgspec.structs.replace(table, rows=rows)
        for table in spec.tables
        if (rows := tuple(row for row in table.rows if _measured(row, wanted)))
    )
    compared = {row.name for table in tables for row in table.rows}
    sites = {one.name: one for one in spec.call_sites}
    used = {variant for one in measurements for variant in one.variants}
    return msgspec.structs.replace(
        spec,
        variants=tuple(one for one in spec.variants if one.name in used),
        measurements=measurements,
        tables=tables,
        expectations=tuple(one for one in spec.expectations if _answerable(one, compared)),
        call_sites=tuple(one for one in spec.call_sites if one.measurement in wanted),
        fates=tuple(one for one in spec.fates if sites[one.call_site].measurement in wanted),
    )


def _measured(row: ComparisonSpec, names: set[str]) -> bool:
    return {row.baseline.measurement, row.contender.measurement} <= names


def _answerable(expectation: Expectation, compared: set[str]) -> bool:
    return {*expectation.comparisons, *filter(None, (expectation.than,))} <= compared
