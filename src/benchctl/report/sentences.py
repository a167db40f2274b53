"""Sentences of a report: the comparison, the reportable verdict, and how to read it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, get_args

from benchctl.quantities import COUNT
from benchctl.report.layout import MISSES, each_count, marked_word, metric_title, paired_points
from benchctl.report.numbers import (
    counted,
    figure,
    interval,
    p_value,
    rough,
    signed_percent,
)
from benchctl.report.table import Addition, Notes
from benchctl.slices import hooks
from benchctl.stats.analysis import Analysis, Row, Trend, quotable, too_few
from benchctl.stats.caveat import Replicate
from benchctl.stats.compare import Comparison, Verdict
from benchctl.stats.metrics import HELD, INDEX_BUILDS, QUALITY, metric_of

_TESTED_OVER: Mapping[Replicate, tuple[str, str]] = {
    "fork": ("blocks", "forks"),
    "build": ("pairs of index builds", "index builds"),
    "run": ("pairs of runs", "runs"),
}


def comparison_text(row: Row, one: Comparison) -> str:
    """Return `es 15,601, os 14,949 docs/s: -4.2% (-8.1 to +0.2), p 0.051, inconclusive`."""
    means = f"{one.baseline} {figure(one.baseline_value)}, {one.contender} {figure(one.contender_value)}"
    values = f"{means} {row.unit}"
    word = marked_word(one)
    if one.effect_percent is None:
        return f"{values}: {word}"
    reach = "" if one.low_percent is None else f" ({interval(one.low_percent, one.high_percent)})"
    return f"{values}: {signed_percent(one.effect_percent)}%{reach}, p {p_value(one.p_adjusted)}, {word}"


_MOST_NAMED = 3
_NAMED = {
    "slower": "slower{}{by} on",
    "faster": "faster{}{by} on",
    "mixed": "faster{} by one metric and slower by another{which} on",
    "different": "different{}{by}, perhaps by too little to matter, on",
}
_NAMED_HELD = {
    "slower": "heavier{} on",
    "faster": "lighter{} on",
    "mixed": "lighter{} by one metric and heavier by another on",
}
_DIRECTED = ("slower", "faster")
_ABSURD_PERCENT, _NOTHING = 10_000, -99.9
_THAN = {"different": "from"}
_MANNERS = ("", "provisionally ")
_COUNTED = {
    "equivalent": "equal within the margin",
    "inconclusive": "inconclusive",
    "n/a": "without a verdict",
}


def additions(analysis: Analysis, notes: Notes | None = None) -> list[Addition]:
    """Return what slices add to a report; `notes` are those that its tables are numbered by."""
    return [addition for report in hooks("report") if (addition := report(analysis, notes)) is not None]


def headline(analysis: Analysis) -> str:
    """Return `big5rangedebug: os 2.11.0 vs es 8.11.0 (baseline), 10 forks each, 500k documents`."""
    sections = analysis.compared_sections or analysis.sections
    names = list(dict.fromkeys(section.challenge for section in sections if section.level == "task"))
    variants: Iterable[str] = analysis.variants
    size = f", {COUNT.text(analysis.documents)} documents" if analysis.documents else ""
    if analysis.curves:
        names = list(dict.fromkeys(curve.challenge for curve in analysis.curves))
        variants = dict.fromkeys(line.variant for curve in analysis.curves for line in curve.lines)
    versions = {name: analysis.versions.get(name, "") for name in variants}
    baseline, *others = (
        name if not version or version in name else f"{name} {version}" for name, version in versions.items()
    )
    who = f"{listed(others)} vs {baseline} (baseline)" if others else baseline
    on = {
        side.variant: len({*side.units}) for row in analysis.task_rows for side in row.figures if side.units
    }
    found = [each_count(analysis, analysis.forks, "fork")] if names else []
    if on and analysis.replicate == "run":
        found.insert(0, each_count(analysis, on, "run"))
    elif on and not analysis.builds:
        found[-1] += f" on {counted(max(on.values()), 'index build')}"
    found += [each_count(analysis, analysis.builds, "index build")] if analysis.builds else []
    return f"{listed(names or [INDEX_BUILDS])}: {who}, {', '.join(found) or 'not measured'}{size}"


def goes_by_task(analysis: Analysis) -> bool:
    """Return whether the verdict goes through tasks, and does not only count over the points of curves."""
    return any(row.comparisons and not row.swept for row in analysis.rows) and not paired_points(analysis)


def verdict(analysis: Analysis) -> str:
    """Return the first sentences of a report: what differs, is equal or inconclusive, and the warnings.

    A verdict that is provisional is called so, and takes nothing away from others.
    """
    found = [sentence for addition in additions(analysis) for sentence in addition.answer]
    busy = busy_text(analysis)
    looks = _only_provisional(analysis)
    if not any(analysis.forks.values()) and not analysis.build_rows:
        found = found or ["Nothing was measured: no fork was finished."]
    elif (goes_by_task(analysis) or not found) and analysis.task_rows:
        found += [_about(contender, analysis, looks=looks) for contender in analysis.variants[1:]]
    found += filter(None, (_about_builds(contender, analysis) for contender in analysis.variants[1:]))
    if not found:
        alone = map(_sentence, _stalls(analysis, analysis.rows))
        found = [*alone, "One variant: there is nothing to compare it with."]
    lead = "PROVISIONAL: " if looks else "NO CONCLUSION: " if busy and len(analysis.variants) > 1 else ""
    if busy:
        # What else is doubtful may be its doing.
        found.insert(0, f"the host was busy. {busy} More documents or forks will not help.")
    else:
        reasons = list(_reservations(analysis, _provisional(analysis)))
        if reasons:
            why = "; ".join(reasons)
            found.append(f"{_sentence(why)} Do not report these values." if looks else f"Provisional: {why}.")
        else:
            found += map(_sentence, _reservations(analysis, _unready(analysis)))
    found[0] = f"{lead}{found[0]}" if lead else f"{found[0][:1].upper()}{found[0][1:]}" if busy else found[0]
    found += _unsound(analysis)
    return " ".join(found)


def busy_text(analysis: Analysis) -> str:
    """Return what others used during the forks, as a sentence; empty if the host was quiet."""
    doubts = (*(doubt for row in analysis.rows for doubt in row.caveats), *analysis.caveats)
    return next((_sentence(doubt.text) for doubt in doubts if doubt.code == "busy-host"), "")


def _only_provisional(analysis: Analysis) -> bool:
    """Return whether there are differences, of which none is to be reported."""
    sized = [
        comparison
        for row in analysis.task_rows
        for comparison in row.comparisons
        if comparison.verdict in SIZED
    ]
    return bool(sized) and all(comparison.provisional for comparison in sized)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _about(contender: str, analysis: Analysis, *, looks: bool) -> str:
    tasks: dict[str, list[Comparison]] = {}
    # What nodes hold is in the sentence only where nothing else was asked for.
    fast = [row for row in analysis.task_rows if row.metric not in HELD]
    named = _NAMED if fast else {**_NAMED, **_NAMED_HELD}
    for row in fast or analysis.task_rows:
        own = [comparison for comparison in row.comparisons if comparison.contender == contender]
        tasks.setdefault(analysis.where(row), []).extend(own)
    outcomes = {name: _outcome(comparisons) for name, comparisons in tasks.items()}
    deciding = {name: _unusual(tasks[name]) for name in tasks} if fast else {}
    every, baseline = counted(len(tasks), "task"), analysis.variants[0]
    parts: list[str] = []
    for manner, (outcome, words) in product(_MANNERS, named.items()):
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in (name for name, found in outcomes.items() if found == (outcome, manner)):
            groups.setdefault(deciding.get(name, ()), []).append(name)
        for metrics, names in groups.items():
            than = "" if parts else f" {_THAN.get(outcome, 'than')} {baseline}"
            where = listed(names) if len(names) < _MOST_NAMED else f"{len(names)} of {every}"
            by, which = (f" by {listed(metrics)}", f" ({listed(metrics)})") if metrics else ("", "")
            how = "" if looks else manner
            if outcome in _DIRECTED and len(names) < _MOST_NAMED:
                for name in names:
                    size, reach = _sized(tasks[name], outcome, manner)
                    parts.append(f"{how}{size}{words.format(than, by=by)} {name}{reach}")
                    than = ""
            else:
                parts.append(f"{how}{words.format(than, by=by, which=which)} {where}")
    if not parts and len(outcomes) == 1 and len(fast or analysis.rows) > 1:
        return _by_metric(contender, analysis, fast or analysis.rows)
    counts = Counter(outcomes.values())
    rest = [
        f"{count} {manner}{words}"
        for (outcome, words), manner in product(_COUNTED.items(), _MANNERS)
        if (count := counts[_Outcome(outcome, manner)])
    ]
    if parts:
        differences = " and ".join(parts) if len(parts) < _MOST_NAMED else "; ".join(parts)
        others = ", ".join(rest)
        number, _, words = others.partition(" ")
        others = f" {counted(int(number), 'task')} {words}." if others else ""
        return f"{contender} {'looks' if looks else 'is'} {differences}.{others}"
    return f"{contender} vs {baseline}, {every}: {', '.join(rest)}."


def _sized(comparisons: Sequence[Comparison], outcome: str, manner: str) -> tuple[str, str]:
    """Return `21% ` and ` (95% CI: 19 to 24%)` of the first metric that shows a task's outcome."""
    one = next(
        comparison
        for comparison in comparisons
        if comparison.verdict == outcome and comparison.provisional == bool(manner)
    )
    if one.effect_percent is None or one.compared_as == "difference":
        return "", ""
    size = rough(abs(one.effect_percent))
    ends = sorted(abs(end) for end in (one.low_percent, one.high_percent) if end is not None)
    if len(ends) < len(("low", "high")) or ends[1] >= _ABSURD_PERCENT or (one.low_percent or 0.0) <= _NOTHING:
        return f"{size}% ", ""
    where = "" if one.higher_is_better else f" in {metric_of(one.metric).title}"
    return f"{size}% ", f"{where} (95% CI: {rough(ends[0])} to {rough(ends[1])}%)"


