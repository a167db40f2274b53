"""The policy of a run: it ends by the plan's rule, evaluated before every block, from the record alone."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from benchctl.errors import UsageError
from benchctl.quantities import DURATION
from benchctl.report.numbers import counted, duration
from benchctl.results.model import FORKS_FOR_VERDICT, RunRecord
from benchctl.results.plan import Plan, StopSpec
from benchctl.run.study import Policy


class ByRule(Policy):
    """Ends a single run by its plan's rule; `note` is told once how many blocks fit into its time."""

    goes_on_without = False

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._forecast = ""

    def ends(self, records: Sequence[RunRecord], block: int) -> str:
        """Return why the rule ends it, as `Policy` does."""
        reason = reason_to_stop(records[0], block)
        if not self._forecast and not reason and (forecast := length_text(records[0])):
            self._forecast = forecast
            self._note(forecast)
        return reason

    def total(self, records: Sequence[RunRecord]) -> int | None:
        """Return the forks that fit into the time, if that is the length; None before the first block."""
        (record,) = records
        if record.plan.stop is None or not record.plan.stop.is_length:
            return super().total(records)
        blocks = blocks_by_time(record)
        extra = len(record.plan.extra_blocks)
        return None if blocks is None else (blocks + extra) * len(record.plan.variants)

    def remaining_s(self, records: Sequence[RunRecord], expected_s: float | None) -> float | None:
        """Return what is expected, or less if the budget leaves less."""
        return remaining_s(records[0], expected_s)


