"""What compilers log, in the words of JDK 17, 21 and 25."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.evidence.unified_log import JitEvent, read_events

PID = 3163
STARTED_NS = 1000


def one(text: str) -> JitEvent:
    (event,) = read_events([f"[151000ns][{PID}]{text}\n"], PID, STARTED_NS)
    assert event.uptime_ns == 150_000
    return event


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "   14       3       D::run (40 bytes)",
            JitEvent(150_000, "compiled", 14, 3, osr=False, method="D::run"),
        ),
        (
            "   15%     4       D::run @ 5 (40 bytes)",
            JitEvent(150_000, "compiled", 15, 4, osr=True, method="D::run"),
        ),
        (
            " 9941  s!b  1       a.B$C::<init> (6 bytes)   made not entrant",
            JitEvent(150_000, "invalidated", 9941, 1, osr=False, method="a.B$C::<init>"),
        ),
        (
            "   16       4       D::run (40 bytes)   made not entrant: uncommon trap",
            JitEvent(150_000, "invalidated", 16, 4, osr=False, method="D::run", reason="uncommon trap"),
        ),
        (
            " 2376       3       java.util.Itr::next (20 bytes)   made zombie",
            JitEvent(150_000, "removed", 2376, 3, osr=False, method="java.util.Itr::next"),
        ),
        (
            "    6     n 0       java.lang.System::arraycopy (native)   (static)",
            JitEvent(150_000, "compiled", 6, 0, osr=False, method="java.lang.System::arraycopy"),
        ),
        (
            "    6     n 0       jdk.Unsafe::getReferenceVolatile (native)   ",
            JitEvent(150_000, "compiled", 6, 0, osr=False, method="jdk.Unsafe::getReferenceVolatile"),
        ),
        (
            "   31       4       a.B::c (9000 bytes)   COMPILE SKIPPED: out of nodes",
            JitEvent(
                150_000, "failed", 31, 4, osr=False, method="a.B::c",
                reason="out of nodes",
            ),
        ),
        (
            # Without tiers, there is no column for them.
            "   31  s        a.B::c (9 bytes)",
            JitEvent(150_000, "compiled", 31, 4, osr=False, method="a.B::c"),
        ),
        (
            " cid=  13     level=4 D.run(LD$S;I)J trap_bci=8 predicate maybe_recompile pc=0x1",
            JitEvent(150_000, "deoptimised", 13, 4, osr=False, method="D::run", reason="predicate"),
        ),
        (
            " cid=  18 osr level=4 a.D.run(LD$S;I)J trap_bci=16 osr_bci=5 class_check none pc=0x1",
            JitEvent(150_000, "deoptimised", 18, 4, osr=True, method="a.D::run", reason="class_check"),
        ),
        (" of another form", JitEvent(150_000, "unread", reason="of another form")),
        (
            "   14       3       D::run (40 bytes)   made something else",
            JitEvent(150_000, "unread", reason="14       3       D::run (40 bytes)   made something else"),
        ),
    ],
)  # fmt: skip
def test_a_line_is_one_event(text: str, expected: JitEvent):
    assert one(text) == expected


def test_lines_of_other_processes_and_broken_ones_are_passed_over():
    lines = [
        "[1000ns][31630]   14       3       D::run (40 bytes)",
        "[1000ns][3163",
        "",
        f"[2000ns][{PID} ]   14       3       D::run (40 bytes)",
    ]
    assert [event.uptime_ns for event in read_events(lines, PID, 0)] == [2000]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=80)))
def test_every_line_of_the_process_is_one_event_whatever_it_says(texts: list[str]):
    lines = [f"[{number}ns][{PID}]{text}" for number, text in enumerate(texts)]
    whole = [line for line in lines if "\n" not in line]
    assert len(list(read_events(whole, PID, 0))) == len(whole)
