"""A night: measured, screened, confirmed, and alarms raised; whatever happens, its record says so."""

import hashlib
import math
import re
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec

from benchctl.disk import disk_errors, remove_folder
from benchctl.engine.distribution import install
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.maven import latest_version
from benchctl.engine.variant import with_newest
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.nightly.alarms import Watch, mark_known
from benchctl.nightly.records import (
    Alarm,
    Finding,
    FindingStatus,
    NightRecord,
    NightStatus,
    SuiteFolder,
    SuiteState,
    number_of,
)
from benchctl.nightly.series import DEFAULT_MARGIN, changes, era_of, read_runs, same_engine, task_names
from benchctl.nightly.suite import Suite
from benchctl.plugin.code import Consent
from benchctl.quantities import DURATION, SIZE
from benchctl.report.numbers import interval, mebibytes, signed_percent
from benchctl.results.model import RunRecord
from benchctl.results.plan import BUNDLED, FIRST_LOOK, EngineName, Plan, StopSpec, VariantSpec
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench
from benchctl.run.documents import FileOptions
from benchctl.run.fitness import Snapshot, calibration_of, settle, snapshot
from benchctl.run.form import run_spec
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.plan import plan_run
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import BUSY_HOST, Row, reservations
from benchctl.stats.caveat import CaveatCode
from benchctl.stats.compare import VERDICT_WORDS, Comparison
from benchctl.stats.metrics import metrics_in
from benchctl.track.model import Track

LAST_GOOD = "last-good"
TONIGHT = "tonight"
CONFIRM_TAG = "confirm"
CONFIRM_SHARE: Final = 0.4
"""Share of a night's budget that is reserved for confirmations while the night's forks run."""

_SEED_BYTES = 7  # less than 2^63, the most that a seed may be
_RAW_FOLDERS: Final = ("forks", "boots")
"""Raw parts of a run's directory: samples, and logs of nodes."""


# The plan of a night.


def resolve(suite: Suite, newest: Callable[[EngineName], str] = latest_version) -> tuple[VariantSpec, ...]:
    """Return a suite's variants as of tonight: watched ones first, then canaries.

    Raises:
        BenchctlError: If the newest version is wanted and cannot be found out.
    """
    return tuple(with_newest(suite.specs, newest))


def night_seed(suite: Suite, name: str, night: int) -> int:
    """Return the seed of a night: the suite's own, or one that follows from the night's number.

    With the same one every night, the random order of variants within a block would favour the same one.
    """
    if suite.seed is not None:
        return suite.seed
    return int.from_bytes(hashlib.sha256(f"{name}/{night}".encode()).digest()[:_SEED_BYTES])


def night_plan(
    suite: Suite, name: str, night: int, specs: tuple[VariantSpec, ...], home: Home
) -> tuple[Plan, Track, FileOptions]:
    """Plan a night's own run, without its budget.

    A plug-in of the track needs prior consent (`benchctl track trust`), remembered in `home`: nobody is
    there.

    Raises:
        UsageError: If the suite, its track, its challenges and this host do not fit each other.
    """
    work = msgspec.structs.replace(suite, seed=night_seed(suite, name, night))
    options = run_spec(work, specs, home=home, consent=Consent(home))
    return *plan_run(options), options.files


def pinned(spec: VariantSpec, home: Home) -> VariantSpec:
    """Return a variant with fixed paths: both are in the home already, and found there."""
    installation = install(home, spec, _silent)
    root = None if spec.distribution is None else str(installation.root)
    return msgspec.structs.replace(
        spec, distribution=root, jdk=str(provide_jdk(home, spec.java, installation).home)
    )


