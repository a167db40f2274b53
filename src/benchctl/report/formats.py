"""An analysis as `--format` prints it: text, Markdown, CSV, JSON with its sources, and for build servers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as ET

import msgspec

from benchctl.errors import UsageError
from benchctl.report.details import further_tables
from benchctl.report.layout import collect_notes, metric_title, result_tables
from benchctl.report.numbers import json_text, visible
from benchctl.report.planning import next_command
from benchctl.report.sentences import additions, comparison_text, headline, legend, verdict
from benchctl.report.table import (
    WIDE,
    Format,
    Items,
    Notes,
    Section,
    Title,
    Verdict,
    csv_pieces,
    markdown,
    plain,
)
from benchctl.results.model import EngineFacts, Environment, IndexFacts, RunRecord, RunStatus
from benchctl.results.plan import CorpusSpec, Plan, VariantSpec
from benchctl.stats.analysis import Analysis, Figures, Row
from benchctl.stats.compare import Comparison
from benchctl.stats.decisions import GateResult, outcomes


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
_LIST_COLUMNS = ("values_baseline", "values_contender", "load_baseline", "load_contender", "caveats")


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
    JSON (everything) for programs, in full precision; the others are for build servers. Without `plan` no
    command is proposed; `details` adds every kind of time and what the driver itself did for readers.
    `records` are for JSON only, and `gate` for JSON and build servers.

    Raises:
        UsageError: If the format is unknown.
    """
    written: dict[str, Callable[[], str]] = {
        "text": lambda: plain(analysis_sections(analysis, plan, details=details), width),
        "markdown": lambda: markdown(analysis_sections(analysis, plan, details=details)),
        "csv": lambda: _csv(analysis),
        "json": lambda: json_text(document(analysis, records, gate)),
        "junit": lambda: junit(analysis, gate),
        "github": lambda: step_summary(analysis, gate),
    }
    if output_format not in written:
        raise UsageError(f"no output format '{output_format}'", hint=f"one of {', '.join(written)}")
    return written[output_format]()


def analysis_sections(
    analysis: Analysis, plan: Plan | None = None, *, details: bool = False
) -> list[Section]:
    """Return the whole report; `render` describes the arguments."""
    notes = collect_notes(analysis)
    sections: list[Section] = [
        *_results(analysis, notes),
        [*legend(analysis), notes],
        *([table] for table in further_tables(analysis, details=details)),
    ]
    return [*sections, _next(analysis, plan)]


def _next(analysis: Analysis, plan: Plan | None) -> Section:
    following = None if plan is None else next_command(analysis, plan)
    return [] if following is None else [following]


def _results(analysis: Analysis, notes: Notes) -> list[Section]:
    added = (section for addition in additions(analysis, notes) for section in addition.results)
    tables = ([table] for table in result_tables(analysis, notes))
    return [[Title(headline(analysis))], [Verdict(verdict(analysis))], *tables, *added]


def all_notes(analysis: Analysis) -> Section:
    """Return every note, each with the tasks that it is about."""
    notes = collect_notes(analysis)
    lines = [
        (dict.fromkeys(analysis.where(row) for row in analysis.rows if doubt in row.caveats), doubt)
        for doubt in notes.numbered
    ]
    texts = [f"{', '.join(names)}: {doubt.text}" for names, doubt in lines]
    return [*texts, *(f"all: {doubt.text}" for doubt in notes.general), *legend(analysis)]


def _csv(analysis: Analysis) -> str:
    lines = []
    for row in analysis.rows:
        figures = {figure.variant: figure for figure in row.figures}
        for comparison in row.comparisons:
            fields = {name: getattr(comparison, name) for name in _COMPARISON_COLUMNS}
            sides = figures[comparison.baseline], figures[comparison.contender]
            lines.append(_csv_line(row, analysis, fields, *sides))
        if not row.comparisons:
            lines.append(_csv_line(row, analysis, _alone(row.figures[0]), row.figures[0], None))
    columns = (*_ROW_COLUMNS, *_COMPARISON_COLUMNS, *_LIST_COLUMNS, "interaction", "at_recall")
    return "".join(csv_pieces(columns, [*([*line, None, None] for line in lines), *_csv_curves(analysis)]))


