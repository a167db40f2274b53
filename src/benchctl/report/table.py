"""The one table: typed columns and cells, and what text, Markdown, CSV and JSON make of them.

Renderers go by the types of columns and cells, never by what their words say.
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

from benchctl.report.numbers import ends, signed_percent, visible
from benchctl.stats.caveat import Caveat

Format = Literal["text", "markdown", "csv", "json", "html", "junit", "github"]
"""Formats of printed results; pages (html) are written by `report.html`, which draws samples, too."""

Kind = Literal["name", "words", "verdict", "figure"]
"""Kind of a column's content: names, which break at their joints alone, words, verdicts, or figures."""

_NAME_WIDTH, _VARIANT_WIDTH = 20, 12
VERDICT_STYLES: dict[str | None, str] = {
    "equivalent": "green",
    "faster": "bold green",
    "slower": "bold red",
    "different": "yellow",
}
_JOINT = re.compile(r"(?<=[-_.@:])(?=\S)")
_RULE = "─"
_TIED = "\N{NO-BREAK SPACE}%"


class Column(msgspec.Struct, frozen=True):
    """A column."""

    title: str
    kind: Kind = "figure"
    fold: int = 0  # characters that a name is folded to before anything else gets too narrow
    grouped: bool = False  # whether digits of whole numbers are grouped

    @property
    def flush_left(self) -> bool:
        """True for columns to read, not to compare."""
        return self.kind != "figure"


def named(title: str) -> Column:
    """Return a column of tasks and the like."""
    return Column(title, "name", _NAME_WIDTH)


def worded(title: str) -> Column:
    """Return a column of words."""
    return Column(title, "words")


OPERATION = named("Operation")
VARIANT = Column("Variant", "name", _VARIANT_WIDTH)
LOAD = worded("Load")
NOTES = worded("Notes")
VERDICT = Column("Verdict", "verdict")
INTERVAL = Column("95% interval")


class Share(float):
    """A fraction of 1 that readers get in per cent; programs get the number."""


class Cell(msgspec.Struct, frozen=True):
    """A cell of a table: words for readers, and what pages make of them."""

    words: tuple[str, ...]  # pieces that stay whole; in a narrow table they stand one below the other
    between: str = " "  # separates them on one line
    verdict: str | None = None  # that its colour repeats; None without any
    notes: tuple[int, ...] = ()  # numbers of the notes that it refers to, behind its words
    above: bool = False  # it is empty because the cell above stands for its line, too
    aside: str = ""  # what stands in brackets behind its words, or below them
    link: str = ""  # on pages, what its words lead to

    @property
    def words_text(self) -> str:
        """Text in one line, without the notes."""
        return self.between.join(self.words) + (f" ({self.aside})" if self.aside else "")

    @property
    def text(self) -> str:
        """Text in one line, notes included."""
        return " ".join(filter(None, (self.words_text, *map(str, self.notes))))

    @property
    def stacked(self) -> str:
        """Text, one piece per line."""
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
        return cls(title, tuple(map(_column, columns)), tuple(map(tuple, lines)))

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
                value if isinstance(value, Cell) else Cell((_shown(value, grouped=column.grouped),))
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


def _column(one: Column | str) -> Column:
    return Column(one) if isinstance(one, str) else one


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


def pieces(table: Table, output_format: str, width: int | None = None) -> Iterator[str]:
    """Yield a table alone, without its title, a piece at a time: a long one needs no memory in CSV and JSON.

    Text, Markdown and HTML (a page) are for readers; csv (empty for no value, a semicolon between the items
    of a list) and json (an array of objects) for programs. Text is folded between words to `width` columns,
    None for as wide as it is; a word is never broken, so that an id can be copied and found by grep.
    """
    match output_format:
        case "csv":
            yield from csv_pieces(table.titles, table.lines)
        case "json":
            yield from _json_pieces(table)
        case "markdown":
            yield f"{markdown_lines(table)}\n"
        case "html":
            # Templates take a while to load, which no other form needs.
            from benchctl.report.html.parts import render_blocks  # noqa: PLC0415 - see above

            yield render_blocks(table.title, [Table(table.title, table.columns, tuple(table.lines))])
        case _:
            yield from (f"{line.plain}\n" for line in text_lines(table, width))


