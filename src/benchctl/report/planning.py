"""What to run to see more: detectable effects, and a command."""

import math
import shlex

import msgspec

from benchctl.report.command_line import command
from benchctl.report.layout import Command
from benchctl.report.numbers import percent
from benchctl.results.model import DEFAULT_FORKS, FORKS_FOR_VERDICT
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import DECIDED, Comparison
from benchctl.stats.cost import fork_sd
from benchctl.stats.inference import forks_needed, mde, mde_paired

_COFFEE_MINUTES = 10
_WARM_UP = "warmup_iterations"
_GROWTH = 2
_WORTHWHILE_PERCENT = 5.0
_MOST_FORKS = 200
_LEAST_ITERATIONS = 100
_ITERATION_GROWTH = 3
_DOCUMENT_GROWTH = 4
_MOST_DOCUMENTS = 4_000_000


def planning_lines(analysis: Analysis, plan: Plan | None) -> list[str | Command]:
    """A sentence and a command for below the tables; without `plan` there is no command to propose."""
    lines: list[str | Command] = []
    forks = proposed_forks(analysis)
    noisiest = _noisiest(analysis)
    if noisiest is not None:
        lines.append(_precision_text(noisiest, forks))
    if plan is not None and plan.schedules:
        lines.append(Command("To see more", _proposal(analysis, plan)))
    return lines


def next_command(analysis: Analysis, plan: Plan) -> Command | None:
    """The one command that would tell most; None when every verdict stands.

    For settled tasks that is more blocks, added to those there are: as many as decide every row that a few
    minutes can, else the row that lacks least.
    """
    if not plan.schedules:
        return None
    done = all(one.verdict in DECIDED and not one.provisional for one in _comparisons(analysis) if one.judged)
    if done and len(analysis.variants) > 1:
        return None
    lacking = [
        (one.verdict_minutes or 0.0, one.verdict_forks)
        for one in analysis.costs
        if one.open and one.verdict_forks
    ]
    settled = "not-steady" not in _codes(analysis) and (plan.settled or "small-scale" not in _codes(analysis))
    if settled and lacking and len(analysis.runs) == 1 and not plan.test_mode and not _by_build(analysis):
        minutes, forks = max((one for one in lacking if one[0] <= _COFFEE_MINUTES), default=min(lacking))
        line = shlex.join(["benchctl", "run", "--more", analysis.runs[0], "--forks", str(forks)])
        return Command(f"Next, about {math.ceil(minutes)} min", line)
    return Command("Next", _proposal(analysis, plan))


def _proposal(analysis: Analysis, plan: Plan) -> str:
    """More of the units that intervals count, more warm-up if tasks had not settled, and more documents."""
    forks, builds = proposed_forks(analysis), plan.index_builds
    if _by_build(analysis):
        builds = _proposed_builds(min(min(one.replicates) for one in _comparisons(analysis)))
        fewest = min(analysis.forks.values(), default=0)
        forks = builds * math.ceil(max(fewest, builds) / builds)
    documents = _proposed_documents(analysis)
    # Points of a sweep with numbers of their own have none in common.
    grows = documents not in (0, plan.corpus.documents)
    unfit = "not-steady" in _codes(analysis) or (grows and bool(_warm_ups(plan)))
    # Counts that benchctl chose are chosen anew for more documents, of which each request then teaches more.
    anew = plan.settled and grows
    until_steady = unfit and _can_lengthen(plan) and not anew
    if anew and unfit and not _by_build(analysis):
        # It is not forks that are lacking.
        forks = max(DEFAULT_FORKS, min(analysis.forks.values(), default=0))
    params = dict(plan.params)
    if grows and until_steady:
        # How many requests it takes to warm up was found out for this corpus, not for a larger one.
        params = {name: value for name, value in params.items() if name not in _warm_ups(plan)}
    return command(
        # With the rule that ended this run, the next one would end as early; and a trial shows nothing.
        msgspec.structs.replace(plan, stop=None, test_mode=False, index_builds=builds, params=params),
        forks=forks,
        corpus_documents=documents,
        iterations=_proposed_iterations(analysis, plan, until_steady=until_steady),
        until_steady=until_steady,
    )


