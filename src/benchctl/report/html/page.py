"""A run or a comparison as one page: what it holds and in which order; templates only write it down."""

from collections.abc import Iterable, Sequence

import msgspec

import benchctl
from benchctl.report.chart import LEAST_POINTS, LEAST_READINGS, OVERVIEW, not_drawn
from benchctl.report.charts.dots import fork_charts
from benchctl.report.charts.forest import forest_charts
from benchctl.report.charts.redline import redline_charts
from benchctl.report.charts.theme import dark_palette
from benchctl.report.command_line import command
from benchctl.report.curve import curve_grids
from benchctl.report.details import further_grids
from benchctl.report.facts import fact_sections
from benchctl.report.grid import OPERATION, Grid, worded
from benchctl.report.html.assets import (
    FOLDER,
    PLOTLY,
    SCRIPT,
    content_policy,
    inline_script,
    inline_style,
)
from benchctl.report.html.parts import embedded, figure, groups
from benchctl.report.html.subject import Subject
from benchctl.report.html.templates import templates
from benchctl.report.layout import Command, result_grids, task_name
from benchctl.report.notes import collect_notes
from benchctl.report.order import order_grids
from benchctl.report.planning import planning_lines
from benchctl.report.tables import legend
from benchctl.report.verdict import headline, verdict_sentence
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis
from benchctl.stats.order import describe_before, ran_before

# What a reader wants to see of a run at once; everything else is folded away.
_OPEN_SECTIONS = frozenset({"Run", "Host", "Engines", "Differences between variants"})


class Entry(msgspec.Struct, frozen=True):
    """One line of an index of pages.

    Attributes:
        file: the page, relative to the index.
        title, subtitle: of the page.
        verdict: in one paragraph.
    """

    file: str
    title: str
    subtitle: tuple[str, ...]
    verdict: str


class _Section(msgspec.Struct, frozen=True):
    heading: str
    lines: tuple[str, ...]
    open: bool


class _Part(msgspec.Struct, frozen=True):
    title: str
    sections: tuple[_Section, ...]


def render_page(subject: Subject, *, inline: bool = False, folder: str = FOLDER) -> str:
    """Write a page.

    Args:
        subject: what it is about.
        inline: with style and scripts inside, as one file; else they are in a folder.
        folder: that one, relative to the page.
    """
    analysis = subject.analysis
    notes = collect_notes(analysis)
    charts = [
        *forest_charts(analysis),
        *redline_charts(analysis.redline),
        *fork_charts(analysis),
        *subject.charts,
    ]
    curves = [] if analysis.redline is None else curve_grids(analysis.redline)
    orders = order_grids(analysis)
    details = [grid for grid in further_grids(analysis, details=True) if grid not in orders]
    plan, lines = subject.plan, planning_lines(analysis, subject.plan)
    commands = [
        *subject.commands,
        *([] if plan is None else [Command("Measure the same again", command(plan))]),
    ]
    return _rendered(
        "report.html.jinja",
        inline=inline,
        folder=folder,
        title=subject.title,
        subtitle=subject.subtitle,
        headline=headline(analysis),
        verdict=_unbroken(verdict_sentence(analysis)),
        results=[*result_grids(analysis, notes), *orders],
        curves=curves,
        legend=legend(analysis),
        notes=[doubt.text for doubt in notes.numbered],
        general=[doubt.text for doubt in notes.general],
        effects=[figure(chart) for chart in charts if chart.group == OVERVIEW],
        groups=groups([chart for chart in charts if chart.group != OVERVIEW], _tasks(analysis)),
        without_samples=not_drawn(subject.without_samples),
        left_out=f"Plots of fewer than {LEAST_POINTS} points, and telemetry of fewer than {LEAST_READINGS} "
        "readings, are left out.",
        origins=subject.origins,
        setting=list(_setting_grids(analysis, subject.plan)),
        parts=[_part(record) for record in subject.records],
        details=[*details, *subject.profiles],
        planning=[line for line in lines if isinstance(line, str)],
        commands=[*commands, *(line for line in lines if isinstance(line, Command))],
    )


def render_index(title: str, entries: Sequence[Entry]) -> str:
    """Write the page that links to several others."""
    return _rendered(
        "index.html.jinja", inline=False, folder=FOLDER, title=title, subtitle=(), entries=entries
    )


def _rendered(template: str, *, inline: bool, **context: object) -> str:
    if inline:
        context |= {"style": inline_style(), "script": inline_script(SCRIPT), "plotly": inline_script(PLOTLY)}
    return (
        templates()
        .get_template(template)
        .render(
            context,
            inline=inline,
            version=benchctl.__version__,
            policy=content_policy(inline=inline),
            palette=embedded(dark_palette()),
        )
    )


def _unbroken(text: str) -> str:
    """A number stays on the line of its percent sign, and a p on that of its number."""
    return text.replace(" %", "\u00a0%").replace(", p ", ", p\u00a0")


def _tasks(analysis: Analysis) -> list[str]:
    return list(dict.fromkeys(task_name(row, analysis) for row in analysis.rows))


def _part(record: RunRecord) -> _Part:
    sections = tuple(
        _Section(section.heading, section.lines, section.heading in _OPEN_SECTIONS)
        for section in fact_sections(record)
    )
    return _Part(record.id, sections)


def _setting_grids(analysis: Analysis, plan: Plan | None) -> Iterable[Grid]:
    """What every task's node had run before it: part of what was measured."""
    if plan is None or plan.redline is not None:
        return
    places = dict.fromkeys((row.schedule, row.task) for row in analysis.rows)
    rows = {(row.schedule, row.task): row for row in analysis.rows}
    lines = (
        (task_name(rows[place], analysis), describe_before(ran_before(plan, place)))
        for place in sorted(places)
    )
    yield Grid.of("What the same node had run before each operation", (OPERATION, worded("Ran")), lines)
