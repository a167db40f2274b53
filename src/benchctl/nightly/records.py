"""A suite on disk: its nights, its alarms, and who works on it; one night at a time.

What writes raises `BenchctlError` if the disk is full or cannot be written.
"""

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.lock import LOCK_NAME, named_lock
from benchctl.results.plan import VariantSpec
from benchctl.results.store import read_versioned, write_versioned

NIGHT_VERSION: Final = 3
SUITE_VERSION: Final = 1

NightStatus = Literal["running", "done", "refused", "failed", "interrupted"]
"""`refused`: the host was not fit to measure on."""

Direction = Literal["faster", "slower"]

FindingStatus = Literal["confirmed", "refuted", "unconfirmed", "held", "same engine", "known", "host"]
"""Outcome of a finding.

confirmed: an interleaved run of last-good against tonight shows it, so an alarm is raised.
refuted: in that run both are equivalent.
unconfirmed: that run decided nothing or failed, or there was no time for it; the screen stays armed.
held: the canary moved too, the same way in this metric: it was the host.
same engine: nothing of the variant has changed since last-good, so it cannot be slower by itself.
known: an alarm is about it already, and it is on its way back.
host: it is the canary that moved.
"""


class SeriesKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """Key of a value that is followed night by night; without a task, of all tasks of the canary."""

    variant: str
    challenge: str  # title of the challenge; with its number where it runs more than once
    task: str  # label of the task; with its number where the challenge has several of that label
    metric: str


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A series that left its usual range in a night."""

    key: SeriesKey
    direction: Direction
    # Tonight over last-good minus one, as confirmed; where it was not, as screened: the nights since the
    # change over the usual ones before it.
    effect_percent: float
    low_percent: float  # its 95% interval
    high_percent: float
    since: str  # id of the night in which it probably began
    # Id of the newest night that surely had the level from before; not always the one before `since`.
    last_good: str
    status: FindingStatus
    reason: str  # of the status, in a sentence
    run: str = ""  # id of the run that was to confirm it; empty for none
    command: str = ""  # that repeats this run


class NightRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A night of a suite, whether it was measured or not: what its run does not say."""

    night_version: int
    # Number and start, such as `00042-20261121-0300`; ids sort in the order in which nights began, whatever
    # the clock says.
    id: str
    number: int  # from 1; no two nights of a suite have the same
    suite: str
    started: str  # wall clock, ISO 8601 with offset: a label, never reckoned with
    status: NightStatus
    reason: str = ""  # of the status, where it is not `done`; else which variants have no values, and why
    # Digest of everything that must be alike for nights to be compared: host, corpus, challenges, sizes.
    # Series begin anew where it changes.
    era: str = ""
    run: str = ""  # id of the night's run, which has its values; empty when there is none
    canary: str = ""  # label of the variant that never changes: what moves it is the host
    # Its variants with nothing left to move: distribution and Java runtime by path.
    pinned: tuple[VariantSpec, ...] = ()
    noise: tuple[str, ...] = ()  # why the night is marked as noisy; empty when it is not
    caveats: tuple[str, ...] = ()  # what else a reader should know
    # What weakens the values of its run, as that run's own report has it; and whether the night measured
    # before had not all of it: then the message is sent even if nothing else happened.
    warnings: tuple[str, ...] = ()
    has_new_warnings: bool = False
    changes: tuple[str, ...] = ()  # what is not what it was in the night measured before
    findings: tuple[Finding, ...] = ()
    wall_s: float = 0.0  # from start to end, on a clock that does not jump
    told: bool = False  # whether its message was sent, or nobody wants it

    @property
    def runs(self) -> tuple[str, ...]:
        """Every run that belongs to it, the confirming ones included."""
        return tuple(dict.fromkeys(filter(None, (self.run, *(finding.run for finding in self.findings)))))

    @property
    def host_moved(self) -> str:
        """Return why the canary shows that the host moved; empty when it does not."""
        return "; ".join(finding.reason for finding in self.findings if finding.status == "host")


class Alarm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A finding that somebody has to look into: confirmed, or off for so many nights without a verdict."""

    number: int  # from 1; people type it
    night: str  # id of the night that raised it
    title: str  # one line: what, how much, since when
    finding: Finding
    changes: tuple[str, ...] = ()  # what changed between the last good night and that since which it lasts
    acknowledged: str = ""  # by whom, and why; empty when nobody has
    recovered: str = ""  # id of the night in which its cause was gone; empty while it lasts
    end: str = ""  # why it recovered

    @property
    def is_open(self) -> bool:
        """Return whether it lasts, and nobody has acknowledged it."""
        return not self.acknowledged and not self.recovered


class SuiteState(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Facts of a suite that are kept besides its nights."""

    suite_version: int = SUITE_VERSION
    file: str = ""  # absolute path of the suite file when it last ran
    alarms: tuple[Alarm, ...] = ()  # every one, by number


def number_of(night: str) -> int:
    """Return the number that a night's id begins with; 0 for an empty one."""
    return int(night.partition("-")[0] or 0)


