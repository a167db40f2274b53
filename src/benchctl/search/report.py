"""A search as it is printed: what it found, its questions as a table, and what to do next."""

from collections.abc import Iterator

import msgspec

from benchctl.report.numbers import duration, json_text, signed_percent
from benchctl.report.table import (
    INTERVAL,
    WIDE,
    Cell,
    Column,
    Command,
    Drawing,
    Table,
    bounds,
    csv_pieces,
    page_of,
    worded,
    written,
)
from benchctl.search import bisect, minimize
from benchctl.search.record import MinimizeSpec, Question, SearchRecord
from benchctl.stats.metrics import metric_of
from benchctl.track.model import Challenge
from benchctl.track.schedule import challenge_text

_CSV_COLUMNS = (
    "number", "phase", "verdict", "effect_percent", "low_percent", "high_percent", "alpha", "seconds",
)  # fmt: skip
_ASKED = {"whole": "the whole schedule", "shorten": "counts cut"}
_DIFFERS = {"present": "yes", "absent": "no", "undecided": "open", "measuring": "measuring"}


class Ended(msgspec.Struct, frozen=True, rename="kebab"):
    """The result of a search, as it is printed."""

    search: SearchRecord
    found: Challenge | None = None  # the smallest schedule
    # The schedule, and if the effect is relative to a fresh node, the target alone.
    files: tuple[str, ...] = ()
    commands: dict[str, str] = {}  # to run next, by purpose


def inconclusive(record: SearchRecord) -> str:
    """Return why the search has no result; empty if it has one."""
    if isinstance(record.spec, MinimizeSpec):
        return minimize.inconclusive(record)
    return bisect.inconclusive(record)


def render_search(ended: Ended, output_format: str = "text", *, width: int = WIDE) -> str:
    """Write the result of a search.

    Text (of `width` columns), Markdown and HTML (a page) are for readers; CSV (one line a question) and
    JSON (everything) for programs.
    """
    record = ended.search
    if output_format == "csv":
        return _csv(record)
    if output_format == "json":
        return json_text(ended)
    kind = minimize if isinstance(record.spec, MinimizeSpec) else bisect
    files = (f"Challenge file: {path}" for path in ended.files)
    commands = (Command(purpose, line) for purpose, line in ended.commands.items())
    lines = [*kind.conclusion(record), *kind.explanation(record), *files, *commands]
    table = _table(record)
    sections = page_of([table], lines)
    # A page has its address; in a terminal, or in an issue, the schedule itself is what is needed.
    if ended.found is not None and output_format != "html":
        sections.append([Drawing(tuple(challenge_text(ended.found).splitlines()), "json")])
    return written(f"Search {record.id}", sections, output_format, width=width)


def _table(record: SearchRecord) -> Table:
    metric = metric_of(record.metric).title
    if isinstance(record.spec, MinimizeSpec):
        effect = record.spec.effect
        against = effect.against or "a fresh node"
        title = f"{effect.task} on {effect.variant} against {against}: {metric}, pairs of forks"
        heads = (Column("Left"), worded("Without"), worded("Answer"))
    else:
        title = f"{record.spec.task}: {metric}, point against the other, pairs of forks"
        heads = (worded("Point"), worded("Against"), worded("Differs"))
    columns = ("#", *heads[:2], "Diff %", INTERVAL, heads[2], "Pairs", "Time")
    of_steps = isinstance(record.spec, MinimizeSpec)
    return Table.of(title, columns, (_line(question, of_steps=of_steps) for question in record.questions))


def _line(one: Question, *, of_steps: bool) -> Iterator[Cell | str]:
    yield str(one.number)
    if of_steps:
        yield str(len(one.about))
        yield ", ".join(one.against) or _ASKED.get(one.phase, "")
    else:
        yield from (*one.subject, *one.against)
    yield signed_percent(one.effect_percent)
    yield bounds(one.low_percent, one.high_percent)
    if of_steps:
        yield one.verdict if one.is_answered else "not answered yet"
    else:
        yield _DIFFERS[one.verdict]
    yield str(len(one.pairs))
    yield duration(one.seconds)


def _csv(record: SearchRecord) -> str:
    """Return a line per question, in full precision; labels are joined by vertical bars."""
    lines = (
        (
            *(getattr(question, name) for name in _CSV_COLUMNS),
            len(question.pairs),
            "|".join(question.subject),
            "|".join(question.against),
        )
        for question in record.questions
    )
    return "".join(csv_pieces((*_CSV_COLUMNS, "pairs", "subject", "against"), lines))
