"""The common part of generators: slices of a corpus, part files, and text templates filled in bulk.

Of a template, constants are laid out once, columns fill the gaps, and padding is removed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchctl.corpus.tables import Texts

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_PADDING = b"\0"
_MARKER = re.compile("<([a-z0-9-]+)>")


@dataclass(frozen=True)
class Span:
    """A part file: documents [start, stop), numbered within the whole corpus."""

    name: str
    start: int
    stop: int


def check_slice(start: int, stop: int, documents: int) -> None:
    """Check that documents [start, stop) are among so many.

    Raises:
        ValueError: If they are not.
    """
    if not 0 <= start <= stop <= documents:
        raise ValueError(f"documents [{start}, {stop}) are not a slice of {documents}")


class RowLayout:
    """Rows of one template as a structured array whose fields are constant pieces and gaps.

    The array is reused by the next call, so a layout must not be shared between threads. In the template,
    gaps are written `<name>`; all gaps of a name get the same text.
    """

    def __init__(self, template: str) -> None:
        pieces = _MARKER.split(template)
        self._constants = [piece.encode("ascii") for piece in pieces[0::2]]
        self._gaps = pieces[1::2]
        self._rows: npt.NDArray[np.void] = np.empty(0, np.dtype([]))

    def lines(self, count: int, columns: Mapping[str, Texts]) -> bytes:
        """Fill the template `count` times; return the concatenated rows, without padding.

        `columns` has the texts of every gap, shape (count,); widths must not change between calls.
        """
        if len(self._rows) < count:
            self._rows = self._empty_rows(count, columns)
        rows = self._rows[:count]
        for position, name in enumerate(self._gaps):
            rows[f"gap-{position}"] = columns[name]
        return rows.tobytes().translate(None, _PADDING)

    def _empty_rows(self, count: int, columns: Mapping[str, Texts]) -> npt.NDArray[np.void]:
        fields: list[tuple[str, str]] = []
        for position, constant in enumerate(self._constants):
            if constant:
                fields.append((f"constant-{position}", f"S{len(constant)}"))
            if position < len(self._gaps):
                fields.append((f"gap-{position}", f"S{columns[self._gaps[position]].itemsize}"))
        rows = np.empty(count, np.dtype(fields))
        for position, constant in enumerate(self._constants):
            if constant:
                rows[f"constant-{position}"] = constant
        return rows
