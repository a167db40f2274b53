"""A night's own run, begun or gone on with where one was cut off, and the figures that are kept of it."""

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from benchctl.engine.distribution import install
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.maven import latest_version
from benchctl.engine.variant import LATEST
from benchctl.engine.variant_file import with_newest
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.micro.conduct import plan_micro
from benchctl.network import Progress
from benchctl.nightly.changes import era_of, own_warmups
from benchctl.nightly.folder import FigureRow, SuiteFolder
from benchctl.nightly.model import CUT_OFF, NightRecord, NightVariant
from benchctl.nightly.suite import Suite
from benchctl.plugin.code import Consent
from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EngineName, Place, Plan, VariantSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.bench import Bench
from benchctl.run.calibrate import calibration_of
from benchctl.run.documents import FileOptions
from benchctl.run.fitness import HostLimits, Snapshot, settle, snapshot
from benchctl.run.form import run_spec
from benchctl.run.open_run import NotResumable
from benchctl.run.orchestrate import Extras, resume_run, start_run
from benchctl.run.plan import RunSpec, plan_run, reload_track
from benchctl.run.stopping import within
from benchctl.stats.history import metrics_of
from benchctl.stats.metrics import Metric, challenge_title, places, task_at
from benchctl.track.model import Challenge, Track


def figure_rows(record: RunRecord, *, night: int, labels: Mapping[str, str]) -> Iterator[FigureRow]:
    """Return the figures of every finished fork, in the order of variants, tasks, metrics and forks.

    Without rows for what tables do not show, what a node cannot do and what has no value. The record may
    be of a confirming run, or another night's; `labels` maps variants of the run to those of the suite,
    others are left out.
    """
    plan = record.plan
    names = task_names(plan)
    done = {spec.name: record.compared(spec.name) for spec in plan.variants}
    for name, label in labels.items():
        for place, metric, fork, summary in _figures(plan, done.get(name, ())):
            value = metric.value(summary)
            usable = value is not None and math.isfinite(value) and (value > 0 or metric.kind.additive)
            if value is None or not usable:
                continue
            yield FigureRow(
                night=night,
                variant=label,
                challenge=names[place][0],
                task=names[place][1],
                metric=metric.key,
                unit=metric.counting(summary.unit).unit,
                higher_is_better=metric.higher_is_better,
                fork=fork.block,
                value=value,
            )


def task_names(plan: Plan) -> dict[Place, tuple[str, str]]:
    """Return (title of the challenge, label of the task) of every place, no two the same."""
    return {
        (schedule, task): (challenge_title(plan, schedule), plan.schedules[schedule].schedule[task].label)
        for schedule, task in places(plan)
    }


def only_about(plan: Plan, tasks: Collection[tuple[str, str]]) -> tuple[Challenge, ...]:
    """Return a plan's challenges that have some of these tasks, named as in `task_names`.

    Without a restart between them all stay: what ran before a challenge is part of what was measured.
    """
    if plan.restart == "never":
        return plan.schedules
    wanted = {plan.schedules[place[0]].name for place, name in task_names(plan).items() if name in tasks}
    return tuple(schedule for schedule in plan.schedules if schedule.name in wanted)


def _figures(
    plan: Plan, forks: Sequence[ForkRecord]
) -> Iterator[tuple[Place, Metric, ForkRecord, TaskSummary]]:
    """Return the figures that can have a value."""
    by_place = [
        {(summary.schedule, summary.task): summary for summary in fork.summaries if summary.reported}
        for fork in forks
    ]
    for place in places(plan):
        for metric in metrics_of(plan, task_at(plan, place)):
            for fork, summaries in zip(forks, by_place, strict=True):
                if place in summaries:
                    yield place, metric, fork, summaries[place]


CONFIRM_TAG = "confirm"
RESUME_WITHIN_H = 12.0
"""A night that was cut off longer ago is not gone on with: it would be two nights in one."""

