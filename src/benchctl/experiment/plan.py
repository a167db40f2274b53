"""Experiment plans: an experiment changed by the command line, planned and checked."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from benchctl.errors import UsageError, suggestion
from benchctl.experiment.file import Source, read_experiment
from benchctl.experiment.record import (
    ComparisonSpec,
    ExperimentSpec,
    Measurement,
    TaskRef,
    side_text,
)
from benchctl.home import Home
from benchctl.micro.conduct import plan_micro
from benchctl.plugin.code import Consent
from benchctl.redline.conduct import judged_tasks, plan_redline
from benchctl.report.numbers import counted
from benchctl.results.plan import FIRST_LOOK, EvidenceSpec, MicroSpec, Place, Plan, StopSpec
from benchctl.run.documents import FileOptions
from benchctl.run.form import in_test_mode, run_spec
from benchctl.run.plan import RunSpec, axes_of, plan_ingest, plan_run, reload_track
from benchctl.spec import MOST_FORKS, MOST_FORKS_IN_FILE
from benchctl.stats.metrics import RECALL, REDLINE, THROUGHPUT, Metric, metric_of, task_at
from benchctl.track.load import UnusedParameter
from benchctl.track.model import Task, Track
from benchctl.yaml_file import Step

# Measurements as plans of ordinary runs, all made before anything is started.


DECIDED = StopSpec(decided=True, least_forks=1)
"""Of runs that are looked at after every block; whoever looks decides when they end."""


@dataclass(frozen=True)
class Planned:
    """A measurement that is ready to be opened as a run."""

    plan: Plan  # of the run; its corpus digest may still be empty
    track: Track  # with the operations of its challenges
    files: FileOptions
    unused: frozenset[str]


Plans = Mapping[str, Planned]
"""By the measurement's name, in the order of the experiment."""


def plan_measurement(spec: ExperimentSpec, measurement: Measurement, home: Home) -> Planned:
    """Load what a measurement names, check that it fits together, and freeze it.

    It takes those parameters of the experiment that its challenges know, and all of its own. Consents to
    execute tracks' plug-ins are remembered in `home`.

    Raises:
        UsageError: If something is wrong; nothing has been started.
    """
    if measurement.micro is not None:
        return _plan_micro(spec, measurement, measurement.micro, home)
    options = _options(spec, measurement, home)
    unused: set[str] = set()
    while True:
        try:
            if measurement.redline is not None:
                plan, track = plan_redline(options, measurement.redline)
            else:
                plan, track = plan_ingest(options) if measurement.ingest else plan_run(options)
        except UnusedParameter as err:
            if err.name in measurement.params or err.name not in spec.params:
                raise
            unused.add(err.name)
            left = {name: value for name, value in options.params.items() if name != err.name}
            options = msgspec.structs.replace(options, params=left)
        else:
            if spec.until_decided and plan.schedules:
                if plan.index_builds > 1:
                    raise UsageError(
                        "--until-decided cannot be used with `index-builds`: it counts forks, not builds",
                        hint="remove one of the two",
                    ) from None
                plan = msgspec.structs.replace(plan, stop=DECIDED)
            return Planned(plan, track, options.files, frozenset(unused))


def _plan_micro(spec: ExperimentSpec, measurement: Measurement, micro: MicroSpec, home: Home) -> Planned:
    variants = {variant.name: variant for variant in spec.variants}
    plan = plan_micro(
        home,
        micro,
        [variants[name] for name in measurement.variants],
        forks=spec.forks_of(measurement),
        seed=measurement.seed,
        stop=DECIDED if spec.until_decided else None,
        evidence=EvidenceSpec.of(measurement.evidence),
        progress=lambda *_: None,
    )
    return Planned(plan, reload_track(plan), FileOptions(), frozenset(spec.params))


def cut(spec: ExperimentSpec, planned: Planned) -> Planned:
    """Return a measurement in test mode, which may lack what its tasks are compared by."""
    return replace(planned, plan=in_test_mode(planned.plan)) if spec.test_mode else planned


def _options(spec: ExperimentSpec, measurement: Measurement, home: Home) -> RunSpec:
    variants = {variant.name: variant for variant in spec.variants}
    work = msgspec.structs.replace(
        measurement,
        # A measurement that sweeps documents has numbers of its own.
        docs=None if axes_of(measurement.sweep).documents else measurement.docs,
        forks=spec.forks_of(measurement) or None,
        params={**spec.params, **measurement.params},
    )
    return run_spec(
        work, tuple(variants[name] for name in measurement.variants), home=home, consent=Consent(home)
    )


# What a command line changes: the size, parameters, which measurements are made.


@dataclass(frozen=True)
class Changes:
    """Command-line values that replace the file's."""

    forks: int | None = None  # None for the file's; the most of a side with `until_decided`
    # `docs`, `heap`, `seed`: None for the file's.
    docs: int | None = None
    heap: str | None = None
    seed: int | None = None
    only: tuple[str, ...] = ()  # names of the measurements that are made; empty for all
    budget_s: float | None = None  # of the forks; None for as long as they take
    # Give forks to open expectations; all begin with as many as the first look takes.
    until_decided: bool = False
    test_mode: bool = False
    overrides: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # of parameters


