"""What a run will be able to see, in words, before it starts; loads nothing that takes long."""

from collections.abc import Sequence
from statistics import median

from benchctl.report.numbers import counted, duration
from benchctl.results.model import DEFAULT_FORKS, FORKS_FOR_VERDICT
from benchctl.results.plan import Plan
from benchctl.stats.history import History
from benchctl.stats.metrics import metric_of
from benchctl.stats.outlook import Prospect, expected_forks, prospects, unknown_tasks, visible

_MOST_NAMED = 4


def forecast_lines(history: History, plan: Plan) -> list[str]:
    """What a plan will detect, judging by earlier runs of its tasks: a line or two."""
    found = prospects(history, plan)
    block_s = history.block_s(plan)
    forks = expected_forks(found, plan.forks, plan.stop, block_s, paired=plan.paired)
    size = _size(plan, forks, block_s)
    if len(plan.variants) == 1:
        return [f"{size}: one variant, nothing to compare it with"]
    if forks < FORKS_FOR_VERDICT:
        return [f"{size} gets no verdicts: these take {FORKS_FOR_VERDICT} forks a side"]
    if not found:
        first = min(forks, DEFAULT_FORKS)
        return [f"{size}: never made here before, so its first {first} forks will show what it can detect"]
    lines = [
        f"in {metric_of(key).title} {_least([one for one in found if one.metric == key], forks, plan)}"
        for key in dict.fromkeys(one.metric for one in found)
    ]
    unknown = unknown_tasks(history, plan)
    lines = [f"{size}: minimum detectable effect {lines[0]}", *(f"  {line}" for line in lines[1:])]
    lines[-1] += f" ({_source(history, found)})"
    if unknown:
        lines[-1] += f"; no earlier run has {', '.join(unknown)}"
    return lines


def _source(history: History, found: Sequence[Prospect]) -> str:
    """What it rests on: earlier forks, and whether their sizes or settings were different."""
    matches = {one.match for one in found}
    sizes = (
        ""
        if matches == {"same"}
        else " of other sizes or settings"
        if matches == {"similar"}
        else ", some of other sizes or settings"
    )
    return f"80 % power, from {history.forks} earlier forks{sizes}"


def _size(plan: Plan, forks: int, block_s: float | None) -> str:
    """Size of the coming run: `this run (10 forks a side, about 6 min)`."""
    size = f"{counted(forks, 'fork')} a side"
    if plan.stop is not None and forks < plan.forks:
        size = f"probably {size}, at most {plan.forks}"
    elif plan.stop is not None:
        size = f"at most {size}"
    extra = 0 if plan.evidence is None else plan.evidence.extra_forks
    if extra:
        size += f", {extra} more for evidence"
    time = "" if block_s is None else f", about {duration((forks + extra) * block_s)}"
    return f"this run ({size}{time})"


def _least(found: Sequence[Prospect], forks: int, plan: Plan) -> str:
    """Task by task, the worst of several contenders; of many tasks the middle and both ends."""
    seen: dict[tuple[int, int], tuple[float, str]] = {}
    for one in found:
        place = (one.schedule, one.task)
        name = one.label if len(plan.schedules) == 1 else f"{plan.schedules[one.schedule].name}: {one.label}"
        least = visible(one, forks, paired=plan.paired)
        seen[place] = max(seen.get(place, (0.0, name)), (least, name))
    if len(seen) <= _MOST_NAMED:
        return ", ".join(f"{name} {_rounded(least)}" for least, name in seen.values())
    low, high = min(seen.values()), max(seen.values())
    middle = median(least for least, _ in seen.values())
    return (
        f"{_rounded(low[0])} ({low[1]}) to {_rounded(high[0])} ({high[1]}), "
        f"half of the tasks up to {_rounded(middle)}"
    )


def _rounded(ratio: float) -> str:
    """Two digits at most: coming forks are not known better."""
    return f"{100 * ratio:.1f} %" if ratio < 0.1 else f"{100 * ratio:,.0f} %"  # noqa: PLR2004 - two digits
