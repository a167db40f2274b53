"""An experiment as it is going to be run: planned, and every comparison resolved to tasks of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.experiment.changes import Changes, change
from benchctl.experiment.file import Source, read_experiment
from benchctl.experiment.plan import Planned, Plans, plan_measurement
from benchctl.home import Home
from benchctl.nearest import suggestion
from benchctl.results.experiment.model import ComparisonSpec, ExperimentSpec, TaskRef
from benchctl.stats.experiment.places import place_of
from benchctl.stats.metrics import Metric, metric_of
from benchctl.stats.values import task_at
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
        for side in ("baseline", "contender"):
            with source.at(*steps, side):
                _check_side(getattr(row, side), metric_of(row.metric), plans)
    return Experiment(spec, plans, source.spec)


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


def _check_side(ref: TaskRef, metric: Metric, plans: Plans) -> None:
    """There is that task, and it will have a figure in the metric.

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
    task = task_at(plan, place_of(plan, ref))
    reason = _lacks(task, metric)
    if reason:
        raise UsageError(f"'{ref}' has no {metric.key}: {reason}", hint=_instead(task))


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
