"""The table of `benchctl plan`: forks and time for a difference, task by task."""

import csv
import io

from benchctl.report.formats import Format, planning_item
from benchctl.report.grid import OPERATION, VARIANT, Grid, grid_table, worded
from benchctl.report.layout import Command
from benchctl.report.numbers import duration, json_text, percent
from benchctl.report.tables import WIDE, render_page
from benchctl.stats.inference import MOST_FORKS
from benchctl.stats.metrics import metric_of
from benchctl.stats.outlook import ForkPlan, Need, Requirement

_CSV_COLUMNS = (
    "schedule", "challenge", "task", "label", "metric", "baseline", "contender", "match", "sd", "df",
    "cv_percent", "forks", "seconds", "cv_upper_percent", "forks_upper", "seconds_upper",
)  # fmt: skip
_OF_PROSPECT = _CSV_COLUMNS.index("cv_percent")
_OTHER = "*"
_TIME, _CAUTIOUS_TIME = "Time", "Cautious time"


def render_fork_plan(found: ForkPlan, output_format: Format = "text", *, width: int = WIDE) -> str:
    """Write the forks and time that a difference takes.

    Text (of `width` columns), Markdown and HTML (a page) are for readers; CSV (one line a task and metric)
    and JSON (everything) for programs.
    """
    if output_format == "csv":
        return plan_csv(found)
    if output_format == "json":
        return json_text(found)
    if output_format == "markdown":
        listed = "\n".join(f"- {planning_item(line)}" for line in plan_lines(found))
        return "\n\n".join([*(grid_table(grid) for grid in plan_grids(found)), listed]) + "\n"
    if output_format == "html":
        return _page(found)
    return render_page(plan_grids(found), plan_lines(found), width)


def plan_grids(found: ForkPlan) -> list[Grid]:
    """Return what every comparison takes, or what it would take at assumed CVs when nothing is known."""
    unit = "Pairs" if found.paired else "Forks a side"
    size = f"{unit} for {found.effect_percent:g} % ({found.power_percent:g} % power)"
    if not found.requirements:
        title = f"{size} at CVs that are ASSUMED, not measured"
        assumed = ((percent(one.cv_percent), *_need(one)) for one in found.assumed)
        return [Grid.of(title, ("Assumed CV", unit, _TIME), assumed).without_empty(_TIME)]
    title = (
        f"{size}, from {found.earlier_forks} earlier forks on this machine; cautious: with the largest CV "
        "that these allow (80 % confidence)"
    )
    challenge = worded("Challenge")
    columns = (
        challenge, OPERATION, worded("Metric"), VARIANT, "CV of forks", unit, _TIME,
        "Cautious", _CAUTIOUS_TIME,
    )  # fmt: skip
    lines = [_line(one) for one in found.requirements]
    if len(lines) > 1:
        most = [max(needs, key=lambda need: need.forks) for needs in _needs(found)]
        lines.append(("", "all of them", "", "", "", *_need(most[0]), *_need(most[1])))
    grid = Grid.of(title, columns, lines)
    if not any(need.seconds is not None for needs in _needs(found) for need in needs):
        grid = grid.without(_TIME, _CAUTIOUS_TIME)
    who = [one.prospect for one in found.requirements]
    if len({one.schedule for one in who}) == 1:
        grid = grid.without(challenge.title)
    return [grid if len({one.contender for one in who}) > 1 else grid.without(VARIANT.title)]


def plan_lines(found: ForkPlan) -> list[str | Command]:
    """Return sentences for below the table."""
    lines: list[str | Command] = []
    if not found.requirements:
        lines.append("No earlier run of this on this machine says how much its forks differ.")
    if any(_other_sizes(one) for one in found.requirements):
        lines.append(
            f"{_OTHER} from runs of the same task with other sizes or settings: the CV may be another here"
        )
    if found.unknown and found.requirements:
        lines.append(f"Not in the table, because no earlier run has them: {', '.join(found.unknown)}")
    hardest = max(found.beside, key=lambda one: one.likely.forks, default=None)
    if hardest is not None and found.hardest is not None:
        unit = "pairs" if found.paired else "forks a side"
        forks, of_times = hardest.likely.forks, found.hardest.likely.forks
        if forks < of_times:
            lines.append(
                f"The node's CPU per operation, which is compared beside these, takes {forks:,} {unit} "
                f"instead of {of_times:,}: a difference in work shows there first"
            )
    if found.requirements and found.block_s is None:
        lines.append("How long a fork takes is not known: no earlier run had these sizes.")
    if found.requirements:
        lines.append(
            "Found is a difference whose p, taken by itself, is at most 0.05. It takes more forks where "
            "several rows adjust each other's p, and for a verdict of faster or slower: that wants the "
            "difference to lie beyond the margin (3 % of throughput, 5 % of times)."
        )
    if found.index_builds > 1:
        lines.append(
            f"{found.index_builds} index builds are replicates of their own: where they differ, it takes "
            "more of them, and no number of forks can make up for that."
        )
    if found.command:
        words = "To measure it" if found.requirements else "First measure a few forks, then ask again"
        lines.append(Command(words, found.command))
    return lines


def _page(found: ForkPlan) -> str:
    # Templates take a while to load, which no other form needs.
    from benchctl.report.html.parts import render_tables  # noqa: PLC0415 - see above

    title = f"Forks for a difference of {found.effect_percent:g} %"
    return render_tables(title, plan_grids(found), lines=plan_lines(found))


def plan_csv(found: ForkPlan) -> str:
    """Return one line a comparison, in full precision; empty fields where nothing is known."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for one in found.requirements:
        who, needs = one.prospect, (one.likely, one.cautious)
        writer.writerow(
            [
                *(getattr(who, name) for name in _CSV_COLUMNS[:_OF_PROSPECT]),
                *(value for need in needs for value in (need.cv_percent, need.forks, need.seconds)),
            ]
        )
    for need in () if found.requirements else found.assumed:
        empty = [""] * _CSV_COLUMNS.index("match")
        writer.writerow([*empty, "assumed", "", "", need.cv_percent, need.forks, need.seconds, "", "", ""])
    return stream.getvalue()


def _line(one: Requirement) -> tuple[str, ...]:
    who = one.prospect
    mark = f"{_OTHER} " if _other_sizes(one) else ""
    cv = f"{mark}{percent(one.likely.cv_percent)}"
    words = (who.challenge, who.label, metric_of(who.metric).title, who.contender)
    return (*words, cv, *_need(one.likely), *_need(one.cautious))


def _other_sizes(one: Requirement) -> bool:
    return one.prospect.match == "similar"


def _needs(found: ForkPlan) -> tuple[list[Need], list[Need]]:
    return [one.likely for one in found.requirements], [one.cautious for one in found.requirements]


def _need(need: Need) -> tuple[str, str]:
    over = "over " if need.forks >= MOST_FORKS else ""
    return f"{over}{need.forks:,}", "" if need.seconds is None else f"{over}{duration(need.seconds)}"
