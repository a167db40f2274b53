"""Bisection whose answers may be wrong: it names the step, and tells what a single step does not explain."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.search.answers import Verdict
from benchctl.search.bisect import (
    Found,
    answer_question,
    doubts,
    inconclusive,
    is_part,
    narrowed,
    next_question,
    questions_at_most,
)
from benchctl.search.record import Phase, Question, SearchRecord
from benchctl.search.report import Ended, render_search
from search.world import World, bisected

HISTORIES = 200
MANY = 64
STEP = math.log(1.1)


def asked(phase: Phase, point: int, against: int = 0, verdict: Verdict = "present") -> Question:
    return Question(phase=phase, about=(point, against), verdict=verdict, contender=(1.1,), reference=(1.0,))


def searched(levels: Sequence[float], seed: int) -> list[Question]:
    """The whole search on pairs that are made up: logarithms of how slow points are."""
    random = np.random.default_rng(seed)
    done: list[Question] = []
    while (question := next_question(len(levels), done, ())) is not None:
        contender: tuple[float, ...] = ()
        point, other = question.about
        while not question.is_answered:
            noise = random.normal(0, 0.05) - random.normal(0, 0.05)
            contender += (math.exp(levels[point] - levels[other] + noise),)
            question = msgspec.structs.replace(
                question, contender=contender, reference=(1.0,) * len(contender)
            )
            verdict, _ = answer_question(len(levels), question, question.pairs, done, 24)
            question = msgspec.structs.replace(question, verdict=verdict)
        done.append(question)
    return done


def single_step(at: int, size: float = STEP, points: int = MANY) -> list[float]:
    return [0.0] * at + [size] * (points - at)


@pytest.mark.parametrize("size", [STEP, -STEP])
def test_a_step_of_ten_percent_among_64_points_is_named_in_95_of_100_histories(size: float) -> None:
    right = surely_wrong = doubted = 0
    for seed in range(HISTORIES):
        at = int(np.random.default_rng([seed, 1]).integers(1, MANY))
        done = searched(single_step(at, size), seed)
        found = narrowed(MANY, done)
        named = done[0].verdict == "present" and found == Found(at - 1, at)
        right += named
        doubted += named and (is_part(MANY, done) or bool(doubts(MANY, done)))
        surely_wrong += not named and found.first - found.before == 1 and not doubts(MANY, done)
    assert right / HISTORIES >= 0.95
    assert surely_wrong / HISTORIES <= 0.02
    assert doubted / HISTORIES <= 0.1


def test_ends_that_do_not_differ_are_seldom_searched() -> None:
    begun = sum(len(searched([0.0] * MANY, seed)) > 1 for seed in range(HISTORIES))
    assert begun / HISTORIES <= 0.05


def test_more_than_one_step_is_seldom_called_one() -> None:
    # Slow from 10 to 19, and again at the very end; and a rise in three parts.
    back = [0.0] * 10 + [0.3] * 10 + [0.0] * 12 + [0.3] * 32
    assert all("before" in [one.phase for one in doubts(MANY, searched(back, seed))] for seed in range(40))
    rise = [0.0] * 16 + [0.1] * 16 + [0.2] * 16 + [0.3] * 16
    sure = 0
    for seed in range(60):
        done = searched(rise, seed)
        found = narrowed(MANY, done)
        sure += found.first - found.before == 1 and not (doubts(MANY, done) or is_part(MANY, done))
    assert sure <= 6


@given(points=st.integers(2, 70), data=st.data())
def test_without_noise_the_step_is_named_by_as_few_questions_as_there_may_be(
    points: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, points - 1))
    broken = data.draw(st.sets(st.integers(1, points - 2), max_size=6)) if points > 2 else set()
    done: list[Question] = []
    while (question := next_question(points, done, broken)) is not None:
        point, against = question.about
        assert point not in broken
        assert (question.phase, question.about) not in [(one.phase, one.about) for one in done]
        verdict: Verdict = "present" if (point >= at) != (against >= at) else "absent"
        done.append(asked(question.phase, point, against, verdict))
    found = narrowed(points, done)
    assert found.before < at <= found.first
    assert {*range(found.before + 1, found.first)} <= broken
    assert not [one for one in doubts(points, done) if found.first - found.before == 1]
    if not broken:
        assert found == Found(at - 1, at)
        assert len([one for one in done if one.phase in ("ends", "halve")]) <= questions_at_most(points)
        assert len(done) <= questions_at_most(points) + 3


def test_what_stays_open_is_passed_over_like_what_does_not_build() -> None:
    done = [asked("ends", 4), asked("halve", 2, verdict="undecided")]
    assert next_question(5, done, ()) == Question(phase="halve", about=(1, 0))
    done.append(asked("halve", 1, verdict="absent"))
    assert next_question(5, done, {3}) == Question(phase="step", about=(4, 1))
    assert narrowed(5, done) == Found(1, 4)


# On nodes that are made up.


def told(record: SearchRecord) -> str:
    return " ".join(render_search(Ended(record)).split())


STEPPED = single_step(21, 0.3, 32)


def test_the_first_point_that_differs_is_named_with_its_bound_and_its_cost(tmp_path: Path) -> None:
    world = World()
    record = bisected(world, tmp_path, STEPPED)
    assert (record.status, inconclusive(record)) == ("complete", "")
    assert "p21 (Change 21) is the first that differs: throughput of range -2" in told(record)
    assert "against p20 (Change 20)." in told(record)
    assert "with a chance of 5.0% at most, over the 6 questions that lead to it" in told(record)
    assert f"9 questions about 32 points, {world.forks // 2} pairs of forks" in told(record)
    assert [(one.phase, *one.subject, *one.against, one.verdict) for one in record.questions] == [
        ("ends", "p31", "p0", "present"),
        ("halve", "p15", "p0", "absent"),
        ("halve", "p23", "p0", "present"),
        ("halve", "p19", "p0", "absent"),
        ("halve", "p21", "p0", "present"),
        ("halve", "p20", "p0", "absent"),
        ("step", "p21", "p20", "present"),
        ("before", "p7", "p0", "absent"),
        ("after", "p27", "p0", "present"),
    ]
    assert record.spent_s == world.clock_s


def test_points_that_do_not_build_boot_or_last_are_skipped_and_told(tmp_path: Path) -> None:
    world = World(unbuilt=frozenset({15}), refusing=frozenset({"p24"}), broken=frozenset({"p19", "p20"}))
    record = bisected(world, tmp_path, STEPPED)
    assert record.skipped.keys() >= {15, 20}
    assert inconclusive(record) == "2 points could not be distinguished from it"
    assert "The change comes after p18 (Change 18), and with p21 (Change 21) at the latest" in told(record)
    assert "Skipped: p15 (Change 15): p15 does not build: make exited with status 2 Skipped: " in told(record)
    assert "2 forks failed, the last: the node died" in record.skipped[20]
    assert 24 not in record.skipped or "before it was ready" in record.skipped[24]
    # A point is tried again when it goes on.
    again = bisected(World(), tmp_path, STEPPED)
    assert again.skipped == {}
    assert inconclusive(again) == ""


@pytest.mark.parametrize("end", [0, 31])
@pytest.mark.parametrize("flaw", ["unbuilt", "broken", "refusing"])
def test_an_end_that_cannot_be_measured_ends_it(tmp_path: Path, flaw: str, end: int) -> None:
    world = World()
    setattr(world, flaw, frozenset({end if flaw == "unbuilt" else f"p{end}"}))
    with pytest.raises(BenchctlError, match=r"does not build|the node died|before it was ready"):
        bisected(world, tmp_path, STEPPED)


def test_a_task_without_figures_ends_it(tmp_path: Path) -> None:
    with pytest.raises(BenchctlError, match="task 'range' cannot be compared: its requests failed"):
        bisected(World(silent=True), tmp_path, STEPPED)


@pytest.mark.parametrize(
    ("levels", "matter"),
    [
        ([0.0] * 8, "it is not confirmed that the ends differ"),
        (
            [0.0] * 10 + [0.3] * 10 + [0.0] * 12 + [0.3] * 32,
            "one single step does not explain the answers",
        ),
    ],
)
def test_what_is_no_single_step_is_told(tmp_path: Path, levels: list[float], matter: str) -> None:
    record = bisected(World(), tmp_path, levels, most=8 if len(levels) == 8 else 24)
    assert record.status == "complete"
    assert inconclusive(record) == matter
