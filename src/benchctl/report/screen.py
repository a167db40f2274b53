"""The answer on one screen: the verdict first, a line a task, what its marks mean, and what to run next."""

import math
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec
from rich.text import Text

from benchctl.report.layout import (
    MISSES,
    bound_mark,
    change_cells,
    cv_text,
    line_name,
    metric_title,
    missed,
    said,
    value_text,
)
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    decimals,
    is_floor,
    p_value,
    rough,
    signed_figure,
    signed_percent,
    visible,
)
from benchctl.report.planning import next_command
from benchctl.report.sentences import additions, headline, verdict
from benchctl.report.table import (
    Cell,
    Column,
    Layout,
    command_lines,
    judged,
    paragraph,
    text_of,
    worded,
)
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis, Figures, Row, Trend
from benchctl.stats.compare import DECIDED, FORKS_FOR_QUOTING, FORKS_FOR_RARE, Comparison, Verdict
from benchctl.stats.decisions import decide
from benchctl.stats.metrics import REDLINE

LINES = 24
_LEAST_WIDTH = 80
_LEAST_NAME = 20
_LEAST_CURVE = 4  # lines: its title, head and rule, and a point
_LONGEST_VARIANT = 10
_ABSURD_PERCENT = 10_000
_LARGE_PERCENT = 100  # minimum detectable effects beyond it say nothing more
# An open row says so in one character, and one without a verdict in three: there is little room.
_WORDS: dict[Verdict, str] = {"inconclusive": "?", "insufficient": "n/a", "n/a": "n/a"}
# What a row is marked with, most important first, and what that means.
MARKS = {
    "busy host": ("the host was busy", "other processes used its CPUs"),
    "fails": ("requests failed", "percentiles rank them above every response"),
    "elsewhere": ("searches were answered elsewhere", "perhaps by a proxy: the nodes did not count them"),
    "errors": ("errors are in the figures", "the operation ignores their status"),
    "0-hits": ("searches found nothing", "perhaps the index is empty"),
    "unlike": ("search results differ", "perhaps it is not the same work"),
    "changed": ("documents changed", "the same request did not always match as many"),
    "cannot": ("a node cannot do it", "see the notes for the reason"),
    "saturated": ("the engine did not keep up", "with the offered rate"),
    "driver": ("benchctl was the limit", "not the engine"),
    "bound": ("a lower bound", "nothing higher was tried, or benchctl was the limit"),
    "cached": ("not cold", "starts of nodes, or warm-up, had read the index into the page cache again"),
    "stall": ("stalled", "a few requests, or benchctl, took much of the measured time"),
    "warming up": ("still warming up", "forks were still getting faster"),
    "brief": ("little warm-up", "less than the operation is known to need"),
    "drift": ("drifting", "forks became faster and slower while they were measured"),
    "reused": ("index builds from the cache", "a drift of the host is in the difference"),
    "few": (
        "too few to report",
        f"under {FORKS_FOR_QUOTING} forks, builds or runs, or {FORKS_FOR_RARE} of what may be 0",
    ),
    "coarse": ("counted in steps", "too coarse for a verdict on so little"),
    "gaps": ("values are missing", "see the notes for which"),
    "alike": ("all values are identical", "there is nothing to test with"),
    "units": ("different units", "a request counts more on one side than on the other"),
    "tail": ("few requests", "too few for this quantile, or more on one side than on the other"),
    "offered": ("throttled", "the rate is what was asked for"),
    "order": ("after other tasks", "see the notes for what the nodes ran before"),
    "clocks": ("different clocks", "each target uses its own"),
}
_PLAIN = ("busy host", "warming up")  # need no explanation
_OF_CAVEATS = {
    "busy-host": "busy host",
    "failures": "fails",
    "answers-differ": "unlike",
    "hits-changed": "changed",
    "counted-less": "elsewhere",
    "nothing-found": "0-hits",
    "ignored-errors": "errors",
    "unsupported": "cannot",
    "saturated": "saturated",
    "driver-limited": "driver",
    "lower-bound": "bound",
    "coarse": "coarse",
    "missing-values": "gaps",
    "no-spread": "alike",
    "stalled": "stall",
    "too-few-samples": "tail",
    "unlike-units": "units",
    "offered-rate": "offered",
    "builds": "reused",
    "not-cold": "cached",
    "other-tasks": "order",
}