def change(spec: ExperimentSpec, changes: Changes) -> ExperimentSpec:
    """Return the experiment with these changes; comparisons without both measurements are left out.

    Raises:
        UsageError: If a measurement does not exist, or there would be no fork, or more than can be.
    """
    if changes.budget_s is not None and changes.budget_s <= 0:
        raise UsageError("--budget must be more than 0s")
    decided = changes.until_decided
    fewest, most = (FIRST_LOOK if decided else 1), MOST_FORKS_IN_FILE
    if changes.forks is not None and not fewest <= changes.forks <= most:
        bound = f"at least {fewest}" if changes.forks < fewest else f"at most {most:,}"
        raise UsageError(f"--forks must be {bound}{' with --until-decided' if decided else ''}")
    sizes = _given(docs=changes.docs, heap=changes.heap, seed=changes.seed)
    forks = _given(
        forks=FIRST_LOOK if decided else changes.forks,
        most_forks=(changes.forks or MOST_FORKS) if decided else None,
    )
    changed = msgspec.structs.replace(
        spec,
        params={**spec.params, **changes.overrides},
        measurements=tuple(
            msgspec.structs.replace(
                measurement,
                # Other parameters are the experiment's.
                params={
                    name: changes.overrides.get(name, value) for name, value in measurement.params.items()
                },
                **sizes,
            )
            for measurement in spec.measurements
        ),
        until_decided=decided,
        test_mode=changes.test_mode,
        **sizes,
        **forks,
    )
    return _narrowed(changed, changes.only) if changes.only else changed


def left_out(before: ExperimentSpec, after: ExperimentSpec) -> str:
    """Return what a narrower experiment no longer asks, for readers; empty for nothing."""
    pairs = (
        ("measurement", len(before.measurements) - len(after.measurements)),
        ("comparison", len(before.comparisons) - len(after.comparisons)),
        ("expectation", len(before.expectations) - len(after.expectations)),
        ("call site", len(before.call_sites) - len(after.call_sites)),
    )
    return ", ".join(counted(number, word) for word, number in pairs if number)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _narrowed(spec: ExperimentSpec, only: Iterable[str]) -> ExperimentSpec:
    names = [measurement.name for measurement in spec.measurements]
    wanted = set(only)
    for name in only:
        if name not in names:
            raise UsageError(
                f"--measurement: '{spec.name}' has no measurement '{name}'", hint=suggestion(name, names)
            )
    measurements = tuple(measurement for measurement in spec.measurements if measurement.name in wanted)
    tables = tuple(
        msgspec.structs.replace(table, rows=rows)
        for table in spec.tables
        if (rows := tuple(row for row in table.rows if {ref.measurement for ref in row.refs} <= wanted))
    )
    compared = {row.name for table in tables for row in table.rows}
    sites = {call_site.name for call_site in spec.call_sites if call_site.measurement in wanted}
    used = {variant for measurement in measurements for variant in measurement.variants}
    return msgspec.structs.replace(
        spec,
        variants=tuple(variant for variant in spec.variants if variant.name in used),
        measurements=measurements,
        tables=tables,
        expectations=tuple(
            expectation
            for expectation in spec.expectations
            if {*(expectation.comparisons or ()), *filter(None, (expectation.than,))} <= compared
            and (expectation.fate is None or expectation.fate.call_site in sites)
        ),
        call_sites=tuple(call_site for call_site in spec.call_sites if call_site.name in sites),
    )


# The whole, with every comparison resolved to tasks of its plans.


@dataclass(frozen=True)
class Experiment:
    """A checked experiment."""

    spec: ExperimentSpec
    plans: Plans
    whole: ExperimentSpec


def load_experiment(path: Path, changes: Changes, home: Home) -> Experiment:
    """Read an experiment file, and plan and check all of it; consents are remembered in `home`.

    Raises:
        UsageError: If something is wrong, in the file with line and column; nothing has been started.
    """
    source = read_experiment(path)
    spec = change(source.spec, changes)
    plans: dict[str, Planned] = {}
    for measurement in spec.measurements:
        with source.at("measurements", measurement.name):
            plans[measurement.name] = plan_measurement(spec, measurement, home)
    _check_params(spec, plans, source, changes)
    for row, steps in _rows(source.spec, spec):
        terms: list[list[tuple[bool, str, str, Place | None, float | None]]] = []
        for name, side in zip(("baseline", "contender"), row.sides, strict=True):
            terms.append([])
            for number, term in enumerate(side):
                with source.at(*steps, name, *([number] if isinstance(getattr(row, name), tuple) else [])):
                    recall = term.ref.recall
                    for point in term.ref.points_in(plans[term.ref.measurement].plan):
                        for metric in (row.metric, *([] if recall is None else [RECALL.key])):
                            place = _check_side(point, metric_of(metric), plans)
                terms[-1].append((term.minus, term.ref.measurement, term.ref.variant, place, recall))
        with source.at(*steps, "contender"):
            if Counter(terms[0]) == Counter(terms[1]):
                # In two spellings, perhaps.
                texts = [side_text(side) for side in row.sides]
                raise UsageError(f"'{texts[1]}' is the same as '{texts[0]}': it is compared with itself")
        if row.refs[0].task:
            with source.at(*steps):
                _check_alike(row, plans)
    _check_call_sites(spec, plans, source)
    plans = {name: cut(spec, planned) for name, planned in plans.items()}
    return Experiment(_sealed(spec, plans), plans, source.spec)