def _silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress: everything is fetched already."""


@dataclass(frozen=True)
class Laboratory:
    """The parts of a night that touch the machine."""

    start: Callable[..., tuple[RunFolder, RunRecord]] = start_run
    pin: Callable[[VariantSpec, Home], VariantSpec] = pinned  # makes a variant with nothing left to move
    look: Callable[[Home], Snapshot] = snapshot  # observes the host


@dataclass(frozen=True)
class Shift:
    """Environment of a night."""

    suite: Suite
    folder: SuiteFolder  # where its nights are kept
    bench: Bench
    laboratory: Laboratory = field(default_factory=Laboratory)
    now: Callable[[], datetime] = lambda: datetime.now(UTC).astimezone()  # the wall clock; for labels only
    clock: Callable[[], float] = time.monotonic  # seconds on a monotonic clock


@dataclass(frozen=True)
class Ended:
    """Outcome of a night."""

    record: NightRecord
    alarms: Sequence[Alarm]  # of the suite
    trouble: tuple[str, ...] = ()  # what went wrong beside the night itself
    bug: Exception | None = None  # an exception that ended the night, to be raised again once it is reported


def run_night(shift: Shift) -> Ended:
    """Run a night, with the suite and the host locked; a night that could not be measured is a result, too.

    Raises:
        BenchctlError: If nothing can be kept, or the night was interrupted.
    """
    nights = shift.folder.nights(shift.bench.observer.note)
    for place, night in enumerate(nights):
        # The suite's lock is held: it has no process any more.
        if night.status == "running":
            nights[place] = msgspec.structs.replace(night, status="interrupted", reason="it was cut off")
            shift.folder.save(nights[place])
    return _Night(shift, nights, shift.folder.begin(shift.now()), shift.clock()).run()


@dataclass
class _Night:
    """The steps of a night, each kept before the next begins."""

    shift: Shift
    nights: Sequence[NightRecord]
    record: NightRecord
    started: float
    trouble: list[str] = field(default_factory=list)

    def run(self) -> Ended:
        """Run the night, with clean-up."""
        bug = None
        try:
            self._measure_and_look()
        except KeyboardInterrupt:
            self._end("interrupted", "it was interrupted")
            raise
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                self._end("interrupted", "it was interrupted")
                raise
            self._end("failed", f"{err.message}; {err.hint}" if err.hint else err.message)
        except Exception as err:  # noqa: BLE001 - a bug ends the night, too, and somebody has to be told
            self._end("failed", f"internal error: {type(err).__name__}: {err}")
            bug = err
        alarms: Sequence[Alarm] = ()
        try:
            alarms = self.shift.folder.state().alarms
        except BenchctlError as err:
            self._note_trouble(err.message)
        self._remove_raw(alarms)
        return Ended(self.record, alarms, tuple(self.trouble), bug)

    def _measure_and_look(self) -> None:
        shift, suite = self.shift, self.shift.suite
        last = next((night for night in reversed(self.nights) if night.status == "done"), None)
        seen = settle(
            lambda: shift.laboratory.look(shift.bench.home),
            Snapshot.noise,
            DURATION.parse(suite.host.settle),
            shift.bench.observer.note,
        )
        noise, refused = seen.noise(), seen.lacks(suite.host, SIZE.parse(suite.heap))
        refused += noise if suite.on_busy == "fail" else []
        self._save(noise=tuple(noise))
        if refused:
            self._end("refused", "; ".join(refused))
            return
        run, track = self._measure()
        self._look(run, track, last)
        lacking = [spec.name for spec in run.plan.variants if not run.compared(spec.name)]
        reason = f"no fork of {', '.join(lacking)} was measured: {_failure(run)}" if lacking else ""
        self._end("done", reason)

    def _measure(self) -> tuple[RunRecord, Track]:
        """Run the forks, and keep what belongs to them before anything looks at it."""
        suite, bench, name = self.shift.suite, self.shift.bench, self.shift.folder.root.name
        specs = resolve(suite)
        plan, track, files = night_plan(suite, name, self.record.number, specs, bench.home)
        extras = Extras(
            calibration=calibration_of(bench, plan),
            tags=(*self._tags, *suite.tags),
            files=files,
            left_s=self._left(CONFIRM_SHARE),
        )
        _, run = self.shift.laboratory.start(bench, plan, track, extras)
        if not any(run.compared(spec.name) for spec in run.plan.variants):
            raise BenchctlError(f"no fork was measured: {_failure(run)}", hint=f"see: benchctl show {run.id}")
        self._save(
            run=run.id,
            era=era_of(run, track),
            canary="" if suite.canary is None else specs[-1].name,
            caveats=tuple(dict.fromkeys((*self.record.caveats, *_caveats(run)))),
        )
        self._save(pinned=tuple(self.shift.laboratory.pin(spec, bench.home) for spec in specs))
        return run, track

    def _look(self, run: RunRecord, track: Track, last: NightRecord | None) -> None:
        """Screen, read the canary, find recoveries, confirm, and raise the alarms that follow."""
        shift, bench = self.shift, self.shift.bench
        nights = [*self.nights, self.record]
        runs, series = read_runs(bench.store, nights, bench.observer.note)
        if last is not None and last.number in runs:
            self._save(changes=changes(runs[last.number], runs[self.record.number]))
        watch = Watch(nights, self.record, shift.folder.state().alarms, runs, shift.suite.margins)
        histories = watch.histories(series)
        screened, remarks = watch.screened(histories)
        returning = watch.returning(histories, screened)
        confirmer = Confirmer(shift, watch, run, track, self._left(), (*self._tags, CONFIRM_TAG))
        findings = confirmer.confirm(mark_known(screened, returning))
        warnings = tuple(run_warnings(run))
        self._save(
            findings=tuple(findings),
            caveats=(*self.record.caveats, *remarks),
            warnings=warnings,
            has_new_warnings=bool(
                {*map(_kind, warnings)} - {*map(_kind, () if last is None else last.warnings)}
            ),
        )
        raised, ended = watch.raised(findings), watch.ended(returning)

        def settled(state: SuiteState) -> SuiteState:
            old = (
                msgspec.structs.replace(alarm, recovered=self.record.id, end=ended[alarm.number])
                if alarm.number in ended
                else alarm
                for alarm in state.alarms
            )
            return msgspec.structs.replace(state, alarms=(*old, *raised))

        shift.folder.update(settled)

    def _remove_raw(self, alarms: Iterable[Alarm]) -> None:
        """Remove samples and logs of nights that are old, and that no open alarm is about."""
        keep = self.shift.suite.raw_nights
        measured = [night for night in (*self.nights, self.record) if night.run]
        if keep is None or len(measured) <= keep:
            return
        findings = [(alarm.night, alarm.finding) for alarm in alarms if alarm.is_open]
        spared = {night for raised, one in findings for night in (raised, one.since, one.last_good)}
        for night in (night for night in measured[:-keep] if night.id not in spared):
            for name in night.runs:
                try:
                    text = _without_raw(RunFolder(self.shift.bench.store.root / name))
                except BenchctlError as err:
                    text = f"keeps its samples and logs: {err.message}"
                if text:
                    self.shift.bench.observer.note(f"night {night.id}: run {name} {text}")

    def _note_trouble(self, text: str) -> None:
        self.trouble.append(text)
        self.shift.bench.observer.note(text)

    @property
    def _tags(self) -> tuple[str, ...]:
        return "nightly", self.record.suite, self.record.id

    def _left(self, reserved: float = 0.0) -> Callable[[], float] | None:
        """Return what tells the seconds of the night's budget that are left; None without a budget."""
        budget_s = self.shift.suite.budget_s
        if budget_s is None:
            return None
        return lambda: budget_s * (1 - reserved) - (self.shift.clock() - self.started)

    def _save(self, **fields: object) -> None:
        wall_s = self.shift.clock() - self.started
        self.record = msgspec.structs.replace(self.record, wall_s=wall_s, **fields)
        self.shift.folder.save(self.record)

    def _end(self, status: NightStatus, reason: str) -> None:
        """Keep how it ended; on a full disk it is reported all the same."""
        try:
            self._save(status=status, reason=reason)
        except BenchctlError as err:
            self._note_trouble(f"the night's record could not be kept: {err.message}")


