"""The verdicts in one plain paragraph: what can be told, what cannot, and what a reader must know of it."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from benchctl.report.layout import metric_title, task_name
from benchctl.report.numbers import counted, p_value, percent, signed_percent
from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.stats.analysis import Analysis, Row
from benchctl.stats.compare import Comparison

_MOST_NAMED = 6
_HUNDRED_PERCENT = 100.0

Pair = tuple[Row, Comparison]


def verdict_paragraph(analysis: Analysis) -> str:
    """All of `verdict_sentences` as one text."""
    return " ".join(verdict_sentences(analysis))


def conclusion(analysis: Analysis) -> str:
    """The same to begin a report with; empty where it says no more than that there is one variant."""
    sentences = verdict_sentences(analysis)
    return " ".join(sentences) if len(analysis.variants) > 1 or len(sentences) > 1 else ""


def verdict_sentences(analysis: Analysis) -> list[str]:
    """What was compared, the differences that were found, the rows that are alike or open, and doubts.

    Every row of the tables is in one of the sentences, by name or as one of a number.
    """
    pairs = [(row, comparison) for row in analysis.rows for comparison in row.comparisons]
    sentences = [_opening(analysis)]
    if pairs:
        sentences += _decided(pairs, analysis)
        sentences += _unclear(pairs, analysis)
        sentences += _equivalent(pairs, analysis)
        sentences += _open(pairs)
        sentences += _withheld(pairs)
    sentences += _orders(analysis)
    sentences += _unsettled(analysis)
    sentences += _unquiet(analysis)
    sentences += _unsound(analysis)
    return sentences


def _opening(analysis: Analysis) -> str:
    names = _listed([section.challenge for section in analysis.sections], _MOST_NAMED)
    forks = [f"{counted(count, 'fork')} of {name}" for name, count in analysis.forks.items()]
    ran = f"{names} ran in {_listed(forks, len(forks))}"
    if len(analysis.variants) == 1:
        return f"{ran}; with one variant there is nothing to compare."
    return f"{ran}{', compared as pairs within blocks' if analysis.paired else ''}."


def _decided(pairs: Sequence[Pair], analysis: Analysis) -> Iterator[str]:
    """`On range, os was slower than es: throughput 29.9 % lower (...).`, the largest differences first."""
    grouped: dict[tuple[int, int, str, str], list[Pair]] = {}
    for row, comparison in pairs:
        if comparison.verdict in {"faster", "slower"}:
            key = (row.schedule, row.task, comparison.contender, comparison.verdict)
            grouped.setdefault(key, []).append((row, comparison))
    ranked = sorted(grouped.values(), key=lambda group: -max(_size(one) for _, one in group))
    for group in ranked[:_MOST_NAMED]:
        row, first = group[0]
        yield (
            f"On {task_name(row, analysis)}, {first.contender} was {first.verdict} than {first.baseline}: "
            f"{_differences(group)}."
        )
    rest = ranked[_MOST_NAMED:]
    if rest:
        faster = sum(group[0][1].verdict == "faster" for group in rest)
        yield (
            f"{len(rest)} smaller differences were found, too: {faster} faster, {len(rest) - faster} slower "
            "(see the tables)."
        )


def _unclear(pairs: Sequence[Pair], analysis: Analysis) -> Iterator[str]:
    """Significant, but perhaps too small to matter."""
    found = [(row, one) for row, one in pairs if one.verdict == "different"]
    found.sort(key=lambda pair: -_size(pair[1]))
    for row, one in found[:_MOST_NAMED]:
        yield (
            f"On {task_name(row, analysis)}, {one.contender} was {one.direction} than {one.baseline}, but "
            f"perhaps by too little to matter: {_differences([(row, one)])}."
        )
    rest = len(found) - _MOST_NAMED
    if rest > 0:
        yield f"{rest} further differences are real and perhaps too small to matter."


def _equivalent(pairs: Sequence[Pair], analysis: Analysis) -> Iterator[str]:
    found = [(row, one) for row, one in pairs if one.verdict == "equivalent"]
    for title, group in _by(found, lambda pair: metric_title(pair[0])):
        names = list(dict.fromkeys(_subject(row, one, analysis) for row, one in group))
        margin = percent(group[0][1].margin_percent)
        which = _listed(names, _MOST_NAMED)
        yield f"In {title}, {which} made no difference beyond {margin} (equivalent)."


def _open(pairs: Sequence[Pair]) -> Iterator[str]:
    """What could not be told, and from which difference on this run could have told it."""
    for title, group in _by(pairs, lambda pair: metric_title(pair[0])):
        visible = [one.mde_percent for _, one in group if one.verdict == "inconclusive" and one.mde_percent]
        if not visible:
            continue
        low, high = percent(min(visible)), percent(max(visible))
        reach = low if low == high else f"{low} to {high}"
        yield (
            f"In {title}, nothing could be told {_on_how_many(len(visible), group)}, which does not mean "
            f"that they are alike: the least difference that four of five such runs would find is {reach}."
        )


def _on_how_many(count: int, group: Sequence[Pair]) -> str:
    """`on 2 of 3 tasks`; with several contenders, a task is compared with each."""
    judged = [pair for pair in group if _is_judged(pair[1])]
    noun = "task" if all(len(row.comparisons) == 1 for row, _ in judged) else "comparison"
    every = counted(len(judged), noun)
    if count < len(judged):
        return f"on {count} of {every}"
    return f"on the one {noun}" if count == 1 else f"on any of the {every}"


def _is_judged(one: Comparison) -> bool:
    return one.verdict not in {"n/a", "insufficient"}


def _withheld(pairs: Sequence[Pair]) -> Iterator[str]:
    withheld = [one for _, one in pairs if one.verdict in {"insufficient", "n/a"}]
    few = [
        one for one in withheld if one.verdict == "insufficient" and min(one.replicates) < FORKS_FOR_VERDICT
    ]
    if few:
        fewest = min(min(one.replicates) for one in few)
        built = any(one.replicate == "build" for one in few)
        yield (
            f"{counted(len(few), 'row')} rest{'s' if len(few) == 1 else ''} on too few "
            f"{'index builds' if built else 'forks'} for a verdict ({fewest} a side; it takes "
            f"{FORKS_FOR_VERDICT})."
        )
    none = len(withheld) - len(few)
    if none:
        yield f"{counted(none, 'row')} got no verdict; the notes of the tables say why."


def _orders(analysis: Analysis) -> Iterator[str]:
    """Where it mattered what the same node had run before, and how often that is open."""
    effects = analysis.order_effects
    found = [one for one in effects if one.comparison.verdict in {"faster", "slower", "different"}]
    found.sort(key=lambda one: -_size(one.comparison))
    names = list(dict.fromkeys(one.operation for one in found))
    unclear = sum(one.comparison.verdict in {"inconclusive", "insufficient"} for one in effects)
    open_in = f"could not be told in {unclear} of {counted(len(effects), 'comparison')}"
    if names:
        also = f"; it {open_in}" if unclear else ""
        yield f"What had run before mattered on {_listed(names, _MOST_NAMED)}{also} (see the order tables)."
    elif unclear:
        yield f"Whether it matters what had run before {open_in} (see the order tables)."


def _unsettled(analysis: Analysis) -> Iterator[str]:
    """A verdict on tasks that had not settled is one on warming up."""
    tasks = {
        (row.schedule, row.task): task_name(row, analysis)
        for row in analysis.rows
        if any(side.steady.state == "not steady" for side in row.figures)
    }
    if not tasks:
        return
    every = len({(row.schedule, row.task) for row in analysis.rows})
    if len(tasks) == every > 1:
        who = "no operation had"
    else:
        who = f"{_listed(list(tasks.values()), _MOST_NAMED)} had not"
    yield (
        f"Not steady: {who} settled when the measurement ended, so these figures are partly those of warming "
        "up."
    )


def _unquiet(analysis: Analysis) -> Iterator[str]:
    """A few disturbed forks are in the notes; most of them are news."""
    count, every = sum(analysis.disturbed.values()), sum(analysis.forks.values())
    if 2 * count > every:
        verb = "was" if count == 1 else "were"
        yield f"{count} of {counted(every, 'fork')} {verb} disturbed: the host was not quiet."


def _unsound(analysis: Analysis) -> Iterator[str]:
    """What fails, or answers something else, is not fast: no verdict may stand without that."""
    for doubt in analysis.caveats:
        if doubt.code == "failed-forks":
            yield f"{doubt.text[:1].upper()}{doubt.text[1:]}."
    for code, text in (
        ("failures", "Requests failed on {}: the verdicts there are on what is left."),
        ("answers-differ", "The answers are not alike on {}: the times there may not be of the same work."),
    ):
        rows = [row for row in analysis.rows if any(doubt.code == code for doubt in row.caveats)]
        names = list(dict.fromkeys(task_name(row, analysis) for row in rows))
        if names:
            yield text.format(_listed(names, _MOST_NAMED))


def _differences(group: Sequence[Pair]) -> str:
    return ", ".join(f"{metric_title(row)} {_difference(one)}" for row, one in group)


def _difference(one: Comparison) -> str:
    effect = one.effect_percent or 0.0
    word = "higher" if effect > 0 else "lower"
    low, high = signed_percent(one.low_percent), signed_percent(one.high_percent)
    return f"{percent(abs(effect))} {word} (95 % interval {low} to {high} %, p {p_value(one.p_adjusted)})"


def _size(one: Comparison) -> float:
    """Of a ratio, in either direction: half as much is as far as twice as much."""
    effect = one.effect_percent or 0.0
    return effect if effect > 0 else -_HUNDRED_PERCENT * effect / max(_HUNDRED_PERCENT + effect, 1e-9)


def _subject(row: Row, one: Comparison, analysis: Analysis) -> str:
    name = task_name(row, analysis)
    return name if len(row.comparisons) == 1 else f"{one.contender} on {name}"


def _by(pairs: Iterable[Pair], key: Callable[[Pair], str]) -> list[tuple[str, list[Pair]]]:
    grouped: dict[str, list[Pair]] = {}
    for pair in pairs:
        grouped.setdefault(key(pair), []).append(pair)
    return list(grouped.items())


def _listed(names: Sequence[str], most: int) -> str:
    """`a, b and c`; of many, the first and how many more."""
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
