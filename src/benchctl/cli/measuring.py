"""Shared parts of commands that measure: the lock of the host, the run, and the tables that they end with."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec
import psutil

from benchctl.cli.options import F, under
from benchctl.cli.streams import say
from benchctl.cli.targets import endpoints_of
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.lock import host_lock, measuring_pid, process_words
from benchctl.quantities import DURATION
from benchctl.report.numbers import counted
from benchctl.results.figures import Calibration
from benchctl.results.model import RunRecord, unanswered
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder, RunStore, reference
from benchctl.run.bench import Bench, Observer
from benchctl.run.documents import FileOptions, bring_vectors, find_corpus, needs_documents
from benchctl.run.fitness import calibration_of, check_quiet, needs_calibration, with_workers
from benchctl.run.forecast import Ahead, Past, announce, preparation, rate_lines
from benchctl.run.form import pin_of_form
from benchctl.run.host import describe_host
from benchctl.run.orchestrate import require_unchanged
from benchctl.run.plan import SEVERAL_PROCESSES, reload_track, settling_text, track_remarks
from benchctl.run.prepare import check_host
from benchctl.run.study import rest_text, stop_text
from benchctl.run.targets import corpus_of_targets, look_at, seen_text
from benchctl.run.work import check_work
from benchctl.spec import AUTOMATIC, BusyAction, RunForm, setting
from benchctl.track.model import Track

if TYPE_CHECKING:
    from benchctl.report.table import Format


# Commands that have the host to themselves: their options, and the time for which they hold it.


quiet_option = under(
    "Execution and output", click.option("-q", "--quiet", is_flag=True, help="Print only the result.")
)
"""Of commands that measure; the command gets it as `quiet`."""


def measuring_options(command: F) -> F:
    """Add `--quiet`, and `--on-busy` where no form has it; its None is `warn`, or what a file has."""
    declared = setting("on_busy")
    on_busy = click.option(
        declared.option, type=click.Choice(declared.choices), default=None, help=declared.meta.description
    )
    return under(declared.heading, on_busy)(quiet_option(command))


dry_run_option = under(
    "Execution and output",
    click.option("-n", "--dry-run", is_flag=True, help="Check everything, print plan and duration."),
)
"""Of commands that measure; the command gets it as `dry_run`."""


@contextmanager
def measuring(on_busy: BusyAction | None, *, quiet: bool) -> Iterator[Observer]:
    """Observe a run as `watching` does, with the host locked: nobody else measures at that time.

    Raises:
        BenchctlError: If another benchctl is measuring, unless `on_busy` is to wait for its end.
    """
    with (
        watching(quiet=quiet) as observer,
        host_lock(
            wait=on_busy == "wait",
            on_wait=lambda holder: observer.note(f"waiting for another benchctl: {holder}"),
        ),
    ):
        yield observer


@contextmanager
def benched(
    home: Home, store: RunStore, plan: Plan, on_busy: BusyAction | None, *, quiet: bool
) -> Iterator[Bench]:
    """Provide all that a run of the plan needs, with the host locked."""
    store.open()
    check_host(plan, home)
    endpoints = endpoints_of(plan.variants, os.environ)
    with measuring(on_busy, quiet=quiet) as observer:
        for line in filter(None, (settling_text(plan), plan.way)):
            observer.note(line)
        check_quiet(home, [plan], observer.note, on_busy)
        yield Bench(home, store, observer, threading.Event(), endpoints)


def with_enough_workers(plan: Plan, bench: Bench, form: RunForm) -> tuple[Plan, Calibration | None]:
    """Return the plan with as many processes as the driver needs here, and its cost, if measured."""
    choosing = form.workers == AUTOMATIC and needs_calibration(plan)
    calibration = calibration_of(bench, plan, is_needed=choosing)
    if choosing and calibration is not None:
        plan = with_workers(plan, calibration, psutil.cpu_count() or 1)
        apart = plan.apart or (SEVERAL_PROCESSES if plan.workers > 1 else "")
        plan = msgspec.structs.replace(plan, pin=pin_of_form(form, plan.workers), apart=apart)
    return plan, calibration


def with_documents(plan: Plan, track: Track, files: FileOptions, home: Home) -> Plan:
    """A plan with its files of documents, opened as far as a look goes; nothing is written.

    Raises:
        BenchctlError: If the run would end over its documents, or over work that does not fit them.
    """
    if plan.micro is not None:
        return plan
    bring_vectors(plan, track, files.folders, home, Observer(), looking=True)
    if needs_documents(plan.variants):
        corpus = find_corpus(plan, track, files, home, Observer(), looking=True)
        plan = msgspec.structs.replace(plan, corpus=corpus)
    check_work(plan, track, home, looking=True)
    return plan


def plan_lines(plan: Plan, track: Track) -> tuple[str, ...]:
    """Remarks on a plan for a dry run: of its track, its documents and its rates."""
    lines = [] if plan.track_source is None else [plan.track_source.text]
    lines += [*track_remarks(plan), *rate_lines(plan)]
    if plan.index_builds > 1:
        lines.append(f"{plan.index_builds} index builds per variant, which forks use in turn")
    generated = plan.origin == "prepared" and plan.micro is None and not plan.corpus.files
    if generated and needs_documents(plan.variants) and track.name != plan.corpus.generator:
        lines.append(
            f"track {track.name} has no documents: those of {plan.corpus.generator} are generated; "
            "for your own, use --corpus FILE"
        )
    return tuple(lines)


def only_say(
    plan: Plan, track: Track, files: FileOptions, home: Home, store: RunStore, on_busy: BusyAction | None
) -> None:
    """Describe a run, after checking all that can be checked without it."""
    check_host(plan, home)
    store.open(make=False)
    endpoints = endpoints_of(plan.variants, os.environ)
    subjects = [look_at(spec, endpoints[spec.name], plan, track) for spec in plan.variants if spec.target]
    plan = with_documents(plan, track, files, home)
    plan = corpus_of_targets(plan, subjects) or plan
    length = f"{counted(plan.forks, 'fork')} each"
    if plan.stop is not None and plan.stop.is_length:
        length = plan.stop.length_text(plan.forks)
    elif plan.stop is not None:
        budget_s = plan.stop.budget_s
        length = f"up to {length}" + ("" if budget_s is None else f" or {DURATION.text(budget_s)} (--budget)")
    challenges, variants = (", ".join(names) for names in (plan.challenges, plan.families))
    what = f"would measure {challenges} with {variants}, {length}"
    if plan.corpus.documents:
        what += f" on {counted(plan.corpus.documents, 'document')}"
    if plan.swept is not None:
        what += ", at " + "; ".join(f"{axis.name} {', '.join(axis.labels)}" for axis in plan.swept.axes)
    past = Past(store, describe_host().fingerprint)
    for line in (
        what,
        *(seen_text(subject, plan.corpus.documents) for subject in subjects),
        *filter(None, (settling_text(plan), plan.way)),
        *plan_lines(plan, track),
        *preparation([Ahead(plan, track, files)], home, past),
    ):
        say(line)
    with watching(quiet=False) as observer:
        look_around(home, [plan], observer, on_busy)
        announce(past, plan, track, observer)


def say_rest(records: Iterable[RunRecord], home: Home, on_busy: BusyAction | None) -> None:
    """Describe what stored runs would go on with, after checking all that can be checked without it.

    Raises:
        NotResumable: If host, CPUs or track have changed.
    """
    records = list(records)
    for record in records:
        require_unchanged(record, reload_track(record.plan))
        challenges, rest = ", ".join(record.plan.challenges), rest_text(record)
        say(
            f"run {record.id}: would measure {rest} ({challenges})"
            if rest
            else f"run {record.id} is complete"
        )
        for line in filter(None, [stop_text(record.plan)]):
            say(line)
    with watching(quiet=False) as observer:
        look_around(home, [record.plan for record in records], observer, on_busy)


def look_around(home: Home, plans: Sequence[Plan], observer: Observer, on_busy: BusyAction | None) -> None:
    """Name who measures on this host, for a dry run, and warn where it is busy; see `check_quiet`."""
    holder = measuring_pid()
    if holder is not None:
        observer.note(f"another benchctl is measuring on this host: {process_words(holder)}")
    check_quiet(home, plans, observer.note, "fail" if on_busy == "fail" else "warn")


# The end of a command that measured: its tables, and an error where they do not show all that was asked.


def conclude(
    folder: RunFolder, record: RunRecord, home: Home, output_format: "Format", *, details: bool
) -> None:
    """Print a run; `details` adds host, engines, indices and times.

    Raises:
        BenchctlError: If forks failed, or all requests of a task did.
    """
    # The statistics behind the tables take longer to load than a search; no first request waits for them.
    from benchctl.cli.compare import print_run  # noqa: PLC0415 - see above

    print_run(folder, output_format, usual=home.runs, part="all" if details else None)
    name = reference(folder, home.runs)
    if record.missing():
        raise BenchctlError(
            f"{len(record.missing())} of {record.total} forks failed; the tables show the rest",
            hint=f"see the reasons with: benchctl show {name}; resume with: benchctl resume {name}",
            exit_code=ExitCode.FAILED,
        )
    failing = unanswered(record)
    if failing:
        raise BenchctlError(
            f"every request failed in {', '.join(failing)}; the tables show the rest",
            hint=f"see the reasons with: benchctl show {name} --notes",
        )