def _without_raw(folder: RunFolder) -> str:
    """Remove samples and logs of a run; return what was removed, in words, or an empty text."""
    raw = [folder.path / part for part in _RAW_FOLDERS if (folder.path / part).is_dir()]
    if not raw:
        return ""
    record = folder.load()
    forks = []
    for fork in record.forks:
        boots = tuple(msgspec.structs.replace(boot, logs="") for boot in fork.boots)
        forks.append(msgspec.structs.replace(fork, samples=None, boots=boots, files={}))
    # The record first: should we be killed here, the next night removes the rest.
    folder.save(msgspec.structs.replace(record, forks=tuple(forks)))
    with disk_errors(f"remove samples of {folder.path}"):
        return f"has no samples and logs any more, {mebibytes(sum(map(remove_folder, raw)))}"


def _failure(run: RunRecord) -> str:
    failed = [fork for fork in run.forks if fork.status == "failed"]
    return failed[-1].reason if failed else "none started"


def _caveats(run: RunRecord) -> Iterable[str]:
    """Yield what a reader should know of a night's run: what is missing."""
    source = run.plan.track_source
    yield from filter(None, (source and source.outdated, run.stopped))
    if failed := run.missing():
        yield f"{len(failed)} of {run.total} forks failed: {_failure(run)}"


_OF_VALUES: Final[tuple[CaveatCode, ...]] = (
    "failures", "hits-changed", "ignored-errors", "nothing-found", "not-cold", "stalled", "unsupported",
    "answers-differ", "counted-more", "cut-short", "driver-limited", "missing-values",
)  # fmt: skip
"""Doubts about a run that are doubts about its values, whatever these are compared with."""


