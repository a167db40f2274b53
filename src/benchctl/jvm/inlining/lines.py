"""The grammar of a log's lines: heads of compilations, threads, calls and type profiles."""

import functools
import re
from collections.abc import Iterable, Iterator

import msgspec

from benchctl.jvm.inlining.fates import Fate, fate_of
from benchctl.jvm.inlining.model import Compilation, CompilationKey, Receiver

# The XML file that HotSpot writes has its text escaped, standard output has not.
_ENTITIES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&apos;", b"'"), (b"&quot;", b'"'), (b"&amp;", b"&"))

# Repetition is possessive where it can be: no line is gone over twice.
_CALL = re.compile(rb"( *+[ sm!]*+)@ (-?\d++) ++(.++)").fullmatch
_CALLEE = re.compile(rb"([^ ]+::[^ ]++)(?: \((?:(\d++) bytes|not loaded)\))?(?: ++(.*+))?").fullmatch
# Stamp, id, flags, level; then `A::b (56 bytes)`, `A::b @ 7 (56 bytes)` where a loop is entered,
# `A::b (native)`, `A::b (native)   (static)`, or the same with what became of an earlier compilation.
_HEAD = re.compile(
    rb" *+(\d++) ++(\d++) ([% ][s ][! ][b ][n ]) *+([0-4-]) ++"
    rb"(?:(\S+::\S++)(?: @ (-?\d++))?+ \((?:(\d++) bytes|native)\)(?: ++\(static\))?+ *+\r?+$|(.++))"
).fullmatch
_THREAD = re.compile(rb"<writer thread='(\d++)'/>").fullmatch
_OF_TREE = re.compile(rb"[ sm!]*+(?:@ -?\d|\\->|\\-&gt;)").match
_PROFILE = re.compile(rb"\\-(?:>|&gt;) TypeProfile \((\d+)/(\d+) counts\) = (\S+)")
_CHANGED = re.compile(r" *callee changed to +(\S+::\S+) \((\d+) bytes\) *")
# A line of a tree that another thread cut: its end, as it is left behind.
_WRAPPED = re.compile(rb" {3}[a-z(]| ?\S* ?\((?:\d+ bytes|not loaded)\)(?:   [a-z(]|$)").match
_SPACES = re.compile(r" {2,}")
_NOT_ENTRANT = b"   made not entrant"

# Words that only C2 says of a call; standard output does not say which compiler's tree a line belongs to.
_C2_WORDS = (
    b"(hot)", b"TypeProfile", b"   too big", b"call site", b"virtual call", b"already compiled",
    b"hot method", b"NodeCount", b"(intrinsic", b"accessor", b"recursive inlining is", b"never executed",
)  # fmt: skip


class Callee(msgspec.Struct, frozen=True, gc=False):
    """A method that was tried at a call site.

    Attributes:
        method: its name.
        size: of its bytecode, bytes; None where its class was not loaded.
        fate: what became of it.
        words: the same in HotSpot's.
    """

    method: str
    size: int | None
    fate: Fate
    words: str


class CallLine(msgspec.Struct, frozen=True, gc=False):
    """A call's line.

    Attributes:
        raw: the line.
        column: of its `@`, which tells how deep it is.
        bci: of the call.
        callees: one, or since JDK 25 all that were tried at the site.
        receivers: that stood on the same line, since JDK 25.
        by_c2: whether C1 never says this.
    """

    raw: bytes
    column: int
    bci: int
    callees: tuple[Callee, ...]
    receivers: tuple[Receiver, ...]
    by_c2: bool


class TextLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a type profile, or any other.

    Attributes:
        raw: the line.
        receivers: that it names; none if it is no type profile.
        of_tree: whether it looks like a tree's line.
    """

    raw: bytes
    receivers: tuple[Receiver, ...]
    of_tree: bool

    @property
    def by_c2(self) -> bool:
        """Whether C1 never says this."""
        return bool(self.receivers)


class ThreadLine(msgspec.Struct, frozen=True, gc=False):
    """From here on another thread writes.

    Attributes:
        thread: which.
    """

    thread: int


class GivenUpLine(msgspec.Struct, frozen=True, gc=False):
    """A compilation came to nothing, or is no longer entered.

    Attributes:
        key: which.
        stamp_ms: when, milliseconds since the JVM started.
        entered_before: whether it was in use until then; False when it was skipped.
    """

    key: CompilationKey
    stamp_ms: int
    entered_before: bool


TreeLine = CallLine | TextLine
Line = TreeLine | Compilation | ThreadLine | GivenUpLine


class Lines(dict[bytes, Line]):
    """Lines by their bytes, each read when it is first asked for.

    Half of a log's lines are to the byte what others were before. What is remembered is bounded: when there
    is too much of it, it begins anew.

    Args:
        most: lines that are remembered.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = most
        self._told = _ToldByWords()

    def __missing__(self, raw: bytes) -> Line:
        if len(self) >= self._most:
            self.clear()
            self._told.clear()
        line: Line
        if (call := _CALL(raw)) is not None and (told := self._told[call[3]]) is not None:
            line = CallLine(raw, call.end(1), int(call[2]), told.callees, told.receivers, told.by_c2)
        elif (head := _HEAD(raw)) is not None:
            return _compilation(head)  # no other is the same
        elif raw.endswith(b"\r"):
            return self[raw.rstrip(b"\r")]
        elif (thread := _THREAD(raw)) is not None:
            line = ThreadLine(int(thread[1]))
        else:
            line = TextLine(raw, _receivers(raw), _OF_TREE(raw) is not None)
        self[raw] = line
        return line

    def of_tree(self, raw: bytes) -> TreeLine:
        """A line that is known to be a tree's."""
        line = self[raw]
        return line if isinstance(line, CallLine | TextLine) else TextLine(raw, (), of_tree=False)