# As text.


def text_lines(table: Table, width: int | None = None) -> Iterator[Text]:
    """Yield head, rule and lines, in `width` columns or as many as it takes; nothing is cut."""
    head = tuple(Cell((title.replace(" %", _TIED),)) for title in table.titles)
    lines = list(table.cells)
    layout = Layout.of(table.columns, [head, *lines], width)
    yield from layout.rows(head, head=True)
    yield Text(_RULE * layout.width)
    for line in lines:
        yield from layout.rows(line)


class Layout(msgspec.Struct, frozen=True):
    """Widths of columns and of the gap between them."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    gap: int

    @classmethod
    def of(cls, columns: Sequence[Column], lines: Sequence[Sequence[Cell]], width: int | None) -> "Layout":
        """Fit lines, of which the first is the head, to a width.

        Where that is too much, figures stand in pieces below each other first, the widest column before
        others; then names and words give way, but no word is broken.
        """
        texts = [[visible(cell.text) for cell in line] for line in lines]
        widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
        gaps = len(columns) - 1
        if width is None or sum(widths) + 2 * gaps <= width:
            return cls(tuple(columns), tuple(widths), 2)
        floor = [
            max(_least(line[place], column, head=not number) for number, line in enumerate(lines))
            for place, column in enumerate(columns)
        ]
        least = [
            min(full, max(low, column.fold)) for full, low, column in zip(widths, floor, columns, strict=True)
        ]
        for bound in (least, floor):
            while (excess := sum(widths) + gaps - width) > 0:
                place = max(
                    range(len(widths)),
                    key=lambda number: (
                        widths[number] > bound[number],
                        _is_stacked(columns[number]),
                        widths[number],
                    ),
                )
                if widths[place] <= bound[place]:
                    break
                widths[place] = max(
                    bound[place], widths[place] - (excess if _is_stacked(columns[place]) else 1)
                )
        return cls(tuple(columns), tuple(widths), 1)

    @property
    def width(self) -> int:
        """Of all columns and gaps."""
        return sum(self.widths) + self.gap * (len(self.widths) - 1)

    def rows(self, line: Sequence[Cell], *, head: bool = False, style: str = "") -> Iterator[Text]:
        """Yield a line of the table, over as many lines as its highest cell takes."""
        parts = [
            _folded(cell, column, width, head=head)
            for cell, column, width in zip(line, self.columns, self.widths, strict=True)
        ]
        for row in zip_longest(*parts, fillvalue=""):
            text = Text()
            for place, (piece, column, width) in enumerate(zip(row, self.columns, self.widths, strict=True)):
                pad = " " * (width - cell_len(piece))
                colour = VERDICT_STYLES.get(line[place].verdict, "")
                text.append((" " * self.gap if place else "") + ("" if column.flush_left else pad))
                text.append(piece.replace(_TIED, " %"), style=style or colour)
                text.append(pad if column.flush_left else "")
            text.rstrip()
            yield text


def _is_stacked(column: Column) -> bool:
    return column.kind in ("figure", "verdict")


def _least(cell: Cell, column: Column, *, head: bool) -> int:
    """Return the longest piece of a cell that must stay whole."""
    text = visible(cell.text)
    if head:
        return min(max(map(cell_len, text.split(" ")), default=0), _NAME_WIDTH)
    if column.kind == "name":
        parts = (cell_len(part) for word in text.split() for part in _JOINT.split(word))
        return min(max(parts, default=0), column.fold or _NAME_WIDTH)
    if _is_stacked(column):
        return max(map(cell_len, visible(cell.stacked).split("\n")))
    return max(map(cell_len, text.split()), default=0)


def _folded(cell: Cell, column: Column, width: int, *, head: bool) -> list[str]:
    text = visible(cell.text)
    if cell_len(text) <= width:
        return [text]
    if head or column.kind == "name":
        return break_name(text, width).split("\n")
    if _is_stacked(column):
        return visible(cell.stacked).split("\n")
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def break_name(name: str, width: int) -> str:
    """Fold a name between words, else at joints: `composite-date_histogram-daily` -> two lines."""
    lines: list[str] = []
    for line in textwrap.wrap(name, width, break_long_words=False, break_on_hyphens=False):
        lines.append("")
        parts = _JOINT.split(line) if cell_len(line) > width else [line]
        for piece in (piece for part in parts for piece in textwrap.wrap(part, width)):
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


# For programs.


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


# Blocks of reports, as text and Markdown: tables, sentences, commands, notes and lists.

WIDE = 100


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
        return Cell(
            (" ".join(remarks),),
            notes=tuple(number for number, doubt in enumerate(self.numbered, 1) if doubt in caveats),
        )


class Items(msgspec.Struct, frozen=True):
    """A heading and the lines below it; one that begins with a blank belongs to the one before it."""

    heading: str
    lines: tuple[str, ...]

    def texts(self, width: int) -> Iterator[Text]:
        """Yield it folded to a width."""
        yield from [paragraph(self.heading, width)] if self.heading else []
        for line in self.lines:
            indent = len(line) - len(line.lstrip()) + 2 * bool(self.heading)
            yield paragraph(line.lstrip(), width, lead=" " * indent, hanging=indent + 4)


class Drawing(msgspec.Struct, frozen=True):
    """Lines that are shown as they are."""

    lines: tuple[str, ...]
    language: str = "text"


Block = str | Title | Verdict | Command | Notes | Items | Drawing | Table
Section = Sequence[Block]
"""Blocks one below the other; an empty line separates sections."""


class Addition(msgspec.Struct, frozen=True):
    """Addition of a slice to the report of an analysis."""

    answer: tuple[str, ...] = ()  # the first sentences of the verdict
    results: tuple[Section, ...] = ()  # below the tables of tasks
    brief: tuple[Sequence[Section], ...] = ()  # parts for a screen, the most important first


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
            yield from block.texts(width)
        case Drawing():
            yield Text(visible("\n".join(block.lines)))
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


def markdown(sections: Iterable[Section]) -> str:
    """Return a report in Markdown; several sentences of a section are a list."""
    parts = []
    for section in sections:
        sentences = [block for block in section if isinstance(block, str | Command)]
        dash = "- " if len(sentences) > 1 else ""
        listed = [f"{dash}{_sentence(block)}" for block in sentences]
        parts += ["\n".join(listed)] if listed else []
        parts += [part for block in section if block not in sentences for part in _markdown(block)]
    return "\n\n".join(part for part in parts if part) + "\n"


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
            lines = (f"{'  ' if line.startswith(' ') else ''}- {escaped(line)}" for line in block.lines)
            yield f"### {escaped(block.heading)}" if block.heading else ""
            yield "\n".join(lines)
        case Drawing():
            yield "\n".join([f"```{block.language}", *map(visible, block.lines), "```"])
        case Table():
            title = f"### {escaped(block.title)}\n\n" if block.title else ""
            yield title + markdown_lines(block)


def written(
    title: str, sections: Sequence[Section], output_format: str = "text", *, width: int = WIDE
) -> str:
    """Return a report as text of a width, as Markdown or as an HTML page of a title."""
    if output_format == "html":
        # Templates take a while to load, which no other form needs.
        from benchctl.report.html.parts import render_blocks  # noqa: PLC0415 - see above

        return render_blocks(title, (block for section in sections for block in section))
    return markdown(sections) if output_format == "markdown" else plain(sections, width)
