"""Pauses from a node's garbage collection log, on whatever clock its lines carry."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchctl.jvm.unified_log import parse_pause

_NS_PER_S = 1_000_000_000
_NS_PER_US = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_DECORATIONS = re.compile(r"(?:\[[^]]*\])+")
_DECORATION = re.compile(r"\[([^]]*)\]")
_UPTIME = re.compile(r"\d+\.\d+s")
_NANOS = re.compile(r"\d+ns")
_WALL = re.compile(r"\d{4}-\d\d-\d\dT\S+")


@dataclass(frozen=True)
class LogClock:
    """Where the clocks of a log's lines stand on the clock that pauses are wanted on.

    Attributes:
        zero_ns: when the monotonic clock was 0 there, from which the nanoseconds count that benchctl has
            nodes log.
        epoch_ns: when it was 1970 there: what wall times count from, in logs that have nothing better, since
            that clock may be set while a node runs.
        started_ns: when its process started. Uptimes count from when the JVM was loaded into it, for
            OpenSearch a second or two later, since its start script becomes the JVM: a pause that has no
            wall time is placed so much too early.
    """

    zero_ns: int
    epoch_ns: int
    started_ns: int


@dataclass(frozen=True)
class Pause:
    """All threads of a JVM stood still.

    Attributes:
        start_ns: when it began.
        pause_ns: how long it was.
        what: which pause and why, as the JVM says: `Young (Normal) (G1 Evacuation Pause)`.
    """

    start_ns: int
    pause_ns: int
    what: str


def read_pauses(logs: Path, pid: int, clock: LogClock) -> list[Pause]:
    """The pauses that a JVM logged, in order.

    Start scripts run other JVMs with the same flags before the server, so that one log may be of several
    processes. Lines need nanoseconds, a wall time, or an uptime in seconds; by default they have that.

    Args:
        logs: folder with `gc.log` and what it was rotated to; without these there are no pauses.
        pid: of the JVM; lines that name another one are passed over.
        clock: what the result's times count by.
    """
    found = [pause for path in logs.glob("gc.log*") for pause in _pauses(path, str(pid), clock)]
    return sorted(found, key=lambda pause: pause.start_ns)


def _pauses(path: Path, pid: str, clock: LogClock) -> Iterator[Pause]:
    with path.open(encoding="utf-8", errors="replace") as log:
        for line in log:
            # Most lines are of other things, and a log may be long.
            marks = _DECORATIONS.match(line) if "Pause" in line else None
            decorations = [text.strip() for text in _DECORATION.findall(marks[0])] if marks else []
            end_ns = _time_ns(decorations, clock)
            found = None if end_ns is None else parse_pause(line.rstrip(), end_ns)
            if found is not None and _is_of(pid, decorations):
                yield Pause(found.start_ns, found.pause_ns, found.what)


def _is_of(pid: str, decorations: list[str]) -> bool:
    """Whether a line is of that process; one without a number may be."""
    numbers = [text for text in decorations if text.isdigit()]
    return not numbers or pid in numbers


def _time_ns(decorations: list[str], clock: LogClock) -> int | None:
    """When a line was written; None when it does not say."""
    for text in decorations:
        if _NANOS.fullmatch(text):
            return clock.zero_ns + int(text.removesuffix("ns"))
    for text in decorations:
        if _WALL.fullmatch(text):
            since = datetime.fromisoformat(text) - _EPOCH
            return clock.epoch_ns + since // timedelta(microseconds=1) * _NS_PER_US
        if _UPTIME.fullmatch(text):
            return clock.started_ns + round(float(text.removesuffix("s")) * _NS_PER_S)
    return None