class _Outcome(NamedTuple):
    """Joint result of a task's metrics."""

    word: str  # a verdict, or `mixed`
    manner: str  # of `_MANNERS`


def _about_builds(contender: str, analysis: Analysis) -> str:
    """`Index builds of os against es: slower? in CPU; inconclusive in docs/s; equal in size.`."""
    told: dict[str, list[str]] = {}
    baseline = ""
    for row in analysis.build_rows:
        for comparison in row.comparisons:
            if comparison.contender == contender:
                baseline = comparison.baseline
                size = (
                    f" ({signed_percent(comparison.effect_percent)}%)" if comparison.verdict in SIZED else ""
                )
                word = marked_word(comparison)
                word = _COUNTED["n/a"] if word in {"n/a", "insufficient"} else word
                told.setdefault(word, []).append(f"{metric_title(row)}{size}")
    if not told:
        return ""
    parts = [f"{word} in {listed(names)}" for word, names in told.items()]
    return f"Index builds of {contender} against {baseline}: {'; '.join(parts)}."


SIZED: frozenset[Verdict] = frozenset({"faster", "slower", "different"})


def _by_metric(contender: str, analysis: Analysis, rows: Sequence[Row]) -> str:
    """Of the only task, where no metric shows a difference, metrics with the same outcome together."""
    titles: dict[_Outcome, list[str]] = {}
    for row in rows:
        outcome = _outcome(
            [comparison for comparison in row.comparisons if comparison.contender == contender]
        )
        titles.setdefault(outcome, []).append(metric_title(row))
    told = (f"{manner}{_COUNTED[word]} by {listed(names)}" for (word, manner), names in titles.items())
    return f"{contender} vs {analysis.variants[0]} on {analysis.where(rows[0])}: {', '.join(told)}."