class SuiteBusy(BenchctlError):  # noqa: N818 - a state that callers wait for or report, not a mistake
    """Another process is at work on the suite; the message says which, and since when."""


_NIGHT_ID: Final = re.compile(r"[0-9]{5,}-[0-9]{8}-[0-9]{4}")


def _ignored(_message: str) -> None:
    """Ignore a failure: for callers that reported it already, or do not care."""


@dataclass(frozen=True)
class SuiteFolder:
    """The folder of one suite, which can be moved and copied. Nothing here ever removes anything.

    Raises:
        BenchctlError: If a file is damaged or cannot be read, or the disk is full or cannot be written.
    """

    root: Path  # the folder; its name is the suite's

    @property
    def lock_name(self) -> str:
        """Name of the lock that whoever is at work on the suite holds."""
        return f"{LOCK_NAME}-suite-{hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:16]}"

    def lock(
        self,
        *,
        wait: bool = False,
        on_wait: Callable[[str], None] = _ignored,
        pause: Callable[[float], None] = time.sleep,
    ) -> AbstractContextManager[None]:
        """Lock the suite within the block, one night at a time; see `named_lock`.

        Raises:
            SuiteBusy: If another process has it, and we do not wait.
        """

        def busy(holder: str) -> SuiteBusy:
            return SuiteBusy(
                f"the suite in {self.root} is already running ({holder})",
                hint="wait until it has ended, or use: --on-busy wait",
            )

        return named_lock(self.lock_name, busy, wait=wait, on_wait=on_wait, pause=pause)

    def nights(self, unreadable: Callable[[str], None]) -> list[NightRecord]:
        """Return the readable nights, by number; `unreadable` is called with why one is skipped."""
        records = []
        for path in self._files():
            try:
                records.append(self._load(path))
            except BenchctlError as err:
                unreadable(err.message)
        return sorted(records, key=lambda record: record.number)

    def begin(self, now: datetime) -> NightRecord:
        """Write the record of a new night, which says that it is running; under the lock.

        The number decides the order, so that a clock that went back changes nothing but the label. `now` has
        a time zone.
        """
        # Damaged nights count: their numbers may stand in alarms.
        number = 1 + max((number_of(path.stem) for path in self._files()), default=0)
        record = NightRecord(
            night_version=NIGHT_VERSION,
            id=f"{number:05d}-{now:%Y%m%d-%H%M}",
            number=number,
            suite=self.root.name,
            started=now.isoformat(timespec="seconds"),
            status="running",
        )
        self.save(record)
        return record

    def save(self, record: NightRecord) -> None:
        """Replace the record of a night, atomically."""
        self._make()
        write_versioned(self._nights / f"{record.id}.json", record)

    def state(self) -> SuiteState:
        """Return file and alarms."""
        return read_versioned(self._state_path, SuiteState, "suite", SUITE_VERSION) or SuiteState()

    def update(self, change: Callable[[SuiteState], SuiteState]) -> SuiteState:
        """Replace the state by what `change` makes of it: alarms may be acknowledged while a night runs."""
        self._make()
        path = self.root / "lock"
        with disk_errors(f"lock {path}"):
            file = path.open("ab")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = change(self.state())
            write_versioned(self._state_path, state)
        return state

    def claim(self, file: str) -> None:
        """Keep a suite's file, of which there is one: two would write one history.

        Raises:
            UsageError: If another file that still exists has the name.
        """
        other = Path(self.state().file)
        if other != Path(file) and other.is_file() and not other.samefile(file):
            raise UsageError(
                f"'{self.root.name}' is the name of the suite in {other}",
                hint="rename this file; or remove the other one, to continue its history",
            )
        self.update(lambda state: msgspec.structs.replace(state, file=file))

    @property
    def _state_path(self) -> Path:
        return self.root / "suite.json"

    @property
    def _nights(self) -> Path:
        return self.root / "nights"

    def _make(self) -> None:
        with disk_errors(f"create {self._nights}"):
            self._nights.mkdir(parents=True, exist_ok=True)

    def _files(self) -> list[Path]:
        with disk_errors(f"read {self._nights}"):
            return [path for path in self._nights.glob("*.json") if _NIGHT_ID.fullmatch(path.stem)]

    def _load(self, path: Path) -> NightRecord:
        record = read_versioned(path, NightRecord, "night", NIGHT_VERSION)
        if record is None or (record.id, record.number) != (path.stem, number_of(path.stem)):
            raise BenchctlError(f"{path} is damaged: it is not the record of that night")
        return record


def suites(home: Home) -> list[SuiteFolder]:
    """Return the suites that have had a night, ordered by name.

    Raises:
        BenchctlError: If the home cannot be looked into.
    """
    # Whoever only looks makes no folder.
    root = home.root / "nightly"
    with disk_errors(f"read {root}"):
        return [SuiteFolder(path.parent) for path in sorted(root.glob("*/nights")) if any(path.iterdir())]


# What the core asks of suites: see the register of slices.


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Return the runs that nights refer to, which have their values."""
    for suite in suites(home):
        for night in suite.nights(unread):
            for run in night.runs:
                yield run, f"night {night.id} of {suite.root.name}"