def _comparisons(analysis: Analysis) -> list[Comparison]:
    return [one for row in analysis.rows for one in row.comparisons]


def _by_build(analysis: Analysis) -> bool:
    """Whether intervals count index builds."""
    return any(one.replicate == "build" for one in _comparisons(analysis))


def _proposed_builds(fewest: int) -> int:
    return max(FORKS_FOR_VERDICT, _GROWTH * fewest)


def _can_lengthen(plan: Plan) -> bool:
    """Whether pilot forks can choose a warm-up: the challenge counts requests, and has no time periods."""
    return (
        plan.redline is None
        and not plan.sweeps("warmup_iterations")
        and any(
            not any(task.time_period or task.warmup_time_period for task in one.schedule)
            for one in plan.schedules
        )
    )


def _warm_ups(plan: Plan) -> set[str]:
    """Parameters that set the number of warm-up requests, of one challenge or of all."""
    return {name for name in plan.params if name.replace("-", "_").endswith(_WARM_UP)}


def proposed_forks(analysis: Analysis) -> int:
    """Twice as many, and at least the default."""
    return max(DEFAULT_FORKS, _GROWTH * min(analysis.forks.values(), default=0))


def _proposed_iterations(analysis: Analysis, plan: Plan, *, until_steady: bool) -> int | None:
    """More if a task rests on few requests, or had not settled and can do so no other way; else None.

    Counts that benchctl chose are chosen anew, except for a pilot, which chooses the warm-up only.
    """
    if plan.sweeps("iterations"):
        return None
    counts = [task.iterations for one in plan.schedules for task in one.schedule if task.iterations]
    if plan.settled:
        return max(counts) if until_steady and counts else None
    wanting = {"few-samples"} if until_steady else {"few-samples", "not-steady"}
    if counts and _codes(analysis) & wanting:
        return max(_LEAST_ITERATIONS, _ITERATION_GROWTH * max(counts))
    return None


def _proposed_documents(analysis: Analysis) -> int:
    """More if the corpus is small, up to what a desktop builds in minutes."""
    size = analysis.documents
    if "small-scale" in _codes(analysis) and size < _MOST_DOCUMENTS:
        return min(_MOST_DOCUMENTS, _DOCUMENT_GROWTH * size)
    return size


def _codes(analysis: Analysis) -> set[str]:
    in_rows = {doubt.code for row in analysis.rows for doubt in row.caveats}
    return in_rows | {doubt.code for doubt in analysis.caveats}


def _noisiest(analysis: Analysis) -> Comparison | None:
    known = [one for one in _comparisons(analysis) if one.judged and one.mde_percent and not _extreme(one)]
    return max(known, key=lambda one: one.mde_percent or 0.0, default=None)


def _extreme(comparison: Comparison) -> bool:
    """Whether a side's figure is its fork's slowest request: more forks make that no more precise."""
    return any(doubt.code == "few-samples" for doubt in comparison.caveats)


def _precision_text(noisiest: Comparison, forks: int) -> str:
    """From the noisiest row: what was detectable, what more forks would detect, what a small effect takes."""
    fewest, unit = min(noisiest.replicates), "forks"
    if noisiest.replicate == "build":
        forks, unit = _proposed_builds(fewest), "index builds"
    spread = fork_sd(noisiest) or 0.0
    then = mde_paired(forks, spread) if noisiest.paired else mde(forks, forks, spread)
    needed = forks_needed(math.log1p(_WORTHWHILE_PERCENT / 100), spread, paired=noisiest.paired)
    small = (
        f"{_WORTHWHILE_PERCENT:g} % takes {needed:,} {unit} a side"
        if needed <= _MOST_FORKS
        else f"{_WORTHWHILE_PERCENT:g} % is not achievable on this host"
    )
    return (
        "Precision of the noisiest row: minimum detectable effect "
        f"{percent(noisiest.mde_percent)} with {fewest} {unit}, "
        f"{percent(100 * math.expm1(then))} with {forks}; {small} (80 % power)"
    )
