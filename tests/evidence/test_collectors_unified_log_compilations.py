"""What compilers log, in the words of JDK 17, 21 and 25."""

from hypothesis import given
from hypothesis import strategies as st

from benchctl.evidence.collectors import JitEvent, read_events
from golden import Cases

PID = 3163
STARTED_NS = 1000


def one(text: str) -> JitEvent:
    (event,) = read_events([f"[151000ns][{PID}]{text}\n"], PID, STARTED_NS)
    assert event.uptime_ns == 150_000
    return event


def test_a_line_is_one_event(cases: Cases):
    cases("compilations", one)


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
