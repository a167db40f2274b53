"""Numbering of caveats: a row carries numbers, and the words stand once below the tables."""

from collections.abc import Sequence
from functools import reduce

import msgspec

from benchctl.report.grid import Cell
from benchctl.stats.analysis import Analysis, Row
from benchctl.stats.caveat import Caveat


class Notes(msgspec.Struct, frozen=True):
    """What is said below the tables.

    Attributes:
        numbered: doubts about some rows; note 1 first.
        general: doubts about every row.
    """

    numbered: tuple[Caveat, ...]
    general: tuple[Caveat, ...]

    def cell(self, caveats: Sequence[Caveat], *remarks: str) -> Cell:
        """What some remarks, and the numbers of a row's notes, are in a table."""
        return Cell(
            remarks, notes=tuple(number for number, doubt in enumerate(self.numbered, 1) if doubt in caveats)
        )


def collect_notes(analysis: Analysis) -> Notes:
    """Number the caveats in the order in which a reader meets them; what all rows share gets no number."""
    rows = analysis.rows
    shared = _shared(rows) if len(rows) > 1 else []
    met = dict.fromkeys(doubt for row in rows for doubt in row.caveats if doubt not in shared)
    return Notes(tuple(met), (*shared, *analysis.caveats))


def _shared(rows: Sequence[Row]) -> list[Caveat]:
    common = reduce(lambda found, row: found & set(row.caveats), rows[1:], set(rows[0].caveats))
    return [doubt for doubt in rows[0].caveats if doubt in common]
