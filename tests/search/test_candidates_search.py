"""Delta debugging: what is left is needed, what is needed is left, and it does not ask too often."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.search.answers import Answer
from benchctl.search.candidates import Subset, most_questions, smallest, usual_questions

Judge = Callable[[Subset], Answer]


class Asked:
    """A judge that remembers what it was asked."""

    def __init__(self, rule: Callable[[frozenset[int]], bool | None]) -> None:
        self.rule = rule
        self.subsets: list[Subset] = []

    def __call__(self, subset: Subset) -> Answer:
        self.subsets.append(subset)
        found = self.rule(frozenset(subset))
        return "undecided" if found is None else "present" if found else "absent"


def needing(*wanted: int) -> Asked:
    return Asked(lambda have: set(wanted) <= have)


sizes = st.integers(1, 14)


@given(sizes.flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1))))
def test_exactly_what_is_needed_is_left_in_order(drawn: tuple[int, set[int]]) -> None:
    count, wanted = drawn
    judge = needing(*wanted)
    assert smallest(count, judge, needs_some=True) == tuple(sorted(wanted))
    assert len(judge.subsets) == len(set(judge.subsets)) <= most_questions(count)
    assert () not in judge.subsets
    assert all(subset == tuple(sorted(subset)) for subset in judge.subsets)


@settings(max_examples=200)
@given(st.integers(1, 9), st.randoms(use_true_random=False))
def test_whatever_the_judge_the_result_is_present_and_no_single_task_of_it_can_go(
    count: int, random: Random
) -> None:
    table: dict[frozenset[int], bool | None] = {}
    judge = Asked(lambda have: table.setdefault(have, random.choice([True, False, None])))
    found = smallest(count, judge, needs_some=True)
    assert found == tuple(range(count)) or table[frozenset(found)] is True
    for gone in found:
        rest = frozenset(found) - {gone}
        assert not rest or table[rest] is not True
    assert len(judge.subsets) <= most_questions(count)


def test_what_cannot_be_decided_is_kept() -> None:
    # Nobody can tell without 2, so that it stays.
    judge = Asked(lambda have: None if 2 not in have else {0} <= have)
    assert smallest(4, judge, needs_some=True) == (0, 2)


def test_a_difference_of_variants_is_first_tried_without_any_task() -> None:
    judge = Asked(lambda _have: True)
    assert smallest(8, judge, needs_some=False) == ()
    assert judge.subsets == [()]
    judge = needing(3)
    assert smallest(8, judge, needs_some=False) == (3,)
    assert judge.subsets.count(()) == 1


def test_alternatives_leave_one_of_them() -> None:
    judge = Asked(lambda have: {0} <= have or {5} <= have)
    assert smallest(6, judge, needs_some=True) in {(0,), (5,)}


def test_one_task_in_front_needs_no_question() -> None:
    judge = needing(0)
    assert smallest(1, judge, needs_some=True) == (0,)
    assert judge.subsets == []


def test_an_exception_of_the_judge_ends_it() -> None:
    def judge(_subset: Subset) -> Answer:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        smallest(3, judge, needs_some=True)


def test_the_blog_s_sixteen_tasks_with_two_culprits_take_a_few_questions() -> None:
    # desc_sort_timestamp and composite-date_histogram-daily, in front of range in big5.
    judge = needing(1, 15)
    assert smallest(16, judge, needs_some=True) == (1, 15)
    assert len(judge.subsets) <= 20
    assert usual_questions(16, needs_some=True) <= 20
    assert usual_questions(1, needs_some=True) == 0
    assert usual_questions(40, needs_some=True) <= most_questions(40)
