"""When a run ends before all of its forks: by verdicts or time, and never within a block."""

import msgspec
import pytest

from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import DEFAULT_LENGTH, EvidenceSpec, StopSpec
from benchctl.run.study import (
    reason_to_stop,
    remaining_s,
    seconds_spent,
    shortfall,
    stop_text,
    total_of,
)
from benchctl.stats.analyse import analyse_run
from builders import make_fork, make_plan, make_record, make_summary

STEADY = (1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0)


def forks(blocks: int, factors: tuple[float, ...] = STEADY, wall_s: float = 10.0) -> tuple[ForkRecord, ...]:
    return tuple(
        make_fork(
            variant,
            block,
            make_summary("range", mean_ms * factors[(block + shift) % len(factors)]),
            wall_s=wall_s,
        )
        for block in range(blocks)
        for variant, mean_ms, shift in (("es", 10.0, 0), ("os", 12.0, 2))
    )


def record(stop: StopSpec | None, done: tuple[ForkRecord, ...], **changes: object) -> RunRecord:
    plan = make_plan(forks=50, stop=stop)
    return make_record(plan=msgspec.structs.replace(plan, **changes), forks=done)


def test_without_a_rule_every_fork_is_run():
    assert reason_to_stop(record(None, forks(49)), 49) == ""
    assert stop_text(make_plan()) == ""
    assert shortfall(record(None, forks(50))) == ""


def test_a_block_that_has_begun_is_finished():
    begun = (*forks(8), make_fork("os", 8, make_summary("range", 12.0)))
    assert reason_to_stop(record(StopSpec(decided=True, budget_s=1.0), begun), 8) == ""


def test_the_first_block_always_runs():
    assert reason_to_stop(record(StopSpec(budget_s=0.1), ()), 0) == ""


@pytest.mark.parametrize(("budget_s", "ends"), [(120.0, False), (119.9, True), (200.0, False)])
def test_a_block_that_is_not_expected_to_fit_is_not_begun(budget_s: float, ends: bool):  # noqa: FBT001 - pytest passes it by name
    # Five blocks of 20 s; a sixth makes 120.
    assert bool(reason_to_stop(record(StopSpec(budget_s=budget_s), forks(5)), 5)) is ends


@pytest.mark.parametrize(
    ("wall_s", "done", "ends", "total"),
    [
        (10.0, 0, False, None),  # nobody knows yet
        (10.0, 1, False, 9),
        (10.0, 8, False, 9),
        (10.0, 9, True, 9),
        (60.0, 1, False, 6),
        (60.0, 5, False, 6),  # of two minutes each: the minimum counts, not the time
        (60.0, 6, True, 6),
    ],
)
def test_the_default_length_is_time_and_at_least_six_blocks(
    wall_s: float,
    done: int,
    ends: bool,  # noqa: FBT001 - pytest passes it by name
    total: int | None,
):
    running = record(DEFAULT_LENGTH, forks(done, wall_s=wall_s))
    assert bool(reason_to_stop(running, done)) is ends
    assert total_of(running) == (total and 2 * total)
    assert not analyse_run(running).rows or not any(
        one.looks is None for row in analyse_run(running).rows for one in row.comparisons
    )


@pytest.mark.parametrize(("most", "budget_s", "blocks"), [(4, 1800.0, 4), (50, 205.0, 10), (6, 125.0, 6)])
def test_a_length_by_time_has_no_more_forks_than_were_asked_for(most: int, budget_s: float, blocks: int):
    assert total_of(record(StopSpec(budget_s=budget_s), forks(1), forks=most)) == 2 * blocks


def test_one_slow_block_does_not_decide_how_long_the_next_one_is_expected_to_take():
    slow = (*forks(4), make_fork("es", 4, wall_s=70.0), make_fork("os", 4, wall_s=10.0))
    assert seconds_spent(record(None, slow)) == 160.0
    assert reason_to_stop(record(StopSpec(budget_s=185.0), slow), 5) == ""


def test_failed_forks_cost_time_but_count_for_no_verdict():
    broken = tuple(msgspec.structs.replace(fork, status="failed") for fork in forks(5)[-2:])
    stop = StopSpec(decided=True, budget_s=1000.0)
    running = record(stop, (*forks(5)[:-2], *broken))
    assert seconds_spent(running) == 100.0
    assert reason_to_stop(running, 5) == ""
    assert reason_to_stop(record(stop, forks(5)), 5) != ""


def test_with_several_index_builds_each_gets_as_many_forks():
    stop = StopSpec(budget_s=100.0)
    three = record(stop, forks(4), index_builds=3)
    assert reason_to_stop(three, 4) == ""
    # Three more blocks of 20 s would not fit, one would.
    assert reason_to_stop(record(stop, forks(3), index_builds=3), 3) != ""
    assert reason_to_stop(record(stop, forks(3)), 3) == ""


