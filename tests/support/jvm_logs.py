"""Inlining logs made by hand, in the form in which HotSpot prints them."""

from collections.abc import Iterable
from xml.sax.saxutils import escape

from benchctl.evidence.inlining_log import Call

PREAMBLE = b"""<?xml version='1.0' encoding='UTF-8'?>
<hotspot_log version='160 1' process='7' time_ms='1'>
<vm_arguments>
<properties>
java.vm.name=OpenJDK 64-Bit Server VM
</properties>
</vm_arguments>
<tty>
"""
BASE_COLUMN = 30


def head(stamp_ms: int, number: int, level: int, method: str, size: int = 98, flags: str = "     ") -> str:
    """The line that begins a compilation."""
    return f"{stamp_ms:>7} {number:>4} {flags} {level:>2}       {method} ({size} bytes)"


def call_lines(call: Call) -> list[str]:
    """A call and its type profile."""
    size = "not loaded" if call.size is None else f"{call.size} bytes"
    indent = " " * (BASE_COLUMN + 2 * call.depth)
    lines = [f"{indent}@ {call.bci}   {call.callee} ({size})   {call.text}"]
    for one in call.receivers:
        name = one.name.replace(".", "/")
        lines.append(f"{indent} \\-> TypeProfile ({one.count}/{one.total} counts) = {name}")
    return lines


def tree_lines(calls: Iterable[Call]) -> list[str]:
    """A whole tree."""
    return [line for call in calls for line in call_lines(call)]


def plain(*lines: str) -> bytes:
    """The lines as on standard output."""
    return "".join(f"{line}\n" for line in lines).encode()


def in_file(*lines: str) -> bytes:
    """The lines as in HotSpot's own file: `<` at the start of a line is markup, all else is escaped."""
    text = (line if line.startswith("<") else escape(line, {"'": "&apos;", '"': "&quot;"}) for line in lines)
    return PREAMBLE + plain(*text)


def thread(number: int) -> str:
    """The line before lines of another thread."""
    return f"<writer thread='{number}'/>"


# C2's output for one caller: two receivers on one side, three on the other.
INTS = "org.apache.lucene.util.bkd.DocIdsWriter::readInts24"
RANGE_VISITOR = "org.apache.lucene.search.PointRangeQuery$1$1"
SORT_VISITOR = "org.apache.lucene.search.comparators.NumericComparator$NumericLeafComparator$1"
VISITOR = "org.apache.lucene.index.PointValues$IntersectVisitor"
_INDENT = " " * BASE_COLUMN

INLINED_VISIT = (
    f"{_INDENT}@ 35   {RANGE_VISITOR}::visit (9 bytes)   inline (hot)",
    f"{_INDENT}@ 35   {SORT_VISITOR}::visit (21 bytes)   inline (hot)",
    f"{_INDENT} \\-> TypeProfile (400/1000 counts) = {SORT_VISITOR.replace('.', '/')}",
    f"{_INDENT} \\-> TypeProfile (600/1000 counts) = {RANGE_VISITOR.replace('.', '/')}",
)
VIRTUAL_VISIT = (f"{_INDENT}@ 35   {VISITOR}::visit (0 bytes)   virtual call",)


def visits(*lines: str, stamp_ms: int = 5000) -> bytes:
    """A log whose only compilation is that of the caller."""
    return in_file(thread(11), head(stamp_ms, 77, 4, INTS, 198), *lines)
