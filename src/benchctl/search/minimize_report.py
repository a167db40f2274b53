"""A search for the smallest schedule with an effect: what it found, and the evidence for every removal."""

import csv
import io
from collections.abc import Sequence

import msgspec

from benchctl.report.formats import planning_item
from benchctl.report.layout import Command
from benchctl.report.numbers import (
    duration,
    interval,
    json_text,
    percent,
    signed_percent,
)
from benchctl.report.table import INTERVAL, Cell, Table, bounds, grid_table, worded
from benchctl.report.tables import WIDE, render_page
from benchctl.search.record import Decision, MinimizeRecord
from benchctl.stats.metrics import metric_of
from benchctl.track.schedule import challenge_text

_CSV_COLUMNS = (
    "number", "phase", "short", "verdict", "effect_percent", "low_percent", "high_percent", "alpha",
    "seconds",
)  # fmt: skip
_ASKED = {"whole": "the whole schedule", "shorten": "counts cut"}


class Ended(msgspec.Struct, frozen=True, rename="kebab"):
    """The result of a search, as it is printed."""

    search: MinimizeRecord
    # The schedule, and if the effect is relative to a fresh node, the target alone.
    files: tuple[str, ...] = ()
    commands: dict[str, str] = {}  # to run next, by purpose


def render_minimize(ended: Ended, output_format: str = "text", *, width: int = WIDE) -> str:
    """Write the result of a search.

    Text (of `width` columns), Markdown and HTML (a page) are for readers; CSV (one line a question) and
    JSON (everything) for programs.
    """
    if output_format == "csv":
        return _csv(ended.search)
    if output_format == "json":
        return json_text(ended)
    lines, grid = [*_conclusion(ended.search), *_below(ended)], _decisions_grid(ended.search)
    if output_format == "html":
        # Templates take a while to load, which no other form needs.
        from benchctl.report.html.parts import render_tables  # noqa: PLC0415 - see above

        return render_tables("The smallest schedule", [grid], lines=lines)
    # A page has its address; in a terminal, or in an issue, the schedule itself is what is wanted.
    found = "" if ended.search.found is None else challenge_text(ended.search.found)
    if output_format == "markdown":
        listed = "\n".join(f"- {planning_item(line)}" for line in lines)
        fenced = f"\n```json\n{found}```\n" if found else ""
        return f"{grid_table(grid)}\n\n{listed}\n{fenced}"
    text = render_page([grid], lines, width)
    return f"{text}\n{found}" if found else text


def _conclusion(record: MinimizeRecord) -> list[str]:
    effect = f"'{record.spec.effect}'"
    begun = next(
        (one for one in record.decisions if one.phase != "remove" and one.verdict == "present"), None
    )
    if begun is None:
        first = record.decisions[-1] if record.decisions else None
        seen = "" if first is None else f" ({_effect_words(first)})"
        ended = "" if record.status == "complete" else f"; {record.stopped}"
        return [f"{effect} is not confirmed{seen}: there is nothing to keep while tasks go{ended}."]
    left = [one for one in record.decisions if one.verdict == "present"][-1]
    names = ", ".join(left.tasks) or "nothing"
    lines = [
        f"{effect} persists with {len(left.steps)} of {len(begun.steps)} steps before it: {names}.",
        f"There it is {_effect_words(left)}; at the beginning it was {_effect_words(begun)}.",
    ]
    if begun.short:
        lines.append(
            f"Counts in front were cut to at most {record.spec.prefix_iterations} requests, without warm-up "
            "and rates."
        )
    open_ones = [one for one in record.decisions if one.phase == "remove" and one.verdict == "undecided"]
    if record.minimal:
        lines.append(_minimal(record, left, open_ones))
    else:
        lines.append(f"It may get smaller: the search ended before every step was tried: {record.stopped}.")
    return lines


def _decisions_grid(record: MinimizeRecord) -> Table:
    metric = metric_of(record.spec.metric)
    against = record.spec.effect.against or "a fresh node"
    columns = ("#", "Left", worded("Without"), "Diff %", INTERVAL, worded("Answer"), "Pairs", "Time")
    who = f"{record.spec.effect.task} on {record.spec.effect.variant}"
    title = f"{who} against {against}: {metric.title}, pairs of forks"
    return Table.of(title, columns, (_line(one) for one in record.decisions))


def _minimal(record: MinimizeRecord, left: Decision, open_ones: Sequence[Decision]) -> str:
    final = [
        one for one in open_ones if len(one.steps) == len(left.steps) - 1 and {*one.steps} < {*left.steps}
    ]
    if not left.steps:
        return "Nothing in front of it is needed."
    if not final:
        return "None of them can go: without any single one, the effect was found gone."
    names = ", ".join(name for one in final for name in one.removed)
    return (
        f"Without any other one, the effect was found gone. Whether it takes {names} stayed open after "
        f"{record.spec.most_forks} pairs of forks, so it is kept: more --forks might tell."
    )


def _below(ended: Ended) -> list[str | Command]:
    """Return how to read the table, and what to do next."""
    record = ended.search
    counts = (
        "half of what the first question found" if record.spec.by is None else percent(100 * record.spec.by)
    )
    gone = "0" if record.spec.by is None else "that"
    explained = (
        f"An effect counts from {counts}. It is present when its interval excludes {gone}, and absent when "
        "the interval excludes the whole effect; what stays open is kept. Intervals hold after any number "
        "of pairs; questions share their error, so each takes a wider one than the 95 % shown. With a chance "
        f"of {percent(100 * record.spec.alpha)} at most, over all questions, a needed step was removed."
    )
    files = [f"Challenge file: {path}" for path in ended.files]
    commands = [Command(purpose, line) for purpose, line in ended.commands.items()]
    return [explained, f"Its forks took {duration(record.spent_s)}.", *files, *commands]


def _effect_words(decision: Decision) -> str:
    if decision.effect_percent is None:
        return "not measured"
    return (
        f"{signed_percent(decision.effect_percent)} % "
        f"({interval(decision.low_percent, decision.high_percent)})"
    )


def _line(one: Decision) -> tuple[Cell | str, ...]:
    without = ", ".join(one.removed) or _ASKED.get(one.phase, "")
    return (
        str(one.number),
        str(len(one.steps)),
        without,
        signed_percent(one.effect_percent),
        bounds(one.low_percent, one.high_percent),
        "not answered yet" if one.verdict == "measuring" else one.verdict,
        str(len(one.contender)),
        duration(one.seconds),
    )


def _csv(record: MinimizeRecord) -> str:
    """One line a question, in full precision; tasks are joined by vertical bars."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*_CSV_COLUMNS, "pairs", "left", "without"])
    for one in record.decisions:
        lists = ("|".join(one.tasks), "|".join(one.removed))
        writer.writerow([*(getattr(one, name) for name in _CSV_COLUMNS), len(one.contender), *lists])
    return stream.getvalue()
