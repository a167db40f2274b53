"""Evidence counted within the measured part of a task."""

from typing import Any

import numpy as np
import pytest

from benchctl.evidence.activity import Cause, Thirds, gc_activity, jit_activity, os_activity
from benchctl.evidence.files import GC_DTYPES, JIT_DTYPES, OS_DTYPES, Dtypes, stacked_columns
from benchctl.results.reading import TaskWindow
from benchctl.results.samples import Columns

S = 10**9
MB = 1 << 20
WINDOW = TaskWindow(begin_ns=5 * S, measured_ns=10 * S, end_ns=40 * S)


def columns(dtypes: Dtypes, *rows: tuple[Any, ...]) -> Columns:
    found = stacked_columns(list(rows), dtypes)
    return {"t_ns": found.pop("uptime_ns"), **found}


def jit(at_s: float, what: str, level: int) -> tuple[Any, ...]:
    return round(at_s * S), what, 1, level, False, "a::b", ""


def test_compilations_are_counted_by_compiler_and_third():
    events = columns(
        JIT_DTYPES,
        jit(7, "compiled", 4),  # in the warm-up
        jit(10, "compiled", 1),
        jit(15, "compiled", 3),
        jit(15, "compiled", 0),  # a wrapper of native code is nobody's
        jit(25, "compiled", 4),
        jit(35, "compiled", 4),
        jit(39, "invalidated", 4),
        jit(39, "invalidated", 3),
        jit(40, "deoptimised", 4),
        jit(41, "deoptimised", 4),
    )
    found = jit_activity(events, WINDOW, deoptimisations=True)
    assert (found.c1, found.c2) == (Thirds(2, 2, 0), Thirds(2, 0, 1))
    assert (found.c2_given_up, found.deoptimised) == (Thirds(1, 0, 1), Thirds(1, 0, 1))
    assert found.seconds == 30
    assert jit_activity(events, WINDOW, deoptimisations=False).deoptimised is None


def pause(at_s: float, ms: int, before: int = -1, after: int = -1, cause: str = "Young") -> tuple[Any, ...]:
    sizes = tuple(size * MB if size >= 0 else -1 for size in (before, after))
    return round(at_s * S), "pause", cause, ms * 10**6, -1, *sizes


def test_pauses_are_summed_by_cause_and_safepoints_beside_them():
    events = columns(
        GC_DTYPES,
        pause(9, 100),
        pause(12, 5),
        pause(13, 7),
        pause(14, 2, cause="Remark"),
        (round(11.9 * S), "safepoint", "G1", 6 * 10**6, 10**6, -1, -1),
        (20 * S, "safepoint", "ICBufferFull", 3 * 10**6, 2 * 10**6, -1, -1),
    )
    found = gc_activity(events, WINDOW)
    assert (found.pauses, found.pause_ms, found.longest_ms) == (3, 14.0, 7.0)
    assert found.causes == {"Young": Cause(2, 12.0), "Remark": Cause(1, 2.0)}
    assert (found.safepoints, found.safepoint_ms) == (2, 9.0)
    assert (found.reach_ms, found.longest_reach_ms) == (3.0, 2.0)
    assert found.allocated_bytes_per_s is None


def test_allocation_is_what_the_heap_filled_between_collections_around_the_task():
    events = columns(GC_DTYPES, pause(0, 10_000, 50, 10), pause(20, 0, 210, 20), pause(60, 0, 100, 20))
    # From the end of the first pause 20 MB/s for 10 s, then 2 MB/s for 20 s.
    found = gc_activity(events, WINDOW).allocated_bytes_per_s
    assert found == pytest.approx((20 * 10 + 2 * 20) / 30 * MB)


def test_without_two_collections_around_it_nobody_knows_what_was_allocated():
    assert gc_activity(columns(GC_DTYPES), WINDOW).allocated_bytes_per_s is None
    outside = columns(GC_DTYPES, pause(1, 0, 50, 10), pause(2, 0, 50, 10))
    assert gc_activity(outside, WINDOW).allocated_bytes_per_s is None


def reading(at_s: float, value: float, threads: float = 40.0) -> tuple[Any, ...]:
    return round(at_s * S), *[value] * 8, threads, 1e9


def test_counters_grow_evenly_between_readings():
    found = os_activity(columns(OS_DTYPES, reading(0, 0), reading(20, 20, 90), reading(60, 100)), WINDOW)
    assert found.user_s == pytest.approx(10 + 40)
    assert found.involuntary_switches == pytest.approx(50)
    assert (found.threads, found.rss_bytes) == (90, 1e9)


def test_the_most_is_looked_for_up_to_the_readings_next_to_the_task():
    readings = columns(
        OS_DTYPES, reading(1, 0, 99), reading(9, 0, 50), reading(41, 0, 60), reading(42, 0, 99)
    )
    assert os_activity(readings, WINDOW).threads == 60


def test_what_was_not_read_is_not_known():
    found = os_activity(columns(OS_DTYPES, (S, *[np.nan] * 10)), WINDOW)
    assert (found.user_s, found.threads) == (None, None)
