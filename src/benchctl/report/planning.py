"""Advice on the next run: one command, and what a coming run will detect."""

import math
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType

import msgspec

from benchctl.report.numbers import counted, duration, rough
from benchctl.report.table import Command
from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.results.plan import Place, Plan
from benchctl.spec import DEFAULT_FORKS
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import DECIDED, FORKS_FOR_QUOTING, Comparison
from benchctl.stats.metrics import metric_of
from benchctl.track.model import Challenge

_COFFEE_MINUTES = 10
_GROWTH = 2
_LEAST_ITERATIONS = 100
_ITERATION_GROWTH = 3


def again(
    words: Sequence[str],
    options: Mapping[str, str | None] = MappingProxyType({}),
    params: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Return a command as it was given, with other values of these options and track parameters.

    None leaves an option out.
    """
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name == "--param":
            value = value if equals else next(rest, "")
            kept += [] if value.partition("=")[0] in params else [name, value]
        elif name not in options:
            kept.append(word)
        elif not equals and name not in _FLAGS:
            next(rest, None)
    given = [word for name, value in options.items() if value is not None for word in (name, value)]
    given += [word for name, value in params.items() for word in ("--param", f"{name}={value}")]
    return shlex.join(["benchctl", *kept, *given])


# What ended a run would end the next one as early, and a trial shows nothing.
_FLAGS = frozenset({"--test-mode", "--until-decided"})
_FRESH = {**dict.fromkeys(_FLAGS), "--budget": None, "--margin": None}


def next_command(analysis: Analysis, plan: Plan, runs: Path | None = None) -> Command | None:
    """Return the one command that would tell most; None when every verdict stands, or none is known.

    `runs` is the directory of the run's runs, None for the default one.
    """
    following = _next(analysis, plan)
    if following is None or runs is None:
        return following
    line = again(shlex.split(following.line)[1:], {"--runs": str(runs)})
    return msgspec.structs.replace(following, line=line)


def _next(analysis: Analysis, plan: Plan) -> Command | None:
    """Return that command for the default directory.

    For settled tasks that is more blocks, added to those there are: as many as decide every row that a few
    minutes can, else the row that lacks least. Else it is the run's own command, with longer warm-ups, more
    requests, or more of what intervals count.
    """
    if not plan.schedules:
        return None
    alone, codes = len(analysis.runs) == 1, _codes(analysis)
    if "unfinished" in codes and alone:
        return Command(
            "Next (unless it is still running)", shlex.join(["benchctl", "resume", analysis.runs[0]])
        )
    done = all(
        comparison.verdict in DECIDED and not comparison.provisional
        for comparison in (*_comparisons(analysis), *_interactions(analysis))
        if comparison.judged
    )
    if done and len(analysis.variants) > 1:
        return None
    fewest = min(analysis.forks.values(), default=0)
    forks = max(DEFAULT_FORKS, _GROWTH * fewest)
    by_build = any(comparison.replicate == "build" for comparison in _comparisons(analysis))
    few = "too-few-samples" in codes and not plan.settled
    # Of warm-ups that benchctl chose, longer ones rarely help, and further blocks decide other rows.
    is_open = any(one.judged and one.verdict not in DECIDED for one in _comparisons(analysis))
    unsettled = "not-steady" in codes and not (plan.settled and is_open)
    if alone and not (plan.test_mode or by_build or few or unsettled or "busy-host" in codes):
        more = _more_blocks(analysis, forks - fewest)
        if more is not None or "not-steady" not in codes:
            return more
    if not plan.words or plan.redline is not None:
        return None
    cold = {
        (row.schedule, row.task)
        for row in analysis.rows
        if any(doubt.code == "not-steady" for doubt in row.caveats)
    }
    return _larger(plan, codes, forks, cold, by_build=by_build)


def _larger(plan: Plan, codes: set[str], forks: int, cold: Collection[Place], *, by_build: bool) -> Command:
    """Return the run's own command with more of what it lacked; `cold` are tasks that had not settled."""
    options: dict[str, str | None] = {**_FRESH, "--forks": str(forks)}
    if "busy-host" in codes:
        options = {**(_FRESH if plan.forks >= FORKS_FOR_QUOTING else options), "--on-busy": "wait"}
        return Command("Next (stop these processes, or wait for a quiet host)", again(plan.words, options))
    reasons, params = [], {}
    tasks = [task for schedule in plan.schedules for task in schedule.schedule]
    if "not-steady" in codes:
        reasons.append("longer warm-up")
        if plan.settled or not any(task.time_period or task.warmup_time_period for task in tasks):
            # The parameter is that of all tasks: none may warm up for less than before.
            lengths = [
                (schedule.schedule[place].warmup_iterations or 0) + _sent(schedule, place)
                for number, schedule in enumerate(plan.schedules)
                for place in range(len(schedule.schedule))
                if not cold or (number, place) in cold
            ]
            least = max(task.warmup_iterations or 0 for task in tasks)
            params["warmup_iterations"] = max(least, _GROWTH * max(lengths))
    if "too-few-samples" in codes:
        reasons.append("more requests")
        if not params:
            places = ((one, place) for one in plan.schedules for place in range(len(one.schedule)))
            sent = max(_sent(challenge, place) for challenge, place in places)
            params["iterations"] = max(_LEAST_ITERATIONS, _ITERATION_GROWTH * sent)
    if by_build:
        reasons.append("more index builds")
        options["--index-builds"] = str(max(FORKS_FOR_VERDICT, _GROWTH * plan.index_builds))
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return Command(f"Next{why}", again(plan.words, options, params))


def _sent(challenge: Challenge, place: int) -> int:
    """Return the measured requests that a task's client is planned to send: no more than what ends it."""
    return min(task.iterations or 1 for task in (challenge.schedule[place], *challenge.enders(place)))


def _more_blocks(analysis: Analysis, forks: int) -> Command | None:
    """Return the command that adds blocks; None where as many as a run may have would decide nothing."""
    fewest = min(analysis.forks.values(), default=0)
    rows = _comparisons(analysis)
    lacking = [(one.further * analysis.block_s / 60, one.further) for one in rows if one.further is not None]
    known = any(one.mde_percent is not None for one in rows)
    if known and not lacking and fewest >= FORKS_FOR_QUOTING and not any(_interactions(analysis)):
        return None
    purpose = "Next (more forks)"
    if lacking:
        within = (choice for choice in lacking if choice[0] <= _COFFEE_MINUTES)
        minutes, forks = max(within, default=min(lacking))
        purpose = f"Next (about {math.ceil(minutes)} min)"
    return Command(purpose, shlex.join(["benchctl", "extend", analysis.runs[0], "--forks", str(forks)]))


def _comparisons(analysis: Analysis) -> list[Comparison]:
    return [comparison for row in analysis.task_rows or analysis.rows for comparison in row.comparisons]


def _interactions(analysis: Analysis) -> Iterator[Comparison]:
    """Yield what a sweep of named points asks: whether differences depend on them."""
    for curve in analysis.curves:
        for pair in curve.pairs:
            yield from pair.interactions


def _codes(analysis: Analysis) -> set[str]:
    in_rows = {doubt.code for row in analysis.rows for doubt in row.caveats}
    return in_rows | {doubt.code for doubt in analysis.caveats}


def forecast_lines(last: Analysis | None, plan: Plan, block_s: float | None) -> list[str]:
    """Return how large a run is, and what the last one of its plan could detect.

    `block_s` are the expected seconds of one fork of every variant; None if unknown.
    """
    forks, size = plan.forks, f"{counted(plan.forks, 'fork')} per variant"
    if plan.stop is not None:
        if plan.stop.budget_s is not None and block_s is not None:
            forks = min(forks, plan.stop.blocks_in(block_s, plan.index_builds))
        known = block_s is not None and (plan.stop.is_length or forks < plan.forks)
        size = f"about {counted(forks, 'fork')} per variant" if known else f"at most {size}"
    extra = 0 if plan.evidence is None else plan.evidence.extra_forks
    more = f", {extra} more for evidence" if extra else ""
    about = "" if block_s is None else f", about {duration((forks + extra) * block_s)}"
    size = f"this run: {size}{more}{about}"
    if len(plan.variants) == 1:
        return [f"{size}: one variant, nothing to compare it with"]
    if forks < FORKS_FOR_VERDICT:
        return [f"{size}: too few for verdicts, which take {FORKS_FOR_VERDICT} per variant"]
    # Of fewer, the spread is hardly known.
    if last is None or (had := min(last.forks.values(), default=0)) < FORKS_FOR_QUOTING:
        return [size]
    return [size, *_detected(last, had)]


def _detected(last: Analysis, forks: int) -> Iterator[str]:
    """Yield what a run could detect metric by metric: half of its tasks, and all of them."""
    by_metric: dict[str, list[float]] = {}
    for row in last.task_rows:
        least = [one.mde_percent for one in row.comparisons if one.mde_percent is not None]
        by_metric.setdefault(metric_of(row.metric).title, []).extend([max(least)] if least else [])
    parts = [
        f"in {title} {rough(median(sizes))}% on half of the tasks, {rough(max(sizes))}% on all"
        for title, sizes in by_metric.items()
        if sizes
    ]
    if parts:
        yield f"with {counted(forks, 'fork')}, the last run could detect {'; '.join(parts)} (80% power)"
