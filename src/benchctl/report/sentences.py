"""Sentences of a report: the headline, the verdict that may be quoted, and how to read the tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

from benchctl.quantities import COUNT
from benchctl.report.layout import (
    adjustment_text,
    at_points,
    each_count,
    marked_word,
    misses,
    paired_points,
    said,
)
from benchctl.report.numbers import counted, rough, signed_percent
from benchctl.report.table import Addition, Notes
from benchctl.results.likeness import DIFFERENCES, DifferenceKind
from benchctl.slices import hooks
from benchctl.stats.analysis import Analysis, Row, Trend, too_few
from benchctl.stats.caveat import CaveatCode, Replicate
from benchctl.stats.compare import Comparison, Verdict
from benchctl.stats.metrics import HELD, INDEX_BUILDS, metric_of

SIZED: frozenset[Verdict] = frozenset({"faster", "slower", "different"})
_MOST_NAMED = 3
_MOST_DIFFERENCES = 5
_ABSURD_PERCENT, _NOTHING = 10_000, -99.9
_MIXED = "faster by one metric and slower by another"
_COUNTED = {
    "equivalent": "equal within the margin",
    "inconclusive": "inconclusive",
    "n/a": "without a verdict",
}
# What no verdict may stand without: of the run, and of tasks.
_OF_THE_RUN = frozenset({"failed-forks", "other-tasks", "test-mode", "unfinished", "unlike"})
_OF_TASKS: dict[CaveatCode, str] = {
    "counted-less": "Something other than the nodes answered searches of {}.",
    "failures": "Requests failed on {}.",
    "hits-changed": "The same requests returned different results on {}.",
    "nothing-found": "Searches found nothing on {}.",
    "answers-differ": "Search results differ on {}.",
}
_TESTED_OVER: Mapping[Replicate, tuple[str, str]] = {
    "fork": ("blocks", "forks"),
    "build": ("pairs of index builds", "index builds"),
    "run": ("pairs of runs", "runs"),
}


def additions(analysis: Analysis, notes: Notes | None = None) -> list[Addition]:
    """Return what slices add to a report; `notes` are those that its tables are numbered by."""
    return [addition for report in hooks("report") if (addition := report(analysis, notes)) is not None]


def headline(analysis: Analysis) -> str:
    """Return `big5rangedebug: os 2.11.0 vs es 8.11.0 (baseline), 10 forks each, 500k documents`."""
    sections = analysis.compared_sections or analysis.sections
    names = list(dict.fromkeys(section.challenge for section in sections if section.level == "task"))
    variants: Iterable[str] = analysis.variants
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
    size = f", {COUNT.text(analysis.documents)} documents" if analysis.documents else ""
    return f"{listed(names or [INDEX_BUILDS])}: {who}, {', '.join(found) or 'not measured'}{size}"


def verdict(analysis: Analysis) -> str:
    """Return the first sentences of a report: what differs, is equal or inconclusive, and the warnings.

    A verdict that is provisional is called so, and takes nothing away from others.
    """
    found = [sentence for addition in additions(analysis) for sentence in addition.answer]
    busy = _busy_text(analysis)
    sized = [one for row in analysis.task_rows for one in row.comparisons if one.verdict in SIZED]
    looks = bool(sized) and all(one.provisional for one in sized)
    # Not only over the points of curves.
    by_task = any(row.comparisons and not row.swept for row in analysis.rows) and not paired_points(analysis)
    if not any(analysis.forks.values()) and not analysis.build_rows:
        found = found or ["Nothing was measured: no fork was finished."]
    elif (by_task or not found) and analysis.task_rows:
        found += [_about(contender, analysis, looks=looks) for contender in analysis.variants[1:]]
    found += filter(None, (_about_builds(contender, analysis) for contender in analysis.variants[1:]))
    if not found:
        alone = map(_sentence, _stalls(analysis, analysis.rows))
        found = [*alone, "One variant: there is nothing to compare it with."]
    if busy:
        # What else is doubtful may be its doing.
        found.insert(0, f"The host was busy. {busy} More documents or forks will not help.")
    elif why := "; ".join(_reservations(analysis)):
        found.append(f"{_sentence(why)} Do not report these values." if looks else f"Provisional: {why}.")
    if looks or (busy and len(analysis.variants) > 1):
        found.insert(0, "PROVISIONAL:" if looks else "NO CONCLUSION:")
    return " ".join([*_chance(analysis), *found, *_unsound(analysis)])


def _chance(analysis: Analysis) -> Iterator[str]:
    """Yield that variants are the baseline again, and what would be called a difference all the same."""
    for contender in analysis.alike:
        cause = "no difference can be real here"
        if len(analysis.runs) > 1:
            cause = "only host, day or index build can make a difference"
        least = [
            (one.mde_percent, f"{metric_of(row.metric).title} of {analysis.where(row)}")
            for row in analysis.task_rows
            for one in row.comparisons
            if one.contender == contender and one.mde_percent is not None
        ]
        sizes = [
            f"{rough(size)}% ({where})" for size, where in ({min(least): 0, max(least): 0} if least else ())
        ]
        called = f"; this host would call one from {' to '.join(sizes)}" if sizes else ""
        yield f"A/A: {contender} is configured as {analysis.variants[0]}, so {cause}{called}."


def _busy_text(analysis: Analysis) -> str:
    """Return what others used during the forks, as a sentence; empty if the host was quiet."""
    doubts = (*(doubt for row in analysis.rows for doubt in row.caveats), *analysis.caveats)
    return next((_sentence(doubt.text) for doubt in doubts if doubt.code == "busy-host"), "")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


class _Outcome(NamedTuple):
    """Joint result of a task's metrics."""

    word: str  # a verdict, or `_MIXED`
    provisional: bool
    shown_by: Comparison | None = None  # the first metric that shows a difference