_SECONDS_PER_HOUR = 3600


_SEED_BYTES = 7  # less than 2^63, the most that a seed may be


def resolve(suite: Suite, newest: Callable[[EngineName], str] = latest_version) -> tuple[NightVariant, ...]:
    """Return a suite's variants as of tonight: watched ones first, then canaries.

    Raises:
        BenchctlError: If the newest version is wanted and cannot be found out.
    """
    members = [(role, variant) for role, variant, _ in suite.members()]
    specs = with_newest((suite.spec_of(variant) for _, variant in members), newest)
    return tuple(
        NightVariant(spec.name, role, variant, spec)
        for (role, variant), spec in zip(members, specs, strict=True)
    )


def night_seed(suite: Suite, night: int) -> int:
    """Return the seed of a night: the suite's own, or one that follows from the night's number.

    With the same one every night, the random order of variants within a block would favour the same one.
    """
    if suite.seed is not None:
        return suite.seed
    digest = hashlib.sha256(f"{suite.name}/{night}".encode()).digest()
    return int.from_bytes(digest[:_SEED_BYTES])


def plan_options(suite: Suite, night: int, specs: tuple[VariantSpec, ...], home: Home) -> RunSpec:
    """Return what a night asks for; `plan_run` checks it against track and challenges.

    A plug-in of the track needs prior consent (`benchctl track trust`), remembered in `home`: nobody is
    there.

    Raises:
        UsageError: If the CPUs that it pins to are not available.
    """
    work = msgspec.structs.replace(suite, seed=night_seed(suite, night))
    return run_spec(work, specs, home=home, consent=Consent(home))


def night_plan(
    suite: Suite, night: int, variants: Sequence[NightVariant], home: Home, progress: Progress
) -> tuple[Plan, Track, FileOptions]:
    """Plan a night's own run, without its budget.

    Raises:
        UsageError: If the suite, its track or its challenges do not fit each other.
    """
    specs = tuple(variant.spec for variant in variants)
    if suite.micro is None:
        options = plan_options(suite, night, specs, home)
        return *plan_run(options), options.files
    plan = plan_micro(
        home,
        suite.micro.spec(Path()),
        specs,
        forks=suite.forks,
        seed=night_seed(suite, night),
        stop=None,
        evidence=None,
        progress=progress,
    )
    return plan, reload_track(plan), FileOptions()


def within_budget(suite: Suite, plan: Plan) -> Plan:
    """Return a night's plan that also ends with the suite's budget."""
    budget_s = suite.budget_s
    return plan if budget_s is None else msgspec.structs.replace(plan, stop=within(plan.stop, budget_s))


@dataclass(frozen=True)
class Measured:
    """Measured values."""

    record: NightRecord  # of the night, with everything that its run says
    folder: RunFolder
    run: RunRecord
    track: Track
    tags: tuple[str, ...]  # that every run of the night has


def pinned(spec: VariantSpec, home: Home) -> VariantSpec:
    """Return a variant with fixed paths: both are in the home already, and found there."""
    installation = install(home, spec, _silent)
    root = None if spec.distribution is None else str(installation.root)
    jdk = provide_jdk(home, spec.java, installation)
    return msgspec.structs.replace(spec, distribution=root, jdk=str(jdk.home))


@dataclass(frozen=True)
class Laboratory:
    """The parts of a night that touch the machine."""

    start: Callable[..., tuple[RunFolder, RunRecord]] = start_run
    resume: Callable[..., RunRecord] = resume_run
    pin: Callable[[VariantSpec, Home], VariantSpec] = pinned  # makes a variant with nothing left to move
    settle: Callable[[HostLimits, Callable[[str], None]], float] = settle  # waits for a quiet host
    look: Callable[[Home], Snapshot] = snapshot  # says what the host is doing


_Run = tuple[RunFolder, RunRecord, Track, tuple[NightVariant, ...]]


