"""When a run ends before it has all of its forks: looked at before every block, from the record alone."""

import statistics

import msgspec

from benchctl.report.numbers import duration
from benchctl.results.model import FORKS_FOR_VERDICT, RunRecord
from benchctl.results.plan import Plan, StopSpec


def reason_to_stop(record: RunRecord, block: int) -> str:
    """Why a run ends before a block, by its plan's stop rule.

    Blocks are never cut: one that has begun is finished, after an interruption, too. With several index
    builds a block of every build is run. Forks for evidence are no part of the rule: they are run in any
    case, and a budget leaves time for them.

    Args:
        record: of the run so far.
        block: that comes next.

    Returns:
        For readers; empty to go on.
    """
    stop = record.plan.stop
    if (
        stop is None
        or block % record.plan.index_builds
        or _begun(record, block)
        or record.plan.is_extra(block)
    ):
        return ""
    return _precise_enough(record, stop) or _budget_spent(record, stop)


def within(stop: StopSpec | None, seconds: float) -> StopSpec:
    """A stop rule that also ends forks after so many seconds; the first block always runs."""
    seconds = max(seconds, 1.0)
    if stop is None:
        return StopSpec(budget_s=seconds, least_forks=FORKS_FOR_VERDICT)
    least = seconds if stop.budget_s is None else min(seconds, stop.budget_s)
    return msgspec.structs.replace(stop, budget_s=least)


def seconds_spent(record: RunRecord) -> float:
    """Of a budget: the forks that are on disk, those before an interruption included."""
    return sum(fork.wall_s for fork in record.forks)


def remaining_s(record: RunRecord, expected_s: float | None) -> float | None:
    """How much longer the forks take at most: what they are expected to, or what a budget leaves."""
    stop = record.plan.stop
    if stop is None or stop.budget_s is None:
        return expected_s
    left = max(0.0, stop.budget_s - seconds_spent(record))
    return left if expected_s is None else min(left, expected_s)


def shortfall(record: RunRecord) -> str:
    """What to say of a run that had all its forks, or its time, and is not as precise as was wanted.

    Returns:
        For readers; empty where no precision was wanted, or it is reached.
    """
    stop = record.plan.stop
    if stop is None or stop.precision is None:
        return ""
    enough, text = _judged(record, stop)
    return "" if enough else f"--precision {precision_text(stop.precision)} is not reached: {text}"


def stop_text(plan: Plan) -> str:
    """What is going to end a run, for readers; empty when only the number of forks does."""
    stop = plan.stop
    if stop is None:
        return ""
    rules = []
    if stop.precision is not None:
        wanted = precision_text(stop.precision)
        rules.append(f"every 95 % interval is within +-{wanted}, from {stop.least_forks} forks on")
    if stop.budget_s is not None:
        time = duration(stop.budget_s)
        rules.append(f"the next block would take the forks beyond {time} (preparation not counted)")
    return f"ends when {', or when '.join(rules)}; after {plan.forks} forks a side at the latest"


def precision_text(precision: float) -> str:
    """`5 %`."""
    return f"{100 * precision:.4g} %"


def _precise_enough(record: RunRecord, stop: StopSpec) -> str:
    # The rule knows the least number, too; an analysis between two blocks takes time.
    if stop.precision is None or _fewest(record) < stop.least_forks:
        return ""
    enough, text = _judged(record, stop)
    if not enough:
        return ""
    return f"{_after(record)}, because --precision {precision_text(stop.precision)} is reached: {text}"


def _judged(record: RunRecord, stop: StopSpec) -> tuple[bool, str]:
    # Half a second of scipy, which runs without the option need not wait for.
    from benchctl.stats.analyse import analyse_run  # noqa: PLC0415 - see above
    from benchctl.stats.stopping import decide  # noqa: PLC0415 - see above

    decision = decide(analyse_run(record).rows, stop, _fewest(record))
    return decision.enough, decision.text


def _budget_spent(record: RunRecord, stop: StopSpec) -> str:
    if stop.budget_s is None:
        return ""
    spent, expected = seconds_spent(record), _block_s(record) * record.plan.index_builds
    if spent + expected + _block_s(record) * _extra_forks(record.plan) <= stop.budget_s:
        return ""
    few = ""
    after = " and the forks for evidence" if _extra_forks(record.plan) else ""
    if _fewest(record) < stop.least_forks:
        few = f"; fewer than {stop.least_forks} forks say little about how much forks differ"
    return (
        f"{_after(record)}, because --budget {duration(stop.budget_s)} leaves no time for another "
        f"block{after}: {duration(spent)} are spent, a block takes {duration(expected)}{few}"
    )


def _after(record: RunRecord) -> str:
    fewest = _fewest(record)
    return f"ended after {fewest} of at most {record.plan.forks} forks a side"


def _extra_forks(plan: Plan) -> int:
    return 0 if plan.evidence is None else plan.evidence.extra_forks


def _begun(record: RunRecord, block: int) -> bool:
    return any(fork.block == block for fork in record.forks)


def _block_s(record: RunRecord) -> float:
    """Median seconds of the blocks so far."""
    blocks: dict[int, float] = {}
    for fork in record.forks:
        blocks[fork.block] = blocks.get(fork.block, 0.0) + fork.wall_s
    return statistics.median(blocks.values()) if blocks else 0.0


def _fewest(record: RunRecord) -> int:
    """Finished forks of the variant that has fewest."""
    return min(len(record.compared(spec.name)) for spec in record.plan.variants)
