"""A run or a comparison as one page: what it is about, what it holds, and where that is stored."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from benchctl.disk import replacing
from benchctl.errors import BenchctlError, UsageError
from benchctl.report.charts import LEAST_POINTS, OVERVIEW, Chart
from benchctl.report.charts.plots import forest_charts, fork_charts, request_charts
from benchctl.report.facts import fact_sections
from benchctl.report.formats import head
from benchctl.report.html import Figures, Group, PageBlock, Part, groups, rendered
from benchctl.report.layout import collect_notes, further_tables, result_tables
from benchctl.report.numbers import counted
from benchctl.report.planning import again
from benchctl.report.sentences import additions, legend
from benchctl.report.table import OPERATION, Command, Items, Table, Title, worded
from benchctl.results.likeness import JoinedRuns
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.results.select import Archive, Selection
from benchctl.results.store import RunFolder, fork_sources, reference
from benchctl.slices import hooks
from benchctl.stats.analysis import Analysis
from benchctl.stats.metrics import INDEX_BUILDS, before_text


class Subject(msgspec.Struct, frozen=True):
    """Subject of a page."""

    title: str
    analysis: Analysis
    records: tuple[RunRecord, ...] = ()
    subtitle: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()  # where each side comes from, in words; empty for a single run
    charts: tuple[Chart, ...] = ()  # of samples; those of effects and forks are made from the analysis
    without_samples: tuple[str, ...] = ()  # why charts are missing, in words; empty when none is
    commands: tuple[Command, ...] = ()
    profiles: tuple[Table, ...] = ()
    runs: Path | None = None  # directory of the runs, None for the default one


def run_subject(record: RunRecord, analysis: Analysis) -> Subject:
    """Return the page of one run, without what is in files."""
    counts, word = (analysis.forks, "fork") if record.plan.schedules else (analysis.builds, "index build")
    forks = ", ".join(f"{counted(count, word)} of {name}" for name, count in counts.items())
    return Subject(
        title=f"{', '.join(record.plan.challenges) or INDEX_BUILDS}: {' and '.join(record.plan.families)}",
        analysis=analysis,
        records=(record,),
        subtitle=(
            f"Run {record.id}, {_moment(record.created)}, {record.status}",
            f"{forks} on host {record.environment.hostname}",
        ),
    )


def comparison_subject(sides: Sequence[tuple[str, int, RunRecord]], analysis: Analysis) -> Subject:
    """Return the page of results from one run or several, without what is in files.

    `sides` has label, number of forks and run of each, baseline first.
    """
    records = {record.id: record for _, _, record in sides}
    return Subject(
        title=f"Comparison: {' and '.join(dict.fromkeys(label for label, _, _ in sides))}",
        analysis=analysis,
        records=tuple(records.values()),
        subtitle=(
            ", ".join(dict.fromkeys(section.challenge for section in analysis.compared_sections)),
            f"from run{'s' if len(records) > 1 else ''} {', '.join(records)}",
        ),
        origins=tuple(
            f"{label}: {counted(count, 'fork')} of run {record.id}, {_moment(record.created)}, on host "
            f"{record.environment.hostname}"
            for label, count, record in sides
        ),
    )


def _moment(created: str) -> str:
    """`2026-11-21T13:01:18+00:00` as people write it."""
    return created.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")


# What a reader wants to see of a run at once; everything else is folded away.
_OPEN_SECTIONS = frozenset({"Run", "Host", "Engines", "Differences between variants"})


def render_page(subject: Subject) -> str:
    """Return a page, complete in one file."""
    return rendered(subject.title, _parts(subject), subtitle=subject.subtitle)


def _parts(subject: Subject) -> Iterator[Part]:
    analysis, records = subject.analysis, subject.records
    plan = records[0].plan if len(records) == 1 else None
    notes = collect_notes(analysis)
    charts = [*forest_charts(analysis), *fork_charts(analysis), *subject.charts]
    begun = head(analysis, plan, subject.runs)
    first = [block.text if isinstance(block, Title) else block for block in begun]
    yield Part("verdict", "Verdict", first)
    effects = tuple(chart for chart in charts if chart.group == OVERVIEW)
    yield Part("effects", "Effects", [Figures(effects)] if effects else [])
    added = (section for addition in additions(analysis, notes) for section in addition.results)
    results = [*result_tables(analysis, notes), *chain.from_iterable(added), *legend(analysis), notes]
    yield Part("results", "Results", results)
    names = list(dict.fromkeys(analysis.where(row) for row in analysis.rows))
    remarks = [f"Plots of fewer than {LEAST_POINTS} points are omitted."]
    if absent := subject.without_samples:
        more = f"; and {len(absent) - _MOST_ABSENT} more" if len(absent) > _MOST_ABSENT else ""
        remarks.append(f"Not drawn: {'; '.join(absent[:_MOST_ABSENT])}{more}.")
    own = groups([chart for chart in charts if chart.group != OVERVIEW], names)
    yield Part("operations", "Operation by operation", [*remarks, *own])
    facts = [block for record in records for block in _facts(record, alone=len(records) == 1)]
    origins = [Items("", subject.origins)] if subject.origins else []
    before = _setting_tables(analysis, plan)
    yield Part("setting", "What was compared, and how", [*origins, *before, *facts])
    details = [*further_tables(analysis, details=True), *subject.profiles]
    yield Part("details", "Precision and details", details)
    commands = list(subject.commands)
    if plan is not None and plan.words:
        commands.append(Command("Measure the same again, from the same directory", again(plan.words)))
    yield Part("repeat", "How to repeat", commands)


def _facts(record: RunRecord, *, alone: bool) -> Iterator[PageBlock]:
    groups = [
        Group(section.heading, (Items("", section.lines),), folded=section.heading not in _OPEN_SECTIONS)
        for section in fact_sections(record)
    ]
    yield from groups if alone else [Group(f"Run {record.id}", tuple(groups))]


def _setting_tables(analysis: Analysis, plan: Plan | None) -> Iterable[Table]:
    """Yield what every task's node had run before it: part of what was measured."""
    if plan is None or plan.redline is not None:
        return
    rows = {(row.schedule, row.task): row for row in analysis.task_rows}
    lines = ((analysis.where(rows[place]), before_text(plan, place)) for place in sorted(rows))
    yield Table.of("What ran before on the same node", (OPERATION, worded("Runs")), lines)


