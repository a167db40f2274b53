"""What a page is about: one run, or results that are compared."""

from collections.abc import Sequence

import msgspec

from benchctl.report.chart import Chart
from benchctl.report.grid import Grid
from benchctl.report.layout import Command
from benchctl.report.numbers import counted
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis


class Subject(msgspec.Struct, frozen=True):
    """What a page is about.

    Attributes:
        title: of the page.
        analysis: what is reported.
        records: the runs that the figures come from.
        plan: that was run; None when there are several or it was another tool's: no command is proposed.
        subtitle: lines below the title.
        origins: where each side comes from, in words; empty for a single run.
        charts: of samples; those of effects and forks are made from the analysis.
        without_samples: why charts are missing, in words; empty when none is.
        commands: that print or make this again.
        profiles: where nodes spent their time, where that was sampled.
    """

    title: str
    analysis: Analysis
    records: tuple[RunRecord, ...] = ()
    plan: Plan | None = None
    subtitle: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    without_samples: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    profiles: tuple[Grid, ...] = ()


def run_subject(
    record: RunRecord,
    analysis: Analysis,
    *,
    charts: tuple[Chart, ...] = (),
    without_samples: tuple[str, ...] = (),
    commands: tuple[Command, ...] = (),
    profiles: tuple[Grid, ...] = (),
) -> Subject:
    """The page of one run.

    Args:
        record: the run.
        analysis: of it.
        charts: of samples.
        without_samples: which forks lack some, in words.
        commands: that print or make this again.
        profiles: where nodes spent their time.
    """
    forks = ", ".join(f"{counted(count, 'fork')} of {name}" for name, count in analysis.forks.items())
    imported = "" if record.imported is None else f", imported from {record.imported.tool}"
    return Subject(
        title=f"{_challenges(analysis)}: {' and '.join(analysis.variants)}",
        analysis=analysis,
        records=(record,),
        plan=record.plan if record.imported is None else None,
        subtitle=(
            f"Run {record.id}, {_moment(record.created)}, {record.status}{imported}",
            f"{forks} on host {record.environment.hostname}",
        ),
        charts=charts,
        without_samples=without_samples,
        commands=commands,
        profiles=profiles,
    )


def comparison_subject(
    sides: Sequence[tuple[str, int, RunRecord]],
    analysis: Analysis,
    *,
    charts: tuple[Chart, ...] = (),
    without_samples: tuple[str, ...] = (),
    commands: tuple[Command, ...] = (),
) -> Subject:
    """The page of results from one run or several.

    Args:
        sides: label, number of forks and run of each; the baseline first.
        analysis: of all of them.
        charts: of samples.
        without_samples: which forks lack some, in words.
        commands: that print or make this again.
    """
    records = {record.id: record for _, _, record in sides}
    first = sides[0][2]
    return Subject(
        title=f"Comparison: {' and '.join(label for label, _, _ in sides)}",
        analysis=analysis,
        records=tuple(records.values()),
        plan=first.plan if len(records) == 1 and first.imported is None else None,
        subtitle=(_challenges(analysis), f"from run{'s' if len(records) > 1 else ''} {', '.join(records)}"),
        origins=tuple(
            f"{label}: {counted(count, 'fork')} of run {record.id}, {_moment(record.created)}, on host "
            f"{record.environment.hostname}"
            for label, count, record in sides
        ),
        charts=charts,
        without_samples=without_samples,
        commands=commands,
    )


def _challenges(analysis: Analysis) -> str:
    return ", ".join(dict.fromkeys(section.challenge for section in analysis.sections))


def _moment(created: str) -> str:
    """`2026-11-21T13:01:18+00:00` as people write it."""
    return created.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")
