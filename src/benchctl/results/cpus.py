"""Sets of CPUs as Linux writes them: `0-2,5`."""

import re
from collections.abc import Iterable

_PART = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+))?")
# The kernel's own bound is below that.
_MOST = 1 << 16


def parse_cpus(text: str) -> tuple[int, ...]:
    """The numbers of a list, ascending, each once.

    Raises:
        ValueError: it is no list of CPUs.
    """
    found: set[int] = set()
    for part in text.strip().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part}' is neither a CPU nor a range of CPUs")
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if last < first or last >= _MOST:
            raise ValueError(f"'{part}' is no range of CPUs")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def cpu_list(cpus: Iterable[int]) -> str:
    """A set of CPUs as a list of ranges."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
