"""How fast an inlining log is read, beside taking every line apart with one regular expression.

    python tests/benchmarks/bench_inlining.py [jvm.log] [repetitions]

Everything is read anew each time, as a stream: compilations (id, level, time, root), call sites (bci, callee,
size), fates and type profiles; then the same with every call nested in its caller (depth, parent).

Without a log, one of 400,000 lines is made by hand, in the proportions of a node's: two compilers in turn, a
head every eight lines, a type profile every ten. Time is CPU time, the median of the repetitions.
"""

import re
import sys
import tempfile
import time
import tracemalloc
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from benchctl.evidence.call_sites import find_newest, newest_sites
from benchctl.evidence.inlining_log import InliningLog

GOAL_PER_S = 500_000
COMPILATIONS = 50_000
METHOD = "BKDReader$BKDPointTree::addAll"
LINE = re.compile(rb"([ sm!]*)@ (-?\d+) +(\S+) \((\d+) bytes\) +(.*)")

# The part of a log that there is most of, without the indentation that all lines have in common.
_TREE = """\
@ 5   org.apache.lucene.util.bkd.BKDReader$BKDPointTree::size (163 bytes)   too big
@ 20   org.apache.lucene.search.PointRangeQuery$1$1::grow (13 bytes)   inline (hot)
 \\-&gt; TypeProfile (19/19 counts) = org/apache/lucene/search/PointRangeQuery$1$1
  @ 1   java.util.Objects::requireNonNull (14 bytes)   force inline by annotation
@ 28   org.apache.lucene.util.bkd.BKDReader$BKDPointTree::isLeafNode (17 bytes)   inline (hot)
@ 39   java.lang.Math::max (11 bytes)   (intrinsic)
"""


def make_log(path: Path) -> None:
    """Write a log of the size that a node leaves in some minutes, several times over."""
    tree = "".join(f"{' ' * 30}{line}\n" for line in _TREE.splitlines())
    with path.open("w") as log:
        for number in range(COMPILATIONS):
            thread, level = (4, 4) if number % 8 == 0 else (3, 3)
            holder = (
                "util.bkd.BKDReader$BKDPointTree::addAll"
                if number % 1000 == 0
                else f"search.Some{number}::get"
            )
            log.write(f"<writer thread='{thread}'/>\n{number:>7} {number:>4}       {level}       ")
            log.write(f"org.apache.lucene.{holder} (98 bytes)\n{tree}")


def matched(path: Path) -> int:
    """Every line through one regular expression, and nothing made of it."""
    with path.open("rb") as log:
        return sum(LINE.match(line) is not None for line in log)


def taken_apart(path: Path) -> int:
    """The same, and of every call a tuple of its parts; nothing of what stands around it."""
    calls: deque[tuple[int, int, str, int, str]] = deque(maxlen=1)
    with path.open("rb") as log:
        for line in log:
            if (found := LINE.match(line)) is not None:
                indent, bci, callee, size, fate = found.groups()
                calls.append((len(indent), int(bci), callee.decode(), int(size), fate.decode()))
    return len(calls)


def every_line(log: InliningLog) -> int:
    """All compilations with all that their lines say."""
    return sum(len(entry.lines) for entry in log)


def every_tree(log: InliningLog) -> int:
    """The same, with all calls nested."""
    return sum(len(entry.tree().calls) for entry in log)


def timed(work: Callable[[], object], repetitions: int) -> float:
    """Median CPU seconds."""
    seconds = []
    for _ in range(repetitions):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return median(seconds)


def report(path: Path, repetitions: int) -> int:
    """Print the table; returns the exit status."""
    lines = InliningLog(path).account.lines
    everything = "the same, and every call nested"
    rows: list[tuple[str, Callable[[], object]]] = [
        ("reference: every line, one regular expression", lambda: matched(path)),
        ("reference: the same, its groups made a tuple", lambda: taken_apart(path)),
        ("compilations, call sites, fates, profiles", lambda: every_line(InliningLog(path))),
        (everything, lambda: every_tree(InliningLog(path))),
        ("all call sites by C2, as for --diff", lambda: newest_sites(InliningLog(path))),
        (f"newest tree of {METHOD}", lambda: find_newest(InliningLog(path), METHOD, None)),
    ]
    table = Table("what", "CPU s", "lines/s", "of the reference", title=f"{path.name}: {lines:,} lines")
    rates: dict[str, float] = {}
    for name, work in rows:
        seconds = timed(work, repetitions)
        rates[name] = lines / seconds
        share = rates[name] / rates[rows[0][0]]
        table.add_row(name, f"{seconds:.3f}", f"{rates[name]:,.0f}", f"{share:.2f}")
    console = Console()
    console.print(table)
    tracemalloc.start()
    every_tree(InliningLog(path))
    peak_mb = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    console.print(f"peak of the full parse: {peak_mb:.1f} MB for a log of {path.stat().st_size / 1e6:.1f} MB")
    reached = rates[everything] >= GOAL_PER_S
    console.print(f"goal of {GOAL_PER_S:,} lines/s: {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


def main(arguments: list[str]) -> int:
    """Entry point."""
    repetitions = int(arguments[1]) if len(arguments) > 1 else 3
    if arguments:
        return report(Path(arguments[0]), repetitions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.log"
        make_log(path)
        return report(path, repetitions)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