@dataclass(frozen=True)
class Measuring:
    """Measures a suite."""

    suite: Suite
    bench: Bench
    keep: Callable[..., None]  # saves fields of the night's record at once
    left_s: Callable[[], float] | None  # seconds that the night's forks may take; None without a budget
    laboratory: Laboratory

    def measure(self, record: NightRecord, *, resuming: bool) -> Measured:
        """Run the forks, all or those that are missing.

        Raises:
            BenchctlError: If there are no figures of this night, or it was interrupted.
        """
        tags = night_tags(record)
        # Without its variants, nobody would know what of the run is whose.
        begun: _Run | None = None
        if resuming and record.plan_digest:
            try:
                begun = self._resumed(record, tags)
            except NotResumable as err:
                # After a reboot the kernel may be another one: half a night is lost, not all of it.
                note = f"what was measured before it was cut off is left out: {err.message}"
                self.bench.observer.note(note)
                record = msgspec.structs.replace(record, caveats=(*record.caveats, note))
        folder, run, track, variants = begun or self._new(record, tags)
        if all(not run.compared(spec.name) for spec in run.plan.variants):
            raise BenchctlError(f"no fork was measured: {_reason(run)}", hint=f"see: benchctl show {run.id}")
        return Measured(self._with_run(record, run, track, variants), folder, run, track, tags)

    def _resumed(self, record: NightRecord, tags: tuple[str, ...]) -> _Run:
        """Run what the night's own run is missing, if the suite still asks for it.

        Raises:
            NotResumable: If the suite asks for something else, or what is measured, or where, has changed.
        """
        run = next(_own_runs(self.bench.store, tags), None)
        if run is None:
            raise NotResumable(f"its run is not in {self.bench.store.root}")
        # A release since then is not what the user edited.
        was = {
            variant.spec.engine: variant.spec.version
            for variant in record.variants
            if f"@{LATEST}" in variant.asked
        }
        variants = resolve(self.suite, lambda engine: was.get(engine) or latest_version(engine))
        plan, _, _ = self._plan(record.number, variants)
        if within_budget(self.suite, plan).digest != record.plan_digest:
            raise NotResumable("the suite, or a file that it names, has been edited since")
        folder, begun = run
        track = reload_track(begun.plan)
        return folder, self.laboratory.resume(self.bench, folder, track), track, variants

    def _new(self, record: NightRecord, tags: tuple[str, ...]) -> _Run:
        variants = resolve(self.suite, latest_version)
        self.keep(variants=variants, forks_planned=self.suite.forks)
        plan, track, files = self._plan(record.number, variants)
        # Known before the first node starts: what is cut off is gone on with only as it was meant.
        self.keep(plan_digest=within_budget(self.suite, plan).digest)
        extras = Extras(
            calibration=calibration_of(self.bench, plan),
            tags=(*tags, *self.suite.tags),
            files=files,
            left_s=self.left_s,
        )
        folder, run = self.laboratory.start(self.bench, plan, track, extras)
        return folder, run, track, variants

    def _plan(self, night: int, variants: Sequence[NightVariant]) -> tuple[Plan, Track, FileOptions]:
        return night_plan(self.suite, night, variants, self.bench.home, self.bench.observer.progress)

    def _with_run(
        self, record: NightRecord, run: RunRecord, track: Track, variants: Sequence[NightVariant]
    ) -> NightRecord:
        failed = run.missing()
        source = run.plan.track_source
        caveats = [*record.caveats, *filter(None, (source and source.outdated, run.stopped))]
        if failed:
            caveats.append(f"{len(failed)} of {run.total} forks failed: {_reason(run)}")
        caveats += _failed_requests(run)
        return msgspec.structs.replace(
            record,
            run=run.id,
            runs=(run.id,),
            era=era_of(run.plan, run.environment, track, run.left_out_of_pollution),
            track=source,
            environment=run.environment,
            variants=tuple(self._complete(variant, run, track) for variant in variants),
            forks_planned=run.plan.forks,
            forks_done=min(len(run.compared(spec.name)) for spec in run.plan.variants),
            caveats=tuple(dict.fromkeys(caveats)),
        )

    def _complete(self, variant: NightVariant, run: RunRecord, track: Track) -> NightVariant:
        facts = next((engine for engine in run.engines if engine.variant == variant.label), None)
        index = run.indices.get(variant.label)
        return msgspec.structs.replace(
            variant,
            pinned=self.laboratory.pin(variant.spec, self.bench.home),
            facts=facts,
            index_key="" if index is None else index.key,
            warmups=own_warmups(run.plan, track, variant.label),
        )


