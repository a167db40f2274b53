"""The JVM's unified log on JDK 17 to 25: its compilers' work, and when it stopped its threads."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from benchctl.engine.usage import GcPause, parse_pause
from benchctl.results.model import C2_LEVEL

# Lines that begin with `[NANOSECONDSns][PID]`: System.nanoTime, and the process.

DECORATIONS = "timenanos,pid"
"""The decorations for `-Xlog`.

The first is System.nanoTime, on Linux the monotonic clock of all processes. Uptimes would not do: they count
from when the JVM was loaded, and OpenSearch's start script becomes the server a second or two after it began.
"""

_LINE = re.compile(r"\[(\d{1,18})ns\]\[(\d+)\s*\](.*)")


def decorated(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[tuple[int, str]]:
    """Yield what one process logged: (nanoseconds since it started, the rest of the line, right-stripped).

    Start scripts run other JVMs with the same flags before a server, and the last line may be cut. Lines of
    other processes, and lines without decorations, are skipped.

    Args:
        lines: of the log, with or without line ends.
        pid: of the process.
        started_ns: when it started, on the monotonic clock.
    """
    wanted = str(pid)
    for line in lines:
        found = _LINE.match(line)
        if found is not None and found[2] == wanted:
            yield int(found[1]) - started_ns, found[3].rstrip()


# Compilations, discarded code and deoptimisations, as of `-Xlog:jit+compilation=debug,deoptimization=debug`.

JitWhat = Literal["compiled", "failed", "invalidated", "removed", "deoptimised", "unread"]

FIRST_WITH_DEOPTIMIZATION = 21
"""The first long-term support version of Java that knows the tag; 17 refuses to start with it."""

# id, flags (osr, synchronized, has handlers, blocking, native), level unless there is only one, and so on.
_COMPILATION = re.compile(
    r" *(?P<id>\d+) (?P<flags>[%s!bn ]{5})(?: (?P<level>[0-4-]))? +(?P<method>\S+::\S+)"
    r"(?: @ -?\d+)? \((?:native|\d+ bytes)\)(?P<message>.*)"
)
_DEOPTIMISATION = re.compile(
    r" *cid= *(?P<id>\d+) (?P<osr>osr)? *level=(?P<level>\d) (?P<method>\S+) trap_bci=-?\d+"
    r"(?: osr_bci=-?\d+)? (?P<reason>\S+) "
)
_MESSAGES: dict[str, JitWhat] = {
    "": "compiled",
    "(static)": "compiled",
    "made not entrant": "invalidated",
    "made zombie": "removed",
    "COMPILE SKIPPED": "failed",
}


@dataclass(frozen=True)
class JitEvent:
    """A line of the log."""

    uptime_ns: int  # since the process started
    # `compiled` when a compilation begins; `failed` when it is impossible; `invalidated` when no thread
    # enters the code any more, which below C2 usually follows the next level's compilation; `removed` when
    # the code is gone; `deoptimised` when a thread left compiled code because an assumption of the compiler
    # was wrong; `unread` for a line of another form, whose text is `reason`
    what: JitWhat
    compile_id: int = -1  # of the compilation; -1 for an unread line
    level: int = -1  # of the compilation, 0 to 4; -1 if the JVM does not tell
    osr: bool = False  # whether it is entered in the middle of a loop
    method: str = ""  # `package.Class::method`
    reason: str = ""  # why, if the JVM tells


def read_events(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[JitEvent]:
    """Yield what the compilers of one process did, in the order of the log; arguments as for `decorated`."""
    for uptime_ns, text in decorated(lines, pid, started_ns):
        yield _event(uptime_ns, text)


def _event(uptime_ns: int, text: str) -> JitEvent:
    if found := _COMPILATION.fullmatch(text):
        message, _, detail = found["message"].strip().partition(":")
        what = _MESSAGES.get(message)
        if what is not None:
            osr, level = "%" in found["flags"], found["level"]
            number = C2_LEVEL if level is None else -1 if level == "-" else int(level)
            return JitEvent(uptime_ns, what, int(found["id"]), number, osr, found["method"], detail.strip())
    elif found := _DEOPTIMISATION.match(text):
        method = _as_compiled(found["method"])
        osr = found["osr"] is not None
        return JitEvent(
            uptime_ns, "deoptimised", int(found["id"]), int(found["level"]), osr, method, found["reason"]
        )
    return JitEvent(uptime_ns, "unread", reason=text.strip())


def _as_compiled(method: str) -> str:
    """`a.B.c(I)V` in the form of compilations: `a.B::c`."""
    owner, _, name = method.partition("(")[0].rpartition(".")
    return f"{owner}::{name}"


# Pauses of the collector, with the heap, and safepoints, as of `-Xlog:gc*,safepoint`.

_SAFEPOINT = re.compile(r'(?:\[[^]]*\])* *Safepoint "(?P<what>[^"]+)", (?P<parts>.*)')
_PART = re.compile(r"(?P<name>[A-Z][A-Za-z ]+): (?P<ns>\d{1,18}) ns")


@dataclass(frozen=True)
class Safepoint:
    """A stop of all threads for an operation of the JVM."""

    uptime_ns: int  # when it was requested, since the process started
    reach_ns: int  # until the last thread had stopped
    total_ns: int  # until they resumed, reaching included
    what: str  # the JVM's name of the operation


def read_stops(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[GcPause | Safepoint]:
    """Yield the stops of one process, in the order of the log; arguments as for `decorated`."""
    for end_ns, text in decorated(lines, pid, started_ns):
        if (pause := parse_pause(text, end_ns)) is not None:
            yield pause
        elif "Safepoint" in text and (found := _SAFEPOINT.fullmatch(text)):
            parts = {part["name"]: int(part["ns"]) for part in _PART.finditer(found["parts"])}
            if "Reaching safepoint" in parts and "Total" in parts:
                total_ns = parts["Total"]
                yield Safepoint(end_ns - total_ns, parts["Reaching safepoint"], total_ns, found["what"])