def _sealed(spec: ExperimentSpec, plans: Plans) -> ExperimentSpec:
    """Add commits of tracks and digests of the plans: what is opened after an interruption is the same."""

    def sealed(measurement: Measurement) -> Measurement:
        plan = plans[measurement.name].plan
        revision = "" if plan.track_source is None else plan.track_source.commit
        return msgspec.structs.replace(measurement, digest=plan.digest, track_revision=revision)

    return msgspec.structs.replace(spec, measurements=tuple(map(sealed, spec.measurements)))


def _check_params(spec: ExperimentSpec, plans: Plans, source: Source, changes: Changes) -> None:
    """Refuse parameters that no measurement of the experiment uses: they are typing mistakes."""
    # One of the file may be for the measurements that were left out.
    idle = frozenset.intersection(*(planned.unused for planned in plans.values()))
    for name in spec.params:
        if name not in idle:
            continue
        message = f"no challenge of any measurement uses the parameter '{name}'"
        if name in changes.overrides:
            raise UsageError(f"--param {name}: {message}")
        if not changes.only:
            raise source.document.refuse(("params",), message, key=name)


def _rows(whole: ExperimentSpec, spec: ExperimentSpec) -> Iterator[tuple[ComparisonSpec, tuple[Step, ...]]]:
    """Yield (comparison, its place in the file) of the requested ones."""
    names = {row.name for row in spec.comparisons}
    for place, table in enumerate(whole.tables):
        for number, row in enumerate(table.rows):
            if row.name in names:
                yield row, ("tables", place, "rows", number)


def _check_side(ref: TaskRef, metric: Metric, plans: Plans) -> Place | None:
    """Return the place of the only such task, which will have a figure in the metric; None for an index."""
    plan = plans[ref.measurement].plan
    variants = [spec.name for spec in plan.variants]
    if ref.variant not in variants:
        raise UsageError(
            f"measurement '{ref.measurement}' has no variant '{ref.variant}'",
            hint=suggestion(ref.variant, variants),
        )
    if not ref.task:
        if plan.origin == "empty":
            raise UsageError(f"'{ref}' prepares no index: its challenges make their own data")
        return None
    place = ref.place_in(plan)
    task = task_at(plan, place)
    if plan.redline is not None:
        if metric.key == REDLINE.key:
            holding = judged_tasks(plan)[0] if plan.redline.by == "factor" else task.label
            if task.label != holding:
                raise UsageError(
                    f"'{ref}': the factor of a challenge is kept with one of its tasks",
                    hint=f"name '{holding}'",
                )
            return place
        raise UsageError(f"'{ref}' is a red-line search", hint=f"compare its {REDLINE.key}")
    reason = metric.lacking(task, plans[ref.measurement].track.operations.get(task.operation))
    if reason:
        raise UsageError(f"'{ref}' has no {metric.key}: {reason}", hint=_instead(task))
    return place


def _check_alike(row: ComparisonSpec, plans: Plans) -> None:
    """Refuse to compare forks that carry evidence with others, or index builds with forks on one build."""
    compared = [plans[ref.measurement].plan for ref in row.refs]
    searched = list(dict.fromkeys(plan.redline.by for plan in compared if plan.redline is not None))
    if len(searched) > 1:
        raise UsageError(f"the two sides are searches for different things: {' and '.join(searched)}")
    carried = list(dict.fromkeys(plan.evidence_in(0) for plan in compared))
    if len(carried) > 1:
        both = " and ".join(", ".join(kinds) or "nothing" for kinds in carried)
        raise UsageError(
            f"the two sides collect different evidence in the forks that are compared: {both}",
            hint="collect it in further forks (`evidence: {forks: 1}`), or in all forks of both",
        )
    builds = sorted({plan.index_builds for plan in compared})
    if len(builds) > 1:
        counts = " and ".join(map(str, builds))
        raise UsageError(
            f"the two sides have different numbers of index builds: {counts}",
            hint="give their measurements the same `index-builds`",
        )


def _check_call_sites(spec: ExperimentSpec, plans: Plans, source: Source) -> None:
    """Check that each task whose figure is shown with a call site exists, and will have one."""
    names = {call_site.name for call_site in spec.call_sites}
    for place, site in enumerate(source.spec.call_sites):
        if site.name in names:
            with source.at("call-sites", place, "task"):
                for variant in site.variants:
                    _check_side(site.task_of(variant), THROUGHPUT, plans)


def _instead(task: Task) -> str:
    usual = "latency_p90" if task.throttled else "throughput"
    return f"compare {usual} or service_time_p90"