_OF_TRENDS: dict[Trend, str] = {"not warmed up": "warming up", "little warm-up": "brief", "drifting": "drift"}


class _Line(msgspec.Struct, frozen=True):
    """A task and metric of one contender."""

    block: tuple[str, str]  # the contender and the title of its table
    headers: tuple[str, ...]
    name: str
    figures: tuple[str, ...]
    verdict: Cell  # with the row's marks; its first word is the verdict's
    strength: tuple[int, float]
    mde_percent: float | None = None
    agrees: bool = False  # with a row of the same task above


def render_screen(
    analysis: Analysis,
    *,
    plan: Plan | None = None,
    width: int = 80,
    lines: int = LINES,
    more: str = "",
    runs: Path | None = None,
) -> Text:
    """Return the answer in at most `lines` lines of `width` columns, 80 or more.

    When there are more rows, the decided ones and the largest differences are shown, and how many more there
    are is said. Without `plan` no command is proposed; `more` says how to see all of it, if there is a way.
    `runs` is the folder of the run's runs, if it is not the default one.
    """
    added = additions(analysis)
    top, bottom = _top(analysis, plan, width), _bottom(analysis, plan, width, more, runs)
    brief = [text_of(part, width) for addition in added for part in addition.brief]
    curves = list(brief)
    rows = _agreeing([line for row in analysis.rows if not row.swept for line in _lines(row, analysis)])
    # Marks that every row has are explained once, below.
    shared = set.intersection(*(set(line.verdict.words[1:]) for line in rows)) if len(rows) > 1 else set()
    width = max(width, _LEAST_WIDTH)
    kept, flowing, cut = list(rows), False, 0
    while True:
        blocks = [*_blocks(kept, shared, width)]
        body = [*top, *curves, *blocks, *_legend(kept, shared, width, flowing=flowing)]
        if len(curves) < len(brief):
            hidden = counted(len(brief) - len(curves), "more curve")
            body.append(Text(f"{hidden}: -v shows them"))
        if cut:
            body.append(Text(f"{counted(cut, 'more line')}: -v shows them"))
        if len(kept) < len(rows):
            body.append(Text(f"{_hidden([line for line in rows if line not in kept])}: -v"))
        shown = Text("\n").join([*body, *bottom])
        excess = shown.plain.count("\n") + 1 - lines
        if excess <= 0 or cut or len(kept) + len(curves) <= (0 if curves else 1):
            return shown
        if flowing and len(curves) > 1:
            curves.pop()
        elif flowing and kept:
            # Of equals the last one: what was asked for first is shown first.
            kept.remove(min(reversed(kept), key=lambda line: (not line.agrees, line.strength)))
        elif flowing:
            whole = curves[0].split("\n")
            cut = min(excess + 1, len(whole) - _LEAST_CURVE)
            if cut <= 0:
                return shown
            curves = [Text("\n").join(whole[:-cut])]
        flowing = True


def _hidden(lines: Sequence[_Line]) -> str:
    """Return what is not shown: `3 more rows: 2 that agree with those above, 1 inconclusive`."""
    kinds = {
        "that agree with others of their task": sum(line.agrees for line in lines),
        "inconclusive": sum(not line.agrees and line.mde_percent is not None for line in lines),
    }
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    return f"{counted(len(lines), 'more row')}{f' ({told})' if told else ''}"


def _top(analysis: Analysis, plan: Plan | None, width: int) -> list[Text]:
    """Return what was compared, the verdict, and what was asked for."""
    top = [paragraph(headline(analysis), width, style="bold"), Text()]
    top += [paragraph(verdict(analysis), width, style="bold"), Text()]
    if plan is not None and plan.load_hosts:
        top[-1:-1] = [paragraph(f"load from {', '.join(plan.load_hosts)}", width, lead="Hosts  ")]
    if plan is not None and plan.stop is not None:
        ended = decide(analysis.rows, plan.stop, min(analysis.forks.values(), default=0), plan.forks).text
        top[-1:-1] = [paragraph(ended, width, lead="Goal  ")] if ended else []
    return top