def run_warnings(run: RunRecord) -> list[str]:
    """Return what the report of a night's run warns of, each once, that concerns the values themselves."""
    analysis = analyse_run(run)
    doubts = [("", doubt) for doubt in analysis.caveats]
    doubts += [(f"{row.label}: ", doubt) for row in analysis.task_rows for doubt in row.caveats]
    return list(dict.fromkeys(f"{task}{doubt.text}" for task, doubt in doubts if doubt.code in _OF_VALUES))


def _kind(warning: str) -> str:
    """Return a warning without its numbers, which differ from night to night."""
    return re.sub(r"\d[\d.,]*", "N", warning)


# Is it the engine? Last-good against tonight, interleaved on fresh nodes of the same night.


@dataclass(frozen=True)
class Confirmer:
    """Inputs of confirming runs."""

    shift: Shift
    watch: Watch
    record: RunRecord  # of tonight's run
    track: Track
    left_s: Callable[[], float] | None  # seconds of the night's budget that are left; None without a budget
    tags: tuple[str, ...]

    def confirm(self, findings: Sequence[Finding]) -> list[Finding]:
        """Look into `unconfirmed` findings, the largest change first, while there is time.

        Returns:
            All findings in their order, with what became of them.
        """
        groups: dict[tuple[str, str], list[Finding]] = {}
        for finding in sorted(findings, key=lambda one: -abs(math.log1p(one.effect_percent / 100))):
            if finding.status == "unconfirmed":
                groups.setdefault((finding.key.variant, finding.last_good), []).append(finding)
        done = {finding.key: finding for group in groups.values() for finding in self._of_rivals(group)}
        return [done.get(finding.key, finding) for finding in findings]

    def _of_rivals(self, findings: list[Finding]) -> list[Finding]:
        """Look into findings about one variant with the same last good night."""
        label, good = findings[0].key.variant, number_of(findings[0].last_good)
        if good not in self.watch.runs:
            return _ended(findings, "unconfirmed", f"the run of night {good} is gone")
        before = self.watch.runs[good]
        if same_engine(before, self.record, label):
            reason = f"nothing about {label} has changed since night {good}"
            if others := [text for text in changes(before, self.record, label) if "track" in text]:
                reason = f"{reason}, but the track has: {'; '.join(others)}"
            return _ended(findings, "same engine", reason)
        affordable = self._affordable(label)
        if affordable < FIRST_LOOK:
            reason = (
                f"the budget leaves time for {affordable} forks per variant, and a verdict takes at "
                f"least {FIRST_LOOK}"
            )
            return _ended(findings, "unconfirmed", reason)
        self.shift.bench.observer.note(
            f"confirming {len(findings)} findings of {label}: night {good} against tonight, up to "
            f"{affordable} forks per variant"
        )
        try:
            plan = self._plan(findings, self._pair(label, good))
            extras = Extras(tags=self.tags, left_s=self.left_s)
            _, record = self.shift.laboratory.start(self.shift.bench, plan, self.track, extras)
            return self._judged(findings, record)
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                raise
            return _ended(findings, "unconfirmed", f"the confirming run failed: {err.message}")

    def _affordable(self, label: str) -> int:
        """Return the forks per variant that the limits and the rest of the night allow."""
        most = self.shift.suite.confirm_forks
        if self.left_s is None:
            return most
        walls = [fork.wall_s for fork in self.record.compared(label)]
        affordable = self.left_s() / (2 * statistics.median(walls)) if walls else 0
        return min(most, max(0, math.floor(affordable)))

    def _pair(self, label: str, good: int) -> tuple[VariantSpec, VariantSpec]:
        """Return the variant of both nights as it was then, under separate names.

        What can be fetched by its version stays so, a distribution of the makers with its runtime included;
        only another distribution or Java runtime becomes a path, the runtime only if the two nights differ in
        it.
        """
        nights = (self.watch.night(good), self.watch.tonight)
        runs = (self.watch.runs[good], self.record)
        specs = [spec for run in runs for spec in run.plan.variants if spec.name == label]
        runtimes = [
            (spec.jdk, [facts.jdk for facts in run.engines if facts.variant == label])
            for run, spec in zip(runs, specs, strict=True)
        ]
        pair = []
        for name, night, spec in zip((LAST_GOOD, TONIGHT), nights, specs, strict=True):
            fixed = next(fixed for fixed in night.pinned if fixed.name == label)
            stays = runtimes[0] == runtimes[1] or (spec.place is None and spec.java == BUNDLED)
            pair.append(
                msgspec.structs.replace(
                    spec,
                    name=name,
                    distribution=spec.distribution if spec.place is None else fixed.distribution,
                    jdk=spec.jdk if stays else fixed.jdk,
                )
            )
        return pair[0], pair[1]

    def _plan(self, findings: Sequence[Finding], pair: tuple[VariantSpec, VariantSpec]) -> Plan:
        """Return tonight's plan with two variants until what the findings are about is decided."""
        plan, most = self.record.plan, self.shift.suite.confirm_forks
        wanted = {_task(finding) for finding in findings}
        # Without a restart between them all challenges stay: what ran before is part of what was measured.
        chosen = {plan.schedules[place[0]].name for place, task in task_names(plan).items() if task in wanted}
        plan = msgspec.structs.replace(
            plan,
            variants=pair,
            schedules=tuple(
                challenge
                for challenge in plan.schedules
                if plan.restart == "never" or challenge.name in chosen
            ),
            forks=most,
            index_builds=min(plan.index_builds, most),
        )
        places = {task: place for place, task in task_names(plan).items()}
        stop = StopSpec(
            decided=True,
            margin=min(self.watch.margin(finding.key) for finding in findings),
            only=tuple((*places[_task(finding)], finding.key.metric) for finding in findings),
        )
        return msgspec.structs.replace(plan, stop=stop)

    def _judged(self, findings: Sequence[Finding], record: RunRecord) -> list[Finding]:
        names, kinds = task_names(record.plan), [metric.key for metric in metrics_in(record.plan)]
        margins = {kind: self.watch.margins.get(kind, DEFAULT_MARGIN) for kind in kinds}
        compared = {
            (*names[row.schedule, row.task], row.metric): row
            for row in analyse_run(record, margins=margins).task_rows
            if row.comparisons
        }
        return [
            msgspec.structs.replace(
                _with_verdict(finding, compared.get((*_task(finding), finding.key.metric))),
                run=record.id,
                command=f"benchctl extend {record.id} --forks 6",
            )
            for finding in findings
        ]


