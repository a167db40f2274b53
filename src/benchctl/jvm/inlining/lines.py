"""The grammar of a log's lines: heads of compilations, threads, calls and type profiles."""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchctl.jvm.inlining.fates import Fate, fate_of
from benchctl.jvm.inlining.model import Compilation, Receiver

# The XML file that HotSpot writes has its text escaped, standard output has not.
_ENTITIES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&apos;", b"'"), (b"&quot;", b'"'), (b"&amp;", b"&"))

# Everything but the lines of trees: their indentation is skipped once and never given back. A head (stamp,
# id, flags, level, rest), a thread, or whatever else.
EVENT_BODY = (
    rb"(?![ sm!]*+(?:@ -?\d|\\->|\\-&gt;))"
    rb"(?: *+(\d++) ++(\d++) ([% ][s ][! ][b ][n ]) *+([0-4-]) ++([^\n]*+)"
    rb"|<writer thread='(\d++)'/>|([^\n]++))"
)
EVENT = re.compile(rb"\n" + EVENT_BODY)
FIRST_EVENT = re.compile(EVENT_BODY)
STAMP, ID, FLAGS, LEVEL, REST, THREAD, OTHER = range(1, 8)

# `A::b (56 bytes)`, `A::b @ 7 (56 bytes)` where a loop is entered, `A::b (native)`, `A::b (native) (static)`.
_COMPILED = re.compile(rb"(\S+::\S+)(?: @ (-?\d+))? \((?:(\d+) bytes|native)\)(?: +\(static\))? *")

_CALL = re.compile(rb"([ sm!]*)@ (-?\d+) +(\S+::.*)")
_CALLEE = re.compile(rb"(\S+::\S+)(?: \((?:(\d+) bytes|not loaded)\)|)(?: +(.*))?")
_PROFILE = re.compile(rb"\\-(?:>|&gt;) TypeProfile \((\d+)/(\d+) counts\) = (\S+)")
_CHANGED = re.compile(r" *callee changed to +(\S+::\S+) \((\d+) bytes\) *")
# A line of a tree that another thread cut: its end, as it is left behind.
_WRAPPED = re.compile(rb" {3}[a-z(]| ?\S* ?\((?:\d+ bytes|not loaded)\)(?:   [a-z(]|$)")
_SPACES = re.compile(r" {2,}")

# Words that only C2 says of a call; standard output does not say which compiler's tree a line belongs to.
C2_WORDS = (
    b"(hot)", b"TypeProfile", b"   too big", b"call site", b"virtual call", b"already compiled",
    b"hot method", b"NodeCount", b"(intrinsic", b"accessor", b"recursive inlining is", b"never executed",
)  # fmt: skip


Callee = tuple[str, int | None, Fate, str]
"""Method, size of its bytecode, fate, and HotSpot's words."""


def is_compiled(rest: bytes) -> bool:
    """Whether the rest of a head tells of a compilation, and not of one that is given up or was skipped."""
    return _COMPILED.fullmatch(rest) is not None


def head(number: int, found: re.Match[bytes], thread: int | None) -> Compilation:
    """The compilation that a head announces.

    Args:
        number: it gets.
        found: of `EVENT_BODY`, whose rest `is_compiled`.
        thread: that printed it.
    """
    rest = _COMPILED.fullmatch(found[REST])
    if rest is None:
        raise ValueError(f"{found[REST]!r} is no compilation")
    level = found[LEVEL]
    return Compilation(
        number,
        id=int(found[ID]),
        stamp_ms=int(found[STAMP]),
        level=None if level == b"-" else int(level),
        method=dotted(text(rest[1])),
        size=None if rest[3] is None else int(rest[3]),
        osr_bci=None if rest[2] is None else int(rest[2]),
        flags=text(found[FLAGS]).replace(" ", ""),
        thread=thread,
    )


class CallLine(NamedTuple):
    """A call's line, taken apart.

    Attributes:
        column: of its `@`, which tells how deep it is.
        bci: of the call.
        callees: name, size, fate and HotSpot's words: one, or since JDK 25 all that were tried at the site.
        receivers: that stood on the same line, since JDK 25.
    """

    column: int
    bci: int
    callees: tuple[Callee, ...]
    receivers: tuple[Receiver, ...]


def call_line(line: bytes) -> CallLine | None:
    """The call that a line tells of; None when it is no such line."""
    found = _CALL.fullmatch(line)
    told = None if found is None else _told(found[3])
    return None if found is None or told is None else CallLine(len(found[1]), int(found[2]), *told)


@functools.lru_cache(maxsize=1 << 16)  # most lines of a log say of some method what others have said of it
def _told(rest: bytes) -> tuple[tuple[Callee, ...], tuple[Receiver, ...]] | None:
    """What a line says behind the bci: the callees, and receivers."""
    found = _CALLEE.fullmatch(rest)
    if found is None:
        return None
    name, size = dotted(text(found[1])), None if found[2] is None else int(found[2])
    words = found[3] or b""
    if b"TypeProfile" not in words:
        return _callees(name, size, text(words).strip()), ()
    return _callees(name, size, text(_PROFILE.sub(b"", words)).strip()), receivers(words)


def receivers(line: bytes) -> tuple[Receiver, ...]:
    """The receivers that a line of a type profile names; several since JDK 25."""
    return tuple(
        Receiver(dotted(text(name)), int(count), int(total)) for count, total, name in _PROFILE.findall(line)
    )


def _callees(name: str, size: int | None, words: str) -> tuple[Callee, ...]:
    if "callee changed to" not in words:
        return ((name, size, fate_of(words), words),)
    first, *rest = _CHANGED.split(words)
    tried: list[tuple[str, int | None, str]] = [(name, size, first)]
    tried += [(rest[at], int(rest[at + 1]), rest[at + 2]) for at in range(0, len(rest), 3)]
    # A target without words is the declared method again, to which the site was put back.
    worded = [
        (callee, bytes_, _SPACES.sub("   ", said.strip())) for callee, bytes_, said in tried if said.strip()
    ]
    kept = worded or [(name, size, words)]
    return tuple((callee, bytes_, fate_of(said), said) for callee, bytes_, said in kept)


def foreign_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Those of these lines that are not the log's, such as an engine's own on the same standard output."""
    for line in lines:
        found = FIRST_EVENT.match(line.rstrip(b"\n"))
        if found is not None and found[OTHER] is not None and not _WRAPPED.match(line):
            yield line


def text(raw: bytes) -> str:
    """Bytes of a log as text, unescaped; what is no UTF-8 stays visible."""
    if b"&" in raw:
        for entity, char in _ENTITIES:
            raw = raw.replace(entity, char)
    return raw.decode("utf-8", "backslashreplace")


def escaped(name: str) -> bytes:
    """A name as it stands in the XML file."""
    raw = name.encode()
    for entity, char in reversed(_ENTITIES):
        raw = raw.replace(char, entity)
    return raw


def dotted(name: str) -> str:
    """A class or method with dots: classes that are not loaded, and receivers, are printed with slashes."""
    if "/" not in name:
        return name
    holder, colons, method = name.partition("::")
    hidden = holder.find("/0x")
    if hidden < 0:
        return f"{holder.replace('/', '.')}{colons}{method}"
    return f"{holder[:hidden].replace('/', '.')}{holder[hidden:]}{colons}{method}"
