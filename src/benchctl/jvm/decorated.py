"""Lines of a JVM's unified log that begin with `[NANOSECONDSns][PID]`: System.nanoTime, and the process."""

import re
from collections.abc import Iterable, Iterator

DECORATIONS = "timenanos,pid"
"""What `-Xlog` is told to begin lines with.

The first is System.nanoTime, on Linux the monotonic clock of all processes. Uptimes would not do: they count
from when the JVM was loaded, and OpenSearch's start script becomes the server a second or two after it began.
"""

_LINE = re.compile(r"\[(\d{1,18})ns\]\[(\d+)\s*\](.*)")


def decorated(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[tuple[int, str]]:
    """What one process logged.

    Start scripts run other JVMs with the same flags before a server, and lines may be cut by its end.

    Args:
        lines: of the log, with or without line ends.
        pid: of the process; lines of others, and lines without decorations, are passed over.
        started_ns: when it started, on the monotonic clock.

    Yields:
        (nanoseconds since it started, the rest of the line without white space at its end).
    """
    wanted = str(pid)
    for line in lines:
        found = _LINE.match(line)
        if found is not None and found[2] == wanted:
            yield int(found[1]) - started_ns, found[3].rstrip()
