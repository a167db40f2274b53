"""Samples of a JVM's threads: recorded, kept, counted, compared."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from benchctl.errors import BenchctlError
from benchctl.results.folders import read_versioned
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place
from benchctl.results.reading import UnknownTimesError, task_windows
from benchctl.results.store import RunFolder

PROFILE_NAME = "profile.json"
PROFILE_VERSION = 1

Stack = tuple[str, ...]
"""Frames from the thread's first method to the running one: `Class.method:line`, or without a line."""


@dataclass(frozen=True)
class Sample:
    """A thread at one moment."""

    uptime_ns: int  # when, since the JVM started; with millisecond resolution
    thread: str  # its name
    stack: Stack  # empty if the JVM could not walk it
    native: bool = False  # it was in native code, where it may have been waiting; else it ran Java
    cut: bool = False  # the stack continues towards the thread's first method


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Samples of one node start as columns, in order of time."""

    profile_version: int  # of this form
    frames: tuple[str, ...]  # every frame once
    threads: tuple[str, ...]  # every thread's name once
    stacks: tuple[tuple[int, ...], ...]  # every stack once, as indices into frames
    uptime_ns: tuple[int, ...]  # of each sample, see `Sample`
    native: tuple[bool, ...]
    cut: tuple[bool, ...]
    thread: tuple[int, ...]  # of each sample, index into threads
    stack: tuple[int, ...]  # of each sample, index into stacks
    unread: int = 0  # lines of the recording that could not be parsed

    def samples(self) -> Iterator[Sample]:
        """Yield all samples, in order of time."""
        stacks = [tuple(self.frames[place] for place in stack) for stack in self.stacks]
        columns = zip(self.uptime_ns, self.native, self.thread, self.stack, self.cut, strict=True)
        for uptime_ns, native, thread, stack, cut in columns:
            yield Sample(uptime_ns, self.threads[thread], stacks[stack], native=native, cut=cut)


def profile_of(samples: Iterable[Sample], unread: int = 0) -> Profile:
    """Return the profile of one node start from its samples, in any order."""
    frames: dict[str, int] = {}
    threads: dict[str, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    rows = [
        (
            sample.uptime_ns,
            sample.native,
            sample.cut,
            threads.setdefault(sample.thread, len(threads)),
            stacks.setdefault(
                tuple(frames.setdefault(frame, len(frames)) for frame in sample.stack), len(stacks)
            ),
        )
        for sample in samples
    ]
    rows.sort(key=lambda row: row[0])
    columns = tuple(zip(*rows, strict=True)) or ((),) * 5
    uptime_ns, native, cut, thread, stack = columns
    return Profile(
        profile_version=PROFILE_VERSION,
        frames=tuple(frames),
        threads=tuple(threads),
        stacks=tuple(stacks),
        uptime_ns=uptime_ns,
        native=native,
        cut=cut,
        thread=thread,
        stack=stack,
        unread=unread,
    )


def read_profile(folder: Path) -> Profile | None:
    """Return the profile in a folder of evidence; None when there is none.

    Raises:
        BenchctlError: If it cannot be read, is damaged, or of another version.
    """
    path = folder / PROFILE_NAME
    profile = read_versioned(path, Profile, "profile", PROFILE_VERSION)
    if profile is not None and not _holds_together(profile):
        raise BenchctlError(f"{path} is damaged: its columns do not belong together")
    return profile


def _holds_together(profile: Profile) -> bool:
    """Return whether columns have equal lengths and indices are valid."""
    columns = (profile.native, profile.cut, profile.thread, profile.stack)
    pointers = (
        (profile.thread, profile.threads),
        (profile.stack, profile.stacks),
        *((stack, profile.frames) for stack in profile.stacks),
    )
    return all(len(column) == len(profile.uptime_ns) for column in columns) and all(
        not places or (min(places) >= 0 and max(places) < len(known)) for places, known in pointers
    )


EVENTS = ("jdk.JVMInformation", "jdk.ExecutionSample", "jdk.NativeMethodSample")
"""Events that a recording must have; the first occurs at its start, and reveals its time zone."""

_EVENT = re.compile(r"(?P<name>[\w.$]+) \{")
_STARTED = "  startTime = "
_TIME = re.compile(r"  startTime = (\d\d:\d\d:\d\d\.\d{3}) \((\d{4}-\d\d-\d\d)\)")
_THREAD = re.compile(r'  sampledThread = (?:"(?P<name>.*)" )?\(.*\)')
# Without parameters, for readability: lines distinguish overloads as well.
_FRAME = re.compile(r"    (?P<method>[^\s(]+)\(.*\)(?: +line: (?P<line>\d+))?")
_HIDDEN = re.compile(r"(\$\$Lambda)(?:\$\d+)?(?:[./+]0x[0-9a-f]+)?")
_CUT = "    ..."
_UNNAMED = "(a thread without a name)"
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
            elif event["name"] in EVENTS:
                if (sample := self._sample(native=event["name"] == EVENTS[2])) is not None:
                    yield sample
            else:
                self._skip()

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

    def _sample(self, *, native: bool) -> Sample | None:
        """The next sample; None if its time cannot be parsed, which is counted."""
        when, thread, cut, timed = None, _UNNAMED, False, False
        stack: list[str] = []
        for line in self._body():
            if line == _CUT:
                cut = True
            elif frame := _FRAME.fullmatch(line):
                stack.append(_frame(frame))
            elif line.startswith(_STARTED):
                timed, when = True, _time(line)
                self.unread += when is None
            elif match := _THREAD.fullmatch(line):
                thread = match["name"] or _UNNAMED
            elif not line.startswith(("  state = ", "  stackTrace = ")) and line not in ("  ]", ""):
                self.unread += 1
        if self._started is None or not timed:
            raise BenchctlError("the recording does not say when its samples were taken")
        if when is None:
            return None
        uptime_ns = round((when - self._started).total_seconds() * 1000) * 1_000_000
        return Sample(uptime_ns, thread, tuple(reversed(stack)), native=native, cut=cut)

    def _skip(self) -> None:
        for _ in self._body():
            pass

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
    # `;` separates frames of collapsed stacks; other JVM languages allow it in names.
    method = method.replace(";", ",")
    return method if found["line"] is None else f"{method}:{found['line']}"


def collapse(stacks: Mapping[Stack, int]) -> str:
    """Return collapsed stacks from stack -> samples, sorted, one per line."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


