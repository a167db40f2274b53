"""What charts show of one fork's task holds every request, exactly once."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.samples import Columns, Outcome, concatenate, select
from benchctl.stats.task_shape import Sequel, Survey, TaskShape
from sampled import make_samples


def shape_of(chunks: Columns | Sequence[Columns], *, points: int = 400, throttled: bool = False) -> TaskShape:
    chunks = [chunks] if isinstance(chunks, dict) else chunks
    survey = Survey(throttled=throttled)
    for chunk in chunks:
        survey.add(chunk)
    sequel = Sequel(survey, points)
    for chunk in chunks:
        sequel.add(chunk)
    return sequel.shape()


@st.composite
def client_chunks(draw: st.DrawFn) -> list[Columns]:
    """Rows of a few clients, client after client, cut anywhere; some warm-up, some failed, some parts."""
    clients = []
    for client in range(draw(st.integers(1, 3))):
        size = draw(st.integers(0, 40))
        service = draw(st.lists(st.floats(0.01, 50), min_size=size, max_size=size))
        rows = make_samples(service, gap_ms=0.1, start_ms=draw(st.floats(0, 5)), client=client)
        rows["warmup"][: draw(st.integers(0, size))] = True
        rows["outcome"][:] = draw(st.lists(st.sampled_from((0, 0, 0, 1, 8)), min_size=size, max_size=size))
        rows["part"][:] = draw(st.lists(st.sampled_from((0, 0, 1)), min_size=size, max_size=size))
        clients.append(rows)
    everything = concatenate(clients)
    cut = draw(st.integers(0, everything["part"].size))
    first = np.arange(everything["part"].size) < cut
    return [select(everything, first), select(everything, ~first)]


def successful(chunks: Sequence[Columns]) -> Columns:
    rows = concatenate(list(chunks))
    return select(rows, (rows["part"] == 0) & (rows["outcome"] == Outcome.OK))


@settings(deadline=None)
@given(chunks=client_chunks(), points=st.integers(1, 30))
def test_the_course_holds_every_successful_request_exactly_once(chunks: list[Columns], points: int):
    shape, ok = shape_of(chunks, points=points), successful(chunks)
    warmup = int(ok["warmup"].sum())
    assert (shape.warmup, shape.samples) == (warmup, ok["warmup"].size - warmup)
    if shape.course is None:
        assert ok["warmup"].size == 0
        return
    course = shape.course
    assert course.requests.size <= points + 1
    assert course.requests[course.ranks < 0].sum() == warmup
    assert course.requests[course.ranks >= 0].sum() == shape.samples
    assert course.ranks.tolist() == (np.cumsum(course.requests) - course.requests - warmup).tolist()


@settings(deadline=None)
@given(chunks=client_chunks())
def test_the_course_with_a_point_a_request_is_the_requests_by_start(chunks: list[Columns]):
    ok = successful(chunks)
    order = np.lexsort((ok["start_ns"], ~ok["warmup"]))
    if np.unique(ok["start_ns"]).size < ok["start_ns"].size:
        return  # of requests that started together, the order is open
    shape = shape_of(chunks, points=1_000)
    if shape.course is None:
        return
    assert shape.course.p50_ns.tolist() == (ok["end_ns"] - ok["start_ns"])[order].tolist()
    assert np.round(shape.course.seconds * 1e9).tolist() == (ok["start_ns"][order] - shape.origin_ns).tolist()


@settings(deadline=None)
@given(chunks=client_chunks())
def test_the_flow_holds_every_completion_exactly_once(chunks: list[Columns]):
    shape, ok = shape_of(chunks), successful(chunks)
    flow = shape.flow
    assert flow.units.sum() == ok["start_ns"].size
    assert flow.units.size <= 1024
    assert np.log2(flow.cell_s) == round(np.log2(flow.cell_s))
    seconds = np.sort(ok["end_ns"] - shape.origin_ns) / 1e9
    before = np.searchsorted(seconds, flow.first * flow.cell_s + np.arange(flow.units.size + 1) * flow.cell_s)
    assert flow.units.tolist() == np.diff(before).tolist()


@settings(deadline=None)
@given(chunks=client_chunks())
def test_distributions_are_of_successful_measured_operations_alone(chunks: list[Columns]):
    ok = successful(chunks)
    own = (ok["end_ns"] - ok["start_ns"])[~ok["warmup"]]
    found = shape_of(chunks).service
    if own.size == 0:
        assert found is None
        return
    assert (found.requests, found.values_ns[0], found.values_ns[-1]) == (own.size, own.min(), own.max())
    np.testing.assert_allclose(found.levels_ns, np.quantile(own, (np.arange(100) + 0.5) / 100))


def test_points_are_medians_of_as_many_requests_with_a_band():
    service = [float(1 + number % 10) for number in range(100)]
    shape = shape_of(make_samples(service, warmup=[True] * 20 + [False] * 80), points=10)
    assert shape.course.requests.tolist() == [10] * 10
    assert shape.course.ranks.tolist() == [*range(-20, 80, 10)]
    np.testing.assert_allclose(shape.course.p50_ns, 5.5e6)
    np.testing.assert_allclose(shape.course.p10_ns, 1.9e6)
    np.testing.assert_allclose(shape.course.p90_ns, 9.1e6)


def test_starts_that_are_too_many_to_be_told_apart_still_give_even_points():
    shape = shape_of(make_samples([0.1] * 200_000, gap_ms=0.017), points=100)
    assert shape.course.requests.sum() == 200_000
    assert shape.course.requests.min() > 1_900
    assert shape.course.requests.max() < 2_100


def test_the_measured_window_of_an_open_loop_begins_when_its_first_request_was_due():
    rows = make_samples([4.0, 4.0, 4.0], start_ms=10, warmup=[True, False, False])
    rows["intended_ns"] -= 3_000_000
    opened, closed = shape_of(rows, throttled=True), shape_of(rows)
    assert (opened.origin_ns, closed.origin_ns) == (11_000_000, 14_000_000)
    assert closed.latency is None
    assert opened.latency.values_ns.tolist() == [7_000_000]
    assert opened.service.values_ns.tolist() == [4_000_000]


def test_failures_are_counted_and_what_the_driver_cut_off_is_not():
    shape = shape_of(
        make_samples([1.0] * 5, warmup=[True, False, False, False, False], outcome=[1, 0, 1, 8, 3])
    )
    assert (shape.warmup, shape.samples, shape.failures) == (0, 1, 2)


def test_a_task_that_never_succeeded_has_a_flow_of_nothing():
    shape = shape_of(make_samples([1.0] * 3, outcome=3))
    assert (shape.service, shape.course, shape.failures) == (None, None, 3)
    assert shape.flow.units.sum() == 0


def test_a_task_that_ended_in_its_warm_up_lies_before_its_window():
    shape = shape_of(make_samples([10.0] * 3, warmup=True))
    assert shape.flow.end_s == pytest.approx(0)
    assert shape.flow.begin_s == pytest.approx(-0.03)
    assert shape.course.ranks.tolist() == [-3, -2, -1]
