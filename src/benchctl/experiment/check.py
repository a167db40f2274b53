"""An experiment as it is going to be run: planned, and every comparison resolved to tasks of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchctl.errors import UsageError
from benchctl.experiment.changes import Changes, change
from benchctl.experiment.file import Source, read_experiment
from benchctl.experiment.plan import Planned, Plans, digest_of, plan_measurement
from benchctl.home import Home
from benchctl.nearest import suggestion
from benchctl.results.experiment import ComparisonSpec, ExperimentSpec, TaskRef
from benchctl.results.plan import Place
from benchctl.stats.metrics import THROUGHPUT, Metric, metric_of, task_at
from benchctl.track.model import Task
from benchctl.yaml_file import Step


@dataclass(frozen=True)
class Experiment:
    """An experiment that was checked.

    Attributes:
        spec: what it asks, with what the command line changed.
        plans: of its measurements.
        whole: what its file asks.
    """

    spec: ExperimentSpec
    plans: Plans
    whole: ExperimentSpec


def load_experiment(path: Path, changes: Changes, home: Home) -> Experiment:
    """Read an experiment file, and plan and check all of it.

    Args:
        path: of the file.
        changes: of the command line.
        home: where consents are remembered.

    Raises:
        UsageError: something is wrong, in the file with line and column; nothing has been started.
    """
    source = read_experiment(path)
    spec = change(source.spec, changes)
    plans: dict[str, Planned] = {}
    for measurement in spec.measurements:
        with source.at("measurements", measurement.name):
            plans[measurement.name] = plan_measurement(spec, measurement, home)
    _check_params(spec, plans, source, changes)
    for row, steps in _rows(source.spec, spec):
        places = []
        for side in ("baseline", "contender"):
            with source.at(*steps, side):
                places.append(_check_side(getattr(row, side), metric_of(row.metric), plans))
        with source.at(*steps, "contender"):
            _check_distinct(row, *places)
        with source.at(*steps):
            _check_evidence(row, plans)
    _check_call_sites(spec, plans, source)
    return Experiment(_sealed(spec, plans), plans, source.spec)


def _sealed(spec: ExperimentSpec, plans: Plans) -> ExperimentSpec:
    """With digests of the plans: a measurement that is opened after an interruption has to be as it was."""
    measurements = tuple(
        msgspec.structs.replace(one, digest=digest_of(plans[one.name].plan)) for one in spec.measurements
    )
    return msgspec.structs.replace(spec, measurements=measurements)


def _check_params(spec: ExperimentSpec, plans: Plans, source: Source, changes: Changes) -> None:
    """A parameter of the experiment that no measurement made use of is a typing mistake.

    One of the file may be for the measurements that were left out.
    """
    idle = frozenset.intersection(*(planned.unused for planned in plans.values()))
    for name in spec.params:
        if name not in idle:
            continue
        message = f"no challenge of any measurement uses the parameter '{name}'"
        if name in changes.params:
            raise UsageError(f"--param {name}: {message}")
        if not changes.only:
            raise source.document.refuse(("params",), message, key=name)


def _rows(whole: ExperimentSpec, spec: ExperimentSpec) -> Iterator[tuple[ComparisonSpec, tuple[Step, ...]]]:
    """(comparison, its place in the file) of those that are asked for."""
    asked = {row.name for row in spec.comparisons}
    for place, table in enumerate(whole.tables):
        for number, row in enumerate(table.rows):
            if row.name in asked:
                yield row, ("tables", place, "rows", number)


def _check_side(ref: TaskRef, metric: Metric, plans: Plans) -> Place:
    """Where that task is; there is one, and it will have a figure in the metric.

    Raises:
        UsageError: there is none, several fit, or it cannot have one.
    """
    plan = plans[ref.measurement].plan
    variants = [spec.name for spec in plan.variants]
    if ref.variant not in variants:
        raise UsageError(
            f"measurement '{ref.measurement}' has no variant '{ref.variant}'",
            hint=suggestion(ref.variant, variants),
        )
    place = ref.place_in(plan)
    task = task_at(plan, place)
    reason = _lacks(task, metric)
    if reason:
        raise UsageError(f"'{ref}' has no {metric.key}: {reason}", hint=_instead(task))
    return place


def _check_distinct(row: ComparisonSpec, baseline: Place, contender: Place) -> None:
    """Both sides are not one task in two spellings.

    Raises:
        UsageError: they are.
    """
    one, other = row.baseline, row.contender
    if (one.measurement, one.variant, baseline) == (other.measurement, other.variant, contender):
        raise UsageError(f"'{other}' is the same task as '{one}': it is compared with itself")


def _check_evidence(row: ComparisonSpec, plans: Plans) -> None:
    """Forks that bear the cost of evidence are compared with their likes only.

    Raises:
        UsageError: one side bears it, and the other does not.
    """
    carried = [plans[ref.measurement].plan.evidence_in(0) for ref in (row.baseline, row.contender)]
    if carried[0] != carried[1]:
        both = " and ".join(", ".join(kinds) or "nothing" for kinds in carried)
        raise UsageError(
            f"the two sides collect different evidence in the forks that are compared: {both}",
            hint="collect it in further forks (`evidence: {forks: 1}`), or in all forks of both",
        )


def _check_call_sites(spec: ExperimentSpec, plans: Plans, source: Source) -> None:
    """There is the task whose figure stands beside each, and it will have one."""
    asked = {one.name for one in spec.call_sites}
    for place, site in enumerate(source.spec.call_sites):
        if site.name in asked:
            with source.at("call-sites", place, "task"):
                for variant in site.variants:
                    _check_side(site.task_of(variant), THROUGHPUT, plans)


def _lacks(task: Task, metric: Metric) -> str:
    """Why a task never gets a figure that says anything; empty when it does."""
    if metric.kind == "redline":
        return "no measurement searches for a red-line"
    if metric.kind == "throughput" and task.throttled:
        return "the task is throttled, and its throughput is what was asked for"
    if metric.kind == "latency" and not task.throttled:
        return "the task is not throttled, and no request of it is ever due"
    return ""


def _instead(task: Task) -> str:
    usual = "latency_p90" if task.throttled else "throughput"
    return f"compare {usual} or service_time_p90"
