"""What an experiment was run on, and how to look closer: the lines around its tables."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from benchctl.errors import UsageError
from benchctl.report.experiment.layout import (
    collect_notes,
    expectation_grid,
    expectation_remarks,
    expectation_summary,
    fate_grid,
    fate_lines,
    narrow_grid,
    wide_grid,
)
from benchctl.report.facts import fact_sections
from benchctl.report.grid import escaped, grid_table, note_lists
from benchctl.report.numbers import counted, duration, json_text, mebibytes, visible
from benchctl.report.tables import WIDE, in_spite_of_looks, render_page
from benchctl.results.experiment import ExperimentRecord, TableSpec
from benchctl.results.model import EngineFacts, Environment, RunRecord, RunStatus
from benchctl.results.plan import EvidenceKind
from benchctl.stats.experiment.expectations import NOTABLE_SCALE
from benchctl.stats.experiment.fates import FORKS_FOR_OUTCOME
from benchctl.stats.experiment.model import ExperimentAnalysis
from benchctl.stats.experiment.rows import same_forks

_DIFFERENCES = "Differences between variants"
_ENGINES = "Engines"

_READERS: Final[Mapping[str, frozenset[EvidenceKind]]] = {
    "evidence": frozenset({"jit", "gc", "os"}),
    "inlining": frozenset({"inlining"}),
    "profile": frozenset({"profile"}),
}
"""Command -> the kinds of evidence that it prints."""

Runs = Mapping[str, RunRecord]
"""Measurement -> its run."""


def setting_lines(record: ExperimentRecord, runs: Runs, analysis: ExperimentAnalysis) -> Iterator[str]:
    """What was run, where, how often, how long, and how it ended."""
    spec = record.spec
    ended = f": {record.stopped}" if record.stopped else ""
    moment = record.created.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")
    yield f"{record.id}, {moment}, {record.status}{ended}."
    yield (
        f"{spec.docs:,} documents, heap {spec.heap_mb} MiB, order seed {spec.seed}; "
        f"{_forks(record, analysis)}{_took(record)}."
    )
    for host in dict.fromkeys(_host(run) for run in runs.values()):
        yield f"{host}."
    yield from dict.fromkeys(f"{line}." for run in runs.values() for line in _section(run, _ENGINES))


def difference_lines(runs: Runs) -> Iterator[str]:
    """What sets variants apart beside what is compared; what several runs say is said once."""
    yield from dict.fromkeys(line for run in runs.values() for line in _section(run, _DIFFERENCES))


def run_lines(record: ExperimentRecord) -> Iterator[str]:
    """Each measurement, and the commands that show its run and its evidence."""
    width = max((len(one.name) for one in record.spec.measurements), default=0)
    for one in record.spec.measurements:
        run = record.runs.get(one.name)
        kinds = () if one.evidence is None else one.evidence.kinds
        looks = [word for word in ("show", *_READERS) if word == "show" or _READERS[word] & {*kinds}]
        shown = "; ".join(f"benchctl {word} {run}" for word in looks) if run else "not begun"
        yield f"{one.name:<{width}}  {shown}"


def scale_lines(analysis: ExperimentAnalysis) -> Iterator[str]:
    """Rows that are far below the blog's scale; those of the same distance together."""
    grouped: dict[str, dict[str, None]] = {}
    for row in analysis.rows:
        if row.scale is not None and row.scale.ratio >= NOTABLE_SCALE:
            tasks = {f"{one.measurement}/{one.task}": None for one in (row.baseline, row.contender)}
            grouped.setdefault(row.scale.text, {}).update(tasks)
    for text, tasks in grouped.items():
        yield f"Scale: {text}: {', '.join(tasks)}"


