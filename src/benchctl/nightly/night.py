"""A night from its start to its message: whatever happens in it, its record says so."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchctl.errors import BenchctlError, ExitCode
from benchctl.nightly.alarms import Desk, mark_known
from benchctl.nightly.changes import changes, track_changes
from benchctl.nightly.confirm import Confirmer
from benchctl.nightly.detection import Baselines, Detected, Detector
from benchctl.nightly.folder import SuiteFolder
from benchctl.nightly.measure import (
    CONFIRM_TAG,
    Laboratory,
    Measured,
    Measuring,
    cut_off,
    figure_rows,
    unmeasured,
)
from benchctl.nightly.model import (
    Event,
    Finding,
    NightRecord,
    NightStatus,
    Raised,
    alarms_of,
)
from benchctl.nightly.retention import apply_retention
from benchctl.nightly.suite import Suite
from benchctl.nightly.text import change_text
from benchctl.quantities import SIZE
from benchctl.report.numbers import duration
from benchctl.run.bench import Bench
from benchctl.run.fitness import examine
from benchctl.run.host import describe_host

_NIGHTS_TO_SEE = 5
"""From so many earlier nights on, it is known how much nights differ; before, only how much forks do."""


@dataclass(frozen=True)
class Shift:
    """Environment of a night."""

    suite: Suite
    path: Path
    folder: SuiteFolder  # where its nights are kept
    bench: Bench
    laboratory: Laboratory = field(default_factory=Laboratory)
    now: Callable[[], datetime] = lambda: datetime.now(UTC).astimezone()  # the wall clock; for labels only
    clock: Callable[[], float] = time.monotonic  # seconds on a monotonic clock


@dataclass(frozen=True)
class Ended:
    """Outcome of a night."""

    record: NightRecord
    events: Sequence[Event]
    trouble: tuple[str, ...] = ()  # what went wrong beside the night itself
    bug: Exception | None = None  # an exception that ended the night, to be raised again once it is reported

    @property
    def raised(self) -> list[Raised]:
        """The alarms that it raised."""
        return [event for event in self.events if isinstance(event, Raised) and event.night == self.record.id]


def run_night(shift: Shift) -> Ended:
    """Run a night, or continue one that was cut off, with the suite and the host locked.

    A night that could not be measured is a result, too.

    Raises:
        BenchctlError: If nothing can be kept, or the night was interrupted.
    """
    note = shift.bench.observer.note
    nights = shift.folder.nights(note)
    resumed = cut_off(shift.suite, shift.folder, shift.bench, nights, shift.now())
    record = resumed or shift.folder.begin(shift.suite.name, shift.now())
    nights = [night for night in shift.folder.nights(note) if night.number != record.number]
    return _Night(shift, nights, record, resuming=resumed is not None).run()


@dataclass
class _Night:
    """The steps of a night, each kept before the next begins."""

    shift: Shift
    nights: Sequence[NightRecord]
    record: NightRecord
    resuming: bool
    _before_s: float = field(init=False)
    _started: float = field(init=False)
    _trouble: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._before_s = self.record.wall_s
        self._started = self.shift.clock()

    def run(self) -> Ended:
        """Run the night, with clean-up."""
        try:
            self._save(budget_s=self.shift.suite.budget_s or 0.0)
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
            return replace(self._finish(), bug=err)
        return self._finish()

    def _measure_and_look(self) -> None:
        shift = self.shift
        environment = describe_host()
        self._save(environment=environment)
        waited_s = shift.laboratory.settle(shift.suite.host, shift.bench.observer.note)
        snapshot = replace(shift.laboratory.look(shift.bench.home), now=shift.now())
        fitness = examine(
            environment,
            snapshot,
            shift.suite.host,
            SIZE.parse(shift.suite.heap),
            None if self._last is None else (self._last.number, self._last.started),
            shift.suite.on_busy,
        )
        if waited_s:
            shift.bench.observer.note(f"{duration(waited_s)} were spent waiting for a quiet host")
        self._save(noise=fitness.noise, caveats=fitness.notes)
        if fitness.refused:
            self._end("refused", "; ".join(fitness.refused))
            return
        measured = Measuring(
            shift.suite,
            shift.bench,
            self._save,
            self._unless_unlimited(self._left_for_forks),
            shift.laboratory,
        ).measure(self.record, resuming=self.resuming)
        self._keep(measured)
        self._look(measured)
        self._end("done", unmeasured(measured.run))

    def _keep(self, measured: Measured) -> None:
        """Save what was measured before anything looks at it."""
        self.record = measured.record
        self._save()
        shift = self.shift
        labels = {variant.label: variant.label for variant in self.record.variants}
        rows = figure_rows(measured.run, night=self.record.number, labels=labels)
        shift.folder.write_figures(self.record.id, rows)
        before = self._last
        if before is not None:
            self._save(changes=changes(before, self.record))

    def _look(self, measured: Measured) -> None:
        """Screen, read the canary, find recoveries, confirm, and raise the alarms that follow."""
        shift = self.shift
        events = shift.folder.events(shift.bench.observer.note)
        records = (*self.nights, self.record)
        baselines = Baselines.of(records, events, self.record)
        series = shift.folder.series(
            [variant.label for variant in self.record.variants],
            [*baselines.comparable, self.record.number],
            shift.bench.observer.note,
        )
        detector = Detector(records, self.record, baselines, shift.suite.margins)
        detected = detector.detect(series)
        self._save(canary_moved=detected.canary.text)
        desk = Desk(records, self.record, events, self._now)
        returning = desk.returning(baselines, series, detected.canary, detector.margin)
        findings = self._confirmed(measured, mark_known(detected.findings, returning))
        self._save(findings=tuple(findings))
        desk = Desk(records, self.record, events, self._now)
        for event in _unsaid([*desk.recovered(returning), *desk.raised(findings)], events):
            shift.folder.append(event)
        self._say_what_is_not_watched(detected, len(baselines.comparable))

    def _confirmed(self, measured: Measured, findings: Sequence[Finding]) -> list[Finding]:
        """Return findings in the order of the schedule, with the outcomes of confirmations."""
        open_ones = [finding for finding in findings if finding.status == "unconfirmed"]
        if not open_ones:
            return list(findings)
        confirmer = Confirmer(
            bench=self.shift.bench,
            limits=self.shift.suite.confirm,
            margins=self.shift.suite.margins,
            nights=(*self.nights, self.record),
            tonight=self.record,
            record=measured.run,
            track=measured.track,
            left_s=self._unless_unlimited(self._left),
            tags=(*measured.tags, CONFIRM_TAG),
            start=self.shift.laboratory.start,
        )
        done, runs = confirmer.confirm(open_ones)
        self._save(runs=(*self.record.runs, *runs))
        by_key = {finding.key: finding for finding in done}
        return [by_key.get(finding.key, finding) for finding in findings]

    def _say_what_is_not_watched(self, found: Detected, earlier: int) -> None:
        texts = []
        if found.young and not found.watched:
            text = "no earlier nights to compare this one with"
            last = self._last
            if last is not None and last.era != self.record.era:
                track = map(change_text, track_changes(last, self.record))
                text = "; ".join([text, *(f"the track changed: {change}" for change in track)])
            texts.append(text)
        elif found.young:
            texts.append(f"{found.young} series have no earlier night to be held against")
        elif earlier < _NIGHTS_TO_SEE:
            nights = "1 earlier night" if earlier == 1 else f"{earlier} earlier nights"
            texts.append(f"with only {nights} to be held against, only large changes stand out yet")
        if found.rare:
            texts.append(
                f"{found.rare} series were 0 in all forks of a night, and have no ratio to be screened"
            )
        if found.gone:
            texts.append(f"{found.gone} series that had figures in the night before have none tonight")
        if texts:
            self._save(caveats=(*self.record.caveats, *texts))

    def _finish(self) -> Ended:
        """Clean up, whose failure must not undo a night that was measured."""
        shift = self.shift
        note = shift.bench.observer.note
        events = shift.folder.events(note)
        nights = [*self.nights, self.record]
        try:
            removed = apply_retention(
                shift.folder,
                nights,
                shift.bench.store,
                shift.bench.home,
                shift.suite.retention,
                alarms_of(events),
            )
            for line in removed:
                note(line)
        except (BenchctlError, OSError) as err:
            self._say_trouble("old data could not be removed", err)
        return Ended(self.record, events, tuple(self._trouble))

    def _say_trouble(self, what: str, err: Exception) -> None:
        text = f"{what}: {err.message if isinstance(err, BenchctlError) else err}"
        self._trouble.append(text)
        self.shift.bench.observer.note(text)

    @property
    def _last(self) -> NightRecord | None:
        """The newest night before that was measured."""
        done = [
            night for night in self.nights if night.status == "done" and night.number < self.record.number
        ]
        return max(done, key=lambda night: night.number, default=None)

    @property
    def _now(self) -> str:
        return self.shift.now().isoformat(timespec="seconds")

    def _wall_s(self) -> float:
        return self._before_s + self.shift.clock() - self._started

    def _unless_unlimited(self, left_s: Callable[[], float]) -> Callable[[], float] | None:
        return None if self.shift.suite.budget_s is None else left_s

    def _left(self) -> float:
        """Return the seconds of the night's budget that are left."""
        return (self.shift.suite.budget_s or 0.0) - self._wall_s()

    def _left_for_forks(self) -> float:
        """Return the seconds left without those that are reserved for confirmations."""
        kept_free = (self.shift.suite.budget_s or 0.0) * self.shift.suite.confirm.share_of_budget
        return self._left() - kept_free

    def _save(self, **fields: object) -> None:
        self.record = msgspec.structs.replace(self.record, wall_s=self._wall_s(), **fields)
        self.shift.folder.save(self.record)

    def _end(self, status: NightStatus, reason: str) -> None:
        """Keep how it ended; on a full disk it is reported all the same."""
        try:
            self._save(status=status, reason=reason)
        except BenchctlError as err:
            self.record = msgspec.structs.replace(self.record, status=status, reason=reason)
            self._say_trouble("the night's record could not be kept", err)


def _unsaid(new: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Return alarms except those that the same night raised before it was cut off."""
    announced = {(event.night, event.kind, event.key) for event in events if isinstance(event, Raised)}
    return [
        event
        for event in new
        if not isinstance(event, Raised) or (event.night, event.kind, event.key) not in announced
    ]
