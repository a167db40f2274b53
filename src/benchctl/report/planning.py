"""What to run to see more: scale, detectable differences, and a command."""

import math
from collections.abc import Iterator

import msgspec

from benchctl.report.command_line import command
from benchctl.report.numbers import percent
from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis
from benchctl.stats.compare import Comparison
from benchctl.stats.cost import fork_sd
from benchctl.stats.power import forks_needed, mde, mde_paired

_DEFAULT_FORKS = 5
_WARM_UP = "warmup_iterations"
_GROWTH = 2
_WORTHWHILE_PERCENT = 5.0
_LEAST_ITERATIONS = 100
_ITERATION_GROWTH = 3
_DOCUMENT_GROWTH = 4
_MOST_DOCUMENTS = 4_000_000


def planning_lines(analysis: Analysis, plan: Plan | None) -> list[str]:
    """Sentences for below the tables.

    Args:
        analysis: what was found.
        plan: what was run; without it there is no command to propose.
    """
    lines = [f"Scale: {text}" for text in _scale_texts(analysis)]
    forks = proposed_forks(analysis)
    noisiest = _noisiest(analysis)
    if noisiest is not None:
        lines.append(_precision_text(noisiest, forks))
    if plan is not None:
        lines.append(f"To see more: {_proposal(analysis, plan)}")
    return lines


def _proposal(analysis: Analysis, plan: Plan) -> str:
    """More of what intervals count, more warm-up where tasks had not settled, and more documents."""
    forks, builds = proposed_forks(analysis), plan.index_builds
    if _by_build(analysis):
        builds = _proposed_builds(min(min(one.replicates) for one in _comparisons(analysis)))
        fewest = min(analysis.forks.values(), default=0)
        forks = builds * math.ceil(max(fewest, builds) / builds)
    documents = _proposed_documents(analysis)
    grows = documents != plan.corpus.documents
    unfit = "not-steady" in _codes(analysis) or (grows and bool(_warm_ups(plan)))
    until_steady = unfit and _can_lengthen(plan)
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
    """Whether the index build is what intervals count."""
    return any(one.replicate == "build" for one in _comparisons(analysis))


def _proposed_builds(fewest: int) -> int:
    return max(FORKS_FOR_VERDICT, _GROWTH * fewest)


def _can_lengthen(plan: Plan) -> bool:
    """Whether pilot forks can choose a warm-up: a challenge counts its requests, and has no time periods."""
    return plan.redline is None and any(
        not any(task.time_period or task.warmup_time_period for task in one.schedule)
        for one in plan.schedules
    )


def _warm_ups(plan: Plan) -> set[str]:
    """Parameters that say for how many requests tasks warm up, of one challenge or of all."""
    return {name for name in plan.params if name.replace("-", "_").endswith(_WARM_UP)}


def split_command(line: str) -> tuple[str, str]:
    """What a planning line says, and the command line at its end; that is empty when it has none."""
    words, _, rest = line.partition(": ")
    return (words, rest) if rest.startswith("benchctl ") else (line, "")


def proposed_forks(analysis: Analysis) -> int:
    """The default when there were fewer, else twice as many."""
    fewest = min(analysis.forks.values(), default=0)
    return _DEFAULT_FORKS if fewest < _DEFAULT_FORKS else _GROWTH * fewest


def _proposed_iterations(analysis: Analysis, plan: Plan, *, until_steady: bool) -> int | None:
    """More where a task rests on few requests, or had not settled and can do so no other way; else None."""
    counts = [task.iterations for one in plan.schedules for task in one.schedule if task.iterations]
    wanting = {"few-samples"} if until_steady else {"few-samples", "not-steady"}
    if counts and _codes(analysis) & wanting:
        return max(_LEAST_ITERATIONS, _ITERATION_GROWTH * max(counts))
    return None


def _proposed_documents(analysis: Analysis) -> int:
    """More where the corpus is small, up to what a desktop builds in minutes."""
    size = analysis.documents
    if "small-scale" in _codes(analysis) and size < _MOST_DOCUMENTS:
        return min(_MOST_DOCUMENTS, _DOCUMENT_GROWTH * size)
    return size


def _codes(analysis: Analysis) -> set[str]:
    in_rows = {doubt.code for row in analysis.rows for doubt in row.caveats}
    return in_rows | {doubt.code for doubt in analysis.caveats}


def _scale_texts(analysis: Analysis) -> Iterator[str]:
    """One sentence a task, however many metrics it has."""
    seen = {}
    for row in analysis.rows:
        if row.scale is not None:
            challenge = analysis.sections[row.schedule].challenge
            seen[row.schedule, row.task] = f"{challenge}, {row.label}: {row.scale.text}"
    yield from seen.values()


def _noisiest(analysis: Analysis) -> Comparison | None:
    known = [one for one in _comparisons(analysis) if one.judged and one.mde_percent and not _extreme(one)]
    return max(known, key=lambda one: one.mde_percent or 0.0, default=None)


def _extreme(comparison: Comparison) -> bool:
    """Whether a side's figure is that of a fork's slowest request: no forks make that more precise."""
    return any(doubt.code == "few-samples" for doubt in comparison.caveats)


def _precision_text(noisiest: Comparison, forks: int) -> str:
    """From the noisiest row: what was visible, what more forks would show, and what a small effect takes."""
    fewest, unit = min(noisiest.replicates), "forks"
    if noisiest.replicate == "build":
        forks, unit = _proposed_builds(fewest), "index builds"
    spread = fork_sd(noisiest) or 0.0
    then = mde_paired(forks, spread) if noisiest.paired else mde(forks, forks, spread)
    needed = forks_needed(math.log1p(_WORTHWHILE_PERCENT / 100), spread, paired=noisiest.paired)
    return (
        f"Precision of the noisiest row: {fewest} {unit} see differences from "
        f"{percent(noisiest.mde_percent)}, {forks} would see {percent(100 * math.expm1(then))}; "
        f"{_WORTHWHILE_PERCENT:g} % takes {needed:,} {unit} a side (80 % power)"
    )
