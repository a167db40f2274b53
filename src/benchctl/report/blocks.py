"""Blocks of reports, as text and Markdown: tables, sentences, commands, notes and lists."""

import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from rich.text import Text

from benchctl.report.numbers import visible
from benchctl.report.table import Cell, Table, escaped, markdown_lines, text_lines
from benchctl.slices import hooks
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat

WIDE = 100


class Title(msgspec.Struct, frozen=True):
    """The first line of a report."""

    text: str


class Verdict(msgspec.Struct, frozen=True):
    """The answer of a report."""

    text: str
    look: str = ""  # on pages, the class of its colour


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
    doubts: tuple[str, ...] = ()  # why that is provisional
    results: tuple[Section, ...] = ()  # below the tables of tasks
    brief: tuple[Sequence[Section], ...] = ()  # parts for a screen, the most important first
    remarks: tuple[str, ...] = ()  # at the end of a screen
    plot: Callable[[int, int], list[str]] | None = None  # (columns, lines) -> a drawing, if there is one


def additions(analysis: Analysis, notes: Notes | None = None) -> list[Addition]:
    """Return what slices add to a report; `notes` are those that its tables are numbered by."""
    return [addition for report in hooks("report") if (addition := report(analysis, notes)) is not None]


def page_of(tables: Iterable[Table], lines: Iterable[Block]) -> list[Section]:
    """Return a report of tables with sentences below them."""
    return [*([table] for table in tables), [*lines]]


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
            yield "\n".join(f"{number}. {escaped(one.text)}" for number, one in enumerate(block.numbered, 1))
            yield "\n".join(f"- {escaped(one.text)}" for one in block.general)
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