def _outcome(comparisons: Sequence[Comparison]) -> _Outcome:
    """Of one task over its metrics; what a metric leaves open does not undo what another one shows."""
    firm = [one for one in comparisons if not one.provisional]
    for provisional, own in ((False, firm), (True, comparisons)):
        first = {one.verdict: one for one in reversed(own)}
        if "faster" in first and "slower" in first:
            return _Outcome(_MIXED, provisional)
        for word in ("slower", "faster", "different"):
            if word in first:
                return _Outcome(word, provisional, first[word])
    verdicts = {one.verdict for one in comparisons}
    word = next((word for word in ("inconclusive", "equivalent") if word in verdicts), "n/a")
    return _Outcome(word, word == "equivalent" and not any(one.verdict == word for one in firm))


def _about(contender: str, analysis: Analysis, *, looks: bool) -> str:
    """Return `os is 21% slower than es on range (95% CI: 19 to 24%). 1 task equal within the margin.`."""
    tasks: dict[str, list[Comparison]] = {}
    # What nodes hold is in the sentence only where nothing else was asked for.
    rows = [row for row in analysis.task_rows if row.metric not in HELD] or analysis.task_rows
    for row in rows:
        own = [comparison for comparison in row.comparisons if comparison.contender == contender]
        tasks.setdefault(analysis.where(row), []).extend(own)
    groups: dict[tuple[bool, int, str, str], dict[str, Comparison | None]] = {}
    counts: Counter[tuple[str, bool]] = Counter()
    detectable = []  # per inconclusive task, percent, of the metric that shows most
    for name, comparisons in tasks.items():
        word, provisional, one = _outcome(comparisons)
        if word in _COUNTED:
            counts[word, provisional] += 1
            seen = [each.mde_percent for each in comparisons if each.verdict == "inconclusive"]
            detectable += [min(sizes)] if word == "inconclusive" and (sizes := [*filter(None, seen)]) else []
            continue
        order = ("slower", "faster", _MIXED, "different").index(word)
        shown, metric = (word, "") if one is None else (said(one, word), _metric_text(one))
        groups.setdefault((provisional, order, shown, metric), {})[name] = one
    parts: list[str] = []
    baseline, every = analysis.variants[0], counted(len(tasks), "task")
    for (provisional, _, word, metric), members in sorted(groups.items(), key=lambda item: item[0][:2]):
        how = "provisionally " if provisional and not looks else ""
        little = ", perhaps by too little to matter," if word == "different" else ""
        than = f" {'from' if little else 'than'} {baseline}"
        if len(members) < _MOST_NAMED and not little and word != _MIXED:
            for name, one in members.items():
                size, reach = _sized(one)
                parts.append(f"{how}{size}{word}{'' if parts else than} on {name}{metric}{reach}")
        else:
            where = f"all {every}" if len(members) == len(tasks) else f"{len(members)} of {every}"
            where = listed([*members]) if len(members) < _MOST_NAMED else where
            parts.append(f"{how}{word}{'' if parts else than}{little}{metric} on {where}")
    rest = [
        f"{counts[word, provisional]} {'provisionally ' if provisional else ''}{text}"
        f"{_detectable_text(detectable) if word == 'inconclusive' else ''}"
        for word, text in _COUNTED.items()
        for provisional in (False, True)
        if counts[word, provisional]
    ]
    if not parts:
        return f"{contender} vs {baseline}, {every}: {', '.join(rest)}."
    if any(one.of_index and one.kinds.get(contender) == "unasked" for one in analysis.differences):
        contender = f"{contender} as configured"
    differences = " and ".join(parts) if len(parts) < _MOST_NAMED else "; ".join(parts)
    number, _, words = ", ".join(rest).partition(" ")
    others = f" {counted(int(number), 'task')} {words}." if rest else ""
    return f"{contender} {'looks' if looks else 'is'} {differences}.{others}"