def _bottom(
    analysis: Analysis,
    plan: Plan | None,
    width: int,
    more: str,
    runs: Path | None,
) -> list[Text]:
    """Return what to run next, and where there is more."""
    bottom: list[Text] = []
    following = None if plan is None else next_command(analysis, plan)
    if following is not None:
        line = [*shlex.split(following.line), *([] if runs is None else ["--runs", str(runs)])]
        bottom.append(Text(visible("\n".join([f"{following.purpose}:", *command_lines(line, width)]))))
    if more:
        bottom.append(Text(visible(f"Details: {more}")))
    return bottom


def _agreeing(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines, those marked whose verdict one of the same task has above."""
    seen: set[tuple[str, str, str]] = set()
    marked = []
    for line in lines:
        told = (line.block[0], line.name, line.verdict.words[0].split(" ")[0])
        marked.append(msgspec.structs.replace(line, agrees=line.verdict.verdict is not None and told in seen))
        seen.add(told)
    return marked


def _lines(row: Row, analysis: Analysis) -> Iterator[_Line]:
    name, unit = visible(analysis.where(row)), visible(f"{metric_title(row)}, {row.unit}")
    if row.level == "build":
        name, unit = visible(line_name(row)), "index builds"
    sides = {side.variant: side for side in row.figures}
    short = _headings(analysis.variants)
    if not row.comparisons:
        only = row.figures[0]
        figures = (value_text(only), cv_text(only))
        marks = judged(None, "", *_marks(row, None))
        of = "builds" if row.level == "build" else "forks"
        strength = (row.metric == REDLINE.key, 0.0)
        headers = (short[only.variant], f"CV of {of}" if figures[1] else "")
        yield _Line(("", unit), headers, name, figures, marks, strength)
    for comparison in row.comparisons:
        word = _WORDS.get(comparison.verdict) or said(comparison, comparison.verdict).upper()
        word += f"{'?' if comparison.provisional else ''}{missed(comparison)}"
        if comparison.verdict == "inconclusive" and comparison.mde_percent is not None:
            large = comparison.mde_percent > _LARGE_PERCENT
            word += f" (detects {f'over {_LARGE_PERCENT}' if large else rough(comparison.mde_percent)}%)"
        yield _Line(
            block=(comparison.contender, unit),
            headers=(
                short[comparison.baseline],
                short[comparison.contender],
                _change_header(row, comparison),
                "95% CI",
                "p",
            ),
            name=name,
            figures=(
                value_text(sides[comparison.baseline], comparison),
                value_text(sides[comparison.contender], comparison),
                _change(comparison, row.figures),
                _interval(comparison, row.figures),
                p_value(comparison.p_adjusted),
            ),
            verdict=judged(comparison.verdict, word, *_marks(row, comparison)),
            # Of what never happened on either side there is nothing to see.
            strength=(
                row.metric == REDLINE.key
                or (
                    comparison.verdict in DECIDED
                    and any((comparison.baseline_value, comparison.contender_value))
                ),
                _size(comparison.effect_percent or 0.0),
            ),
            mde_percent=comparison.mde_percent if comparison.verdict == "inconclusive" else None,
        )


def _marks(row: Row, comparison: Comparison | None) -> list[str]:
    """The most important first."""
    sides = [
        side
        for side in row.figures
        if comparison is None or side.variant in (comparison.baseline, comparison.contender)
    ]
    trends = {side.steady.trend for side in sides}
    found = {_OF_CAVEATS[doubt.code] for doubt in row.caveats if doubt.code in _OF_CAVEATS}
    found -= set() if any(side.at_least for side in sides) else {"bound"}
    found |= {_OF_TRENDS[trend] for trend in trends if trend}
    if comparison is not None and comparison.few and all(comparison.replicates):
        found.add("few")
    return [mark for mark in MARKS if mark in found]


def _blocks(lines: Sequence[_Line], shared: Collection[str], width: int) -> Iterator[Text]:
    """A table a metric and contender; their columns line up."""
    if not lines:
        return
    heads = {line.block: _cells(line.block[1], *line.headers, "") for line in lines}
    rows = [
        (line.block, (*_cells(line.name, *line.figures), _judged(line.verdict, shared))) for line in lines
    ]
    # Titles stay whole.
    name = Column("", "name", max(_LEAST_NAME, *(len(title) for _, title in heads)))
    columns = (name, *(Column("") for _ in lines[0].headers), worded(""))
    layout = Layout.of(columns, [*heads.values(), *(row for _, row in rows)], width)
    for block, head in heads.items():
        yield from layout.rows(head, style="bold")
        for row in (row for of, row in rows if of == block):
            yield from layout.rows(row)
        yield Text()


def _cells(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell((text,)) for text in texts)


def _judged(cell: Cell, shared: Collection[str]) -> Cell:
    return judged(cell.verdict, " ".join(word for word in cell.words if word and word not in shared))


def _legend(
    lines: Sequence[_Line],
    shared: Collection[str],
    width: int,
    *,
    flowing: bool,
) -> Iterator[Text]:
    """Yield what the words and marks of these lines mean, one a line or `flowing`."""
    words = [*shared, *(word for line in lines for word in line.verdict.words)]
    meanings = {
        mark: MARKS[mark] for mark in MARKS if mark in words and (mark not in _PLAIN or mark in shared)
    }
    listed = [("all" if mark in shared else mark, *meaning) for mark, meaning in meanings.items()]
    if any("(misses " in word for word in words):
        yield paragraph(MISSES, width, lead="misses  ")
    if flowing and listed:
        short = (f"{mark}: {what}" for mark, what, _ in listed)
        yield paragraph("; ".join(short), width)
    else:
        yield from (paragraph(f"{what}: {more}", width, lead=f"{mark}  ") for mark, what, more in listed)


def _headings(variants: Sequence[str]) -> dict[str, str]:
    """Variant -> heading of its column, short where that tells it from the others."""
    half = _LONGEST_VARIANT // 2
    names = {variant: visible(variant) for variant in variants}
    short = {
        variant: name if len(name) <= _LONGEST_VARIANT else f"{name[: half - 1]}…{name[-half:]}"
        for variant, name in names.items()
    }
    return short if len({*short.values()}) == len(short) else names


def _size(percent_off: float) -> float:
    """Size of a ratio, in either direction: half as much is as far as twice as much."""
    return abs(math.log(max(1 + percent_off / 100, 1e-9)))


def _change_header(row: Row, one: Comparison) -> str:
    in_unit = one.compared_as == "difference" and row.level == "task"
    return f"change, {row.unit}" if in_unit else "change"


def _change(one: Comparison, sides: Sequence[Figures]) -> str:
    text, _ = change_cells(one, sides)
    return text if one.compared_as == "difference" or text == NOT_AVAILABLE else f"{text}%"


def _interval(one: Comparison, sides: Sequence[Figures]) -> str:
    """Integer per cent from ten on: an interval's ends are not known better."""
    if bound_mark(one, sides) or one.gapped:
        return NOT_AVAILABLE
    if one.compared_as == "difference":
        if one.difference_low is None:
            return "n/a"
        return f"{signed_figure(one.difference_low)}..{signed_figure(one.difference_high)}"
    if one.low_percent is None:
        return "n/a"
    low, high = (
        "" if end is None or is_floor(end) else signed_percent(end, decimals(end))
        for end in (one.low_percent, one.high_percent)
    )
    # An end that says nothing, or next to nothing, is none.
    if not high or (one.high_percent or 0.0) > _ABSURD_PERCENT:
        low, high = "" if low == "-100" else low, ""
    if low and high:
        return f"{low}..{high}%"
    return f"over {low}%" if low else f"up to {high}%" if high else "unbounded"