def _csv_curves(analysis: Analysis) -> Iterator[list[object]]:
    """Lines that the last columns tell from others: `history: polluted / fresh`, or a recall."""
    for curve in analysis.curves:
        first, *others = curve.axis.labels
        known: dict[str, object] = {
            "challenge": curve.challenge,
            "label": curve.task,
            "metric": curve.metric,
            "higher_is_better": curve.higher_is_better,
        }
        compared: list[tuple[Comparison, object, object, str]] = [
            (one, f"{curve.axis.name}: {label} / {first}", None, "ratio")
            for pair in curve.pairs
            for label, one in zip(others, pair.interactions, strict=bool(pair.interactions))
        ]
        compared += [
            (one, None, level.recall, curve.unit) for level in curve.at_recall for one in level.comparisons
        ]
        for one, interaction, recall, unit in compared:
            yield [
                *({**known, "unit": unit}.get(name) for name in _ROW_COLUMNS),
                *(getattr(one, name) for name in _COMPARISON_COLUMNS),
                *(None for _ in _LIST_COLUMNS[:-1]),
                " ".join(dict.fromkeys(doubt.code for doubt in (*one.caveats, *analysis.caveats))),
                interaction,
                recall,
            ]


def _alone(figures: Figures) -> dict[str, object]:
    """The columns of a comparison that one variant fills."""
    return {
        "baseline": figures.variant,
        "n_baseline": sum(value is not None for value in figures.values),
        "baseline_value": figures.value,
        "cv_baseline_percent": figures.cv_percent,
    }


def _csv_line(
    row: Row, analysis: Analysis, comparison: dict[str, object], baseline: Figures, contender: Figures | None
) -> list[object]:
    """Full precision; an empty field where there is no value; lists separated by spaces, holes as nan."""
    return [
        *(getattr(row, name) for name in _ROW_COLUMNS),
        *(comparison.get(name) for name in _COMPARISON_COLUMNS),
        *(_values(side) if side else None for side in (baseline, contender)),
        *(" ".join(side.load) if side else None for side in (baseline, contender)),
        " ".join(dict.fromkeys(doubt.code for doubt in (*row.caveats, *analysis.caveats))),
    ]


def _values(side: Figures) -> str:
    return " ".join("nan" if value is None else repr(value) for value in side.values)


def junit(analysis: Analysis, gate: GateResult | None = None) -> str:
    """Return a test case for every comparison: a regression is a failure.

    What is inconclusive, or cannot be judged, is skipped; to a gate, if one was asked for, it is an error. So
    are forks that failed and runs that have not ended, whoever asks. Doubts about everything are properties.
    """
    unclear = "skipped" if gate is None else "error"
    suite = ET.Element("testsuite", name=f"benchctl {headline(analysis)}")
    if analysis.caveats:
        properties = ET.SubElement(suite, "properties")
    for doubt in analysis.caveats:
        ET.SubElement(properties, "property", name=doubt.code, value=visible(doubt.text))
    trial = next((doubt.text for doubt in analysis.caveats if doubt.code == "test-mode"), "")
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for row, comparison, outcome, reason in outcomes(analysis):
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"benchctl.{analysis.sections[row.schedule].challenge}",
            name=visible(
                f"{row.label}, {metric_title(row)}: {comparison.contender} vs {comparison.baseline}"
            ),
        )
        kind = unclear if trial else {"regression": "failure", "open": unclear}.get(outcome)
        if kind is not None:
            ET.SubElement(case, kind, message=visible(trial or reason), type=comparison.verdict)
        ET.SubElement(case, "system-out").text = visible(comparison_text(row, comparison))
        counts["tests"] += 1
        if kind is not None:
            counts[{"failure": "failures", "error": "errors"}.get(kind, kind)] += 1
    lost = [
        (caveat.text, caveat.code)
        for caveat in analysis.caveats
        if caveat.code in {"failed-forks", "unfinished"}
    ]
    if not any(analysis.forks.values()) and not analysis.build_rows:
        lost.append(("nothing was measured", "failed-forks"))
    for text, code in lost:
        case = ET.SubElement(suite, "testcase", classname="benchctl.forks", name=visible(text))
        ET.SubElement(case, "error", message=visible(text), type=code)
        counts["tests"] += 1
        counts["errors"] += 1
    for name, count in counts.items():
        suite.set(name, str(count))
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def step_summary(analysis: Analysis, gate: GateResult | None = None) -> str:
    """Return Markdown for GitHub's job summary: the answer and its tables, everything else folded away."""
    notes = collect_notes(analysis)
    title, *results = _results(analysis, notes)
    if gate is not None:
        results.insert(0, [Items(f"Gate: {gate.text}", tuple(gate.reasons))])
    reading = markdown([[*legend(analysis), notes]])
    folded = f"<details><summary>How to read it, and doubts</summary>\n\n{reading}\n</details>\n"
    return f"{markdown([title, *results])}\n{folded}"