# Counting stacks.
Window = tuple[int, int]
"""First and last nanosecond since the JVM started, both inclusive."""
# To the JVM a thread in native code looks busy even while it waits in the kernel: mostly for requests, and in
# Elasticsearch for standard input.
WAITS = frozenset({
    "io.netty.channel.epoll.Native.epollWait",
    "io.netty.channel.epoll.Native.epollWait0",
    "java.io.FileInputStream.readBytes",
    "java.lang.ProcessHandleImpl.waitForProcessExit0",
    "jdk.internal.misc.Unsafe.park",
    "sun.nio.ch.EPoll.wait",
    "sun.nio.ch.KQueue.poll",
    "sun.nio.ch.Net.accept",
    "sun.nio.ch.Net.poll",
    "sun.nio.fs.LinuxWatchService.poll",
})  # fmt: skip

UNKNOWN = "(unknown)"
"""A stack that the JVM could not walk."""

_ENGINE = re.compile(r"\borg\.(?:elasticsearch|opensearch)\.")
_POOL = re.compile(r"\[(?P<pool>[^\[\]]+)\]+(?:\[T#\d+\])?$")
# Handles the commands that start and stop the recording.
_OWN_THREAD = "Attach Listener"
_NUMBER = re.compile(r"[-#\s]*\d+$")


@dataclass(frozen=True)
class Choice:
    """The selection of samples to count."""

    native: bool = False  # those in native code that were not waiting; else those that ran Java
    thread: re.Pattern[str] | None = None  # must match somewhere in the thread's name; None for all
    windows: tuple[Window, ...] | None = None  # must include the sample; None for any time

    def takes(self, sample: Sample) -> bool:
        """Return whether a sample is counted."""
        if sample.native != self.native or (self.native and _waits(sample)) or sample.thread == _OWN_THREAD:
            return False
        if self.thread is not None and self.thread.search(sample.thread) is None:
            return False
        return self.windows is None or any(first <= sample.uptime_ns <= last for first, last in self.windows)