class _Told(msgspec.Struct, frozen=True, gc=False):
    """What a call's line says behind the bci."""

    callees: tuple[Callee, ...]
    receivers: tuple[Receiver, ...]
    by_c2: bool


class _ToldByWords(dict[bytes, _Told | None]):
    """The same, by how it stands there; None where it is no call after all."""

    def __missing__(self, raw: bytes) -> _Told | None:
        told = self[raw] = _told(raw)
        return told


def foreign_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Those of these lines that are not the log's, such as an engine's own on the same standard output."""
    read = Lines()
    for raw in lines:
        line = read[raw.rstrip(b"\r\n")]
        if isinstance(line, TextLine) and not line.of_tree and line.raw and not _WRAPPED(raw):
            yield raw


def text(raw: bytes) -> str:
    """Bytes of a log as text, unescaped; what is no UTF-8 stays visible."""
    if b"&" in raw:
        for entity, char in _ENTITIES:
            raw = raw.replace(entity, char)
    return raw.decode("utf-8", "backslashreplace")


def dotted(name: str) -> str:
    """A class or method with dots: classes that are not loaded, and receivers, are printed with slashes."""
    if "/" not in name:
        return name
    holder, colons, method = name.partition("::")
    hidden = holder.find("/0x")
    if hidden < 0:
        return f"{holder.replace('/', '.')}{colons}{method}"
    return f"{holder[:hidden].replace('/', '.')}{holder[hidden:]}{colons}{method}"


def _compilation(head: re.Match[bytes]) -> Compilation | GivenUpLine:
    stamp, number, flags, level, method, bci, size, given_up = head.groups()
    if given_up is not None:
        return GivenUpLine((int(number), b"%" in flags), int(stamp), _NOT_ENTRANT in given_up)
    return Compilation(
        int(number),
        int(stamp),
        None if level == b"-" else int(level),
        text(method),
        None if size is None else int(size),
        None if bci is None else int(bci),
        "" if flags.isspace() else flags.replace(b" ", b"").decode(),
    )


def _told(raw: bytes) -> _Told | None:
    found = _CALLEE(raw)
    if found is None:
        return None
    name, size, words = found.groups(b"")
    method, bytes_ = dotted(text(name)), int(size) if size else None
    fate, said, receivers, by_c2 = _said(words)
    if "callee changed to" in said:
        return _Told(_tried(method, bytes_, said), receivers, by_c2)
    return _Told((Callee(method, bytes_, fate, said),), receivers, by_c2)


@functools.lru_cache(maxsize=1 << 12)  # a few dozen; more since JDK 25, where some have a profile's numbers
def _said(words: bytes) -> tuple[Fate, str, tuple[Receiver, ...], bool]:
    """The fate that these words tell of, the words, the receivers in them, and whether C1 never says them."""
    spaced = b"   " + words
    said = text(_PROFILE.sub(b"", words)).strip()
    return fate_of(said), said, _receivers(words), any(word in spaced for word in _C2_WORDS)


def _receivers(raw: bytes) -> tuple[Receiver, ...]:
    """The receivers that a type profile names; several on one line since JDK 25."""
    return tuple(
        Receiver(dotted(text(name)), int(count), int(total)) for count, total, name in _PROFILE.findall(raw)
    )


def _tried(name: str, size: int | None, words: str) -> tuple[Callee, ...]:
    """The callees that were tried at one site, as JDK 25 names them on one line."""
    first, *rest = _CHANGED.split(words)
    tried: list[tuple[str, int | None, str]] = [(name, size, first)]
    tried += [(rest[at], int(rest[at + 1]), rest[at + 2]) for at in range(0, len(rest), 3)]
    # A target without words is the declared method again, to which the site was put back.
    worded = [
        (callee, bytes_, _SPACES.sub("   ", said.strip())) for callee, bytes_, said in tried if said.strip()
    ]
    kept = worded or [(name, size, words)]
    return tuple(Callee(callee, bytes_, fate_of(said), said) for callee, bytes_, said in kept)
