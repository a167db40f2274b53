"""Advice on the next run, and its precision: detectable effects, forks, and commands."""

import math
import shlex
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from benchctl.report.command_line import command
from benchctl.report.numbers import counted, duration, percent
from benchctl.report.table import Command
from benchctl.results.figures import RedlineEnd
from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.results.plan import HISTORY, Plan, RedlineSpec
from benchctl.results.select import Selection
from benchctl.spec import DEFAULT_FORKS, MOST_WORKERS
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import DECIDED, FORKS_FOR_QUOTING, UNITS, Comparison
from benchctl.stats.forecast import Rule, Spread, forks_to_find, least_effect, power
from benchctl.stats.history import History
from benchctl.stats.metrics import DEFAULT_METRICS, metric_names, metric_of
from benchctl.stats.outlook import (
    EFFECT,
    Prospect,
    expected_forks,
    family_weight,
    interaction_power,
    prospects,
    rule_of,
    spread_of,
    unknown_tasks,
    visible,
)

_COFFEE_MINUTES = 10
_S_PER_MINUTE = 60
_WARM_UP = "warmup_iterations"
_GROWTH = 2
_WORTHWHILE_PERCENT = 5.0
_MOST_FORKS = 200
_LEAST_ITERATIONS = 100
_ITERATION_GROWTH = 3
_LOAD_GROWTH = 4


def command_for_one_run(selection: Selection) -> Command | None:
    """Return the command that measures sides of one or two runs each in one run; None where there is none.

    There is none where nothing but the run differs.
    """
    sides = selection.sides
    apart = len({frozenset(run.id for run in side.runs) for side in sides}) > 1
    few = min(len(side.runs) for side in sides) < FORKS_FOR_VERDICT
    if not (apart and few):
        return None
    specs = [spec for side in sides for spec in side.run.plan.variants if spec.name == side.variant]
    if len({spec.name for spec in specs}) < len(specs):
        specs = [msgspec.structs.replace(spec, name=f"{spec.name}@{spec.version}") for spec in specs]
    if len({spec.name for spec in specs}) < len(sides):
        return None
    measured = sides[0].run.plan
    plan = msgspec.structs.replace(measured, variants=tuple(specs), stop=None, test_mode=False)
    if measured.by_time:
        line = command(msgspec.structs.replace(plan, stop=measured.stop))
    else:
        line = command(plan, forks=max(DEFAULT_FORKS, plan.forks))
    return Command("Measure both in one run", line)


def planning_lines(analysis: Analysis, plan: Plan | None) -> list[str | Command]:
    """Return a sentence and a command for below the tables; without `plan` there is no command to propose."""
    lines: list[str | Command] = []
    forks = proposed_forks(analysis)
    # More forks do not make the slowest request of a fork more precise.
    precise = [
        comparison
        for comparison in _comparisons(analysis)
        if comparison.judged
        and comparison.mde_percent
        and not any(doubt.code == "too-few-samples" for doubt in comparison.caveats)
    ]
    noisiest = max(precise, key=lambda comparison: comparison.mde_percent or 0.0, default=None)
    if noisiest is not None:
        family = [comparison for comparison in _comparisons(analysis) if comparison.metric == noisiest.metric]
        lines.append(_precision_text(noisiest, forks, family_weight(family)))
    if plan is not None and plan.schedules:
        proposal = _proposal("To see more", analysis, plan)
        lines += [] if proposal is None else [proposal]
    return lines


def next_command(analysis: Analysis, plan: Plan) -> Command | None:
    """Return the one command that would tell most; None when every verdict stands.

    For settled tasks that is more blocks, added to those there are: as many as decide every row that a few
    minutes can, else the row that lacks least.
    """
    if not plan.schedules:
        return None
    if "unfinished" in _codes(analysis) and len(analysis.runs) == 1:
        return Command(
            "Next (unless it is still running)", shlex.join(["benchctl", "resume", analysis.runs[0]])
        )
    done = all(
        comparison.verdict in DECIDED and not comparison.provisional
        for comparison in (*_comparisons(analysis), *_interactions(analysis))
        if comparison.judged
    )
    if done and len(analysis.variants) > 1 and not any(_unfinished(analysis)):
        return None
    lacking = [
        (cost.further.forks * cost.block_s / _S_PER_MINUTE, cost.further.forks)
        for cost in analysis.costs
        if cost.further is not None and cost.further.forks is not None
    ]
    settled = not _codes(analysis) & {"not-steady", "busy-host"}
    fewest = min(analysis.forks.values(), default=0)
    if settled and len(analysis.runs) == 1 and not plan.test_mode and not _by_build(analysis):
        extend = ["benchctl", "extend", analysis.runs[0], "--forks"]
        if lacking:
            minutes, forks = max(
                (choice for choice in lacking if choice[0] <= _COFFEE_MINUTES), default=min(lacking)
            )
            # Of few forks, the spread is hardly known.
            time = f"{math.ceil(minutes)} min"
            time = f"{time} or more" if fewest < FORKS_FOR_QUOTING else f"about {time}"
            return Command(f"Next ({time})", shlex.join([*extend, str(forks)]))
        # Forks that would be the same again are added; where requests are too few, they would not be.
        if plan.redline is None and _proposed_iterations(analysis, plan, longer=False) is None:
            more = shlex.join([*extend, str(proposed_forks(analysis) - fewest)])
            return Command(f"Next (more than {counted(fewest, 'fork')})", more)
    return _proposal("Next", analysis, plan)