def _detectable_text(sizes: Sequence[float]) -> str:
    """Return ` (minimum detectable effect 12 to 15%)`; empty without any."""
    ends = dict.fromkeys(rough(end) for end in (min(sizes), max(sizes))) if sizes else {}
    return f" (minimum detectable effect {' to '.join(ends)}%)" if ends else ""


def _metric_text(one: Comparison) -> str:
    """Return by what a task differs, where `slower` alone would be read as throughput."""
    metric = metric_of(one.metric)
    return "" if metric.kind.counts else f" in {metric.title}"


def _sized(one: Comparison | None) -> tuple[str, str]:
    """Return `21% ` and ` (95% CI: 19 to 24%)`."""
    if one is None or one.effect_percent is None or one.compared_as == "difference":
        return "", ""
    size = rough(abs(one.effect_percent))
    ends = sorted(abs(end) for end in (one.low_percent, one.high_percent) if end is not None)
    if len(ends) < len(("low", "high")) or ends[1] >= _ABSURD_PERCENT or (one.low_percent or 0.0) <= _NOTHING:
        return f"{size}% ", ""
    return f"{size}% ", f" (95% CI: {rough(ends[0])} to {rough(ends[1])}%)"


def _about_builds(contender: str, analysis: Analysis) -> str:
    """`Index builds of os against es: slower? in CPU; inconclusive in docs/s; equal in size.`."""
    told: dict[str, list[str]] = {}
    own = [(row, one) for row in analysis.build_rows for one in row.comparisons if one.contender == contender]
    for row, one in own:
        size = f" ({signed_percent(one.effect_percent)}%)" if one.verdict in SIZED else ""
        word = marked_word(one)
        word = _COUNTED["n/a"] if word in {"n/a", "insufficient"} else word
        told.setdefault(word, []).append(f"{metric_of(row.metric).title}{size}")
    parts = [f"{word} in {listed(names)}" for word, names in told.items()]
    return f"Index builds of {contender} against {own[0][1].baseline}: {'; '.join(parts)}." if own else ""


def _reservations(analysis: Analysis) -> Iterator[str]:
    """Yield why verdicts are provisional."""
    doubtful = [(row, one) for row in analysis.rows for one in row.comparisons if one.provisional]
    tasks = {analysis.where(row) for row in analysis.task_rows}
    yield from _stalls(analysis, [row for row, _ in doubtful])
    for trend in get_args(Trend):
        rows = [row for row, _ in doubtful if any(side.steady.trend == trend for side in row.figures)]
        names = list(dict.fromkeys(analysis.where(row) for row in rows))
        if names:
            where = names[0] if len(names) == 1 else f"{len(names)} of {len(tasks)} tasks"
            yield f"{'still warming up' if trend == 'not warmed up' else trend} on {where}"
    yield from dict.fromkeys(too_few(one) for _, one in doubtful if one.few)


def _stalls(analysis: Analysis, rows: Iterable[Row]) -> Iterator[str]:
    shares = {analysis.where(row): max(side.stalled for side in row.figures) for row in rows}
    stalled = {name: share for name, share in shares.items() if share}
    if stalled:
        yield f"stalls took up to {100 * max(stalled.values()):.0f}% of the time on {listed([*stalled])}"


