"""One screen a night: the answer first, everything that matters, nothing beyond the screen."""

import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.nightly.model import Event, Recovered
from benchctl.nightly.text import status_text, summary
from nightly_suites import eventful_log, eventful_nights, make_finding, make_night, make_raised, night_id

QUIET = """\
big5 night 7: quiet

Night 00007-20260607-0300: 2026-06-07 03:00, 1 h 01 min, run 20260607-0300-big5-a
Page: site/big5/index.html
"""
ALARM = """\
big5 night 42: 1 alarm raised, 1 recovered

#1 range p90 service time on es@latest is 11.8% slower since night 40
    +11.8% (95% interval +8.1 to +15.6), since night 40, last good night 39
    Changed then: es@latest: version 8.12.0 → 8.13.0; kernel 6.1.0 → 6.1.7
    Confirmed by run 20260712-0345-confirm-c: 8 + 8 forks, p <0.001
    benchctl compare 20260709-0300-big5-a:es@latest 20260712-0300-big5-a:es@latest --challenge \\
    big5

Recovered:
  #2 sort is slower (two nights as before)

Open:
  #3 terms is slower (night 30)

To know:
  3 of 5 forks of each variant fitted into the budget of 1 h 30 min.

Night 00042-20260712-0300: 2026-07-12 03:00, 1 h 01 min, run 20260712-0300-big5-a
"""
STATUS = """\
big5 night 55: broken: interrupted, the power went
Last night:  2026-07-25 03:00, took 1 h 01 min
Running now: ann, pid 12, since 03:00
Alarming:    2 alarms open
    #1 range p90 service time on es@latest is 11.8% slower since night 40
    #2 range on os@latest answers otherwise: 1,001 hits, not 1,000
    acknowledge with: benchctl nightly ack
    #4 range throughput on es@latest is 10% lower since night 40 (acknowledged by bea: the new
        default; see the release notes)
Page:        site/big5/index.html
"""


def log_of_night_42() -> tuple[Event, ...]:
    return (
        make_raised(2, title="sort is slower", night=night_id(30)),
        make_raised(3, title="terms is slower", night=night_id(30)),
        make_raised(1),
        Recovered(2, "2026-07-12T04:00:00Z", night_id(42), "two nights as before"),
    )


def test_a_quiet_night_is_two_facts():
    assert summary(make_night(7), (), site="site/big5/index.html") == QUIET


def test_an_alarm_says_what_how_much_since_when_why_and_how_to_see_it_again():
    assert summary(make_night(42, forks_done=3), log_of_night_42()) == ALARM


def test_the_status_says_what_is_alarming_and_who_holds_the_lock():
    text = status_text(
        "big5",
        eventful_nights()[54],
        eventful_log(),
        holder="ann, pid 12, since 03:00",
        site="site/big5/index.html",
    )
    assert text == STATUS


def test_the_status_of_a_suite_that_never_ran_says_so():
    text = status_text("big5", None, ())
    assert text.startswith("big5: no night yet\n")
    assert "Alarming:    nothing" in text


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({"status": "failed", "reason": "no space left"}, "big5 night 7: broken: failed, no space left"),
        ({"status": "running"}, "big5 night 7: still running"),
        (
            {"canary_moved": "pinned was 7% slower", "findings": (make_finding(status="held"),)},
            "big5 night 7: quiet, 1 held, the host moved",
        ),
        (
            {"noise": ("load",), "findings": (make_finding(),)},
            "big5 night 7: quiet, 1 unconfirmed, on a noisy host",
        ),
    ],
)
def test_the_first_line_is_the_answer_with_its_doubts(changes: dict[str, Any], first: str):
    assert summary(make_night(7, **changes), ()).splitlines()[0] == first


def test_a_start_that_only_waits_is_not_said_to_run():
    text = status_text("big5", None, (), holder="process 7 of user ann", waits_for="process 5 of user bea")
    assert "Waiting now: process 7 of user ann, for another benchctl: process 5 of user bea\n" in text
    assert "Running now" not in text


def test_a_command_too_long_for_a_screen_is_pointed_to_and_not_cut():
    text = summary(make_night(42), (make_raised(command=f"benchctl run {'--variant es ' * 60}"),))
    assert "--variant" not in text
    assert "see the page of alarms" in text


def test_more_alarms_than_a_screen_holds_are_counted():
    log = tuple(make_raised(number, title=f"alarm {number}") for number in range(1, 81))
    lines = summary(make_night(42), log).splitlines()
    shown = sum(line.lstrip().startswith("#") for line in lines)
    assert len(lines) <= 24
    assert lines[0] == "big5 night 42: 80 alarms raised"
    assert f"and {80 - shown} more" in "\n".join(lines)


TEXT = st.text(max_size=300)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.tuples(*[st.integers(0, 30)] * 3),
    text=TEXT,
    width=st.sampled_from([60, 80, 100]),
    forks=st.integers(0, 5),
    noise=st.lists(TEXT, max_size=12),
)
def test_any_night_fits_one_screen_without_control_characters(
    counts: tuple[int, int, int], text: str, width: int, forks: int, noise: list[str]
):
    raised, recovered, waiting = counts
    log: list[Event] = [make_raised(n, title=text, detail=text) for n in range(raised)]
    log += [make_raised(100 + n, title=text, night=night_id(1)) for n in range(waiting + recovered)]
    log += [Recovered(100 + n, "", night_id(42), text) for n in range(recovered)]
    night = make_night(42, forks_done=forks, noise=tuple(noise), reason=text)
    lines = summary(night, log, width=width).split("\n")
    assert lines.pop() == ""
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    assert all(char.isprintable() or ord(char) > 0x9F for line in lines for char in line)


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=12))
def test_a_command_over_several_lines_is_still_the_same_command(words: list[str]):
    printable = ["".join(char for char in word if char.isprintable()) for word in words]
    text = summary(make_night(42), (make_raised(title="t", command=shlex.join(["benchctl", *printable])),))
    start = text.index("    benchctl")
    command = text[start : text.index("\n\n", start)].replace("\\\n", "")  # as a shell does, unlike shlex
    assert shlex.split(command) == ["benchctl", *printable]
