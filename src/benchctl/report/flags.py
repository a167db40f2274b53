"""Which of a virtual machine's flags are in force."""

import re
from collections.abc import Sequence

# Of flags of one kind, a virtual machine obeys the last; these commands add up.
_SETS = re.compile(
    r"-X(?:ms|mx|ss)|-XX:(?!(?:CompileCommand|CompileOnly|OnError|OnOutOfMemoryError)=)[+-]?(?P<option>[^=]+)"
    r"|-D(?P<property>[^=]+)"
)


def in_force(flags: Sequence[str]) -> list[str]:
    """Without those that a later one of the same kind supersedes."""
    kinds = [_kind_of(flag) for flag in flags]
    last = {kind: place for place, kind in enumerate(kinds)}
    return [
        flag
        for place, (flag, kind) in enumerate(zip(flags, kinds, strict=True))
        if not kind or last[kind] == place
    ]


def _kind_of(flag: str) -> str:
    """`-Xmx` of `-Xmx1g`, `-XX:UseG1GC` of `-XX:-UseG1GC`, `-Dname` of `-Dname=value`; else nothing."""
    found = _SETS.match(flag)
    if found is None:
        return ""
    if found["option"]:
        return f"-XX:{found['option']}"
    return f"-D{found['property']}" if found["property"] else found[0]