def night_tags(record: NightRecord) -> tuple[str, ...]:
    """Return the tags by which the runs of a night are found."""
    return "nightly", record.suite, record.id


def unmeasured(run: RunRecord) -> str:
    """Return which variants have no figures at all, and why; empty if all have some."""
    labels = [spec.name for spec in run.plan.variants if not run.compared(spec.name)]
    return f"no fork of {', '.join(labels)} was measured: {_reason(run)}" if labels else ""


def cut_off(
    suite: Suite, folder: SuiteFolder, bench: Bench, nights: Sequence[NightRecord], now: datetime
) -> NightRecord | None:
    """Return the interrupted night to be continued, if any, as the suite says.

    Others are marked as discarded: what they measured stays in their runs. The suite's lock is held, so
    that a night that is `running` has no process any more.
    """
    if not nights or nights[-1].status not in CUT_OFF:
        return None
    last = nights[-1]
    reason = reason_to_discard(suite, last, now)
    if not reason:
        bench.observer.note(f"night {last.id} was cut off: going on with it")
        return msgspec.structs.replace(last, status="running", reason="")
    bench.observer.note(f"night {last.id} was cut off and is discarded: {reason}")
    folder.save(msgspec.structs.replace(last, status="discarded", reason=f"it was cut off: {reason}"))
    return None


def reason_to_discard(suite: Suite, night: NightRecord, now: datetime) -> str:
    """Return why a night that was cut off is not gone on with; empty if it is."""
    hours = (now - datetime.fromisoformat(night.started)).total_seconds() / _SECONDS_PER_HOUR
    if suite.on_cut_off == "discard":
        return "the suite discards interrupted nights"
    if hours < -RESUME_WITHIN_H:
        return "the clock was set back since it began, so its age is unknown"
    return (
        f"it began {hours:.0f} hours ago, and would be two nights in one" if hours > RESUME_WITHIN_H else ""
    )


def _own_runs(store: RunStore, tags: tuple[str, ...]) -> Iterator[tuple[RunFolder, RunRecord]]:
    """Return the night's own runs, newest first; not those that confirmed its findings."""
    for record in store.newest():
        if set(tags) <= set(record.tags) and CONFIRM_TAG not in record.tags:
            yield store.find(record.id), record


def _failed_requests(run: RunRecord) -> Iterator[str]:
    """Return failed parts of the load, a clause a variant and task: figures are those of what succeeded."""
    for spec in run.plan.variants:
        by_label: dict[str, list[TaskSummary]] = {}
        for fork in run.compared(spec.name):
            for summary in fork.summaries:
                by_label.setdefault(summary.label, []).append(summary)
        for label, summaries in by_label.items():
            failed = sum(sum(summary.failures.values()) for summary in summaries)
            if failed:
                sent = failed + sum(summary.samples for summary in summaries)
                reason = next((why for summary in summaries for why in summary.failure_reasons), "")
                because = f": {reason}" if reason else ""
                yield f"{failed:,} of {sent:,} requests of {label} failed on {spec.name}{because}"


def _silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress: everything is fetched already."""


def _reason(run: RunRecord) -> str:
    failed = [fork for fork in run.forks if fork.status == "failed"]
    return failed[-1].reason if failed else "none began"