def status_of(comparison: Comparison, doubts: Collection[str] = ()) -> FindingStatus:
    """Return what a verdict on last-good against tonight makes of a finding.

    `doubts` are its reservations. A busy host alone does not hold a finding back: pairs in turn bear the same
    load, and where others always use a tenth of the CPUs no alarm would ever be raised.
    """
    if comparison.provisional and set(doubts) != {BUSY_HOST}:
        return "unconfirmed"
    match comparison.verdict:
        case "faster" | "slower":
            return "confirmed"
        case "equivalent":
            return "refuted"
        case _:
            return "unconfirmed"


def _with_verdict(finding: Finding, row: Row | None) -> Finding:
    """Return a finding with the outcome of its row of the confirming run."""
    if row is None:
        return msgspec.structs.replace(finding, reason="the confirming run has no values for it")
    (comparison,) = row.comparisons
    doubts = reservations(comparison, row.figures)
    status = status_of(comparison, doubts)
    finding = msgspec.structs.replace(finding, status=status, reason=_reason(comparison, doubts))
    low, high, effect = comparison.low_percent, comparison.high_percent, comparison.effect_percent
    if status != "confirmed" or low is None or high is None or effect is None:
        return finding
    return msgspec.structs.replace(
        finding,
        direction=comparison.verdict,
        effect_percent=effect,
        low_percent=low,
        high_percent=high,
    )


def _reason(comparison: Comparison, doubts: Iterable[str]) -> str:
    further = comparison.further
    effect, low, high = comparison.effect_percent, comparison.low_percent, comparison.high_percent
    size = "no ratio" if effect is None else f"{signed_percent(effect)}%"
    bounds = "" if low is None else f" ({interval(low, high)})"
    verdict = VERDICT_WORDS.get(comparison.verdict, comparison.verdict)
    if comparison.provisional:
        verdict = f"{verdict}, provisional ({', '.join(doubts)})"
    lack = "" if further is None else f"; about {further} more forks per variant would decide it"
    forks = f"{comparison.n_baseline} + {comparison.n_contender} forks"
    return f"last-good against tonight: {verdict}, {size}{bounds} over {forks}{lack}"


def _task(finding: Finding) -> tuple[str, str]:
    return finding.key.challenge, finding.key.task


def _ended(findings: Iterable[Finding], status: FindingStatus, reason: str) -> list[Finding]:
    return [msgspec.structs.replace(finding, status=status, reason=reason) for finding in findings]
