"""Text with gaps, many rows at once: constants are laid out once, columns fill the gaps, padding goes."""

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from benchctl.corpus.generated.tables import Texts

_PADDING = b"\0"
_MARKER = re.compile("<([a-z0-9-]+)>")


class RowLayout:
    """Rows of one template as a structured array: constant pieces and gaps are fields, side by side.

    The array of a layout is kept and reused by the next call, so a layout must not be shared by threads.

    Args:
        template: text with gaps written `<name>`; a name may occur more than once and is then filled alike.
    """

    def __init__(self, template: str) -> None:
        pieces = _MARKER.split(template)
        self._constants = [piece.encode("ascii") for piece in pieces[0::2]]
        self._gaps = pieces[1::2]
        self._rows: npt.NDArray[np.void] = np.empty(0, np.dtype([]))

    def lines(self, count: int, columns: Mapping[str, Texts]) -> bytes:
        """Fill the template `count` times.

        Args:
            count: how many rows.
            columns: the texts of every gap, shape (count,); widths may not change between calls.

        Returns:
            The rows, joined, without any padding.
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
