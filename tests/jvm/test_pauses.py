"""Times at which a JVM stood still, in the words of JDK 17, 21 and 25."""

import pytest

from benchctl.jvm.pauses import GcPause, Safepoint, read_stops

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


def test_what_stands_around_pauses_is_passed_over():
    assert not read(
        " GC(0) Pause Young (Normal) (G1 Evacuation Pause)",
        " GC(0) User=0.01s Sys=0.00s Real=0.00s",
        " GC(0)   Evacuate Collection Set: 4.0ms",
        ' Safepoint "Cut", Time since last: 58',
    )
