"""The text of `jfr print` -> samples, line by line."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from benchctl.errors import BenchctlError
from benchctl.jvm.profile.model import Sample

EVENTS = ("jdk.JVMInformation", "jdk.ExecutionSample", "jdk.NativeMethodSample")
"""What must be in a recording; the first is there as it begins, and shows in which time zone all are."""

_EVENT = re.compile(r"(?P<name>[\w.$]+) \{")
_STARTED = "  startTime = "
_TIME = re.compile(r"  startTime = (\d\d:\d\d:\d\d\.\d{3}) \((\d{4}-\d\d-\d\d)\)")
_THREAD = re.compile(r'  sampledThread = (?:"(?P<name>.*)" )?\(.*\)')
# Parameters tell overloads apart, which the line does as well; a profile is easier to read without them.
_FRAME = re.compile(r"    (?P<method>[^\s(]+)\(.*\)(?: +line: (?P<line>\d+))?")
_HIDDEN = re.compile(r"(\$\$Lambda)(?:\$\d+)?(?:[./+]0x[0-9a-f]+)?")
_CUT = "    ..."
_UNNAMED = "(a thread without a name)"
_ZONES = timedelta(minutes=15)
_FARTHEST_ZONE = timedelta(hours=18)


@dataclass(frozen=True)
class RecordingClock:
    """When things happened by the host's clock, in UTC, without a time zone.

    A recording is printed in the time zone of the JVM that made it, which it does not name; and what it calls
    the JVM's start is when the JVM was done with its own start, seconds later.

    Attributes:
        started: the JVM's process.
        begun: the recording, within minutes.
    """

    started: datetime
    begun: datetime


class RecordingText:
    """Reads what `jfr print --events ... --stack-depth N` prints of a recording.

    Args:
        lines: of it, with or without line ends. They are read while samples are asked for.
        clock: what its times are counted by.

    Attributes:
        unread: lines so far that were not understood; a sample whose time is among them is left out.
    """

    def __init__(self, lines: Iterable[str], clock: RecordingClock) -> None:
        self._lines = (line.rstrip("\n") for line in lines)
        self._clock = clock
        self._started: datetime | None = None
        self.unread = 0

    def samples(self) -> Iterator[Sample]:
        """Yield the samples, in the order of the text.

        Raises:
            BenchctlError: a sample says no time, or comes before the event that shows the time zone.
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
        """One; None where its time cannot be read, which is counted."""
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
            elif found := _THREAD.fullmatch(line):
                thread = found["name"] or _UNNAMED
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
    found = _TIME.fullmatch(line)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(f"{found[2]}T{found[1]}")
    except ValueError:  # There is no such day or hour.
        return None


def _frame(found: re.Match[str]) -> str:
    """`Class.method:line`; the numbers that a JVM gives to lambdas are other ones in every JVM."""
    method = _HIDDEN.sub(r"\1", found["method"])
    # A frame has no separator of collapsed stacks in it, whatever other languages of the JVM name methods.
    method = method.replace(";", ",")
    return method if found["line"] is None else f"{method}:{found['line']}"
