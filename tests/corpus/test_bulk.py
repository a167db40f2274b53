"""Bulk bodies, and ids that repeat: reproducible, as often as asked, and none that was not given before."""

import json
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.bulk import ConflictingIds, ConflictPlan, frame_bodies, frame_with_ids

LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"x")), max_size=40)


def _unframe(body: bytes) -> list[bytes]:
    assert body.endswith(b"\n")
    lines = body[:-1].split(b"\n")
    assert set(lines[0::2]) == {b'{"index":{}}'}
    return lines[1::2]


def _cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[first:last] for first, last in pairwise(edges)]


@given(lines=LINES, per_body=st.integers(1, 12), cuts=st.lists(st.integers(0, 500), max_size=20))
def test_framing_keeps_every_document_whatever_the_blocks(lines: list[bytes], per_body: int, cuts: list[int]):
    stream = b"".join(line + b"\n" for line in lines)
    bodies = list(frame_bodies(_cut(stream, cuts), per_body))
    assert [line for _, body in bodies for line in _unframe(body)] == lines
    assert all(documents == len(_unframe(body)) for documents, body in bodies)
    assert [documents for documents, _ in bodies[:-1]] == [per_body] * (len(bodies) - 1)
    assert sum(documents for documents, _ in bodies) == len(lines)


def test_body_is_what_the_bulk_endpoint_takes():
    bodies = list(frame_bodies([b'{"a":1}\n{"a":2}\n{"a"', b":3}\n"], 2))
    assert bodies == [
        (2, b'{"index":{}}\n{"a":1}\n{"index":{}}\n{"a":2}\n'),
        (1, b'{"index":{}}\n{"a":3}\n'),
    ]
    assert [json.loads(line) for line in bodies[0][1].splitlines()][1::2] == [{"a": 1}, {"a": 2}]


def test_unfinished_last_line_is_a_document():
    assert list(frame_bodies([b"a\nb"], 5)) == [(2, b'{"index":{}}\na\n{"index":{}}\nb\n')]


def test_a_body_is_given_out_as_soon_as_it_is_full():
    def blocks() -> Iterator[bytes]:
        yield b"a\nb\n"
        raise AssertionError("read ahead")

    assert next(frame_bodies(blocks(), 2))[0] == 2


def test_a_body_needs_a_document():
    with pytest.raises(ValueError, match="at least one"):
        list(frame_bodies([b"a\n"], 0))


def test_documents_bring_their_ids():
    documents = [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    ids, repeated = [42, 42, 12_345_678_901], [False, True, False]
    assert frame_with_ids(documents, ids, repeated, "index").splitlines() == [
        b'{"index":{"_id":"0000000042"}}',
        b'{"a":1}',
        b'{"index":{"_id":"0000000042"}}',
        b'{"a":2}',
        b'{"index":{"_id":"12345678901"}}',
        b'{"a":3}',
    ]
    assert frame_with_ids(documents, ids, repeated, "update").splitlines()[2:4] == [
        b'{"update":{"_id":"0000000042"}}',
        b'{"doc":{"a":2}}',
    ]


PLANS = st.builds(
    ConflictPlan,
    documents=st.integers(1, 3000),
    probability=st.floats(0, 1),
    shuffled=st.booleans(),
    recency=st.floats(0, 1),
)
SEEDS = st.integers(0, 2**64 - 1)


def taken(plan: ConflictPlan, seed: int, *counts: int) -> tuple[list[int], list[bool]]:
    ids = ConflictingIds(plan, seed)
    parts = [ids.take(count) for count in counts]
    return (
        np.concatenate([numbers for numbers, _ in parts]).tolist(),
        np.concatenate([repeated for _, repeated in parts]).tolist(),
    )


@given(plan=PLANS, seed=SEEDS, cuts=st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_how_many_are_taken_at_a_time_makes_no_difference(plan: ConflictPlan, seed: int, cuts: list[int]):
    assert taken(plan, seed, *cuts) == taken(plan, seed, sum(cuts))


@given(plan=PLANS, seed=SEEDS)
def test_every_id_is_new_or_was_given_before(plan: ConflictPlan, seed: int):
    numbers, repeated = taken(plan, seed, plan.documents)
    given_before: set[int] = set()
    for number, again in zip(numbers, repeated, strict=True):
        assert (number in given_before) == again
        given_before.add(number)
    assert given_before <= set(range(plan.documents))


@given(documents=st.integers(1, 5000), seed=SEEDS)
def test_shuffled_ids_without_repetitions_are_a_permutation(documents: int, seed: int):
    numbers, _ = taken(ConflictPlan(documents, 0.0, shuffled=True), seed, documents)
    assert sorted(numbers) == list(range(documents))


@given(plan=PLANS, seed=SEEDS)
def test_when_all_ids_are_given_every_one_repeats(plan: ConflictPlan, seed: int):
    numbers, repeated = taken(plan, seed, 2 * plan.documents)
    assert len(set(numbers)) == repeated.count(False) <= plan.documents
    assert set(numbers) <= set(range(plan.documents))


def test_new_ids_count_up_unless_they_are_shuffled():
    assert taken(ConflictPlan(50, 0.0), 1, 50)[0] == list(range(50))
    shuffled, _ = taken(ConflictPlan(5000, 0.0, shuffled=True), 1, 5000)
    # A random order puts hardly an id where it was, and knows no trend.
    assert sum(place == number for place, number in enumerate(shuffled)) < 10
    assert abs(np.corrcoef(shuffled, range(5000))[0, 1]) < 0.05


@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_ids_repeat_as_often_as_told(probability: float):
    _, repeated = taken(ConflictPlan(20_000, probability), 3, 20_000)
    assert not repeated[0]
    assert np.mean(repeated) == pytest.approx(probability, abs=0.01)


def ages(recency: float) -> np.ndarray:
    """How far back repeated ids lie, as a share of those given by then."""
    numbers, repeated = taken(ConflictPlan(40_000, 0.5, recency=recency), 5, 40_000)
    given = np.cumsum(~np.array(repeated))
    late = np.array(repeated) & (given > 1000)
    return 1 - np.array(numbers)[late] / given[late]


def test_without_recency_all_earlier_ids_repeat_alike():
    counts, _ = np.histogram(ages(0.0), bins=10, range=(0, 1))
    assert counts.min() > 0.9 * counts.mean()
    assert counts.max() < 1.1 * counts.mean()


@pytest.mark.parametrize("recency", [0.001, 0.1, 0.5, 1.0])
def test_with_recency_the_age_of_repeated_ids_is_exponential(recency: float):
    found = ages(recency)
    rate = 30 * recency
    assert np.median(found) == pytest.approx(-np.log((1 + np.exp(-rate)) / 2) / rate, rel=0.1)
    assert found.mean() == pytest.approx(1 / rate - 1 / np.expm1(rate), rel=0.1)
