"""What a JVM logs of times at which it stood still: pauses of the collector, with the heap, and safepoints.

As `-Xlog:gc*,safepoint` writes it, on JDK 17 to 25.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchctl.jvm.decorated import decorated

_NS_PER_MS = 1_000_000
_BYTES = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

# Numbers have no more digits than 64 bits hold in their unit: others were not written by a JVM.
# Generational ZGC names the generation first; not all pauses know the heap before and after.
_PAUSE = re.compile(
    r"(?:\[[^]]*\])* *GC\(\d+\) (?:[YyOo]: )?Pause (?P<what>.+?)"
    r"(?: (?P<before>\d{1,9})(?P<before_unit>[BKMG])->(?P<after>\d{1,9})(?P<after_unit>[BKMG])\(\d+[BKMG]\))?"
    r" (?P<ms>\d{1,9}\.\d+)ms"
)
_SAFEPOINT = re.compile(r'(?:\[[^]]*\])* *Safepoint "(?P<what>[^"]+)", (?P<parts>.*)')
_PART = re.compile(r"(?P<name>[A-Z][A-Za-z ]+): (?P<ns>\d{1,18}) ns")


@dataclass(frozen=True)
class GcPause:
    """The collector stopped all threads.

    Attributes:
        start_ns: when it began, on the clock that its end was told by.
        pause_ns: how long it took.
        what: which pause and why, as the JVM says: `Young (Normal) (G1 Evacuation Pause)`.
        before_bytes, after_bytes: of the heap in use, in the steps in which the JVM says it; None where it
            does not.
    """

    start_ns: int
    pause_ns: int
    what: str
    before_bytes: int | None = None
    after_bytes: int | None = None


@dataclass(frozen=True)
class Safepoint:
    """All threads were stopped, for whatever the JVM wanted.

    Attributes:
        uptime_ns: when it was asked for, since the process started.
        reach_ns: until the last thread had stopped.
        total_ns: until they went on, reaching it included.
        what: the JVM's word for what it wanted.
    """

    uptime_ns: int
    reach_ns: int
    total_ns: int
    what: str


def parse_pause(text: str, end_ns: int) -> GcPause | None:
    """The pause whose end a line of a log tells, whatever the collector; None for other lines.

    Args:
        text: of the line; decorations in front of it are passed over.
        end_ns: when it was written.
    """
    # Most lines are of other things, and a log may be long.
    if "Pause" not in text or (found := _PAUSE.fullmatch(text)) is None:
        return None
    pause_ns = round(float(found["ms"]) * _NS_PER_MS)
    before, after = _bytes(found, "before"), _bytes(found, "after")
    return GcPause(end_ns - pause_ns, pause_ns, found["what"], before, after)


def read_stops(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[GcPause | Safepoint]:
    """The times at which one process stood still, in the order of the log; other lines are passed over.

    Args:
        lines: of the log.
        pid: of the process.
        started_ns: when it started, on the monotonic clock.
    """
    for end_ns, text in decorated(lines, pid, started_ns):
        if (pause := parse_pause(text, end_ns)) is not None:
            yield pause
        elif "Safepoint" in text and (found := _SAFEPOINT.fullmatch(text)):
            parts = {part["name"]: int(part["ns"]) for part in _PART.finditer(found["parts"])}
            if "Reaching safepoint" in parts and "Total" in parts:
                total_ns = parts["Total"]
                yield Safepoint(end_ns - total_ns, parts["Reaching safepoint"], total_ns, found["what"])


def _bytes(found: re.Match[str], name: str) -> int | None:
    number = found[name]
    return None if number is None else int(number) * _BYTES[found[f"{name}_unit"]]
