"""Execution of an experiment: its record, its runs, and what their logs say of its call sites."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from benchctl.cli.streams import note
from benchctl.errors import BenchctlError
from benchctl.evidence.call_sites import RunLog, logs_of, read_called
from benchctl.evidence.inlining_log import InliningLog
from benchctl.experiment.record import (
    CallSite,
    ExperimentFolder,
    ExperimentRecord,
    ExperimentSpec,
    ExperimentStore,
    SeenCall,
    SeenReceiver,
)
from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.plan import boot_of
from benchctl.results.store import RunStore

if TYPE_CHECKING:
    from benchctl.cli.resume import Whole

_EXPERIMENT: Final = "experiment-"
_MEASUREMENT: Final = "measurement-"


def begin(
    store: ExperimentStore, spec: ExperimentSpec, expected_s: float | None, now: datetime
) -> ExperimentFolder:
    """Create the folder and record of a new execution; nothing is measured yet.

    `expected_s` is the expected duration of its forks, None if unknown; `now` has a time zone.

    Raises:
        BenchctlError: If it cannot be written.
    """
    folder = store.create(spec.name, now.strftime("%Y%m%d-%H%M%S"))
    folder.save(
        ExperimentRecord(
            id=folder.path.name,
            created=now.isoformat(timespec="seconds"),
            status="running",
            spec=spec,
            expected_s=expected_s,
        )
    )
    return folder


def tags_of(experiment_id: str, measurement: str) -> tuple[str, ...]:
    """Return the tags by which a measurement's run is found."""
    return (f"{_EXPERIMENT}{experiment_id}", f"{_MEASUREMENT}{measurement}")


def experiment_of(tags: Collection[str]) -> str:
    """Return the id of the experiment that a run is a measurement of, by its tags; empty for none."""
    ids = (tag.removeprefix(_EXPERIMENT) for tag in tags if tag.startswith(_EXPERIMENT))
    return next(ids, "") if any(tag.startswith(_MEASUREMENT) for tag in tags) else ""


def adopted(record: ExperimentRecord, store: RunStore) -> ExperimentRecord:
    """Return the record with runs that were opened for it and that it lacks, as it was killed."""
    runs = dict(record.runs)
    names = [measurement.name for measurement in record.spec.measurements]
    for run in store.newest() if len(runs) < len(names) else ():
        for name in names:
            if name not in runs and set(tags_of(record.id, name)) <= set(run.tags):
                runs[name] = run.id
    return msgspec.structs.replace(record, runs=runs)


def forks_missing(record: ExperimentRecord, runs: Mapping[str, RunRecord]) -> bool:
    """Return whether anything is left to measure or decide, including blocks that a budget cut off."""
    whole = (runs.get(measurement.name) for measurement in record.spec.measurements)
    undecided = record.spec.until_decided and bool(record.stopped)
    return undecided or any(run is None or run.missing() or run.stopped for run in whole)


def runs_of(
    record: ExperimentRecord, store: RunStore, unreadable: Callable[[str], None]
) -> dict[str, RunRecord]:
    """Return measurement -> record of its run, if readable; `unreadable` gets the others, with the reason."""
    runs = {}
    for name, run_id in record.runs.items():
        try:
            runs[name] = store.find(run_id).load()
        except BenchctlError as err:
            unreadable(f"measurement {name}: {err.message}")
    return runs


def seen_calls(spec: ExperimentSpec, runs: Mapping[str, RunRecord], store: RunStore) -> tuple[SeenCall, ...]:
    """Look at every call site in every finished fork that was to keep a log.

    Raises:
        BenchctlError: If a run cannot be found, or its tasks are not those that the experiment names.
    """
    calls: list[SeenCall] = []
    for name in dict.fromkeys(site.measurement for site in spec.call_sites):
        if name in runs:
            logs = logs_of(store.find(runs[name].id), runs[name])
            sites = [site for site in spec.call_sites if site.measurement == name]
            calls += (call for site in sites for call in _of_site(site, runs[name], logs))
    return tuple(calls)


def _of_site(site: CallSite, run: RunRecord, logs: Sequence[RunLog]) -> Iterator[SeenCall]:
    for variant in site.variants:
        place = site.task_of(variant).place_in(run.plan)
        for fork in run.done(variant):
            if "inlining" in run.plan.evidence_in(fork.block):
                which = (variant, fork.block, boot_of(run.plan, fork.block, place))
                log = next((log for log in logs if (log.variant, log.block, log.boot) == which), None)
                yield _of_fork(site, variant, fork.block, log)


def _of_fork(site: CallSite, variant: str, block: int, log: RunLog | None) -> SeenCall:
    why = "it is not there"
    if log is not None:
        try:
            return _seen(site, variant, block, InliningLog(log.path))
        except BenchctlError as err:
            why = err.message
    return SeenCall(site=site.name, variant=variant, block=block, found=None, words=why)


def _seen(site: CallSite, variant: str, block: int, log: InliningLog) -> SeenCall:
    called = read_called(log, site.method, site.callee)
    return SeenCall(
        site=site.name,
        variant=variant,
        block=block,
        found=called.found,
        words=called.words,
        receivers=tuple(SeenReceiver(receiver.name, receiver.count) for receiver in called.receivers),
        calls=called.calls,
        given_up=called.given_up_ms is not None,
    )


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that experiments refer to."""
    for _, experiment in ExperimentStore(home.root / "experiments").records(unread):
        for run in experiment.runs.values():
            yield run, f"experiment {experiment.id}"


def whole(home: Home, name: str, tags: Collection[str]) -> "Whole | None":
    """Return the experiment that a name means, or that a run with such tags is a measurement of."""
    store = ExperimentStore(home.root / "experiments")
    experiment_id = experiment_of(tags) or name
    if not store.names(experiment_id):
        return None
    # The commands load statistics, which whoever only deletes runs need not wait for.
    from benchctl.experiment.commands.run import BegunExperiment  # noqa: PLC0415 - see above

    return BegunExperiment(home, store.find(experiment_id, note))
