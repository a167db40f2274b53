"""The one table of typed columns and cells, the blocks of reports, and both as text, Markdown, CSV and JSON.

Pages are written by `report.html`. Renderers go by the types of columns and cells, never by what they say.
"""

import csv
import datetime as dt
import io
import json
import math
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby, zip_longest
from typing import Literal

import msgspec
from rich.cells import cell_len
from rich.text import Text

from benchctl.report.numbers import interval, visible
from benchctl.stats.caveat import Caveat

Format = Literal["text", "markdown", "csv", "json", "html"]
"""Formats of printed results."""

Kind = Literal["name", "words", "verdict", "figure"]
"""Kind of a column's content: names, which break at their joints alone, words, verdicts, or figures."""

WIDE = 100
_NAME_WIDTH = 20  # from which on a name is broken between its joints, too
_STYLES: dict[str | None, str] = {
    "equivalent": "green",
    "faster": "bold green",
    "slower": "bold red",
    "different": "yellow",
}
_JOINT = re.compile(r"(?<=[-_.@:])(?=\S)")


class Column(msgspec.Struct, frozen=True):
    """A column."""

    title: str
    kind: Kind = "figure"
    grouped: bool = False  # whether digits of whole numbers are grouped

    @property
    def flush_left(self) -> bool:
        """True for columns to read, not to compare."""
        return self.kind != "figure"


def named(title: str) -> Column:
    """Return a column of tasks and the like."""
    return Column(title, "name")


def worded(title: str) -> Column:
    """Return a column of words."""
    return Column(title, "words")


OPERATION = named("Operation")
VARIANT = named("Variant")
NOTES = worded("Notes")
VERDICT = Column("Verdict", "verdict")
INTERVAL = Column("95% CI")


class Share(float):
    """A fraction of 1 that readers get in per cent; programs get the number."""


class Cell(msgspec.Struct, frozen=True):
    """A cell of a table: words for readers, and what pages make of them."""

    words: str = ""
    verdict: str | None = None  # that its colour repeats; None without any
    notes: tuple[int, ...] = ()  # numbers of the notes that it refers to, behind its words
    above: bool = False  # it is empty because the cell above stands for its line, too

    @property
    def text(self) -> str:
        """Words and notes."""
        return " ".join(filter(None, (self.words, *(f"[{number}]" for number in self.notes))))


ABOVE = Cell(above=True)


def judged(verdict: str | None, *remarks: str) -> Cell:
    """Return a verdict and what weakens it; None for a baseline, which has none."""
    return Cell(", ".join(remarks), verdict)


def bounds(low: float | None, high: float | None, shown: Callable[[float], str] | None = None) -> Cell:
    """Return an interval in per cent, or as `shown`: `-1.2..+3.4`."""
    return Cell(interval(low, high, shown))


class Table(msgspec.Struct, frozen=True):
    """A table: the first column holds names; lines are tuples, as long as the columns.

    A value is a `Cell`, a text, a number, a `Share`, a date, a list of these, or None for none. Lines that
    are not a tuple can be read once only.
    """

    title: str
    columns: tuple[Column, ...]
    lines: Iterable[tuple[object, ...]]

    @classmethod
    def of(cls, title: str, columns: Iterable[Column | str], lines: Iterable[Iterable[object]]) -> "Table":
        """Return a table; a column given as text is one of figures."""
        return cls(
            title,
            tuple(Column(column) if isinstance(column, str) else column for column in columns),
            tuple(map(tuple, lines)),
        )

    @classmethod
    def listed(
        cls, title: str, columns: Iterable[Column | str], lines: Iterable[tuple[object, ...]]
    ) -> "Table":
        """Return a list, which may be long; a column given as text is one of words."""
        return cls(
            title, tuple(worded(column) if isinstance(column, str) else column for column in columns), lines
        )

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of the columns."""
        return tuple(column.title for column in self.columns)

    @property
    def cells(self) -> Iterator[tuple[Cell, ...]]:
        """The lines as cells."""
        for line in self.lines:
            yield tuple(
                value if isinstance(value, Cell) else Cell(_shown(value, grouped=column.grouped))
                for value, column in zip(line, self.columns, strict=True)
            )

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The lines as words alone."""
        return tuple(tuple(cell.text for cell in line) for line in self.cells)

    @property
    def spans(self) -> tuple[int, ...]:
        """Number of lines that each line's first cell covers; 0 where it continues the one above."""
        heads, numbered = 0, []
        for first, *_ in self.cells:
            heads += not first.above or not heads
            numbered.append(heads)
        counts = (len(list(members)) for _, members in groupby(numbered))
        return tuple(span for count in counts for span in (count, *[0] * (count - 1)))

    def without(self, *titles: str) -> "Table":
        """Return the table without some of its columns."""
        # The first of that title: a variant may be called the same.
        gone = {self.titles.index(title) for title in titles if title in self.titles}
        places = [place for place in range(len(self.columns)) if place not in gone]
        lines = tuple(tuple(line[place] for place in places) for line in self.lines)
        return Table(self.title, tuple(self.columns[place] for place in places), lines)

    def without_empty(self, *titles: str) -> "Table":
        """Return the table without those of these columns that are empty."""
        texts = dict(zip(self.titles, zip(*self.texts, strict=True), strict=True)) if self.lines else {}
        return self.without(*(title for title in titles if not any(texts.get(title, ()))))


