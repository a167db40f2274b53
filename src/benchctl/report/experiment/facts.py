"""What an experiment was run on, and how to look closer: the lines around its tables."""

from collections.abc import Iterator, Mapping

from benchctl.report.facts import fact_sections
from benchctl.report.numbers import counted, duration, mebibytes
from benchctl.results.experiment.model import ExperimentRecord, TableSpec
from benchctl.results.model import RunRecord
from benchctl.stats.experiment.expectations import NOTABLE_SCALE
from benchctl.stats.experiment.model import ExperimentAnalysis

_DIFFERENCES = "Differences between variants"
_ENGINES = "Engines"

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
    """Each measurement, and the command that shows its run."""
    width = max((len(one.name) for one in record.spec.measurements), default=0)
    for one in record.spec.measurements:
        run = record.runs.get(one.name)
        shown = f"benchctl show {run}" if run else "not begun"
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
        "is about the second. Interval and p: Welch's t over forks, on logarithms; intervals are unadjusted, "
        "p is adjusted over the rows of its table (Benjamini-Hochberg)."
    )
    if analysis.expectations:
        margins = ", ".join(f"{one:g} %" for one in sorted({e.margin_percent for e in analysis.expectations}))
        yield (
            "Expectations: slower or faster is confirmed by a 95 % interval on that side of 0, and refuted "
            "by a 90 % interval that excludes as much as the margin; alike is confirmed by a 90 % interval "
            "within the margin, and refuted by one beyond it. All comparisons have to show it. Margins: "
            f"{margins}. p is the greatest of an expectation's comparisons; in brackets adjusted over all "
            "expectations (Holm)."
        )


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
    """`8 forks of every variant`, or what is there of them."""
    counts = [count for own in analysis.forks.values() for count in own.values()]
    wanted = record.spec.forks
    if counts and set(counts) == {wanted}:
        return f"{counted(wanted, 'fork')} of each of {len(counts)} sides"
    return f"{sum(counts)} of {wanted * len(counts)} forks, of {len(counts)} sides"


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