def blocks_by_time(record: RunRecord) -> int | None:
    """Return how many blocks fit into a budget, by those that are complete; None before the first."""
    stop, whole, block_s = record.plan.stop, _whole_blocks(record), _block_s(record)
    if stop is None or stop.budget_s is None or not whole or not block_s:
        return None
    spent_s = sum(whole.values())
    left_s = stop.budget_s - spent_s - block_s * len(record.plan.extra_blocks)
    fit = sum(not record.plan.is_extra(block) for block in whole) + max(0, int(left_s // block_s))
    return min(stop.whole_blocks(fit, record.plan.index_builds), record.plan.forks)


def length_text(record: RunRecord) -> str:
    """Return how many blocks there are going to be, where time decides that; empty while it is not known."""
    stop, blocks = record.plan.stop, blocks_by_time(record)
    if stop is None or stop.budget_s is None or not stop.is_length or blocks is None:
        return ""
    takes_s = blocks * _block_s(record)
    if takes_s > stop.budget_s:
        return f"{counted(blocks, 'block')}, the minimum, in about {duration(takes_s)}"
    if blocks == record.plan.forks:
        return f"{counted(blocks, 'block')}, the maximum, in about {duration(takes_s)}"
    return f"about {counted(blocks, 'block')} in {duration(stop.budget_s)}"


def reason_to_stop(record: RunRecord, block: int) -> str:
    """Return why a run ends before this block, by its plan's stop rule; for readers, empty to continue.

    Blocks are never cut: one that was started is finished, even after an interruption. With several index
    builds, every build gets a block. The rule does not cover forks for evidence: they always run, and a
    budget leaves time for them.
    """
    stop = record.plan.stop
    if (
        stop is None
        or block % record.plan.index_builds
        or any(fork.block == block for fork in record.forks)
        or record.plan.is_extra(block)
    ):
        return ""
    # The rule checks the least number, too, but an analysis between blocks takes time.
    if stop.decided and _fewest(record) >= stop.least_forks:
        enough, text = _judged(record, stop)
        if enough:
            return f"{_after(record)}, because --until-decided is reached: {text}"
    return "" if block < stop.least_blocks else _budget_spent(record, stop)


def within(stop: StopSpec | None, seconds: float, *, instead: bool = False) -> StopSpec:
    """A stop rule that also ends forks after so many seconds; the first block always runs.

    `instead` of the rule's own budget, or within it.
    """
    seconds = max(seconds, 1.0)
    if stop is None:
        return StopSpec(budget_s=seconds, least_forks=FORKS_FOR_VERDICT)
    least = seconds if instead or stop.budget_s is None else min(seconds, stop.budget_s)
    return msgspec.structs.replace(stop, budget_s=least, least_blocks=1)


def budget_behind(record: RunRecord, seconds: float) -> float:
    """The total budget of a run that gets so many more seconds for further blocks.

    Raises:
        UsageError: If the time is too short for one block.
    """
    block_s = _block_s(record) * record.plan.index_builds
    if seconds < block_s:
        raise UsageError(
            f"--budget {duration(seconds)} is too short: one block of run {record.id} takes "
            f"{duration(block_s)}"
        )
    return seconds_spent(record) + seconds


def seconds_spent(record: RunRecord) -> float:
    """Budget used by all forks on disk, including those before an interruption."""
    return sum(fork.wall_s for fork in record.forks)


def remaining_s(record: RunRecord, expected_s: float | None) -> float | None:
    """Upper bound of the remaining time: what is expected, or what the budget leaves."""
    plan, stop = record.plan, record.plan.stop
    if stop is None or stop.budget_s is None:
        return expected_s
    block_s = _block_s(record)
    if not block_s and expected_s is not None:
        block_s = expected_s / max(len(record.missing()), 1) * len(plan.variants)
    least = stop.whole_blocks(0, plan.index_builds) + len(plan.extra_blocks)
    left = max(0.0, max(stop.budget_s, least * block_s) - seconds_spent(record))
    return left if expected_s is None else min(left, expected_s)


def shortfall(record: RunRecord) -> str:
    """Report a run that ended short of the wanted verdicts, for readers; empty if it did not."""
    stop = record.plan.stop
    if stop is None or not stop.decided:
        return ""
    enough, text = _judged(record, stop)
    return "" if enough else f"not decided: {text}"


def stop_text(plan: Plan) -> str:
    """Describe the rule that ends a run, for readers; empty if only the number of forks does."""
    stop = plan.stop
    if stop is None or stop.is_length:
        return ""
    rules = []
    if stop.decided:
        rules.append(f"every effect is faster, slower, different or equal, from {stop.least_forks} forks on")
    if stop.budget_s is not None:
        time = duration(stop.budget_s)
        rules.append(f"the next block would take the forks beyond {time} (preparation not counted)")
    if not rules:
        return ""
    return f"ends when {', or when '.join(rules)}; after {plan.forks} forks per variant at the latest"


def _judged(record: RunRecord, stop: StopSpec) -> tuple[bool, str]:
    # Imports scipy for half a second, which runs without the option need not wait for.
    from benchctl.stats.analyse import analyse_run  # noqa: PLC0415 - see above
    from benchctl.stats.decisions import decide  # noqa: PLC0415 - see above

    decision = decide(analyse_run(record).rows, stop, _fewest(record), record.plan.forks)
    return decision.enough, decision.text


def _budget_spent(record: RunRecord, stop: StopSpec) -> str:
    if stop.budget_s is None:
        return ""
    spent, expected = seconds_spent(record), _block_s(record) * record.plan.index_builds
    extra = {block for block, _ in record.missing() if record.plan.is_extra(block)}
    if spent + expected + _block_s(record) * len(extra) <= stop.budget_s:
        return ""
    if record.plan.by_time and _fewest(record) <= stop.least_blocks:
        return f"{_after(record)}, the minimum, in {duration(spent)}"
    after = " and the forks for evidence" if extra else ""
    few, budget = "", f"the {DURATION.text(stop.budget_s)} for forks (--budget)"
    if _fewest(record) < stop.least_forks:
        few = f"; fewer than {stop.least_forks} forks say little about how much forks differ"
    if spent >= stop.budget_s:
        return f"{_after(record)}: {budget} are used up ({duration(spent)}){few}"
    return (
        f"{_after(record)}: another block{after} ({duration(expected)}) does not fit into {budget}, of which "
        f"{duration(spent)} are used{few}"
    )


def _after(record: RunRecord) -> str:
    fewest = _fewest(record)
    if record.plan.by_time:
        return f"ended after {counted(fewest, 'fork')} per variant"
    return f"ended after {fewest} of at most {record.plan.forks} forks per variant"


def _whole_blocks(record: RunRecord) -> dict[int, float]:
    """Seconds of the blocks in which every variant has its fork."""
    of_block = Counter(fork.block for fork in record.forks)
    whole = dict.fromkeys(
        (block for block, forks in of_block.items() if forks == len(record.plan.variants)), 0.0
    )
    for fork in record.forks:
        if fork.block in whole:
            whole[fork.block] += fork.wall_s
    return whole


def _block_s(record: RunRecord) -> float:
    """Median seconds of the whole blocks so far; before the first, as many forks as it has variants."""
    if whole := _whole_blocks(record):
        return statistics.median(whole.values())
    forks_s = [fork.wall_s for fork in record.forks]
    return len(record.plan.variants) * statistics.median(forks_s) if forks_s else 0.0


def _fewest(record: RunRecord) -> int:
    """Finished forks of the variant that has the fewest."""
    return min(len(record.compared(spec.name)) for spec in record.plan.variants)