def _shown(value: object, *, grouped: bool = False) -> str:
    """Return a value for readers: empty without one, six digits of a fraction."""
    match value:
        case None:
            return ""
        case Share():
            return f"{100 * value:g}%"
        case float():
            return f"{value:.6g}"
        case list() | tuple():
            return ", ".join(map(_shown, value))
        case int() if grouped and not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return " ".join(str(value).split())


# Blocks of reports.


class Title(msgspec.Struct, frozen=True):
    """The first line of a report."""

    text: str


class Verdict(msgspec.Struct, frozen=True):
    """The answer of a report."""

    text: str


class Command(msgspec.Struct, frozen=True):
    """A command line, and what it is for."""

    purpose: str
    line: str


class Notes(msgspec.Struct, frozen=True):
    """Notes below the tables: `numbered` ones about some rows, from 1, and `general` ones about every row."""

    numbered: tuple[Caveat, ...]
    general: tuple[Caveat, ...]

    def cell(self, caveats: Sequence[Caveat], *remarks: str) -> Cell:
        """Return remarks and the numbers of a row's notes, as a cell."""
        notes = tuple(number for number, doubt in enumerate(self.numbered, 1) if doubt in caveats)
        return Cell(" ".join(remarks), notes=notes)


class Items(msgspec.Struct, frozen=True):
    """A heading and the lines below it; one that begins with a blank belongs to the one before it."""

    heading: str
    lines: tuple[str, ...]


Block = str | Title | Verdict | Command | Notes | Items | Table
Section = Sequence[Block]
"""Blocks one below the other; an empty line separates sections."""


class Addition(msgspec.Struct, frozen=True):
    """Addition of a slice to the report of an analysis."""

    answer: tuple[str, ...] = ()  # the first sentences of the verdict
    results: tuple[Section, ...] = ()  # below the tables of tasks
    brief: tuple[Sequence[Section], ...] = ()  # parts for a screen, the most important first


# As text.


def text_of(sections: Iterable[Section], width: int = WIDE) -> Text:
    """Return a report for a terminal of a width, 80 columns or more."""
    parts = []
    for section in sections:
        lines = [line for block in section for line in _text(block, width)]
        parts += [Text("\n").join(lines)] if lines else []
    return Text("\n\n").join(parts)


def plain(sections: Iterable[Section], width: int = WIDE) -> str:
    """Return a report as text without control sequences."""
    return "".join(f"{line.rstrip()}\n" for line in text_of(sections, width).plain.splitlines())


