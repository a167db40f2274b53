"""A run from plan to record: what is new is prepared, what was cut off gone on with, if all is as it was."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.figures import Calibration
from benchctl.results.model import RECORD_VERSION, RunRecord
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder, new_run_id
from benchctl.run.bench import Bench
from benchctl.run.caveats import data_caveats, host_caveats, load_caveats, sharing_caveats
from benchctl.run.changes import (
    corpus_changes,
    engine_changes,
    environment_changes,
    pin_changes,
    track_changes,
)
from benchctl.run.documents import FileOptions, check_files, find_corpus, needs_documents
from benchctl.run.forecast import announce
from benchctl.run.host import describe_host
from benchctl.run.opened import OpenRun
from benchctl.run.pilot import PilotBench, run_pilot
from benchctl.run.pin import allowed_cpus, cores_of, pin_caveats
from benchctl.run.prepare import check_memory
from benchctl.run.session import TargetSubject
from benchctl.run.stopping import within
from benchctl.run.subjects import prepare_subjects
from benchctl.run.targets import target_caveats
from benchctl.run.work import check_work
from benchctl.track.model import Track


@dataclass(frozen=True)
class Extras:
    """What a new run has beside its plan.

    Attributes:
        calibration: what the driver costs here, if that was measured: kept with the run.
        tags: words to find it again by.
        until_steady: let pilot forks choose for how long tasks warm up.
        files: which documents are to come from files, as it was said when the plan was made.
        left_s: seconds that forks may take, asked once all is prepared; None for as long as the plan says.
        ask_anew: ask all searches, also those whose answers are kept beside prepared indices.
        forecast: say what earlier runs let expect of it.
    """

    calibration: Calibration | None = None
    tags: tuple[str, ...] = ()
    until_steady: bool = False
    files: FileOptions = field(default_factory=FileOptions)
    left_s: Callable[[], float] | None = None
    ask_anew: bool = False
    forecast: bool = True


NO_EXTRAS = Extras()


def start_run(
    bench: Bench, plan: Plan, track: Track, extras: Extras = NO_EXTRAS
) -> tuple[RunFolder, RunRecord]:
    """Prepare and run a new plan; its corpus digest may still be empty.

    Returns:
        The run's folder and its final record; forks that failed are in the record.

    Raises:
        UsageError, BenchctlError: as of `open_run`, or the run was interrupted.
    """
    run, timings = open_run(bench, plan, track, extras)
    return run.folder, run.execute(timings)


def open_run(
    bench: Bench, plan: Plan, track: Track, extras: Extras = NO_EXTRAS
) -> tuple[OpenRun, dict[str, float]]:
    """Prepare a new plan, and give it its folder; nothing is measured yet.

    Returns:
        The run, and the seconds that preparing it took, for its record.

    Raises:
        UsageError: the plan's documents are not there, or no memory for its heaps.
        BenchctlError: preparation failed, or results cannot be written.
    """
    environment = describe_host()
    clean_scratch(bench.home)
    if any(spec.target is None for spec in plan.variants):
        check_memory(plan, environment.memory_bytes)
    bench.store.open()
    clock = time.monotonic()
    if needs_documents(plan.variants):
        corpus = find_corpus(plan, track, extras.files, bench.home, bench.observer)
        plan = msgspec.structs.replace(plan, corpus=corpus)
    check_work(plan, track, bench.home)
    plan, subjects = prepare_subjects(bench, plan, track)
    timings = {"prepare-s": time.monotonic() - clock}
    if extras.left_s is not None:
        plan = msgspec.structs.replace(plan, stop=within(plan.stop, extras.left_s()))
    pilot = None
    if extras.until_steady:
        clock = time.monotonic()
        pilots = PilotBench(bench.home, bench.observer, bench.stop, extras.tags)
        plan, pilot = run_pilot(pilots, plan, track, subjects)
        timings["pilot-s"] = time.monotonic() - clock
    if extras.forecast:
        announce(bench.store, plan, environment.fingerprint, bench.observer)
    now = datetime.now(UTC)
    label = "+".join(challenge.name for challenge in plan.schedules)
    folder = bench.store.create(new_run_id(label, now.strftime("%Y%m%d-%H%M%S")))
    record = RunRecord(
        record_version=RECORD_VERSION,
        id=folder.path.name,
        created=now.isoformat(timespec="seconds"),
        status="running",
        plan=plan,
        environment=environment,
        indices={one.spec.name: one.index_facts for one in subjects if one.index_facts is not None},
        builds={subject.spec.name: subject.builds for subject in subjects if len(subject.builds) > 1},
        caveats=(
            *host_caveats(environment),
            *sharing_caveats(os.environ),
            *load_caveats(plan, extras.calibration),
            *data_caveats(plan),
            *pin_caveats(plan, cores_of(allowed_cpus())),
            *target_caveats(
                [subject for subject in subjects if isinstance(subject, TargetSubject)], plan.corpus.documents
            ),
        ),
        calibration=extras.calibration,
        tags=extras.tags,
        pilot=pilot,
    )
    folder.save(record)
    return OpenRun(bench, folder, record, track, subjects, ask_anew=extras.ask_anew), timings


def resume_run(bench: Bench, folder: RunFolder, track: Track, *, ask_anew: bool = False) -> RunRecord:
    """Run the forks that a record is missing; none of a run that ended early by its own rule.

    Of one that was cut off before its answers were known they are asked, with `ask_anew` as in `start_run`.

    Raises:
        NotResumable: what is measured, or where, is not what it was.
        BenchctlError: as of `start_run`.
    """
    record = folder.load()
    if record.stopped and not record.missing():
        bench.observer.note(f"run {record.id} is complete: it {record.stopped}; nothing is measured")
        return record
    return reopen_run(bench, folder, track, ask_anew=ask_anew).execute({})


def reopen_run(bench: Bench, folder: RunFolder, track: Track, *, ask_anew: bool = False) -> OpenRun:
    """Prepare again what a run was measured on, so that it can go on.

    Raises:
        NotResumable: what is measured, or where, is not what it was.
        BenchctlError: as of `open_run`.
    """
    record = folder.load()
    # First what costs nothing to find out: preparing may take long.
    changes = environment_changes(record.environment, describe_host())
    changes += pin_changes(record.plan, allowed_cpus())
    _refuse_changes(record, [*changes, *track_changes(record.plan, track)])
    clean_scratch(bench.home)
    check_files(record.plan, bench.home)
    plan, subjects = prepare_subjects(bench, record.plan, track)
    _refuse_changes(record, [*corpus_changes(record.plan, plan), *engine_changes(record, subjects)])
    return OpenRun(bench, folder, record, track, subjects, ask_anew=ask_anew)


class NotResumable(BenchctlError):  # noqa: N818 - what is so, not a mistake of anybody
    """What is measured, or where, is not what it was when the run began."""


def _refuse_changes(record: RunRecord, changes: Sequence[str]) -> None:
    if changes:
        raise NotResumable(
            f"run {record.id} cannot be resumed, because this is no longer what it was measured on: "
            + "; ".join(changes),
            hint="start a new run; the finished forks of the old one stay readable",
        )


def clean_scratch(home: Home) -> None:
    """Remove what a killed benchctl left half-done; call it with the host lock held."""
    for leftover in home.scratch.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)
