"""The driver's own part of a task: lag on hand-made samples."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.results.samples import Columns, concatenate, empty_columns
from benchctl.stats.summary import (
    covered_ns,
    driver_figures,
    start_late_ns,
    summarise,
)
from benchctl.track.model import Task

US = 1_000
MS = 1_000_000

CLOSED = Task("range", iterations=10)
THROTTLED = Task("range", iterations=10, target_throughput=100)


def samples(start: Sequence[int], end: Sequence[int], due: Sequence[int] | None = None, **columns: object):
    """One client's requests; clocks in milliseconds."""
    made = empty_columns(len(start))
    for name, values in (("start_ns", start), ("end_ns", end), ("intended_ns", due or start)):
        made[name][:] = np.asarray(values) * MS
    for name, values in columns.items():
        made[name][:] = values
    return made


def figures(*chunks: Columns, task: Task = CLOSED, workers: int = 1, **changes: Any):
    return driver_figures(chunks, task, workers=workers, **{"cpu_s": 0.1, "wall_s": 1.0, **changes})


def test_in_a_closed_loop_lag_is_the_time_between_requests():
    found = figures(samples(start=[5, 20, 40], end=[15, 33, 50]))
    assert (found.lag_p50_ns, found.lag_p99_ns, found.lag_max_ns) == (5 * MS, 7 * MS, 7 * MS)
    assert found.think_share == pytest.approx(12 / (12 + 10 + 13 + 10))
    assert found.requests == 3
    assert found.offered_per_s == pytest.approx(3 / 0.045)
    assert found.possible_per_s is None


def test_a_pause_before_the_first_measured_request_is_in_no_measured_time():
    found = figures(samples(start=[0, 60, 80], end=[10, 70, 90], warmup=[True, False, False]))
    assert (found.lag_max_ns, found.think_share) == (50 * MS, pytest.approx(10 / 30))


def test_clients_are_counted():
    both = samples(start=[0, 0, 10, 10], end=[9, 8, 19, 19], client=[0, 4, 0, 4])
    assert (figures(both).clients, figures(samples(start=[0], end=[9])).clients) == (2, 1)


def test_how_late_clients_began_is_that_of_the_first_of_them():
    first, second = samples(start=[7, 20], end=[8, 21]), samples(start=[9], end=[10], client=1)
    assert start_late_ns([first, second], CLOSED, 5 * MS) == 2 * MS
    late = samples(due=[5, 15], start=[6, 15], end=[7, 16])
    assert start_late_ns([late], THROTTLED, 0) == MS
    assert start_late_ns([], CLOSED, 0) is None
    ramped = Task("range", clients=2, time_period=10, ramp_up_time_period=4)
    assert start_late_ns([first], ramped, 5 * MS) is None


def test_a_part_of_the_clients_has_that_part_of_the_rate():
    mine = samples(due=[0, 20, 40], start=[0, 20, 40], end=[1, 21, 41])
    assert figures(mine, task=THROTTLED, share=0.5).offered_per_s == pytest.approx(50)


def test_requests_on_time_have_the_rate_of_the_target_however_few_they_are():
    for count in (1, 2, 10):
        due = [10 * number for number in range(count)]
        found = figures(samples(start=due, end=[at + 3 for at in due], due=due), task=THROTTLED)
        assert (found.offered_per_s, found.due_per_s, found.possible_per_s) == pytest.approx((100, 100, 100))


def test_the_rate_that_is_due_is_that_of_the_arrivals():
    found = figures(samples(due=[3, 9, 40], start=[3, 9, 40], end=[5, 11, 41]), task=THROTTLED)
    assert found.due_per_s == found.offered_per_s == pytest.approx(3 / 0.047)


def test_pages_are_part_of_their_operation():
    rows = samples(start=[0, 8, 0, 22], end=[5, 20, 20, 30], part=[1, 2, 0, 0])
    found = figures(rows)
    assert (found.requests, found.lag_p50_ns) == (2, 2 * MS)


def test_what_waits_are_held_against():
    """A stop counts as far as it was measured."""
    one = samples(start=[0, 500, 520, 530], end=[500, 515, 525, 580], warmup=[True, False, False, False])
    other = samples(start=[505, 565], end=[560, 575], client=1)
    found = figures(concatenate([one, other]), stops=[(400 * MS, 510 * MS), (508 * MS, 514 * MS)])
    assert (found.window_s, found.stopped_s) == (0.08, 0.014)


def test_throttled_tasks_are_measured_from_when_they_were_due():
    found = figures(
        samples(due=[0, 10], start=[5, 12], end=[9, 40]), task=THROTTLED, stops=[(-5 * MS, 5 * MS)]
    )
    assert (found.window_s, found.stopped_s) == (0.04, 0.005)


def test_cpu_is_shared_by_the_processes_of_the_driver():
    rows = samples(start=[0], end=[1])
    assert figures(rows, cpu_s=1.6, wall_s=2.0).cpu_share == pytest.approx(0.8)
    halved = figures(rows, cpu_s=1.6, wall_s=2.0, workers=2)
    assert (halved.cpu_share, halved.workers) == (pytest.approx(0.4), 2)
    assert figures(rows, wall_s=0.0).cpu_share is None


