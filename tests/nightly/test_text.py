"""One screen a night: the answer first, everything that matters, nothing beyond the screen."""

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import golden
from benchctl.nightly.model import Acknowledged, Change, Event, Recovered
from benchctl.nightly.text import status_text, summary
from nightly_suites import eventful_log, eventful_nights, make_finding, make_night, make_raised, night_id

LOG = (
    make_raised(2, title="sort is slower", night=night_id(30)),
    make_raised(3, title="terms is slower", night=night_id(30)),
    make_raised(1),
    Recovered(2, "2026-07-12T04:00:00Z", night_id(42), "two nights as before"),
)


def night(**changes: Any) -> str:
    return summary(make_night(7, **changes), ())


SCENES: dict[str, str] = {
    "a quiet night": summary(make_night(7), ()),
    "an alarm": summary(make_night(42, forks_done=3), LOG),
    "alarms are open, and somebody holds the lock": status_text(
        "big5", eventful_nights()[54], eventful_log(), holder="ann, pid 12, since 03:00"
    ),
    "a suite that never ran": status_text("big5", None, ()),
    "a start that only waits": status_text(
        "big5", None, (), holder="process 7 of user ann", waits_for="process 5 of user bea"
    ),
    "a night that failed": night(status="failed", reason="no space left"),
    "a night under way": night(status="running"),
    "the host moved": night(canary_moved="pinned was 7% slower", findings=(make_finding(status="held"),)),
    "a noisy host, and what could not be confirmed": night(noise=("load",), findings=(make_finding(),)),
    "a change without an alarm": night(changes=(Change("kernel", "6.1", "6.2"),)),
    "a word that is too long": night(changes=(Change("kernel", "", "w" * 400),)),
    "a command too long for a screen": summary(
        make_night(42), (make_raised(command=f"benchctl run {'--variant es ' * 60}"),)
    ),
    "an alarm that somebody knows of": summary(
        make_night(42), (make_raised(night=night_id(40)), Acknowledged(1, "", "bea"))
    ),
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = [f"# {name}\n{text}" for name, text in SCENES.items()]
    golden.agree(request.config, Path(__file__).parent / "golden" / "text.txt", "\n".join(texts))


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