def _unfinished(analysis: Analysis) -> Iterator[str]:
    """Yield why a red-line search did not end at the red-line."""
    ends = _ends(analysis)
    if "max-rate" in ends:
        yield "the most that was tried met the objective"
    if "driver-limited" in ends:
        yield "benchctl was the limit"


def _ends(analysis: Analysis) -> set[RedlineEnd | None]:
    return {
        fork.end for curve in (analysis.redline.curves if analysis.redline else ()) for fork in curve.forks
    }


def _search_further(analysis: Analysis, plan: Plan, search: RedlineSpec) -> tuple[Plan, list[str]]:
    """A search with more of what it lacked: rates, processes of the driver, warm-up."""
    reasons, ends, codes = list(_unfinished(analysis)), _ends(analysis), _codes(analysis)
    if "max-rate" in ends and search.max_per_s is not None:
        search = msgspec.structs.replace(search, max_per_s=_LOAD_GROWTH * search.max_per_s)
    workers = min(MOST_WORKERS, _GROWTH * plan.workers) if "driver-limited" in ends else plan.workers
    if "not-steady" in codes:
        search = msgspec.structs.replace(search, warm_up_s=_ITERATION_GROWTH * search.warm_up_s)
        reasons.append("nodes changed while it searched")
    return msgspec.structs.replace(plan, redline=search, workers=workers), reasons


def _proposal(purpose: str, analysis: Analysis, plan: Plan) -> Command | None:
    """Return a run that would show more; on a busy host the same again, of whose doing the rest may be."""
    if "busy-host" not in _codes(analysis):
        return _larger(purpose, analysis, plan)
    # Even on a quiet host, so few could not be reported.
    forks = None if plan.forks >= FORKS_FOR_QUOTING else DEFAULT_FORKS
    again = command(msgspec.structs.replace(plan, test_mode=False), forks=forks)
    return Command(f"{purpose} (stop these processes, or wait for a quiet host)", f"{again} --on-busy wait")


def _larger(purpose: str, analysis: Analysis, plan: Plan) -> Command | None:
    """More of the units that intervals count, and more warm-up if tasks had not settled.

    With the reasons of each; None where no rate met the objective, and none of that would change it.
    """
    forks, builds, fewest = (
        proposed_forks(analysis),
        plan.index_builds,
        min(analysis.forks.values(), default=0),
    )
    reasons: list[str] = []
    if plan.redline is not None:
        if analysis.redline is not None and all(curve.redline is None for curve in analysis.redline.curves):
            return None
        plan, reasons = _search_further(analysis, plan, plan.redline)
        # Where it has to be made anew, it can be seen first whether it ends.
        forks = plan.forks if reasons else forks
    if _by_build(analysis):
        built = min(min(comparison.replicates) for comparison in _comparisons(analysis))
        builds = _proposed_builds(built)
        forks = builds * math.ceil(max(fewest, builds) / builds)
        reasons.append(f"more than {counted(built, 'index build')}")
    unfit = "not-steady" in _codes(analysis)
    longer = unfit and _can_lengthen(plan)
    params = dict(plan.params)
    if longer:
        sent = max(
            (task.warmup_iterations or 0) + (task.iterations or 1)
            for schedule in plan.schedules
            for task in schedule.schedule
        )
        params = {name: value for name, value in params.items() if not _is_warm_up(name)}
        params[_WARM_UP] = _GROWTH * sent
    iterations = _proposed_iterations(analysis, plan, longer=longer)
    if plan.redline is None and unfit:
        reasons.append("not warmed up")
    elif iterations is not None:
        reasons.append("few requests")
    if forks > fewest:
        reasons.append(f"more than {counted(fewest, 'fork')}")
    plan = msgspec.structs.replace(plan, metrics=_metrics(analysis, plan))
    line = command(
        # With the rule that ended this run, the next one would end as early; and a trial shows nothing.
        msgspec.structs.replace(plan, stop=None, test_mode=False, index_builds=builds, params=params),
        forks=forks,
        iterations=iterations,
    )
    return Command(f"{purpose} ({'; '.join(reasons)})" if reasons else purpose, line)


