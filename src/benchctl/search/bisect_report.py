"""The report of a bisection: result, certainty and cost; its questions as a table, sentences below."""

from collections.abc import Iterator

from benchctl.report.formats import planning_item
from benchctl.report.numbers import (
    counted,
    duration,
    interval,
    json_text,
    percent,
    signed_percent,
)
from benchctl.report.table import INTERVAL, Cell, Table, bounds, grid_table, worded
from benchctl.report.tables import WIDE, render_page
from benchctl.search.bisection import (
    ALPHA,
    ANSWERS,
    Answer,
    Asked,
    Bisection,
    Question,
    doubts,
    is_part,
    narrowed,
    questions_at_most,
)
from benchctl.stats.metrics import metric_of

_COLUMNS = (
    "#",
    worded("Point"),
    worded("Against"),
    "Diff %",
    INTERVAL,
    worded("Differs"),
    "Pairs",
    "Time",
)
_WORDS = {"present": "yes", "absent": "no", "undecided": "open", "measuring": "measuring"}


def open_matter(record: Bisection) -> str:
    """Return why the first point that differs is not known for sure; empty where it is."""
    asked = record.asked
    if not asked or (asked[0].verdict != "present" and not record.complete):
        return "the time was up before it was known whether the ends differ"
    if asked[0].verdict != "present":
        return "it is not confirmed that the ends differ"
    if not record.complete:
        return "the time was up before all was asked"
    found = narrowed(len(record.points), asked)
    if found.first - found.before > 1:
        return f"{counted(found.first - found.before - 1, 'point')} could not be told apart from it"
    if doubts(len(record.points), asked) or is_part(len(record.points), asked):
        return "one single step does not explain the answers"
    return ""


def render_bisection(record: Bisection, output_format: str = "text", *, width: int = WIDE) -> str:
    """Write it: text of `width` columns, `markdown`, or `json` with everything."""
    if output_format == "json":
        return json_text(record)
    title = f"{record.task}: {metric_of(record.metric).title}, point against the other, pairs of forks"
    grid = Table.of(title, _COLUMNS, (_line(record, *numbered) for numbered in enumerate(record.answers, 1)))
    lines = [*_conclusion(record), *_below(record)]
    if output_format == "markdown":
        return f"{grid_table(grid)}\n\n" + "".join(f"- {planning_item(line)}\n" for line in lines)
    return render_page([grid], lines, width)


def _line(record: Bisection, number: int, one: Answer) -> Iterator[Cell | str]:
    yield str(number)
    yield record.points[one.question.point].name
    yield record.points[one.question.against].name
    yield signed_percent(one.effect_percent)
    yield bounds(one.low_percent, one.high_percent)
    yield _WORDS[one.verdict]
    yield str(len(one.pairs))
    yield duration(one.seconds)


def _conclusion(record: Bisection) -> Iterator[str]:
    points, asked = record.points, record.asked
    if not asked or asked[0].verdict != "present":
        matter = open_matter(record)
        yield f"{matter[0].upper()}{matter[1:]}: {points[-1]} against {points[0]}."
        return
    found = narrowed(len(points), asked)
    first, before = points[found.first], points[found.before]
    step = Question("step", found.first, found.before)
    shown = next((one for one in record.answers if one.question == step), record.answers[0])
    size = f"{metric_of(record.metric).title} of {record.task} {signed_percent(shown.effect_percent)} %"
    size = f"{size} ({interval(shown.low_percent, shown.high_percent)})"
    if between := found.first - found.before - 1:
        yield (
            f"The change comes behind {before}, and with {first} at the latest: {size}. "
            f"{counted(between, 'point')} between them could not be told."
        )
    else:
        yield f"{first} is the first that differs: {size} against {before}."
    for one in doubts(len(points), asked):
        yield f"Doubt: {_doubt(record, one)}."
    if is_part(len(points), asked):
        whole = signed_percent(record.answers[0].effect_percent)
        yield f"Doubt: that is only a part of {whole} % between the ends; the rest changes elsewhere."
    if not record.complete:
        yield f"It is not finished: {open_matter(record)}. The same command goes on."


def _doubt(record: Bisection, one: Asked) -> str:
    point, other = (record.points[number] for number in (one.question.point, one.question.against))
    if one.question.phase == "step":
        return f"whether {point} differs from {other} itself was answered with: {ANSWERS[one.verdict]}"
    side = "before" if one.question.phase == "before" else "behind"
    return f"{point} lies {side} the change; asked whether it differs from {other}: {ANSWERS[one.verdict]}"


def _below(record: Bisection) -> Iterator[str]:
    count = len(record.points)
    pairs = sum(len(one.pairs) for one in record.answers)
    leading = counted(questions_at_most(count), "question")
    yield (
        f"Error bound: with a chance of {percent(100 * ALPHA)} at most, over the {leading} that lead to it, "
        "an answer is wrong. It holds for a history with one step, and pairs of forks that are independent "
        "and near normal; whether there are further steps is checked at single points only."
    )
    yield (
        "A point differs when its interval excludes 0, and does not when it excludes the ends' difference. "
        "Intervals hold after any number of pairs; questions share their error, so each takes a wider one "
        "than the 95 % shown."
    )
    for number, reason in sorted(record.skipped.items()):
        yield f"Skipped: {record.points[number]}: {reason.splitlines()[0]}"
    yield (
        f"{counted(len(record.answers), 'question')} about {counted(count, 'point')}, "
        f"{counted(pairs, 'pair')} of forks, {duration(record.seconds)}, builds included."
    )