def _text(block: Block, width: int) -> Iterator[Text]:
    match block:
        case str():
            yield paragraph(block, width)
        case Title():
            yield paragraph(block.text, width, style="bold")
        case Verdict():
            yield paragraph(block.text, width, lead="VERDICT  ", style="bold")
        case Command():
            words = command_lines(shlex.split(block.line), width)
            yield Text(visible("\n".join([f"{block.purpose}:", *words])))
        case Notes():
            numbered = ((f"{number:>3}", doubt) for number, doubt in enumerate(block.numbered, 1))
            for mark, doubt in (*numbered, *(("all", doubt) for doubt in block.general)):
                yield paragraph(doubt.text, width, lead=f"{mark}  ")
        case Items():
            yield from [paragraph(block.heading, width)] if block.heading else []
            for line in block.lines:
                indent = len(line) - len(line.lstrip()) + 2 * bool(block.heading)
                yield paragraph(line.lstrip(), width, lead=" " * indent, hanging=indent + 4)
        case Table():
            yield from filter(None, [paragraph(block.title, width, style="bold")])
            yield from text_lines(block, width)


def paragraph(text: str, width: int, *, lead: str = "", hanging: int | None = None, style: str = "") -> Text:
    """Return a text in lines of its own, the further ones indented by its lead, or `hanging` blanks."""
    wrapped = textwrap.fill(
        visible(text),
        width,
        initial_indent=lead,
        subsequent_indent=" " * (len(lead) if hanging is None else hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return Text(wrapped, style=style)


def command_lines(words: Sequence[str], width: int, *, lead: str = "  ") -> list[str]:
    """Return a command line over several lines that a shell takes as one."""
    lines = [lead]
    for quoted in map(shlex.quote, words):
        if lines[-1] != lead and len(lines[-1]) + len(quoted) + len(" \\") > width:
            lines[-1] += "\\"
            lines.append("    ")
        lines[-1] += f"{quoted} "
    lines[-1] = lines[-1].rstrip()
    return lines


def text_lines(table: Table, width: int | None = None, *, ruled: bool = True) -> Iterator[Text]:
    """Yield head, rule and lines, in `width` columns or as many as it takes; nothing is cut.

    A word is never broken, so that an id can be copied and found by grep; a name is at its joints, and beyond
    20 characters anywhere.
    """
    cells = list(table.cells)
    # A head is broken like a name.
    rows = [
        ([visible(cell.text) for cell in line], [column.kind for column in table.columns]) for line in cells
    ]
    rows.insert(0, ([visible(title) for title in table.titles], ["name"] * len(table.columns)))
    widths = [max(map(cell_len, column)) for column in zip(*(texts for texts, _ in rows), strict=True)]
    gaps = len(widths) - 1
    fits = width is None or sum(widths) + 2 * gaps <= width
    # Words give way before names and figures, and of these the widest, as long as it can.
    ranks = [(column.kind in ("words", "verdict")) for column in table.columns]
    able = set() if fits else set(range(len(widths)))
    while able and width is not None and (excess := sum(widths) + gaps - width) > 0:
        place = max(able, key=lambda place: (ranks[place], widths[place]))
        others = (widths[other] for other in able if other != place and ranks[other] == ranks[place])
        aim = min(widths[place] - 1, max(widths[place] - excess, *others, 1))
        folded = (_folded(texts[place], kinds[place], aim) for texts, kinds in rows)
        narrower = max(cell_len(piece) for pieces in folded for piece in pieces)
        if narrower < widths[place]:
            widths[place] = narrower
        else:
            able.remove(place)
    gap = 2 if fits else 1
    for number, (texts, kinds) in enumerate(rows):
        styles = (
            [_STYLES.get(cell.verdict, "") for cell in cells[number - 1]] if number else [""] * len(widths)
        )
        parts = [_folded(*column) for column in zip(texts, kinds, widths, strict=True)]
        for pieces in zip_longest(*parts, fillvalue=""):
            text = Text()
            for place, (piece, column) in enumerate(zip(pieces, table.columns, strict=True)):
                pad = " " * (widths[place] - cell_len(piece))
                text.append((" " * gap if place else "") + ("" if column.flush_left else pad))
                text.append(piece, style=styles[place])
                text.append(pad if column.flush_left else "")
            text.rstrip()
            yield text
        if ruled and not number:
            yield Text("─" * (sum(widths) + gap * gaps))


def _folded(text: str, kind: Kind, width: int) -> list[str]:
    if cell_len(text) <= width or width < 1:
        return [text]
    if kind == "name":
        return break_name(text, width).split("\n")
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def break_name(name: str, width: int) -> str:
    """Fold a name between words, else at joints: `composite-date_histogram-daily` -> two lines."""
    lines: list[str] = []
    for word in name.split():
        parts = [word] if cell_len(word) <= width else _JOINT.split(word)
        lines.append("")
        for piece in (piece for part in parts for piece in textwrap.wrap(part, max(width, _NAME_WIDTH))):
            if lines[-1] and cell_len(lines[-1] + piece) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(lines)


# As Markdown.


def escaped(text: str) -> str:
    """Escape Markdown: underscores in names, pipes and angle brackets in reasons."""
    for special in ("\\", "|", "_", "*", "<", "`"):
        text = text.replace(special, f"\\{special}")
    return visible(" ".join(text.split()))


def markdown_lines(table: Table) -> str:
    """Return a table without its title."""
    rules = ["---" if column.flush_left else "---:" for column in table.columns]
    rows = [map(escaped, table.titles), rules, *(map(escaped, line) for line in table.texts)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def markdown(sections: Iterable[Section]) -> str:
    """Return a report in Markdown; several sentences of a section are a list."""
    parts = []
    for section in sections:
        sentences = [block for block in section if isinstance(block, str | Command)]
        dash = "- " if len(sentences) > 1 else ""
        parts.append("\n".join(f"{dash}{_sentence(block)}" for block in sentences))
        parts += [part for block in section if block not in sentences for part in _markdown(block)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _sentence(block: str | Command) -> str:
    return escaped(block) if isinstance(block, str) else f"{block.purpose}: `{visible(block.line)}`"


def _markdown(block: Block) -> Iterator[str]:
    match block:
        case Title():
            yield f"## {escaped(block.text)}"
        case Verdict():
            yield f"**Verdict:** {escaped(block.text)}"
        case Notes():
            yield "\n".join(
                f"{number}. {escaped(note.text)}" for number, note in enumerate(block.numbered, 1)
            )
            yield "\n".join(f"- {escaped(caveat.text)}" for caveat in block.general)
        case Items():
            yield f"### {escaped(block.heading)}" if block.heading else ""
            yield "\n".join(
                f"{'  ' if line.startswith(' ') else ''}- {escaped(line)}" for line in block.lines
            )
        case Table():
            title = f"### {escaped(block.title)}\n\n" if block.title else ""
            yield title + markdown_lines(block)


# For programs.


def pieces(table: Table, output_format: str, width: int | None = None) -> Iterator[str]:
    """Yield a table alone, without its title, a piece at a time: a long one needs no memory in CSV and JSON.

    Text (folded to `width` columns, None for as wide as it is) and Markdown are for readers; csv and json (an
    array of objects) for programs.
    """
    match output_format:
        case "csv":
            yield from csv_pieces(table.titles, table.lines)
        case "json":
            yield from _json_pieces(table)
        case "markdown":
            yield f"{markdown_lines(table)}\n"
        case _:
            yield from (f"{line.plain}\n" for line in text_lines(table, width))


def csv_pieces(titles: Iterable[str], lines: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield comma-separated values: empty for no value, a semicolon between the items of a list."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(titles)
    for line in lines:
        writer.writerow([_csv_value(value) for value in line])
        yield stream.getvalue()
        stream.seek(0)
        stream.truncate()
    yield stream.getvalue()


def _csv_value(value: object) -> object:
    if isinstance(value, Cell):
        return value.text
    return ";".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _json_pieces(table: Table) -> Iterator[str]:
    before = "["
    for line in table.lines:
        values = dict(zip(table.titles, map(_json_value, line), strict=True))
        yield f"{before}\n {json.dumps(values, ensure_ascii=False)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _json_value(value: object) -> object:
    """Return what JSON can hold; it has no NaN and no infinity."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return float(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case list() | tuple():
            return [_json_value(item) for item in value]
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case _:
            return value if value is None or isinstance(value, (int, str)) else str(value)