def _comparisons(analysis: Analysis) -> list[Comparison]:
    return [comparison for row in analysis.task_rows or analysis.rows for comparison in row.comparisons]


def _interactions(analysis: Analysis) -> Iterator[Comparison]:
    """Yield what a sweep asks beside the verdicts at its points: whether differences depend on these."""
    for curve in analysis.curves:
        for pair in curve.pairs:
            yield from pair.interactions


def _by_build(analysis: Analysis) -> bool:
    """Return whether intervals count index builds."""
    return any(comparison.replicate == "build" for comparison in _comparisons(analysis))


def _proposed_builds(fewest: int) -> int:
    return max(FORKS_FOR_VERDICT, _GROWTH * fewest)


def _can_lengthen(plan: Plan) -> bool:
    """Return whether more requests can warm up: all challenges count them, and have no time periods."""
    return (
        plan.redline is None
        and not plan.sweeps("warmup_iterations")
        and not any(
            task.time_period or task.warmup_time_period
            for schedule in plan.schedules
            for task in schedule.schedule
        )
    )


def _is_warm_up(param: str) -> bool:
    """Return whether a parameter sets the number of warm-up requests, of one challenge or of all."""
    return param.replace("-", "_").endswith(_WARM_UP)


def proposed_forks(analysis: Analysis) -> int:
    """Return twice as many, and at least the default."""
    return max(DEFAULT_FORKS, _GROWTH * min(analysis.forks.values(), default=0))


def _proposed_iterations(analysis: Analysis, plan: Plan, *, longer: bool) -> int | None:
    """More if a task rests on few requests, or had not settled and can do so no other way; else None.

    Counts that benchctl chose are chosen anew, unless a `longer` warm-up is given, with which they are kept.
    """
    if plan.sweeps("iterations"):
        return None
    counts = [task.iterations for schedule in plan.schedules for task in schedule.schedule if task.iterations]
    if plan.settled:
        return max(counts) if longer and counts else None
    wanting = {"too-few-samples"} | (set() if longer else {"not-steady"})
    if counts and _codes(analysis) & wanting:
        return max(_LEAST_ITERATIONS, _ITERATION_GROWTH * max(counts))
    return None


def _metrics(analysis: Analysis, plan: Plan) -> str:
    """Metrics of a plan, and others that its results were shown by."""
    shown = dict.fromkeys(metric_of(row.metric).kind.name for row in analysis.task_rows)
    usual = (metric.kind for metric in DEFAULT_METRICS)
    own = metric_names(plan.metrics) or tuple(
        kind.name for kind in usual if not kind.quality or kind.name in shown
    )
    more = [] if plan.redline is not None else [name for name in shown if name not in own]
    return ",".join([*own, *more]) if more else plan.metrics


def _codes(analysis: Analysis) -> set[str]:
    in_rows = {doubt.code for row in analysis.rows for doubt in row.caveats}
    return in_rows | {doubt.code for doubt in analysis.caveats}


def _precision_text(noisiest: Comparison, forks: int, weight: float) -> str:
    """From the noisiest row: what was detectable, what more forks would detect, what a small effect takes."""
    fewest, unit = min(noisiest.replicates), "forks"
    if noisiest.replicate != "fork":
        forks, unit = _proposed_builds(fewest), UNITS[noisiest.replicate]
    spread, rule = spread_of(noisiest) or Spread(0.0, math.inf), rule_of(noisiest, weight)
    then = least_effect(Spread(spread.sd, math.inf), rule, forks)
    needed = forks_to_find(math.log1p(_WORTHWHILE_PERCENT / 100), spread, rule, _MOST_FORKS)
    small = (
        f"{_WORTHWHILE_PERCENT:g}% takes {needed.text} {unit} per variant"
        if needed.within_reach
        else f"{_WORTHWHILE_PERCENT:g}% is not achievable on this host"
    )
    return (
        "Precision of the noisiest row: minimum detectable effect "
        f"{percent(noisiest.mde_percent)} with {fewest} {unit}, "
        f"{percent(100 * math.expm1(then))} with {forks}; {small} (80% power)"
    )