def legend(analysis: ExperimentAnalysis) -> Iterator[str]:
    """How to read it."""
    yield (
        "Values: geometric means over forks. Diff %: second column over the first, minus one; the verdict "
        f"is about the second. Interval and p: {_tests(analysis)}; intervals are unadjusted, p is adjusted "
        "over the rows of its table (Benjamini-Hochberg)"
        f"{in_spite_of_looks(row.comparison for row in analysis.rows)}."
    )
    if analysis.expectations:
        margins = ", ".join(f"{one:g} %" for one in sorted({e.margin_percent for e in analysis.expectations}))
        yield (
            "Expectations: slower or faster is confirmed by a 95 % interval on that side of 0, and refuted "
            "by a 90 % interval that excludes as much as the margin; alike is confirmed by a 90 % interval "
            "within the margin, and refuted by one beyond it. All comparisons have to show it; one refutes "
            "it, so that of k comparisons refuting takes an interval of 1 - 10 %/k (Bonferroni). Margins: "
            f"{margins}. p is the greatest of an expectation's comparisons."
        )
        yield (
            "Outcomes rest on intervals that are not adjusted for the number of expectations: of 40 "
            "differences that are not there, about one is confirmed as slower or faster (2.5 % each); "
            "confirming anything else by mistake, and refuting, happen to at most 5 % each. Only p in "
            "brackets is adjusted, over all expectations (Holm)."
        )
    if analysis.fates:
        yield (
            f"Fates of calls are counted: with {FORKS_FOR_OUTCOME} forks or more, confirmed when every fork "
            "has an inlining log and shows it, refuted when all with a log show the opposite. In brackets "
            "the one-sided 95 % bound of the share of node starts that would show it (Clopper and Pearson)."
        )


def _tests(analysis: ExperimentAnalysis) -> str:
    """Which of the two tests the rows had."""
    blocked = [row.blocked for row in analysis.rows]
    if any(blocked):
        some = "" if all(blocked) else ", Welch's t over forks where runs were declared unpaired"
        return f"paired t over blocks, on logarithms{some}"
    paired = sum(same_forks(row.baseline, row.contender) for row in analysis.rows)
    if not paired:
        return "Welch's t over forks, on logarithms"
    if paired == len(analysis.rows):
        return "t of pairs, on logarithms: both sides are tasks of the same forks"
    return "Welch's t over forks, on logarithms; t of pairs where both sides are tasks of the same forks"


def table_lines(spec: TableSpec) -> Iterator[str]:
    """What is said below a table."""
    if spec.source:
        yield f"Published as: {spec.source}."
    if spec.about:
        yield spec.about


def about_lines(record: ExperimentRecord) -> Iterator[str]:
    """What the experiment is about, paragraph by paragraph, and where published figures come from."""
    yield from (" ".join(part.split()) for part in record.spec.about.split("\n\n") if part.strip())
    if record.spec.source:
        yield f"Published figures: {record.spec.source}."


def _forks(record: ExperimentRecord, analysis: ExperimentAnalysis) -> str:
    """`8 forks of each of 20 sides`, or what is there of them."""
    spec = record.spec
    sides = [
        (count, spec.forks_of(one))
        for one in spec.measurements
        for count in analysis.forks.get(one.name, {}).values()
    ]
    if spec.until_decided and sides:
        counts = [count for count, _ in sides]
        return f"{sum(counts)} forks, {min(counts)} to {max(counts)} of each of {len(sides)} sides"
    if any(count != wanted for count, wanted in sides):
        done, planned = (sum(column) for column in zip(*sides, strict=True))
        return f"{done} of {planned} forks, of {len(sides)} sides"
    numbers = Counter(wanted for _, wanted in sides)
    (most, alike), *rest = numbers.most_common() or [(spec.forks, 0)]
    text = f"{counted(most, 'fork')} of each of {alike} sides"
    return ", ".join([text, *(f"{forks} of {count}" for forks, count in rest)])


def _took(record: ExperimentRecord) -> str:
    if not record.spent_s:
        return ""
    expected = "" if record.expected_s is None else f" ({duration(record.expected_s)} were expected)"
    return f", which took {duration(record.spent_s)}{expected}"


def _host(run: RunRecord) -> str:
    host = run.environment
    return (
        f"{host.hostname}: {host.cpu_model}, {host.cpus} CPUs, {mebibytes(host.memory_bytes)} memory, Linux "
        f"{host.kernel}, benchctl {host.benchctl}"
    )


def _section(run: RunRecord, heading: str) -> tuple[str, ...]:
    found = (section.lines for section in fact_sections(run) if section.heading == heading)
    return next(found, ())


# An experiment's report as text, Markdown or JSON.


Format = Literal["text", "markdown", "json"]
"""What a report can be printed as; pages are written by `report.experiment.html`."""


class ExperimentSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The run of one measurement, as far as a reader of figures needs it."""

    run: str
    status: RunStatus
    environment: Environment
    engines: tuple[EngineFacts, ...]


class ExperimentDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `json` prints.

    Attributes:
        experiment: what it asked, as in experiment.json.
        analysis: what came of it.
        sources: measurement -> its run.
    """

    experiment: ExperimentRecord
    analysis: ExperimentAnalysis
    sources: dict[str, ExperimentSource]


def render(
    record: ExperimentRecord,
    runs: Mapping[str, RunRecord],
    analysis: ExperimentAnalysis,
    output_format: Format = "text",
    *,
    width: int = WIDE,
) -> str:
    """Write the report.

    Args:
        record: the experiment.
        runs: measurement -> its run.
        analysis: of both.
        output_format: text and Markdown are for readers, JSON for programs, in full precision.
        width: columns, for text.

    Raises:
        UsageError: there is no such format.
    """
    match output_format:
        case "text":
            return _text(record, runs, analysis, width)
        case "markdown":
            return _markdown(record, runs, analysis)
        case "json":
            return json_text(_document(record, runs, analysis))
        case _:
            raise UsageError(f"no output format '{output_format}'", hint="one of text, markdown, json")


def _text(
    record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis, width: int
) -> str:
    """Blocks with an empty line in between."""
    notes = collect_notes(analysis)

    def lines(*sentences: str) -> str:
        return render_page([], sentences, width)

    blocks = [lines(record.spec.title)]
    blocks += [lines(text) for text in about_lines(record)]
    blocks.append(lines(*setting_lines(record, runs, analysis)))
    expected = expectation_grid(analysis)
    if expected is not None:
        blocks.append(lines(expectation_summary(analysis)))
        blocks.append(render_page([expected], expectation_remarks(analysis), width))
    fates = fate_grid(record.spec, analysis)
    if fates is not None:
        blocks.append(render_page([fates], fate_lines(record.spec, analysis), width))
    for table, spec in zip(analysis.tables, record.spec.tables, strict=True):
        blocks.append(render_page([narrow_grid(table, spec, notes)], table_lines(spec), width))
    blocks.append(render_page([], legend(analysis), width, notes=notes))
    blocks.append(lines(*scale_lines(analysis)))
    blocks.append(_listed("How variants differ:", difference_lines(runs), width))
    blocks.append(_listed("Runs:", run_lines(record), width))
    return "\n".join(block for block in blocks if block)


def _listed(heading: str, items: Iterator[str], width: int) -> str:
    """Lines below a heading, indented; none without lines."""
    lines = [render_page([], [item], width - 2).splitlines() for item in items]
    if not lines:
        return ""
    return "\n".join([heading, *(f"  {line}" for own in lines for line in own)]) + "\n"


def _markdown(record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis) -> str:
    notes = collect_notes(analysis)
    parts = [f"## {escaped(record.spec.title)}"]
    parts += [escaped(text) for text in about_lines(record)]
    parts.append(_items(setting_lines(record, runs, analysis)))
    expected = expectation_grid(analysis)
    if expected is not None:
        parts += [escaped(expectation_summary(analysis)), grid_table(expected)]
        parts.append(_items(expectation_remarks(analysis)))
    fates = fate_grid(record.spec, analysis)
    if fates is not None:
        parts += [grid_table(fates), _items(fate_lines(record.spec, analysis))]
    for table, spec in zip(analysis.tables, record.spec.tables, strict=True):
        parts.append(grid_table(wide_grid(table, spec, notes)))
        parts += [escaped(text) for text in table_lines(spec)]
    parts.append(_items(legend(analysis)))
    parts += note_lists(notes)
    parts.append(_items(scale_lines(analysis)))
    differences = _items(difference_lines(runs))
    parts += ["### How variants differ", differences] if differences else []
    parts += ["### Runs", "\n".join(["```text", *map(visible, run_lines(record)), "```"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _items(lines: Iterator[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


def _document(
    record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis
) -> ExperimentDocument:
    sources = {
        name: ExperimentSource(run.id, run.status, run.environment, run.engines) for name, run in runs.items()
    }
    return ExperimentDocument(record, analysis, sources)
