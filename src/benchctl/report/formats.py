"""An analysis as a screen and as `--format` prints it: text, Markdown, CSV, and JSON with its sources."""

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.text import Text

from benchctl.errors import UsageError
from benchctl.report.layout import (
    adjustment_text,
    at_points,
    collect_notes,
    further_tables,
    misses,
    ranked,
    result_tables,
)
from benchctl.report.numbers import counted, json_text, visible
from benchctl.report.planning import next_command
from benchctl.report.sentences import additions, headline, legend, unasked, verdict
from benchctl.report.table import (
    WIDE,
    Block,
    Command,
    Format,
    Section,
    Table,
    Title,
    Verdict,
    command_lines,
    csv_pieces,
    markdown,
    paragraph,
    plain,
    text_lines,
    text_of,
)
from benchctl.results.model import EngineFacts, Environment, IndexFacts, RunRecord, RunStatus
from benchctl.results.plan import CorpusSpec, Plan, VariantSpec
from benchctl.stats.analysis import Analysis, Figures, Row
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import DECIDED, LEVEL, Comparison
from benchctl.stats.decisions import GateResult, decide
from benchctl.stats.metrics import REDLINE


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run that forks come from: where it was measured, and on what. Its parts are those of run.json."""

    run: str
    created: str  # wall clock, ISO 8601
    status: RunStatus
    tags: tuple[str, ...]
    track: str
    corpus: CorpusSpec  # which documents; 0 of them where that is unknown
    heap_mb: int  # of every node, MiB; 0 where unknown
    seed: int  # of the order of variants, of arrivals and values
    params: dict[str, Any]
    variants: tuple[VariantSpec, ...]  # as they were asked for
    environment: Environment
    engines: tuple[EngineFacts, ...]
    indices: dict[str, tuple[IndexFacts, ...]]  # variant -> the builds of its prepared index


class Document(Analysis, frozen=True, forbid_unknown_fields=True):
    """An analysis with its sources."""

    sources: tuple[Source, ...] = ()  # the runs that the forks come from, in the order of `runs`
    gate: GateResult | None = None  # what a gate made of it; None where none was asked for


def document(analysis: Analysis, records: Iterable[RunRecord], gate: GateResult | None = None) -> Document:
    """Put the sources beside an analysis; records named twice are there once."""
    sources = {record.id: _source(record) for record in records}
    # Nested structs stay as they are: this is not a copy in depth.
    return Document(**msgspec.structs.asdict(analysis), sources=tuple(sources.values()), gate=gate)


def _source(record: RunRecord) -> Source:
    plan = record.plan
    return Source(
        run=record.id,
        created=record.created,
        status=record.status,
        tags=record.tags,
        track=plan.track,
        corpus=plan.corpus,
        heap_mb=plan.heap_mb,
        seed=plan.seed,
        params=plan.params,
        variants=plan.variants,
        environment=record.environment,
        engines=record.engines,
        indices={name: record.builds_of(name) for name in record.indices},
    )


# Of a row, of a comparison, and of both sides: the columns of the CSV form.
_ROW_COLUMNS = ("schedule", "challenge", "task", "label", "operation", "metric", "unit", "higher_is_better")
_COMPARISON_COLUMNS = tuple(
    name for name in Comparison.__struct_fields__ if name not in ("metric", "higher_is_better", "caveats")
)
_COLUMNS = (
    *_ROW_COLUMNS, *_COMPARISON_COLUMNS, "values_baseline", "values_contender", "load_baseline",
    "load_contender", "caveats", "interaction", "at_recall",
)  # fmt: skip


def render(
    analysis: Analysis,
    output_format: Format = "text",
    *,
    plan: Plan | None = None,
    records: Sequence[RunRecord] = (),
    width: int = WIDE,
    details: bool = False,
    gate: GateResult | None = None,
) -> str:
    """Write an analysis.

    Text (of `width` columns) and Markdown are for readers, CSV (one line a task, metric and contender) and
    JSON (everything) for programs, in full precision. Without `plan` no command is proposed; `details` adds
    every kind of time and what the driver itself did for readers. `records` and `gate` are for JSON only.

    Raises:
        UsageError: If the format is unknown.
    """
    match output_format:
        case "text":
            return plain(analysis_sections(analysis, plan, details=details), width)
        case "markdown":
            return markdown(analysis_sections(analysis, plan, details=details))
        case "csv":
            return _csv(analysis)
        case "json":
            return json_text(document(analysis, records, gate))
        case _:
            raise UsageError(f"no output format '{output_format}'", hint="one of text, markdown, csv, json")


def analysis_sections(
    analysis: Analysis, plan: Plan | None = None, *, details: bool = False, runs: Path | None = None
) -> list[Section]:
    """Return the whole report; `render` and `render_screen` describe the arguments."""
    notes = collect_notes(analysis)
    return [
        *([block] for block in head(analysis, plan, runs)),
        *([table] for table in result_tables(analysis, notes)),
        *(section for addition in additions(analysis, notes) for section in addition.results),
        [*legend(analysis), notes],
        *([table] for table in further_tables(analysis, details=details)),
    ]


def head(analysis: Analysis, plan: Plan | None, runs: Path | None) -> Iterator[Block]:
    """Yield what every form begins with: what was compared, the verdict, the goal, and what to run next."""
    yield Title(headline(analysis))
    yield Verdict(verdict(analysis))
    yield from filter(None, [unasked(analysis)])
    if plan is not None and plan.stop is not None:
        ended = decide(analysis.rows, plan.stop, min(analysis.forks.values(), default=0), plan.forks).text
        yield from [f"Goal: {ended}."] if ended else []
    if plan is not None and (following := next_command(analysis, plan, runs)) is not None:
        yield following


def all_notes(analysis: Analysis) -> Section:
    """Return every note, each with the tasks that it is about."""
    notes = collect_notes(analysis)
    texts = [
        f"{', '.join(dict.fromkeys(analysis.where(row) for row in analysis.rows if doubt in row.caveats))}: "
        f"{doubt.text}"
        for doubt in notes.numbered
    ]
    return [*texts, *(f"all: {doubt.text}" for doubt in notes.general), *legend(analysis)]


def _csv(analysis: Analysis) -> str:
    """Full precision; an empty field where there is no value; lists separated by spaces, holes as nan."""
    lines = (*_row_lines(analysis), *_curve_lines(analysis))
    return "".join(csv_pieces(_COLUMNS, ([line.get(name) for name in _COLUMNS] for line in lines)))


def _row_lines(analysis: Analysis) -> Iterator[dict[str, object]]:
    for row in analysis.rows:
        sides = {side.variant: side for side in row.figures}
        shared = _fields(row, _ROW_COLUMNS) | _codes(row.caveats, analysis)
        for one in row.comparisons:
            own = _side(sides[one.baseline], "baseline") | _side(sides[one.contender], "contender")
            yield shared | own | _fields(one, _COMPARISON_COLUMNS)
        if not row.comparisons:
            only = row.figures[0]
            yield (
                shared
                | _side(only, "baseline")
                | {
                    "baseline": only.variant,
                    "n_baseline": sum(value is not None for value in only.values),
                    "baseline_value": only.value,
                    "cv_baseline_percent": only.cv_percent,
                }
            )


def _curve_lines(analysis: Analysis) -> Iterator[dict[str, object]]:
    """Yield lines that the last columns tell from others: `history: polluted / fresh`, or a recall."""
    for curve in analysis.curves:
        first, *others = curve.axis.labels
        shared = _fields(curve, ("challenge", "metric", "higher_is_better")) | {"label": curve.task}
        for pair in curve.pairs:
            for label, one in zip(others, pair.interactions, strict=bool(pair.interactions)):
                asked = {"unit": "ratio", "interaction": f"{curve.axis.name}: {label} / {first}"}
                yield shared | asked | _fields(one, _COMPARISON_COLUMNS) | _codes(one.caveats, analysis)
        for level in curve.at_recall:
            for one in level.comparisons:
                asked = {"unit": curve.unit, "at_recall": f"{level.recall:g}"}
                yield shared | asked | _fields(one, _COMPARISON_COLUMNS) | _codes(one.caveats, analysis)


def _fields(found: msgspec.Struct, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(found, name) for name in names}


def _codes(caveats: Iterable[Caveat], analysis: Analysis) -> dict[str, object]:
    return {"caveats": " ".join(dict.fromkeys(doubt.code for doubt in (*caveats, *analysis.caveats)))}


def _side(side: Figures, name: str) -> dict[str, object]:
    values = " ".join("nan" if value is None else repr(value) for value in side.values)
    return {f"values_{name}": values, f"load_{name}": " ".join(side.load)}


# The answer on one screen.

LINES = 24
_LEAST_WIDTH = 80
_LEAST_CURVE = 4  # lines: its title, head and rule, and a point
_NOTHING = 1e-9  # a ratio


def render_screen(
    analysis: Analysis,
    *,
    plan: Plan | None = None,
    width: int = 80,
    lines: int = LINES,
    more: str = "",
    runs: Path | None = None,
) -> Text:
    """Return the answer in at most `lines` lines of `width` columns, 80 or more.

    What does not fit is counted: doubts but the gravest, then curves, then rows, of which the decided ones
    and the largest differences stay. Without `plan` no command is proposed; `more` says how to see all of it,
    if there is a way. `runs` is the folder of the run's runs, if it is not the default one.
    """
    width = max(width, _LEAST_WIDTH)
    notes = collect_notes(analysis)
    marks = {doubt: f"{number:>3}" for number, doubt in enumerate(notes.numbered, 1)}
    doubts = ranked(doubt for row in analysis.rows for doubt in row.caveats)
    noted = [paragraph(doubt.text, width, lead=f"{marks.get(doubt, 'all')}  ") for doubt in doubts]
    brief = [text_of(part, width) for addition in additions(analysis) for part in addition.brief]
    rows = [row for row in analysis.rows if not row.swept]
    # Of equals the first: what was asked for first is shown first.
    strongest = sorted(range(len(rows)), key=lambda place: _weight(rows[place]), reverse=True)
    first = [*head(analysis, plan, runs)]
    top, bottom = [*_top(first, width)], [*_bottom(first, width, more)]
    curves, said, cut = list(brief), len(noted), 0
    while True:
        shown = tuple(rows[place] for place in sorted(strongest))
        tables = result_tables(msgspec.structs.replace(analysis, rows=shown), notes, brief=True)
        counts = {
            "more row": len(rows) - len(shown),
            "more curve": len(brief) - len(curves),
            "more line": cut,
            "more note": len(noted) - said,
        }
        hidden = ", ".join(counted(count, noun) for noun, count in counts.items() if count)
        equal = misses([one for row in shown for one in row.comparisons] + at_points(analysis))
        compared = [one for row in shown if row.level == "task" for one in row.comparisons]
        adjusted = [f"{adjustment_text(compared, ' of each metric')}."]
        remarks = [*equal, *(adjusted if any(map(_only_adjusted, compared)) else [])]
        remarks += [f"{hidden}: -v shows them"] if hidden else []
        below = [paragraph(text, width) for text in remarks]
        body = [line for table in tables for line in _compact(table, width)]
        text = Text("\n").join([*top, *curves, *body, *noted[:said], *below, *bottom])
        excess = text.plain.count("\n") + 1 - lines
        if excess <= 0 or cut:
            return text
        if said > 1:
            said -= 1
        elif len(curves) > 1:
            curves.pop()
        elif len(strongest) > (0 if brief else 1):
            # A row takes four lines at most.
            del strongest[max(len(strongest) - max(1, excess // 4), 0 if brief else 1) :]
        elif curves and (cut := min(excess + 1, curves[0].plain.count("\n") + 1 - _LEAST_CURVE)) > 0:
            curves = [Text("\n").join(curves[0].split("\n")[:-cut])]
        else:
            return text


def _compact(table: Table, width: int) -> Iterator[Text]:
    """Yield a table with its title above the names, and an empty line."""
    first, *others = table.columns
    columns = (msgspec.structs.replace(first, title=table.title), *others)
    yield from text_lines(msgspec.structs.replace(table, columns=columns), width, ruled=False)
    yield Text()


def _weight(row: Row) -> tuple[bool, float]:
    """Sort key: what was searched for or is decided, then the size of a ratio in either direction."""
    # Of what never happened on either side there is nothing to see.
    decided = any(
        one.verdict in DECIDED and any((one.baseline_value, one.contender_value)) for one in row.comparisons
    )
    ratios = (1 + (one.effect_percent or 0.0) / 100 for one in row.comparisons)
    size = max((abs(math.log(max(ratio, _NOTHING))) for ratio in ratios), default=0.0)
    # The row over all requests answers first, unless their rate was given.
    whole = row.whole and not any(doubt.code == "offered-rate" for doubt in row.caveats)
    return whole or row.metric == REDLINE.key or decided, math.inf if whole else size


def _only_adjusted(one: Comparison) -> bool:
    """Return whether a reader may wonder: the interval excludes no difference, and p as shown does not."""
    ends = (
        (one.difference_low, one.difference_high)
        if one.compared_as == "difference"
        else (one.low_percent, one.high_percent)
    )
    apart = (ends[0] or 0.0) > 0 or (ends[1] or 0.0) < 0
    return apart and one.p_adjusted is not None and one.p_adjusted > LEVEL


def _top(first: Sequence[Block], width: int) -> Iterator[Text]:
    """Return the head up to the goal."""
    for block in first:
        match block:
            case Title() | Verdict():
                yield from [Text()] if isinstance(block, Verdict) else []
                yield paragraph(block.text, width, style="bold")
            case str():
                yield paragraph(block, width)
    yield Text()


def _bottom(first: Sequence[Block], width: int, more: str) -> Iterator[Text]:
    """Return what to run next, and where there is more."""
    for following in (block for block in first if isinstance(block, Command)):
        line = command_lines(shlex.split(following.line), width)
        yield Text(visible("\n".join([f"{following.purpose}:", *line])))
    if more:
        yield Text(visible(f"Details: {more}"))