_MOST_NAMED = 4


def forecast_lines(history: History, plan: Plan, block_s: float) -> list[str]:
    """Return what a plan will detect, judging by earlier runs of its tasks: a line or two.

    `block_s` are the expected seconds of one fork of every variant.
    """
    expected = prospects(history, plan)
    forks = expected_forks(plan, block_s)
    size = _size(plan, forks, block_s)
    if len(plan.variants) == 1:
        return [f"{size}: one variant, nothing to compare it with"]
    if forks < FORKS_FOR_VERDICT:
        return [f"{size} gets no verdicts: these take {FORKS_FOR_VERDICT} per variant"]
    interaction = _interaction(expected, forks, plan)
    if not expected:
        first = min(forks, DEFAULT_FORKS)
        return [f"{size}: no earlier run here; precision is known after {first} forks", *interaction]
    by_metric: dict[str, list[Prospect]] = {}
    for prospect in expected:
        by_metric.setdefault(prospect.metric, []).append(prospect)
    lines = [f"in {metric_of(key).title} {_least(group, forks, plan)}" for key, group in by_metric.items()]
    unknown = unknown_tasks(history, plan)
    lines = [f"{size}: minimum detectable effect {lines[0]}", *(f"  {line}" for line in lines[1:])]
    lines[-1] += f" ({_source(history, expected)})"
    if unknown:
        lines[-1] += f"; no earlier run has {', '.join(unknown)}"
    return [*lines, *interaction]


_ASSUMED_SD = 0.09  # of pairs, in logarithms: of nodes one after the other, on a host with little other work


def _interaction(expected: Sequence[Prospect], forks: int, plan: Plan) -> list[str]:
    """Return how often a plan that compares histories finds that a difference depends on them."""
    swept = plan.swept
    if swept is None or swept.axes[0].name != HISTORY or len(swept.bases) == 1:
        return []
    chances = interaction_power(expected, forks, plan) or [
        power(math.log1p(EFFECT), Spread(math.sqrt(2) * _ASSUMED_SD, math.inf), Rule(0.0, paired=True), forks)
    ]
    low, high = (f"{100 * chance:.0f}%" for chance in (min(chances), max(chances)))
    reach = low if low == high else f"{low} to {high}"
    given = "" if expected else f" if pairs differ by {100 * _ASSUMED_SD:.0f}%"
    return [f"an interaction of {100 * EFFECT:.0f}% with the history is found in {reach} of such runs{given}"]


def _source(history: History, found: Sequence[Prospect]) -> str:
    """Return what it rests on: earlier forks, and whether their sizes or settings were different."""
    matches = {prospect.match for prospect in found}
    sizes = (
        ""
        if matches == {"same"}
        else " of other sizes or settings"
        if matches == {"similar"}
        else ", some of other sizes or settings"
    )
    return f"80% power, from {history.forks} earlier forks{sizes}"


def _size(plan: Plan, forks: int, block_s: float) -> str:
    """Size of the coming run: `this run (10 forks per variant, about 6 min)`."""
    size = f"{counted(forks, 'fork')} per variant"
    if plan.stop is not None and plan.stop.is_length:
        size = f"about {size}"
    elif plan.stop is not None and forks < plan.forks:
        size = f"probably {size}, at most {plan.forks}"
    elif plan.stop is not None:
        size = f"at most {size}"
    extra = 0 if plan.evidence is None else plan.evidence.extra_forks
    if extra:
        size += f", {extra} more for evidence"
    return f"this run ({size}, about {duration((forks + extra) * block_s)})"


def _least(found: Sequence[Prospect], forks: int, plan: Plan) -> str:
    """Task by task, the worst of several contenders; of many tasks the middle and both ends."""
    seen: dict[tuple[int, int], tuple[float, str]] = {}
    for prospect, least in zip(found, visible(found, forks, plan), strict=True):
        place = (prospect.schedule, prospect.task)
        name = (
            prospect.label
            if len(plan.schedules) == 1
            else f"{plan.schedules[prospect.schedule].name}: {prospect.label}"
        )
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
    return f"{100 * ratio:.1f}%" if ratio < 0.1 else f"{100 * ratio:,.0f}%"  # noqa: PLR2004 - two digits