@pytest.mark.parametrize(("wall_s", "total"), [(60.0, 8), (10.0, 8), (6.0, 12)])
def test_a_length_by_time_is_of_whole_turns_through_the_index_builds(wall_s: float, total: int):
    """Of four builds, six blocks are not possible, and ten are not either."""

    def running(done: int) -> RunRecord:
        return record(DEFAULT_LENGTH, forks(done, wall_s=wall_s), index_builds=4)

    ended = next(block for block in range(1, 50) if reason_to_stop(running(block), block))
    assert ended == total
    assert total_of(running(1)) == 2 * total
    assert DEFAULT_LENGTH.blocks_in(2 * wall_s, 4) == total


def test_a_block_under_way_does_not_change_how_many_are_foreseen():
    whole = forks(2, wall_s=4.0)
    slow = msgspec.structs.replace(whole[-1], wall_s=1.0)
    length = record(DEFAULT_LENGTH, whole[:-1])
    assert total_of(record(DEFAULT_LENGTH, whole[:1])) is None
    assert total_of(length) == total_of(record(DEFAULT_LENGTH, whole[:2]))
    assert total_of(record(DEFAULT_LENGTH, (*whole[:-1], slow))) != total_of(length)


def test_time_left_counts_the_other_forks_of_a_block_under_way():
    """Six blocks of two forks of 60 s: 720 s in all, whether one fork is over, or three."""
    for done in (1, 3):
        under_way = record(DEFAULT_LENGTH, forks(2, wall_s=60.0)[:done])
        assert remaining_s(under_way, 9e9) == 720.0 - 60.0 * done


@pytest.mark.parametrize(
    ("fork_s", "changes", "left_s"),
    [
        (33.0, {}, 6 * 66.0),
        (10.0, {}, 180.0),
        (33.0, {"forks": 2}, 2 * 66.0),
        (33.0, {"index_builds": 4}, 8 * 66.0),
        (33.0, {"evidence": EvidenceSpec(("profile",), 1)}, 7 * 66.0),
    ],
)
def test_time_left_before_the_first_fork_includes_the_minimum_of_blocks(
    fork_s: float, changes: dict[str, object], left_s: float
):
    running = record(DEFAULT_LENGTH, (), **changes)
    assert remaining_s(running, fork_s * len(running.missing())) == pytest.approx(left_s)
    assert remaining_s(running, None) == 180.0


def test_time_left_is_what_the_budget_leaves_at_most():
    running = record(StopSpec(budget_s=100.0), forks(2))
    assert remaining_s(running, 500.0) == 60.0
    assert remaining_s(running, 30.0) == 30.0
    assert remaining_s(running, None) == 60.0
    assert remaining_s(record(StopSpec(budget_s=10.0), forks(2)), 30.0) == 0.0
    assert remaining_s(record(StopSpec(decided=True), forks(2)), 30.0) == 30.0
    assert remaining_s(record(DEFAULT_LENGTH, forks(2, wall_s=60.0)), 9e9) == 480.0


def test_the_rule_is_told_before_the_run():
    text = stop_text(make_plan(forks=50, stop=StopSpec(decided=True, budget_s=1800.0)))
    assert all(part in text for part in ("at least 5", "at most 50 forks per variant", "30m of forks"))


DECIDED = StopSpec(decided=True)
OTHERS = (1.0, 1.03, 1.0, 0.98, 1.02, 0.99)


def pairs(blocks: int, factor: float) -> tuple[ForkRecord, ...]:
    """Forks of two variants whose ratio is the factor, give or take 3%."""
    return tuple(
        make_fork(variant, block, make_summary("range", ms), wall_s=10.0)
        for block in range(blocks)
        for variant, ms in (("es", 10.0), ("os", 10.0 * factor * OTHERS[block % len(OTHERS)]))
    )


def test_a_verdict_on_everything_ends_a_run_from_the_fifth_block_on():
    assert reason_to_stop(record(DECIDED, pairs(4, 2.0)), 4) == ""
    text = reason_to_stop(record(DECIDED, pairs(5, 2.0)), 5)
    assert text.startswith("ended after 5 forks per variant, of at most 50, because --until-decided")


def test_what_is_open_goes_on_and_says_what_it_lacks():
    running = record(DECIDED, pairs(6, 1.02))
    assert reason_to_stop(running, 6) == ""
    assert "are inconclusive: p90 service time of range (about 2 more forks)" in shortfall(running)


def test_a_wider_margin_makes_the_same_forks_equivalent():
    wide = msgspec.structs.replace(DECIDED, margin=0.15)
    assert reason_to_stop(record(wide, pairs(9, 1.04)), 9)


def test_looks_make_intervals_wider_and_verdicts_rarer():
    """The same forks: one look finds a difference, where several do not yet."""
    one_look = analyse_run(record(None, pairs(5, 1.06))).rows[0].comparisons[0]
    many = analyse_run(record(DECIDED, pairs(5, 1.06))).rows[0].comparisons[0]
    again = analyse_run(msgspec.structs.replace(record(None, pairs(5, 1.06)), looks=2))
    twice = again.rows[0].comparisons[0]
    assert twice.p == pytest.approx(2 * one_look.p)
    assert one_look.p < twice.p < many.p
    assert one_look.low_percent > twice.low_percent > many.low_percent