def _unsound(analysis: Analysis) -> Iterator[str]:
    """Yield that requests failed, or answers differ: no verdict may stand without that."""
    yield from (_sentence(doubt.text) for doubt in analysis.caveats if doubt.code in _OF_THE_RUN)
    if analysis.replicate == "run":
        yield "The unit is the run, not the fork: host, day and index build differ between runs."
    if any(doubt.code == "not-restarted" for doubt in analysis.caveats):
        yield "Nodes were not restarted between forks."
    for code, text in _OF_TASKS.items():
        rows = [row for row in analysis.rows if any(doubt.code == code for doubt in row.caveats)]
        if names := list(dict.fromkeys(analysis.where(row) for row in rows)):
            yield text.format(listed(names))


def listed(names: Sequence[str]) -> str:
    """Return `a, b and c`; of many, the first and how many more."""
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def legend(analysis: Analysis) -> list[str]:
    """Return how to read the tables."""
    lines = []
    compared = [one for row in analysis.task_rows for one in row.comparisons]
    if analysis.task_rows:
        counts = ", ".join(f"{name} {count}" for name, count in analysis.forks.items())
        lines.append(f"Values: geometric means over forks ({counts}).")
    if analysis.redline is not None:
        lines.append(
            "Other values of a fork are those of its last step at the red-line; in curves, a fork has the "
            "median of its steps at a rate."
        )
    if compared:
        pairs, units = _TESTED_OVER[analysis.replicate]
        baseline = "the first one at the same point" if paired_points(analysis) else analysis.variants[0]
        who = analysis.variants[1] if len(analysis.variants) == len(("one", "other")) else "the variant"
        test = f"paired t over {pairs}" if analysis.paired else f"Welch's t over {units}"
        lines.append(
            f"Diff %: {who} / {baseline} - 1; the verdict is about {who}. Interval and p: {test}, on "
            f"logarithms; {adjustment_text(compared, ' of each metric')}"
            f"{in_spite_of_looks(compared)}."
        )
    if analysis.build_rows:
        built = [one for row in analysis.build_rows for one in row.comparisons]
        test = "paired t over builds, which were made in turns" if built and built[0].paired else "Welch's t"
        tested = f"; {test}, on logarithms; {adjustment_text(built)}" if built else ""
        lines.append(f"Index builds: geometric means over builds{tested}.")
    comparisons = [one for row in analysis.rows for one in row.comparisons]
    if any(comparison.compared_as == "difference" for comparison in comparisons):
        lines.append(
            "Differences are of arithmetic means; p and interval are of the values, not of logarithms."
        )
    elif any(metric_of(row.metric).additive for row in analysis.rows):
        lines.append(
            "Metrics that may be 0, such as pauses: arithmetic means, p of the values, Fieller's interval."
        )
    return [
        *lines,
        *misses([*comparisons, *at_points(analysis)]),
        *(line for kind in DIFFERENCES if (line := _differing(analysis, kind))),
    ]


def in_spite_of_looks(comparisons: Iterable[Comparison]) -> str:
    """Return how interval and p allow for looks at a run before its end; empty if there were none."""
    seen = {comparison.looks for comparison in comparisons}
    if None in seen:
        return "; both hold however often results were analysed (mixture t-test)"
    looks = max((looks for looks in seen if looks is not None), default=1)
    if looks <= 1:
        return ""
    factor = 2 ** (looks - 1)
    confidence = f"{100 - 5 / factor:.6g}%"
    return f"; both allow for {looks} analyses: p is multiplied by {factor}, intervals are at {confidence}"


def unasked(analysis: Analysis) -> str:
    """Return what differs besides the variants' own change, in one line; empty for nothing."""
    found = [one for one in analysis.differences if one.kind == "unasked"]
    # Of a field of another type, everything else follows from that.
    typed = [
        one.what.removesuffix("type")
        for one in found
        if one.what.startswith("mapping:") and one.what.endswith(".type")
    ]
    shown = [one for one in found if one.what.endswith(".type") or not one.what.startswith(tuple(typed))]
    if not shown:
        return ""
    besides = (
        "the engine" if any(one.what == "engine" for one in analysis.differences) else "what variants specify"
    )
    more = f"; {len(found) - _MOST_DIFFERENCES} more: show --notes" if len(shown) > _MOST_DIFFERENCES else ""
    return f"Differ besides {besides}: {'; '.join(one.text() for one in shown[:_MOST_DIFFERENCES])}{more}."


def _differing(analysis: Analysis, kind: DifferenceKind) -> str:
    # The headline has engines and versions.
    own = [one for one in analysis.differences if one.kind == kind and one.what not in {"engine", "version"}]
    return f"Differences {DIFFERENCES[kind]}: {'; '.join(one.text() for one in own)}." if own else ""
