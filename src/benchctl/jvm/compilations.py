"""What a JVM logs of its compilers: compilations, compiled code that is given up, deoptimisations.

As `-Xlog:jit+compilation=debug,deoptimization=debug` writes it, on JDK 17 to 25.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from benchctl.jvm.decorated import decorated
from benchctl.results.evidence import C2_LEVEL

JitWhat = Literal["compiled", "failed", "invalidated", "removed", "deoptimised", "unread"]

FIRST_WITH_DEOPTIMIZATION = 21
"""The first of the Java versions with long support that knows the tag; 17 refuses to start with it."""

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
    """One line of the log.

    Attributes:
        uptime_ns: since the process started.
        what: `compiled` when a compilation begins; `failed` when it cannot be done; `invalidated` when no
            thread enters that code again, which for levels under C2 is what usually follows the next one;
            `removed` when the code is gone; `deoptimised` when a thread left compiled code because what the
            compiler had assumed was wrong; `unread` for a line of another form, whose text is `reason`.
        compile_id: of the compilation; -1 for an unread line.
        level: of it, 0 to 4; -1 where the JVM does not say.
        osr: whether it is entered in the middle of a loop.
        method: `package.Class::method`.
        reason: why, where the JVM says so.
    """

    uptime_ns: int
    what: JitWhat
    compile_id: int = -1
    level: int = -1
    osr: bool = False
    method: str = ""
    reason: str = ""


def read_events(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[JitEvent]:
    """What the compilers of one process did, in the order of the log.

    Args:
        lines: of the log.
        pid: of the process.
        started_ns: when it started, on the monotonic clock.
    """
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
    """`a.B.c(I)V` as compilations call it: `a.B::c`."""
    owner, _, name = method.partition("(")[0].rpartition(".")
    return f"{owner}::{name}"