_MOST_ABSENT = 6
_MARK, _START_BYTES = "benchctl", 1000


def run_page(folder: RunFolder, record: RunRecord, analysis: Analysis, *, usual: Path) -> Subject:
    """Return the page of one run, with charts of its samples; `usual` is the default folder of runs."""
    compared = [fork for fork in record.forks if not record.plan.is_extra(fork.block)]
    charts, absent = request_charts([*fork_sources(folder, compared)], analysis)
    added = [page(analysis, folder, record) for page in hooks("page")]
    name = reference(folder, usual)
    return msgspec.structs.replace(
        run_subject(record, analysis),
        charts=(*charts, *(chart for more, _ in added for chart in more)),
        without_samples=absent,
        runs=None if name == folder.path.name else folder.path.absolute().parent,
        profiles=tuple(table for _, tables in added for table in tables),
        commands=(
            Command("Print this run in a terminal", f"benchctl show {name}"),
            Command("Make this page again", f"benchctl show {name} --html DIR"),
        ),
    )


def comparison_page(
    archive: Archive, selection: Selection, analysis: Analysis, commands: Iterable[Command] = ()
) -> Subject:
    """Return the page of compared results, from one run or several; `commands` print or make it again."""
    parts = selection.parts
    runs = JoinedRuns.of(side.runs for side in selection.sides)
    sources = [
        runs.moved_source(part.run, source)
        for part in parts
        for source in fork_sources(archive.folder_of(part.run), part.forks, label=part.label)
    ]
    charts, absent = request_charts(sources, analysis)
    return msgspec.structs.replace(
        comparison_subject([(part.label, len(part.forks), part.run) for part in parts], analysis),
        charts=(*charts, *(chart for page in hooks("page") for chart in page(analysis)[0])),
        without_samples=absent,
        commands=commands,
    )


def write_html(target: Path, page: str) -> Path:
    """Write a page as `index.html` of a directory, which is made if missing; return its path.

    It appears whole or not at all.

    Raises:
        UsageError: If the target is not a directory, or has such a file that benchctl did not write.
        BenchctlError: If it cannot be written.
    """
    path = target / "index.html"
    if target.exists() and not target.is_dir():
        raise UsageError(f"--html requires a directory, and {target} is a file", hint="name another one")
    try:
        if path.exists():
            with path.open("rb") as file:
                start = file.read(_START_BYTES).decode(errors="replace")
            if _MARK not in start:
                raise UsageError(
                    f"{path} exists and was not written by benchctl", hint="choose another directory"
                )
        target.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(page.encode("utf-8", errors="replace"))
    except OSError as err:
        raise BenchctlError(
            f"cannot write {path}: {err.strerror}", hint="free some space, or choose another directory"
        ) from err
    return path
