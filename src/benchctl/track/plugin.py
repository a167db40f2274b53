"""Operations that benchctl has no code for by itself: they need the track's Python plug-in."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchctl.track.operations.common import Operation

BUILT_IN_PARAM_SOURCES = frozenset({"file-reader", "bulk", "search"})
"""Names under which a track may ask for what its operation type does anyway."""

FILE_NAMES = ("track.py", "workload.py")
"""Rally's and OpenSearch Benchmark's names of a plug-in's main file."""

_MOST_CHARACTERS = 2**22
_UNITS = {
    "bulk": "docs",
    **dict.fromkeys(
        ("search", "paginated-search", "scroll-search", "composite-agg", "vector-search"), "queries"
    ),
}


@dataclass(frozen=True)
class Plugin:
    """The Python plug-in beside a track, which reading the track does not execute.

    Attributes:
        name: of its main file.
        text: of all its files; only to see which names occur there.
    """

    name: str
    text: str

    def mentions(self, name: str) -> bool:
        """Whether a name stands in it as a text, as it does where it is registered."""
        return f'"{name}"' in self.text or f"'{name}'" in self.text


def find_plugin(folder: Path) -> Plugin | None:
    """The plug-in of a track's folder."""
    name = next((name for name in FILE_NAMES if (folder / name).is_file()), None)
    if name is None:
        return None
    texts: list[str] = []
    for path in sorted(folder.glob("**/*.py")):
        with contextlib.suppress(OSError):
            if path.is_file():  # a pipe or a device would be read for ever
                with path.open(encoding="utf-8", errors="replace") as file:
                    texts.append(file.read(_MOST_CHARACTERS))
    return Plugin(name, "\n".join(texts))


class PluginOperation(Operation, frozen=True, kw_only=True, tag="plugin"):
    """An operation whose type or parameter source is not benchctl's own.

    Attributes:
        type: its operation type, as the track calls it.
        param_source: what makes its parameters; None means the type's own way.
        params: all that the track says about it.
    """

    type: str
    param_source: str | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def type_name(self) -> str:
        """The track's name of its type."""
        return self.type

    @property
    def reported(self) -> bool:
        """Whether tables show it: yes unless the track says otherwise, as in Rally."""
        return self.include_in_reporting is not False

    @property
    def ends(self) -> bool:
        """Whether it ends by itself: only its code knows, so a task may leave that to it."""
        return True

    @property
    def unit(self) -> str:
        """What its throughput counts a second, unless its runner says so: as other types of that name."""
        return _UNITS.get(self.type, "ops")

    @property
    def lacks(self) -> str:
        """What it needs that benchctl does not have, in words."""
        if self.param_source is not None:
            return f"param source '{self.param_source}'"
        return f"operation type '{self.type}'"
