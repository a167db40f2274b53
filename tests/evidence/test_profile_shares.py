import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.evidence import profile
from benchctl.evidence.profile import Difference, Stack, shares


def differences(one: list[Counter[Stack]], two: list[Counter[Stack]]) -> list[Difference]:
    return profile.differences(one, two, size=1, inclusive=False)


STACK = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(tuple)
FORK = st.dictionaries(STACK, st.integers(1, 50), min_size=1, max_size=8).map(Counter)
FORKS = st.lists(FORK, min_size=1, max_size=3)


def of(**stacks: int) -> Counter[Stack]:
    """A fork, of stacks such as `abc=3`: `a` called `b`, which called `c`, which ran."""
    return Counter({tuple(name): count for name, count in stacks.items()})


@given(FORKS, st.integers(1, 6))
def test_shares_of_what_ran_sum_to_all_and_forks_surround_them(forks: list[Counter[Stack]], size: int):
    found = shares(forks, size=size)
    assert math.isclose(sum(share.share for share in found), 1.0)
    assert sum(share.samples for share in found) == sum(fork.total() for fork in forks)
    for share in found:
        assert share.least <= share.share + 1e-12
        assert share.share <= share.most + 1e-12
        assert 1 <= len(share.stack) <= size


@given(FORKS)
def test_a_frame_counts_once_a_stack_however_often_it_is_in_it(forks: list[Counter[Stack]]):
    found = {share.stack: share for share in shares(forks, inclusive=True)}
    for (frame,), share in found.items():
        held = sum(count for fork in forks for stack, count in fork.items() if frame in stack)
        assert share.samples == held
        assert share.share <= 1.0


@given(FORKS, FORKS)
def test_differences_are_the_same_from_the_other_side_with_the_other_sign(
    one: list[Counter[Stack]], two: list[Counter[Stack]]
):
    there = {entry.stack: entry.difference for entry in differences(one, two)}
    back = {entry.stack: -entry.difference for entry in differences(two, one)}
    assert there.keys() == back.keys()
    assert all(math.isclose(there[stack], back[stack], abs_tol=1e-12) for stack in there)
    assert math.isclose(sum(there.values()), 0.0, abs_tol=1e-9)


def test_the_hottest_comes_first_with_its_callers_outwards():
    first, second = shares([of(abc=3, abd=1)], size=2)
    assert first.stack == ("c", "b")
    assert (first.samples, first.share) == (3, 0.75)
    assert second.stack == ("d", "b")


def test_forks_without_samples_say_nothing_and_others_give_their_range():
    (first, _) = shares([of(a=9, b=1), of(a=5, b=5), Counter()])
    assert (first.share, first.least, first.most) == (0.7, 0.5, 0.9)


def test_nothing_has_no_shares():
    assert shares([Counter()]) == []


def test_what_was_never_seen_on_one_side_has_no_share_there():
    found = {entry.stack: entry for entry in differences([of(a=8, b=2)], [of(a=5, c=5)])}
    assert found["c",].baseline == 0
    assert found["c",].difference == 0.5
    assert found["b",].difference == -0.2
    assert next(iter(found)) == ("c",)


def test_chance_is_the_binomial_one():
    (first, *_) = differences([of(a=50, b=50)], [of(a=90, b=10)])
    assert first.chance == pytest.approx(1.96 * math.sqrt(0.25 / 100 + 0.09 / 100))
