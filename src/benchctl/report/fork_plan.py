"""The table of `benchctl plan`: forks and time for a difference, task by task."""

from collections.abc import Iterator

from benchctl.report.formats import Format
from benchctl.report.numbers import duration, json_text, percent
from benchctl.report.table import (
    OPERATION,
    VARIANT,
    WIDE,
    Command,
    Table,
    csv_pieces,
    page_of,
    worded,
    written,
)
from benchctl.stats.forecast import Forecast
from benchctl.stats.metrics import metric_of
from benchctl.stats.outlook import ForkPlan, Need, Requirement

_CSV_COLUMNS = (
    "schedule", "challenge", "task", "label", "metric", "baseline", "contender", "match", "sd", "df",
    "cv_percent", "forks", "forks_low", "forks_high", "forks_within", "chance", "seconds",
)  # fmt: skip
_OF_PROSPECT = _CSV_COLUMNS.index("cv_percent")
_OTHER = "*"
_TIME = "Time"


def render_fork_plan(found: ForkPlan, output_format: Format = "text", *, width: int = WIDE) -> str:
    """Write the forks and time that a difference takes.

    Text (of `width` columns), Markdown and HTML (a page) are for readers; CSV (one line a task and metric)
    and JSON (everything) for programs.
    """
    if output_format == "csv":
        return plan_csv(found)
    if output_format == "json":
        return json_text(found)
    title = f"Forks for a difference of {found.effect_percent:g}%"
    return written(title, page_of(plan_tables(found), plan_lines(found)), output_format, width=width)


def plan_tables(found: ForkPlan) -> list[Table]:
    """Return what every comparison takes, or what it would take at assumed CVs when nothing is known."""
    unit = "Pairs" if found.paired else "Forks per variant"
    size = (
        f"{'Fork pairs' if found.paired else 'Forks per variant'} to detect {found.effect_percent:g}% "
        f"with {found.power_percent:g}% power (80% range)"
    )
    if not found.requirements:
        title = f"{size} at CVs that are ASSUMED, not measured"
        assumed = ((percent(one.cv_percent), *_need(one)) for one in found.assumed)
        return [Table.of(title, ("Assumed CV", unit, _TIME), assumed).without_empty(_TIME)]
    title = f"{size}, from {found.earlier_forks} earlier forks on this machine"
    challenge = worded("Challenge")
    cv = "CV of ratios" if found.paired else "CV of forks"
    columns = (challenge, OPERATION, worded("Metric"), VARIANT, cv, unit, _TIME)
    lines = [_line(requirement) for requirement in found.requirements]
    if found.hardest is not None and len(lines) > 1:
        lines.append(("", "all of them", "", "", "", *_need(found.hardest.need)))
    grid = Table.of(title, columns, lines).without_empty(_TIME)
    who = [requirement.prospect for requirement in found.requirements]
    if len({one.schedule for one in who}) == 1:
        grid = grid.without(challenge.title)
    return [grid if len({one.contender for one in who}) > 1 else grid.without(VARIANT.title)]


def plan_lines(found: ForkPlan) -> list[str | Command]:
    """Return sentences for below the table."""
    lines: list[str | Command] = []
    if not found.requirements:
        lines.append("No earlier run of this on this machine says how much its forks differ.")
    if any(_other_sizes(requirement) for requirement in found.requirements):
        lines.append(
            f"{_OTHER} from runs of the same task with other sizes or settings: the CV may be another here"
        )
    if found.unknown and found.requirements:
        lines.append(f"Not in the table, because no earlier run has them: {', '.join(found.unknown)}")
    lines += _beside_lines(found)
    if found.requirements and found.block_s is None:
        lines.append("How long a fork takes is not known: no earlier run had these sizes.")
    lines += _verdict_lines(found)
    if found.index_builds > 1:
        lines.append(
            f"{found.index_builds} index builds are replicates, too: if they differ, more builds are "
            "required, which no number of forks can replace."
        )
    if found.command:
        words = (
            "To measure it" if found.requirements else "First measure a few forks, then repeat this command"
        )
        lines.append(Command(words, found.command))
    return lines


def _beside_lines(found: ForkPlan) -> Iterator[str]:
    """Yield how many forks the node's CPU takes, where these are fewer."""
    hardest = max(found.beside, key=lambda one: one.need.forks.sort_key, default=None)
    if hardest is None or found.hardest is None:
        return
    forks, of_times = hardest.need.forks, found.hardest.need.forks
    if forks.forks is not None and forks.sort_key < of_times.sort_key:
        yield (
            f"The node's CPU per operation, which is compared, too, takes {forks.forks:,} "
            f"{'pairs' if found.paired else 'forks per variant'} instead of {_most(of_times)}: a difference "
            "in work shows there first"
        )


def _verdict_lines(found: ForkPlan) -> Iterator[str]:
    """Yield which verdict is planned for, where one cannot be had, and that a run may end earlier."""
    within = dict.fromkeys(
        (metric_of(requirement.prospect.metric).title, requirement.margin_percent)
        for requirement in found.requirements
        if found.effect_percent <= requirement.margin_percent
    )
    if within:
        margins = ", ".join(f"{title} {margin:g}%" for title, margin in within)
        yield (
            f"{found.effect_percent:g}% is not beyond the margin ({margins}): it can only be called "
            "different, and these forks find that"
        )
    if any(found.effect_percent > requirement.margin_percent for requirement in found.requirements):
        yield "Found is faster or slower, with p adjusted for the other rows of the metric."
    if any(requirement.need.forks.forks is None for requirement in found.requirements):
        unlikely = [
            requirement for requirement in found.requirements if not requirement.need.forks.within_reach
        ]
        names = ", ".join(dict.fromkeys(one.prospect.label for one in unlikely))
        if names:
            yield f"Hardly to be found within {unlikely[0].need.forks.within:,}: {names}"


def plan_csv(found: ForkPlan) -> str:
    """Return one line a comparison, in full precision; empty fields where nothing is known."""
    lines = [
        (
            *(getattr(requirement.prospect, name) for name in _CSV_COLUMNS[:_OF_PROSPECT]),
            *_values(requirement.need),
        )
        for requirement in found.requirements
    ]
    empty = ("",) * _CSV_COLUMNS.index("match")
    assumed = () if found.requirements else found.assumed
    lines += [(*empty, "assumed", "", "", *_values(need)) for need in assumed]
    return "".join(csv_pieces(_CSV_COLUMNS, lines))


def _values(need: Need) -> tuple[float | None, ...]:
    forks = need.forks
    return need.cv_percent, forks.forks, forks.low, forks.high, forks.within, forks.chance, need.seconds


def _line(one: Requirement) -> tuple[str, ...]:
    who = one.prospect
    mark = f"{_OTHER} " if _other_sizes(one) else ""
    cv = f"{mark}{percent(one.need.cv_percent)}"
    words = (who.challenge, who.label, metric_of(who.metric).title, who.contender)
    return (*words, cv, *_need(one.need))


def _other_sizes(one: Requirement) -> bool:
    return one.prospect.match == "similar"


def _need(need: Need) -> tuple[str, str]:
    over = "over " if need.forks.forks is None else ""
    return need.forks.text, "" if need.seconds is None else f"{over}{duration(need.seconds)}"


def _most(forks: Forecast) -> str:
    return f"over {forks.within:,}" if forks.forks is None else f"{forks.forks:,}"
