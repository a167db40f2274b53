"""What was compared, and what came of it, in a sentence or two that may be quoted."""

from collections import Counter
from collections.abc import Iterator, Sequence

from benchctl.report.layout import task_name
from benchctl.report.numbers import counted, documents
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import CaveatCode
from benchctl.stats.compare import DECIDED, FORKS_FOR_QUOTING, Comparison

_MOST_NAMED = 3
_NAMED = {
    "slower": "slower{} on",
    "faster": "faster{} on",
    "mixed": "faster{} by one metric and slower by another on",
    "different": "different{}, perhaps by too little to matter, on",
}
_DESIGNS: dict[CaveatCode, str] = {
    "imported": "Measured by another tool.",
    "separate-runs": "From several runs, which did not take turns.",
    "not-restarted": "Nodes were not restarted between forks.",
}
_THAN = {"different": "from"}
_COUNTED = {
    "equivalent": "equal within the margin",
    "inconclusive": "inconclusive",
    "n/a": "without a verdict",
}


def headline(analysis: Analysis) -> str:
    """`big5rangedebug: os 2.11.0 vs es 8.11.0 (baseline), 10 forks each, 500k documents`."""
    names = list(dict.fromkeys(section.challenge for section in analysis.sections))
    baseline, *others = (_versioned(name, analysis) for name in analysis.variants)
    who = f"{_listed(others)} vs {baseline} (baseline)" if others else baseline
    counts = set(analysis.forks.values())
    forks = (
        f"{counted(counts.pop(), 'fork')}{' each' if others else ''}"
        if len(counts) == 1
        else f"forks: {', '.join(f'{name} {count}' for name, count in analysis.forks.items())}"
    )
    size = f", {documents(analysis.documents)} documents" if analysis.documents else ""
    return f"{_listed(names)}: {who}, {forks}{size}"


def verdict_sentence(analysis: Analysis) -> str:
    """Task by task over all metrics: differences, what is equal, what is open, and why not to rely on it.

    Begins with `provisional` when a verdict is.
    """
    if len(analysis.variants) == 1:
        found = ["One variant: there is nothing to compare it with."]
    else:
        found = [_about(contender, analysis) for contender in analysis.variants[1:]]
    provisional = any(one.provisional for row in analysis.rows for one in row.comparisons)
    found += [*_reservations(analysis)] if provisional else []
    found += [*_order(analysis), *_unsound(analysis)]
    return f"{'provisional: ' if provisional else ''}{' '.join(found)}"


def _versioned(name: str, analysis: Analysis) -> str:
    version = analysis.versions.get(name, "")
    return name if not version or version in name else f"{name} {version}"


def _about(contender: str, analysis: Analysis) -> str:
    tasks: dict[str, list[Comparison]] = {}
    for row in analysis.rows:
        own = [one for one in row.comparisons if one.contender == contender]
        tasks.setdefault(task_name(row, analysis), []).extend(own)
    outcomes = {name: _outcome(comparisons) for name, comparisons in tasks.items()}
    every, baseline = counted(len(tasks), "task"), analysis.variants[0]
    parts: list[str] = []
    for outcome, words in _NAMED.items():
        names = [name for name, found in outcomes.items() if found == outcome]
        if names:
            than = "" if parts else f" {_THAN.get(outcome, 'than')} {baseline}"
            where = _listed(names) if len(names) < _MOST_NAMED else f"{len(names)} of {every}"
            parts.append(f"{words.format(than)} {where}")
    counts = Counter(outcomes.values())
    rest = [f"{counts[outcome]} {words}" for outcome, words in _COUNTED.items() if counts[outcome]]
    if parts:
        return f"{contender} is {'; '.join([*parts, *([', '.join(rest)] if rest else [])])}."
    return f"{contender} vs {baseline}, {every}: {', '.join(rest)}."


def _outcome(comparisons: Sequence[Comparison]) -> str:
    """Of one task over its metrics; what a metric leaves open does not undo what another one shows."""
    found = {one.verdict for one in comparisons}
    if {"faster", "slower"} <= found:
        return "mixed"
    decided = [verdict for verdict in ("slower", "faster", "different") if verdict in found]
    if decided:
        return decided[0]
    return next((verdict for verdict in ("inconclusive", "equivalent") if verdict in found), "n/a")


def _reservations(analysis: Analysis) -> Iterator[str]:
    """Why verdicts are provisional."""
    tasks = {task_name(row, analysis) for row in analysis.rows}
    reasons = []
    for trend in ("not warmed up", "drifting"):
        rows = [
            row
            for row in analysis.rows
            if any(one.provisional for one in row.comparisons)
            and any(side.steady.trend == trend for side in row.figures)
        ]
        names = list(dict.fromkeys(task_name(row, analysis) for row in rows))
        if names:
            where = _listed(names) if len(names) == 1 else f"{len(names)} of {len(tasks)} tasks"
            reasons.append(f"{trend} on {where}")
    doubtful = [one for row in analysis.rows for one in row.comparisons if one.provisional]
    if few := [one for one in doubtful if min(one.replicates) < FORKS_FOR_QUOTING]:
        one = few[0]
        reasons.append(f"fewer than {FORKS_FOR_QUOTING} {one.replicate}s a side")
    yield f"Not to be quoted: {'; '.join(reasons)}."


def _order(analysis: Analysis) -> Iterator[str]:
    found = [
        one.operation for one in analysis.order_effects if one.comparison.verdict in DECIDED - {"equivalent"}
    ]
    if found:
        yield f"What had run before mattered on {_listed(list(dict.fromkeys(found)))}."


def _unsound(analysis: Analysis) -> Iterator[str]:
    """What fails, or answers something else, is not fast: no verdict may stand without that."""
    for doubt in analysis.caveats:
        if doubt.code in {"failed-forks", "unlike"}:
            yield f"{doubt.text[:1].upper()}{doubt.text[1:]}."
    general = {doubt.code for doubt in analysis.caveats}
    yield from (text for code, text in _DESIGNS.items() if code in general)
    for codes, text in (
        ({"failures"}, "Requests failed on {}."),
        ({"answers-differ", "answers-wrong"}, "Answers are not alike on {}."),
    ):
        rows = [row for row in analysis.rows if any(doubt.code in codes for doubt in row.caveats)]
        names = list(dict.fromkeys(task_name(row, analysis) for row in rows))
        if names:
            yield text.format(_listed(names))


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`; of many, the first and how many more."""
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
