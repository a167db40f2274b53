"""Times at which a JVM stood still, in the words of JDK 17, 21 and 25."""

import pytest

from benchctl.engine.usage import GcPause, parse_pause
from benchctl.evidence.collectors import Safepoint, read_stops

MB = 1 << 20
PID = 3204


def read(*texts: str) -> list[GcPause | Safepoint]:
    return list(read_stops((f"[20000000ns][{PID}]{text}\n" for text in texts), PID, 1_000_000))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            " GC(0) Pause Young (Normal) (G1 Evacuation Pause) 12M->11M(256M) 4.696ms",
            GcPause(14_304_000, 4_696_000, "Young (Normal) (G1 Evacuation Pause)", 12 * MB, 11 * MB),
        ),
        (
            "[gc          ] GC(7) Pause Remark 1024K->2G(4G) 0.500ms",
            GcPause(18_500_000, 500_000, "Remark", MB, 2048 * MB),
        ),
        (" GC(3) Y: Pause Mark Start 0.010ms", GcPause(18_990_000, 10_000, "Mark Start")),
    ],
)
def test_pauses_know_the_heap_where_the_collector_says_it(text: str, expected: GcPause):
    assert read(text) == [expected]


def test_a_line_with_any_decorations_is_read_on_the_clock_that_its_end_is_told_by():
    line = "[2026-11-21T13:06:39.013+0000][11037][info ][gc     ] GC(2) Pause Remark 18M->17M(4096M) 3.091ms"
    assert parse_pause(line, -1) == GcPause(-3_091_001, 3_091_000, "Remark", 18 * MB, 17 * MB)
    assert parse_pause(line.removesuffix("ms"), -1) is None


@pytest.mark.parametrize(
    "parts",
    [
        "Reaching safepoint: 5129 ns, Cleanup: 13922 ns, At safepoint: 700 ns, Total: 9000 ns",  # 17
        "Reaching safepoint: 5129 ns, Cleanup: 1 ns, Leaving safepoint: 2 ns, Total: 9000 ns",  # 21
        "Reaching safepoint: 5129 ns, At safepoint: 7 ns, Total: 9000 ns, Threads: 0 runnable",  # 25
    ],
)
def test_a_safepoint_begins_when_it_was_asked_for(parts: str):
    found = read(f' Safepoint "ICBufferFull", Time since last: 583353540 ns, {parts}')
    assert found == [Safepoint(18_991_000, 5129, 9000, "ICBufferFull")]


@pytest.mark.parametrize(
    "text",
    [
        f" GC(0) Pause Remark 18M->17M(4096M) {'9' * 400}.091ms",
        f" GC(0) Pause Remark {'9' * 5000}M->17M(4096M) 3.091ms",
        f" GC(0) Pause Remark 18M->{'9' * 5000}M(4096M) 3.091ms",
        f' Safepoint "Cut", Reaching safepoint: {"9" * 5000} ns, Total: 9000 ns',
    ],
)
def test_numbers_that_no_jvm_writes_are_passed_over(text: str):
    assert not any(isinstance(stop, Safepoint) or stop.before_bytes for stop in read(text))
    assert not list(read_stops([f"[{'9' * 5000}ns][{PID}] GC(0) Pause Remark 0.5ms"], PID, 0))


def test_what_stands_around_pauses_is_passed_over():
    assert not read(
        " GC(0) Pause Young (Normal) (G1 Evacuation Pause)",
        " GC(0) User=0.01s Sys=0.00s Real=0.00s",
        " GC(0)   Evacuate Collection Set: 4.0ms",
        ' Safepoint "Cut", Time since last: 58',
    )
