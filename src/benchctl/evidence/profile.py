"""Samples of a JVM's threads: recorded, kept, counted, compared."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from benchctl.errors import BenchctlError
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place
from benchctl.results.store import RunFolder, UnknownTimesError, read_versioned, task_windows

PROFILE_NAME = "profile.json"
PROFILE_VERSION = 2

Stack = tuple[str, ...]
"""The thread's pool in brackets, then frames from its first method to the running one: `Class.method:1`."""

Window = tuple[int, int]
"""First and last nanosecond since the JVM started, both inclusive."""

UNKNOWN = "(unknown)"
"""Frame of a stack that the JVM could not walk."""


@dataclass(frozen=True)
class Sample:
    """A thread that ran Java code at one moment."""

    uptime_ns: int  # when, since the JVM started; with millisecond resolution
    stack: Stack


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Samples of one node start as columns, in order of time."""

    profile_version: int  # of this form
    frames: tuple[str, ...]  # every frame once
    stacks: tuple[tuple[int, ...], ...]  # every stack once, as indices into frames
    uptime_ns: tuple[int, ...]  # of each sample, see `Sample`
    stack: tuple[int, ...]  # of each sample, index into stacks
    unread: int = 0  # lines of the recording that could not be parsed

    def within(self, windows: Sequence[Window]) -> Counter[Stack]:
        """Count the stacks that were sampled in any of these windows."""
        counts = Counter(
            place
            for at_ns, place in zip(self.uptime_ns, self.stack, strict=True)
            if any(first <= at_ns <= last for first, last in windows)
        )
        return Counter(
            {tuple(self.frames[at] for at in self.stacks[place]): count for place, count in counts.items()}
        )


def profile_of(samples: Iterable[Sample]) -> Profile:
    """Return the profile of one node start from its samples, in any order."""
    frames: dict[str, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    rows = []
    for sample in samples:
        stack = tuple(frames.setdefault(frame, len(frames)) for frame in sample.stack)
        rows.append((sample.uptime_ns, stacks.setdefault(stack, len(stacks))))
    rows.sort(key=lambda row: row[0])
    uptime_ns, places = tuple(zip(*rows, strict=True)) or ((), ())
    return Profile(PROFILE_VERSION, tuple(frames), tuple(stacks), uptime_ns, places)


def read_profile(folder: Path) -> Profile | None:
    """Return the profile in a folder of evidence; None when there is none.

    Raises:
        BenchctlError: If it cannot be read, is damaged, or of another version.
    """
    path = folder / PROFILE_NAME
    profile = read_versioned(path, Profile, "profile", PROFILE_VERSION, is_sealed=False)
    if profile is not None and not _holds_together(profile):
        raise BenchctlError(f"{path} is damaged: its columns do not belong together")
    return profile


def _holds_together(profile: Profile) -> bool:
    """Return whether columns have equal lengths and indices are valid."""
    pointers = [(profile.stack, len(profile.stacks)), *((own, len(profile.frames)) for own in profile.stacks)]
    return len(profile.stack) == len(profile.uptime_ns) and all(
        0 <= place < size for places, size in pointers for place in places
    )


# Recordings as text.

EVENTS = ("jdk.JVMInformation", "jdk.ExecutionSample")
"""Events that a recording must have; the first occurs at its start, and reveals its time zone."""

_EVENT = re.compile(r"(?P<name>[\w.$]+) \{")
_STARTED = "  startTime = "
_TIME = re.compile(r"  startTime = (\d\d:\d\d:\d\d\.\d{3}) \((\d{4}-\d\d-\d\d)\)")
_THREAD = re.compile(r'  sampledThread = (?:"(?P<name>.*)" )?\(.*\)')
# Without parameters, for readability: lines distinguish overloads as well.
_FRAME = re.compile(r"    (?P<method>[^\s(]+)\(.*\)(?: +line: (?P<line>\d+))?")
_HIDDEN = re.compile(r"(\$\$Lambda)(?:\$\d+)?(?:[./+]0x[0-9a-f]+)?")
_POOL = re.compile(r"\[(?P<pool>[^\[\]]+)\]+(?:\[T#\d+\])?$")
_NUMBER = re.compile(r"[-#\s]*\d+$")
# Handles the commands that start and stop the recording.
_OWN_THREAD = "Attach Listener"
_UNNAMED = "a thread without a name"
_ZONES = timedelta(minutes=15)
_FARTHEST_ZONE = timedelta(hours=18)


@dataclass(frozen=True)
class RecordingClock:
    """A reader of times by the host's clock, in UTC, without a time zone.

    A recording is printed in the time zone of its JVM, which it does not name; and what it calls the JVM's
    start is the end of the JVM's own startup, seconds later.
    """

    started: datetime  # the JVM's process
    begun: datetime  # the recording, within minutes


class RecordingText:
    """A parser of `jfr print --events ... --stack-depth N`, lazy, of lines with or without line ends.

    Attributes:
        unread: lines so far that could not be parsed; a sample whose time is among them is skipped.
    """

    def __init__(self, lines: Iterable[str], clock: RecordingClock) -> None:
        self._lines = (line.rstrip("\n") for line in lines)
        self._clock = clock
        self._started: datetime | None = None
        self.unread = 0

    def samples(self) -> Iterator[Sample]:
        """Yield the samples, in the order of the text.

        Raises:
            BenchctlError: If a sample has no time, or precedes the event that reveals the time zone.
        """
        for line in self._lines:
            event = _EVENT.fullmatch(line)
            if event is None:
                self.unread += bool(line.strip())
            elif event["name"] == EVENTS[0]:
                self._take_start()
            elif event["name"] == EVENTS[1]:
                if (sample := self._sample()) is not None:
                    yield sample
            else:
                for _ in self._body():
                    pass

    def _take_start(self) -> None:
        for line in self._body():
            if self._started is not None or not line.startswith(_STARTED):
                continue
            when = _time(line)
            zone = None if when is None else round((when - self._clock.begun) / _ZONES) * _ZONES
            if zone is None or abs(zone) > _FARTHEST_ZONE:
                self.unread += 1
            else:
                self._started = self._clock.started + zone

    def _sample(self) -> Sample | None:
        """The next sample; None if its time cannot be parsed, which is counted."""
        when, thread, is_timed = None, _UNNAMED, False
        frames: list[str] = []
        for line in self._body():
            if frame := _FRAME.fullmatch(line):
                frames.append(_frame(frame))
            elif line.startswith(_STARTED):
                is_timed, when = True, _time(line)
                self.unread += when is None
            elif match := _THREAD.fullmatch(line):
                thread = match["name"] or _UNNAMED
            elif not line.startswith(("  state = ", "  stackTrace = ")) and line not in ("  ]", ""):
                self.unread += 1
        if self._started is None or not is_timed:
            raise BenchctlError("the recording has no times of its samples")
        if when is None or thread == _OWN_THREAD:
            return None
        uptime_ns = round((when - self._started).total_seconds() * 1000) * 1_000_000
        return Sample(uptime_ns, (f"[{pool_of(thread)}]", *(reversed(frames) if frames else (UNKNOWN,))))

    def _body(self) -> Iterator[str]:
        """The lines up to the one that ends the event."""
        for line in self._lines:
            if line == "}":
                return
            yield line


def _time(line: str) -> datetime | None:
    match = _TIME.fullmatch(line)
    if match is None:
        return None
    try:
        return datetime.fromisoformat(f"{match[2]}T{match[1]}")
    except ValueError:  # no such day or hour
        return None


def _frame(found: re.Match[str]) -> str:
    """`Class.method:line`, without numbers of lambdas, which differ between JVMs."""
    method = _HIDDEN.sub(r"\1", found["method"])
    return method if found["line"] is None else f"{method}:{found['line']}"


def pool_of(thread: str) -> str:
    """Return the common part of the threads of a pool: `search` of `elasticsearch[node][search][T#3]`."""
    match = _POOL.search(thread)
    return match["pool"] if match else _NUMBER.sub("", thread) or thread


# Counting stacks.

_ENGINE = re.compile(r"\borg\.(?:elasticsearch|opensearch)\.")


@dataclass(frozen=True)
class ForkProfile:
    """The profiles of one fork, by position of the node start."""

    fork: ForkRecord
    boots: Mapping[int, Profile]

    def count(self, folder: RunFolder, tasks: Iterable[Place]) -> Counter[Stack]:
        """Count the stacks that were sampled while any of these tasks of the run was measured.

        Raises:
            UnknownTimesError: If it is unknown when these tasks ran.
        """
        measured = task_windows(folder, self.fork)
        windows: dict[int, list[Window]] = {}
        for window in (measured[place] for place in tasks if place in measured):
            origin_ns = self.fork.boots[window.boot].origin_ns
            if origin_ns is None:
                raise UnknownTimesError(f"it is unknown when the JVM of fork {self.fork.block} started")
            own = (window.measured_ns - origin_ns, window.end_ns - origin_ns)
            windows.setdefault(window.boot, []).append(own)
        return merged(profile.within(windows.get(boot, ())) for boot, profile in self.boots.items())


def fork_profiles(folder: RunFolder, record: RunRecord, variant: str) -> list[ForkProfile]:
    """Return the profiles of a variant's finished forks, in block order; forks without any are skipped.

    Raises:
        BenchctlError: If one cannot be read, is damaged, or of another version.
    """
    found = []
    for fork in record.done(variant):
        if "profile" not in fork.evidence:
            continue
        profiles = (
            (boot, read_profile(folder.evidence_folder(variant, fork.block, boot)))
            for boot in range(len(fork.boots))
        )
        kept = {boot: profile for boot, profile in profiles if profile is not None}
        if kept:
            found.append(ForkProfile(fork, kept))
    return found


def merged(counts: Iterable[Counter[Stack]]) -> Counter[Stack]:
    """Add up several node starts or forks."""
    return sum(counts, Counter[Stack]())


def renamed(stacks: Mapping[Stack, int], rename: Callable[[str], str]) -> Counter[Stack]:
    """Replace every frame, adding up stacks that become the same."""
    found: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        found[tuple(map(rename, stack))] += count
    return found


def engine_neutral(frame: str) -> str:
    """Unify `org.elasticsearch` and `org.opensearch`: most of both is the same code."""
    return _ENGINE.sub("org.<engine>.", frame)


def method_of(frame: str) -> str:
    """Return a frame without its line."""
    method, colon, line = frame.rpartition(":")
    return method if colon and line.isdecimal() else frame


_NORMAL_95 = 1.96


class Share(msgspec.Struct, frozen=True):
    """The share of one frame, with some of its callers."""

    stack: Stack  # the frame itself, then its callers outwards
    samples: int  # of all forks
    share: float  # of all forks' counted samples, 0 to 1
    least: float  # of the forks' own shares; the share itself for a single fork
    most: float


class Difference(msgspec.Struct, frozen=True):
    """The shares of one frame, with some of its callers, on two sides."""

    stack: Stack  # see `Share`
    baseline: float  # share on each side, 0 to 1
    contender: float
    difference: float  # contender's share minus baseline's, -1 to 1
    # 95% of differences due to sampling alone are smaller, as a share: binomial, and so a lower bound,
    # because the samples of one request are alike, and forks differ
    chance: float


def shares(forks: Sequence[Counter[Stack]], *, size: int = 1, inclusive: bool = False) -> list[Share]:
    """Return the shares of frames, largest first, ties by name.

    Args:
        forks: of one variant; those without samples are ignored.
        size: frames of a stack that are distinguished, from the running one outwards, at least 1.
        inclusive: count a frame anywhere in a stack, once per stack, not only where it is running; the shares
            of all frames then exceed 1 in total.
    """
    sizes = [fork.total() for fork in forks if fork]
    own = [_cut_to(fork, size, inclusive=inclusive) for fork in forks if fork]
    found = []
    for stack, count in merged(own).items():
        parts = [counts[stack] / total for counts, total in zip(own, sizes, strict=True)]
        found.append(Share(stack, count, count / sum(sizes), min(parts), max(parts)))
    return sorted(found, key=lambda share: (-share.samples, share.stack))


def differences(
    baseline: Sequence[Counter[Stack]], contender: Sequence[Counter[Stack]], *, size: int, inclusive: bool
) -> list[Difference]:
    """Return the differences of shares, largest first, ties by name; options as for `shares`."""
    sides = [
        {share.stack: share.share for share in shares(forks, size=size, inclusive=inclusive)}
        for forks in (baseline, contender)
    ]
    totals = [merged(forks).total() for forks in (baseline, contender)]
    found = []
    for stack in {**sides[0], **sides[1]}:
        one, other = (side.get(stack, 0.0) for side in sides)
        parts = zip((one, other), totals, strict=True)
        variance = sum(share * max(1 - share, 0.0) / total for share, total in parts if total)
        found.append(Difference(stack, one, other, other - one, _NORMAL_95 * math.sqrt(variance)))
    return sorted(found, key=lambda difference: (-abs(difference.difference), difference.stack))


def _cut_to(stacks: Counter[Stack], size: int, *, inclusive: bool) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        outwards = stack[::-1]
        places = range(len(outwards)) if inclusive else range(1)
        for cut in {outwards[place : place + size] for place in places}:
            found[cut] += count
    return found