@dataclass(frozen=True)
class Counted:
    """The samples of one or several node starts."""

    stacks: Mapping[Stack, int]  # stack -> samples
    total: int  # recorded samples, counted or not
    cut: int  # counted samples whose stacks continue

    @property
    def samples(self) -> int:
        """Number of counted samples."""
        return sum(self.stacks.values())


def count_stacks(samples: Iterable[Sample], choice: Choice, *, pools: bool = False) -> Counted:
    """Count stacks; `pools` prepends the name of the thread pool in brackets."""
    stacks: Counter[Stack] = Counter()
    total = cut = 0
    for sample in samples:
        total += 1
        if choice.takes(sample):
            root = (f"[{pool_of(sample.thread)}]",) if pools else ()
            stacks[root + (sample.stack or (UNKNOWN,))] += 1
            cut += sample.cut
    return Counted(dict(stacks), total, cut)


def pool_of(thread: str) -> str:
    """Return the common part of the threads of a pool: `search` of `elasticsearch[node][search][T#3]`."""
    match = _POOL.search(thread)
    name = match["pool"] if match else _NUMBER.sub("", thread)
    return (name or thread).replace(";", ",")


def merged(counted: Iterable[Counted]) -> Counted:
    """Add up several node starts."""
    stacks: Counter[Stack] = Counter()
    total = cut = 0
    for count in counted:
        stacks.update(count.stacks)
        total += count.total
        cut += count.cut
    return Counted(dict(stacks), total, cut)


def engine_neutral(counted: Counted) -> Counted:
    """Unify `org.elasticsearch` and `org.opensearch`: most of both is the same code."""
    stacks: Counter[Stack] = Counter()
    for stack, count in counted.stacks.items():
        stacks[tuple(_ENGINE.sub("org.<engine>.", frame) for frame in stack)] += count
    return Counted(dict(stacks), counted.total, counted.cut)


def without_lines(counted: Counted) -> Counted:
    """Replace lines by their methods."""
    stacks: Counter[Stack] = Counter()
    for stack, count in counted.stacks.items():
        stacks[tuple(map(method_of, stack))] += count
    return Counted(dict(stacks), counted.total, counted.cut)


def method_of(frame: str) -> str:
    """Return a frame without its line."""
    method, colon, line = frame.rpartition(":")
    return method if colon and line.isdecimal() else frame


def _waits(sample: Sample) -> bool:
    return bool(sample.stack) and method_of(sample.stack[-1]) in WAITS


_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Share:
    """The share of one frame, with some of its callers."""

    stack: Stack  # the frame itself, then its callers outwards
    samples: int  # of all forks
    share: float  # of all forks' counted samples, 0 to 1
    least: float  # of the forks' own shares; the share itself for a single fork
    most: float


@dataclass(frozen=True)
class Difference:
    """The shares of one frame, with some of its callers, on two sides."""

    stack: Stack  # see `Share`
    baseline: Share  # of each side; with 0 samples if it was never seen
    contender: Share
    # 95% of differences due to sampling alone are smaller, as a share: binomial, and so a lower bound,
    # because the samples of one request are alike, and forks differ
    noise: float

    @property
    def difference(self) -> float:
        """Contender's share minus baseline's, -1 to 1."""
        return self.contender.share - self.baseline.share


def shares(forks: Sequence[Counted], *, size: int = 1, inclusive: bool = False) -> list[Share]:
    """Return the shares of frames, largest first, ties by name.

    Args:
        forks: of one variant; those without samples are ignored.
        size: frames of a stack that are distinguished, from the running one outwards, at least 1.
        inclusive: count a frame anywhere in a stack, once per stack, not only where it is running; the shares
            of all frames then exceed 1 in total.
    """
    own = [_cut_to(fork.stacks, size, inclusive=inclusive) for fork in forks if fork.samples]
    sizes = [fork.samples for fork in forks if fork.samples]
    pooled: Counter[Stack] = Counter()
    for counts in own:
        pooled.update(counts)
    found = [_share(stack, count, own, sizes) for stack, count in pooled.items()]
    return sorted(found, key=lambda share: (-share.samples, share.stack))


