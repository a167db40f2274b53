"""Tables of typed columns and cells, and the same in Markdown: renderers never look at what words say."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import msgspec

from benchctl.report.numbers import ends, signed_percent, visible

if TYPE_CHECKING:
    from benchctl.report.layout import Notes


Kind = Literal["name", "words", "verdict", "figure"]
"""What a column holds: names, which break at their joints alone, words, verdicts, or figures."""

_NAME_WIDTH, _VARIANT_WIDTH = 20, 12
_LOAD_WIDTH = len("saturated,")


class Column(msgspec.Struct, frozen=True):
    """A column."""

    title: str
    kind: Kind = "figure"
    fold: int = 0  # characters that its cells are folded to in a narrow table; 0 for as many as there are

    @property
    def flush_left(self) -> bool:
        """Whether it is read, not compared."""
        return self.kind != "figure"


def named(title: str) -> Column:
    """Return a column of tasks and the like."""
    return Column(title, "name", _NAME_WIDTH)


def worded(title: str) -> Column:
    """Return a column of words."""
    return Column(title, "words")


OPERATION = named("Operation")
VARIANT = Column("Variant", "name", _VARIANT_WIDTH)
LOAD = Column("Load", "words", _LOAD_WIDTH)
NOTES = worded("Notes")
VERDICT = Column("Verdict", "verdict")
INTERVAL = Column("95 % interval")


class Cell(msgspec.Struct, frozen=True):
    """A cell of a table."""

    words: tuple[str, ...]  # pieces that stay whole; in a narrow table they stand one below the other
    between: str = " "  # separates them on one line
    verdict: str | None = None  # that its colour repeats; None without any
    notes: tuple[int, ...] = ()  # numbers of the notes that it refers to, behind its words
    above: bool = False  # it is empty because the cell above stands for its line, too
    aside: str = ""  # what stands in brackets behind its words, or below them

    @property
    def words_text(self) -> str:
        """Its words in one line, without the notes."""
        return self.between.join(self.words) + (f" ({self.aside})" if self.aside else "")

    @property
    def text(self) -> str:
        """All of it in one line."""
        return " ".join(filter(None, (self.words_text, *map(str, self.notes))))

    @property
    def stacked(self) -> str:
        """All of it, piece below piece."""
        joined = f"{self.between.rstrip()}\n".join(self.words) + (f"\n{self.aside}" if self.aside else "")
        return " ".join(filter(None, (joined, *map(str, self.notes))))


ABOVE = Cell((), above=True)


def judged(verdict: str | None, *remarks: str) -> Cell:
    """Return a verdict and what weakens it; None for a baseline, which has none."""
    return Cell(remarks, ", ", verdict)


def bounds(
    low: float | None, high: float | None, shown: Callable[[float | None], str] = signed_percent
) -> Cell:
    """Return an interval in per cent, or as `shown`: `-1.2 to +3.4`."""
    return Cell(ends(low, high, shown))


class Table(msgspec.Struct, frozen=True):
    """A table: the first column holds names; lines are tuples of cells, as long as the columns."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(
        cls, title: str, columns: Iterable[Column | str], lines: Iterable[Iterable[Cell | str]]
    ) -> "Table":
        """Return a grid; a column given as text is one of figures, and a cell given as text says that."""
        return cls(
            title,
            tuple(Column(one) if isinstance(one, str) else one for one in columns),
            tuple(tuple(Cell((one,)) if isinstance(one, str) else one for one in line) for line in lines),
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Those of the columns."""
        return tuple(column.title for column in self.columns)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The lines as words alone."""
        return tuple(tuple(cell.text for cell in line) for line in self.lines)

    @property
    def spans(self) -> tuple[int, ...]:
        """How many lines the first cell of each stands for; 0 where it continues the one above."""
        heads, numbered = 0, []
        for first, *_ in self.lines:
            heads += not first.above or not heads
            numbered.append(heads)
        counts = (len(list(members)) for _, members in groupby(numbered))
        return tuple(span for count in counts for span in (count, *[0] * (count - 1)))

    def without(self, *titles: str) -> "Table":
        """Return the table without some of its columns."""
        # The first of that title: a variant may be called the same.
        gone = {self.titles.index(title) for title in titles if title in self.titles}
        return self._of([place for place in range(len(self.columns)) if place not in gone])

    def without_empty(self, *titles: str) -> "Table":
        """Return the table without those of these columns that are empty."""
        return self.without(
            *(
                column.title
                for place, column in enumerate(self.columns)
                if column.title in titles and not any(line[place].text for line in self.lines)
            )
        )

    def _of(self, places: Sequence[int]) -> "Table":
        lines = tuple(tuple(line[place] for place in places) for line in self.lines)
        return Table(self.title, tuple(self.columns[place] for place in places), lines)


def escaped(text: str) -> str:
    """Escape Markdown: underscores in names, pipes and angle brackets in reasons."""
    for special in ("\\", "|", "_", "*", "<", "`"):
        text = text.replace(special, f"\\{special}")
    return visible(" ".join(text.split()))


def table(headers: Iterable[str], lines: Iterable[Iterable[str]], words: frozenset[int]) -> str:
    """Return one table; `words` are the positions of the columns that are set flush left."""
    headers = tuple(headers)
    rules = ["---" if place in words else "---:" for place in range(len(headers))]
    rows = [[escaped(cell) for cell in headers], rules, *([escaped(cell) for cell in line] for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def grid_table(grid: Table) -> str:
    """Return a grid with its title as a heading."""
    left = frozenset(place for place, column in enumerate(grid.columns) if column.flush_left)
    return f"### {escaped(grid.title)}\n\n{table(grid.titles, grid.texts, left)}"


def note_lists(notes: "Notes") -> tuple[str, str]:
    """Return the numbered notes, and those for every row; empty where there are none."""
    numbered = [f"{number}. {escaped(doubt.text)}" for number, doubt in enumerate(notes.numbered, 1)]
    general = [f"- {escaped(doubt.text)}" for doubt in notes.general]
    return "\n".join(numbered), "\n".join(general)