def _unusual(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """The metrics that show a difference of a task, if who reads `slower` would not think of any of them."""
    kinds = [metric_of(comparison.metric).kind for comparison in comparisons if comparison.verdict in SIZED]
    usual = all(figure.name not in QUALITY for figure in kinds) and any(
        figure.usual or figure.loop == "search" for figure in kinds
    )
    return () if usual else tuple(dict.fromkeys(figure.title for figure in kinds))


def _outcome(comparisons: Sequence[Comparison]) -> _Outcome:
    """Of one task over its metrics; what a metric leaves open does not undo what another one shows."""
    firm = {comparison.verdict for comparison in comparisons if not comparison.provisional}
    for found in (firm, {comparison.verdict for comparison in comparisons}):
        if {"faster", "slower"} <= found:
            return _Outcome("mixed", _MANNERS[found is not firm])
        decided = [verdict for verdict in ("slower", "faster", "different") if verdict in found]
        if decided:
            return _Outcome(decided[0], _MANNERS[found is not firm])
    word = next((verdict for verdict in ("inconclusive", "equivalent") if verdict in found), "n/a")
    return _Outcome(word, _MANNERS[word == "equivalent" and word not in firm])


_Pairs = Sequence[tuple[Row, Comparison]]


def _provisional(analysis: Analysis) -> _Pairs:
    rows = analysis.rows
    return [(row, comparison) for row in rows for comparison in row.comparisons if comparison.provisional]


def _unready(analysis: Analysis) -> _Pairs:
    """Inconclusive rows that more forks or warm-up may change, of tasks without a provisional verdict."""
    told = {analysis.where(row) for row, _ in _provisional(analysis)}
    return [
        (row, one)
        for row in analysis.rows
        for one in row.comparisons
        if one.verdict == "inconclusive" and analysis.where(row) not in told
        if not quotable(one, row.figures)
    ]


def _reservations(analysis: Analysis, doubtful: _Pairs) -> Iterator[str]:
    """Yield why these verdicts are provisional, or these rows not to be relied on."""
    tasks = {analysis.where(row) for row in analysis.task_rows}
    yield from _stalls(analysis, [row for row, _ in doubtful])
    for trend in get_args(Trend):
        rows = [row for row, _ in doubtful if any(side.steady.trend == trend for side in row.figures)]
        names = list(dict.fromkeys(analysis.where(row) for row in rows))
        if names:
            where = listed(names) if len(names) == 1 else f"{len(names)} of {len(tasks)} tasks"
            yield f"{'still warming up' if trend == 'not warmed up' else trend} on {where}"
    yield from dict.fromkeys(too_few(one) for _, one in doubtful if one.few)


def _stalls(analysis: Analysis, rows: Iterable[Row]) -> Iterator[str]:
    stalled = {
        analysis.where(row): max(side.stalled for side in row.figures)
        for row in rows
        if any(side.stalled for side in row.figures)
    }
    if stalled:
        share = f"stalls took up to {100 * max(stalled.values()):.0f}% of the time"
        yield f"{share} on {listed(list(stalled))}"


def _unsound(analysis: Analysis) -> Iterator[str]:
    """Failed requests or different answers: no verdict may stand without that."""
    for doubt in analysis.caveats:
        if doubt.code in {"failed-forks", "other-tasks", "test-mode", "unfinished", "unlike"}:
            yield _sentence(doubt.text)
    if analysis.replicate == "run":
        yield "Runs count, not forks: host, day and index build differ from run to run."
    if any(doubt.code == "not-restarted" for doubt in analysis.caveats):
        yield "Nodes were not restarted between forks."
    for codes, text in (
        ({"counted-less"}, "Something other than the nodes answered searches of {}."),
        ({"failures"}, "Requests failed on {}."),
        ({"hits-changed"}, "The same requests matched different documents on {}."),
        ({"nothing-found"}, "Searches found nothing on {}."),
        ({"answers-differ"}, "Search results differ on {}."),
    ):
        rows = [row for row in analysis.rows if any(doubt.code in codes for doubt in row.caveats)]
        names = list(dict.fromkeys(analysis.where(row) for row in rows))
        if names:
            yield text.format(listed(names))


def listed(names: Sequence[str]) -> str:
    """Return `a, b and c`; of many, the first and how many more."""
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def legend(analysis: Analysis) -> list[str]:
    """Return how to read the tables."""
    counts = ", ".join(f"{name} {count}" for name, count in analysis.forks.items())
    lines = [f"Values: geometric means over forks ({counts})."] if analysis.task_rows else []
    if analysis.redline is not None:
        lines.append(
            "A fork's other figures are those of its last step at the red-line, when its node is warmest; in "
            "curves, a fork counts with the median of its steps at a load."
        )
    if len(analysis.variants) > 1 and analysis.task_rows:
        comparisons = [comparison for row in analysis.task_rows for comparison in row.comparisons]
        units = _TESTED_OVER[analysis.replicate]
        baseline = "the first one at the same point" if paired_points(analysis) else analysis.variants[0]
        test = f"paired t over {units[0]}" if analysis.paired else f"Welch's t over {units[1]}"
        lines.append(
            f"Diff %: variant / {baseline} - 1. Interval and p: {test}, on logarithms; intervals "
            f"are unadjusted, p is adjusted {adjustment(analysis)}{in_spite_of_looks(comparisons)}."
        )
    if analysis.build_rows:
        lines.append(builds_legend(analysis))
    comparisons = [comparison for row in analysis.rows for comparison in row.comparisons]
    if any(comparison.compared_as == "difference" for comparison in comparisons):
        lines.append("Differences: of arithmetic means; p and interval on the values, not on logarithms.")
    elif any(metric_of(row.metric).additive for row in analysis.rows):
        lines.append(
            "What may be 0, such as pauses: arithmetic means; p on the values themselves, Fieller's interval."
        )
    if any(comparison.missed_percent is not None for comparison in comparisons):
        lines.append(f"Misses: {MISSES}.")
    return [*lines, *(f"{line}." for line in analysis.differences)]


def builds_legend(analysis: Analysis) -> str:
    """Return how to read the table of index builds."""
    comparisons = [comparison for row in analysis.build_rows for comparison in row.comparisons]
    if not comparisons:
        return "Index builds: geometric means over builds."
    made = (
        "paired t over builds, which were made in turns" if comparisons[0].paired else "Welch's t over builds"
    )
    usual = sum(metric_of(row.metric).kind.usual for row in analysis.build_rows)
    rows = (
        f"its first {usual} rows, and over the others" if 0 < usual < len(analysis.build_rows) else "its rows"
    )
    family = adjustment(analysis) if analysis.method == "holm" else f"over {rows} (Benjamini-Hochberg)"
    return f"Index builds: geometric means over builds; {made}, on logarithms; p is adjusted {family}."


def in_spite_of_looks(comparisons: Iterable[Comparison]) -> str:
    """Return how interval and p allow for looks at a run before its end; empty if there were none."""
    seen = {comparison.looks for comparison in comparisons}
    if None in seen:
        return "; both hold however often the run was looked at (mixture t-test)"
    looks = max((looks for looks in seen if looks is not None), default=1)
    factor = 2 ** (looks - 1)
    confidence = f"{100 - 5 / factor:.6g}%"
    return (
        f"; both allow for {looks} looks: p is times {factor}, intervals are at {confidence}"
        if looks > 1
        else ""
    )


def adjustment(analysis: Analysis) -> str:
    """Return the family over which p-values are adjusted, and the method."""
    if analysis.method == "holm":
        return "over all tasks and metrics (Holm)"
    return "over all tasks of its metric (Benjamini-Hochberg)"
