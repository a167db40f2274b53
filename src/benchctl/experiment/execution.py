"""One execution of an experiment: its record, and the runs that belong to it."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

import msgspec

from benchctl.errors import BenchctlError
from benchctl.results.experiment import ExperimentFolder, ExperimentRecord, ExperimentSpec, ExperimentStore
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore

_EXPERIMENT: Final = "experiment-"
_MEASUREMENT: Final = "measurement-"


def begin(
    store: ExperimentStore, spec: ExperimentSpec, expected_s: float | None, now: datetime
) -> ExperimentFolder:
    """Give a new execution its folder and record; nothing is measured yet.

    Args:
        store: where it is kept.
        spec: what it asks, with what the command line changed.
        expected_s: what its forks are expected to take; None where nothing is known.
        now: with its time zone.

    Raises:
        BenchctlError: it cannot be written.
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
    """What the run of a measurement can be found by."""
    return (f"{_EXPERIMENT}{experiment_id}", f"{_MEASUREMENT}{measurement}")


def experiment_of(tags: Collection[str]) -> str:
    """Id of the experiment that a run is a measurement of, by its tags; empty for none."""
    ids = (tag.removeprefix(_EXPERIMENT) for tag in tags if tag.startswith(_EXPERIMENT))
    return next(ids, "") if any(tag.startswith(_MEASUREMENT) for tag in tags) else ""


def adopted(record: ExperimentRecord, store: RunStore) -> ExperimentRecord:
    """The record with runs that were opened for it and that it does not know: it was killed in between."""
    runs = dict(record.runs)
    names = [one.name for one in record.spec.measurements]
    for run in store.newest() if len(runs) < len(names) else ():
        for name in names:
            if name not in runs and set(tags_of(record.id, name)) <= set(run.tags):
                runs[name] = run.id
    return msgspec.structs.replace(record, runs=runs)


def forks_missing(record: ExperimentRecord, runs: Mapping[str, RunRecord]) -> bool:
    """Whether there is anything left to measure, in blocks that a budget cut off, too, or to be decided."""
    whole = (runs.get(one.name) for one in record.spec.measurements)
    undecided = record.spec.until_decided and bool(record.stopped)
    return undecided or any(run is None or run.missing() or run.stopped for run in whole)


def runs_of(
    record: ExperimentRecord, store: RunStore, unreadable: Callable[[str], None]
) -> dict[str, RunRecord]:
    """Measurement -> record of its run, as far as they are there.

    Args:
        record: of the execution.
        store: of the runs.
        unreadable: told why, of each that is not.
    """
    found = {}
    for name, run_id in record.runs.items():
        try:
            found[name] = store.find(run_id).load()
        except BenchctlError as err:
            unreadable(f"measurement {name}: {err.message}")
    return found