@pytest.mark.parametrize("task", [CLOSED, THROTTLED])
def test_no_samples_have_no_figures(task: Task):
    for chunks in ((), (empty_columns(0),), (samples(start=[0], end=[9], warmup=True),)):
        found = figures(*chunks, task=task)
        assert (found.requests, found.offered_per_s, found.lag_p50_ns, found.think_share) == (
            0,
            None,
            None,
            None,
        )


def test_a_single_closed_request_follows_none_and_has_no_lag():
    found = figures(samples(start=[0], end=[10]))
    assert (found.lag_max_ns, found.think_share, found.offered_per_s) == (None, None, 100.0)


class Asked(NamedTuple):
    """One operation of a client: gaps and times in microseconds."""

    due_after: int
    lag: int
    took: int
    retried_after: int | None
    warmup: bool


asked = st.builds(
    Asked,
    st.integers(0, 3_000),
    st.integers(0, 500),
    st.integers(1, 5_000),
    st.none() | st.integers(0, 900),
    st.booleans(),
)


def played(client: int, script: Sequence[Asked], *, open_loop: bool):
    """A client's rows, and of each operation: measured, lag, start, start by a driver that is never late."""
    rows: list[tuple[int, int, int, int, bool]] = []
    facts: list[tuple[bool, int | None, int, int]] = []
    ended = ideal_ended = None
    due = 0
    for one in script:
        due += one.due_after
        if open_loop:
            possible = max(due, ended if ended is not None else due)
            ideal = max(due, ideal_ended if ideal_ended is not None else due)
        else:
            possible = ended if ended is not None else due
            ideal = ideal_ended if ideal_ended is not None else due
        start = possible + (one.lag if open_loop or ended is not None else 0)
        facts.append((not one.warmup, None if ended is None and not open_loop else one.lag, start, ideal))
        intended = due if open_loop else start
        end = start + one.took
        rows.append((intended, start, end, 0, one.warmup))
        if one.retried_after is not None:
            again = end + one.retried_after
            rows.append((intended, again, again + 7, 1, one.warmup))
            end = again + 7
        ended, ideal_ended = end, ideal + (end - start)
    made = empty_columns(len(rows))
    made["client"][:] = client
    for place, name in enumerate(("intended_ns", "start_ns", "end_ns", "attempt", "warmup")):
        scale = US if name.endswith("_ns") else 1
        made[name][:] = [row[place] * scale for row in rows]
    return made, facts


@given(
    scripts=st.lists(st.lists(asked, min_size=1, max_size=12), min_size=1, max_size=3),
    open_loop=st.booleans(),
    rows=st.integers(1, 5),
)
def test_any_course_in_any_chunks_agrees_with_a_slow_reference(
    *, scripts: Sequence[Sequence[Asked]], open_loop: bool, rows: int
):
    clients = [played(number, script, open_loop=open_loop) for number, script in enumerate(scripts)]
    chunks = [
        {name: values[first : first + rows] for name, values in made.items()}
        for made, _ in clients
        for first in range(0, made["start_ns"].size, rows)
    ]
    found = figures(*chunks, task=THROTTLED if open_loop else CLOSED)
    facts = [fact for _, facts in clients for fact in facts if fact[0]]
    lags = sorted(lag for _, lag, _, _ in facts if lag is not None)
    assert found.requests == len(facts)
    if lags:
        assert found.lag_max_ns == lags[-1] * US
        assert found.lag_p50_ns == lags[(len(lags) + 1) // 2 - 1] * US
    else:
        assert found.lag_max_ns is None
    if open_loop and facts:
        opens = min(
            int(made["intended_ns"][~made["warmup"]].min()) for made, _ in clients if not made["warmup"].all()
        )
        for rate, last in (
            (found.offered_per_s, max(start for *_, start, _ in facts)),
            (found.possible_per_s, max(ideal for *_, ideal in facts)),
        ):
            assert rate == pytest.approx(len(facts) / ((last * US - opens) / 1e9 + 0.01))


@given(script=st.lists(asked, min_size=2, max_size=12), times=st.integers(0, 9))
def test_the_throughput_of_one_client_does_not_depend_on_its_pauses(script: list[Asked], times: int):
    def rate(pauses: int) -> float | None:
        ordered = sorted(script, key=lambda one: not one.warmup)
        rows, _ = played(0, [one._replace(lag=pauses * one.lag) for one in ordered], open_loop=False)
        rows["weight"][:] = 1
        found = summarise(rows, schedule=0, task_index=0, task=CLOSED)
        return msgspec.structs.replace(found, driver=figures(rows)).served_per_s

    assert rate(times) == (rate(0) and pytest.approx(rate(0)))


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).filter(lambda span: span[0] <= span[1]))


@given(SPANS, st.integers(0, 40), st.integers(0, 40))
def test_what_several_processes_stood_still_counts_once(spans: list[tuple[int, int]], begin: int, end: int):
    moments = {at for low, high in spans for at in range(low, high)}
    assert covered_ns(spans, begin, end) == len(moments & set(range(begin, end)))
