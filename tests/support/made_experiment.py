"""Experiments made by hand: plans of a few tasks, and forks whose values a test chooses."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchctl.experiment.record import (
    CallSite,
    ComparisonSpec,
    Expectation,
    ExperimentRecord,
    ExperimentSpec,
    Measurement,
    TableSpec,
)
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Plan
from benchctl.track.model import Challenge, Task
from builders import CORPUS, make_fork, make_plan, make_record, make_summary

RANGE = Task("range", iterations=300)

Times = Mapping[str, Mapping[str, Sequence[float]]]
"""Measurement -> variant -> mean service time of `range` in every fork, milliseconds."""


def comparison(name: str, baseline: str, contender: str, **changes: Any) -> ComparisonSpec:
    base = ComparisonSpec(name=name, label=name, baseline=baseline, contender=contender, metric="throughput")
    return msgspec.structs.replace(base, **changes)


def expect(statement: str, is_: str, *comparisons: str, **changes: Any) -> Expectation:
    base = Expectation(statement=statement, comparisons=comparisons, is_=is_, margin="5%")
    return msgspec.structs.replace(base, **changes)


def call_site(name: str, measurement: str, **changes: Any) -> CallSite:
    base = CallSite(
        name=name,
        label=name,
        measurement=measurement,
        variants=("es", "os"),
        method="DocIdsWriter::readInts24",
        callee="visit",
        task="range",
    )
    return msgspec.structs.replace(base, **changes)


def made_plan(*challenges: Challenge, **changes: Any) -> Plan:
    schedules = challenges or (Challenge("range-settled", (RANGE,)),)
    corpus = msgspec.structs.replace(CORPUS, documents=4_000_000)
    return make_plan(schedules=schedules, corpus=corpus, **changes)


def made_forks(variant: str, times_ms: Sequence[float], **changes: Any) -> list[ForkRecord]:
    """One fork a time, which is the mean service time of its only task."""
    return [
        make_fork(variant, block, make_summary("range", time, samples=300), **changes)
        for block, time in enumerate(times_ms)
    ]


def made_runs(times: Times, **changes: Any) -> dict[str, RunRecord]:
    """A run a measurement."""
    runs = {}
    for measurement, variants in times.items():
        forks = [fork for name, values in variants.items() for fork in made_forks(name, values)]
        runs[measurement] = make_record(
            f"20260101-000000-{measurement}",
            status="complete",
            plan=made_plan(forks=max(map(len, variants.values()))),
            forks=tuple(forks),
            **changes,
        )
    return runs


def made_record(
    tables: Sequence[TableSpec] | Sequence[ComparisonSpec],
    expectations: Sequence[Expectation] = (),
    *,
    measurements: Sequence[str] = ("fresh", "after"),
    **changes: Any,
) -> ExperimentRecord:
    """A complete experiment of both engines; comparisons alone are one table."""
    given = [one for one in tables if isinstance(one, TableSpec)]
    rows = tuple(one for one in tables if isinstance(one, ComparisonSpec))
    listed = (*given, *([TableSpec(title="range", rows=rows)] if rows else []))
    spec = ExperimentSpec(
        name="inlining",
        title="The blog",
        seed=7,
        measurements={name: Measurement(variants=("es", "os")) for name in measurements},
        tables=listed,
        expectations=tuple(expectations),
    )
    base = ExperimentRecord(
        id="20260101-000000-inlining-abcd",
        created="2026-01-01T00:00:00Z",
        status="complete",
        spec=spec,
        runs={name: f"20260101-000000-{name}" for name in measurements},
        spent_s=600.0,
    )
    return msgspec.structs.replace(base, **changes)
