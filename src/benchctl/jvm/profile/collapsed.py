"""Collapsed stacks, the form that flame graph tools read: `frame;frame;frame COUNT`, the running one last."""

from collections.abc import Iterable, Mapping

from benchctl.errors import BenchctlError
from benchctl.jvm.profile.model import Stack


def collapse(stacks: Mapping[Stack, int]) -> str:
    """Write stacks down, in their own order, one a line.

    Args:
        stacks: stack -> samples.
    """
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


def expand(lines: Iterable[str]) -> dict[Stack, int]:
    """Read collapsed stacks; those that are there twice are added up.

    Raises:
        BenchctlError: a line ends with no count.
    """
    found: dict[Stack, int] = {}
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\n")
        if not text:
            continue
        frames, _, count = text.rpartition(" ")
        if not frames or not (count.isascii() and count.isdecimal()):
            raise BenchctlError(f"line {number} is no collapsed stack with a count: {text[:80]!r}")
        stack = tuple(frames.split(";"))
        found[stack] = found.get(stack, 0) + int(count)
    return found
