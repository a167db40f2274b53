"""Times at which a JVM stood still, in the words of JDK 17, 21 and 25."""

import pytest

from benchctl.engine.usage import GcPause, parse_pause

END_NS = 19_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            " GC(0) Pause Young (Normal) (G1 Evacuation Pause) 12M->11M(256M) 4.696ms",
            GcPause(14_304_000, 4_696_000, "Young (Normal) (G1 Evacuation Pause)"),
        ),
        (
            "[gc          ] GC(7) Pause Remark 1024K->2G(4G) 0.500ms",
            GcPause(18_500_000, 500_000, "Remark"),
        ),
        (" GC(3) Y: Pause Mark Start 0.010ms", GcPause(18_990_000, 10_000, "Mark Start")),
    ],
)
def test_pauses_are_read_with_and_without_the_heap(text: str, expected: GcPause):
    assert parse_pause(text, END_NS) == expected


def test_a_line_with_any_decorations_is_read_on_the_clock_that_its_end_is_told_by():
    line = "[2026-11-21T13:06:39.013+0000][11037][info ][gc     ] GC(2) Pause Remark 18M->17M(4096M) 3.091ms"
    assert parse_pause(line, -1) == GcPause(-3_091_001, 3_091_000, "Remark")
    assert parse_pause(line.removesuffix("ms"), -1) is None


@pytest.mark.parametrize(
    "text",
    [
        f" GC(0) Pause Remark 18M->17M(4096M) {'9' * 400}.091ms",
        f" GC(0) Pause Remark {'9' * 5000}M->17M(4096M) 3.091ms",
        f" GC(0) Pause Remark 18M->{'9' * 5000}M(4096M) 3.091ms",
    ],
)
def test_numbers_that_no_jvm_writes_are_passed_over(text: str):
    pause = parse_pause(text, END_NS)
    assert pause is None or pause.pause_ns == 3_091_000


@pytest.mark.parametrize(
    "text",
    [
        " GC(0) Pause Young (Normal) (G1 Evacuation Pause)",
        " GC(0) User=0.01s Sys=0.00s Real=0.00s",
        " GC(0)   Evacuate Collection Set: 4.0ms",
    ],
)
def test_what_stands_around_pauses_is_passed_over(text: str):
    assert parse_pause(text, END_NS) is None