def differences(
    baseline: Sequence[Counted],
    contender: Sequence[Counted],
    *,
    size: int = 1,
    inclusive: bool = False,
) -> list[Difference]:
    """Return the differences of shares, largest first, ties by name; options as for `shares`."""
    first = {share.stack: share for share in shares(baseline, size=size, inclusive=inclusive)}
    second = {share.stack: share for share in shares(contender, size=size, inclusive=inclusive)}
    sizes = merged(baseline).samples, merged(contender).samples
    found = [
        _difference(
            first.get(stack, Share(stack, 0, 0.0, 0.0, 0.0)),
            second.get(stack, Share(stack, 0, 0.0, 0.0, 0.0)),
            sizes,
        )
        for stack in {**first, **second}
    ]
    return sorted(found, key=lambda difference: (-abs(difference.difference), difference.stack))


def _difference(baseline: Share, contender: Share, sizes: tuple[int, int]) -> Difference:
    pairs = zip((baseline.share, contender.share), sizes, strict=True)
    variance = sum(share * max(1 - share, 0.0) / size for share, size in pairs if size)
    return Difference(baseline.stack, baseline, contender, _NORMAL_95 * math.sqrt(variance))


def _cut_to(stacks: Mapping[Stack, int], size: int, *, inclusive: bool) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        outwards = stack[::-1]
        places = range(len(outwards)) if inclusive else range(1)
        for cut in {outwards[place : place + size] for place in places}:
            found[cut] += count
    return found


def _share(stack: Stack, count: int, forks: Sequence[Mapping[Stack, int]], sizes: Sequence[int]) -> Share:
    own = [counts.get(stack, 0) / size for counts, size in zip(forks, sizes, strict=True)]
    return Share(stack, count, count / sum(sizes), min(own), max(own))


@dataclass(frozen=True)
class ForkProfile:
    """The profiles of one fork, by position of the node start."""

    fork: ForkRecord
    boots: dict[int, Profile]

    @property
    def unread(self) -> int:
        """Lines of the recordings that could not be parsed."""
        return sum(profile.unread for profile in self.boots.values())


def fork_profiles(folder: RunFolder, record: RunRecord, variant: str) -> list[ForkProfile]:
    """Return the profiles of a variant's finished forks, in block order; forks without any are skipped.

    Raises:
        BenchctlError: If one cannot be read, is damaged, or of another version.
    """
    found = []
    for fork in record.done(variant):
        if "profile" not in fork.evidence:
            continue
        profiles = {
            number: read_profile(folder.evidence_folder(variant, fork.block, number))
            for number in range(len(fork.boots))
        }
        kept = {number: profile for number, profile in profiles.items() if profile is not None}
        if kept:
            found.append(ForkProfile(fork, kept))
    return found


def count_fork(
    profile: ForkProfile,
    choice: Choice,
    *,
    folder: RunFolder,
    tasks: Sequence[Place] | None,
    pools: bool = False,
) -> Counted:
    """Count the stacks of one fork, over all its node starts.

    Args:
        profile: of the fork.
        choice: which samples count; its windows are ignored.
        folder: of the run.
        tasks: only samples of the measured window of one of them; None for everything recorded.
        pools: as for `count_stacks`.

    Raises:
        UnknownTimesError: If it is unknown when these tasks ran.
    """
    windows = None if tasks is None else _windows(folder, profile.fork, tasks)
    counted = [
        count_stacks(
            samples.samples(),
            Choice(choice.native, choice.thread, None if windows is None else windows.get(number, ())),
            pools=pools,
        )
        for number, samples in profile.boots.items()
    ]
    return merged(counted)


def _windows(folder: RunFolder, fork: ForkRecord, tasks: Sequence[Place]) -> dict[int, tuple[Window, ...]]:
    """Node start -> when the tasks were measured there, on the clock of its profile."""
    found = task_windows(folder, fork)
    windows: dict[int, tuple[Window, ...]] = {}
    for window in (found[place] for place in tasks if place in found):
        origin_ns = fork.boots[window.boot].origin_ns
        if origin_ns is None:
            raise UnknownTimesError(f"it is not known when the JVM of fork {fork.block} started")
        own = (window.measured_ns - origin_ns, window.end_ns - origin_ns)
        windows[window.boot] = (*windows.get(window.boot, ()), own)
    return windows
