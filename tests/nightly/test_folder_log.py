import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.nightly.folder import append_event, read_events
from benchctl.nightly.model import Acknowledged, Event, Raised, Recovered, SeriesKey
from full_disk import nearly_full

AT = "2026-11-21T03:00:00+00:00"


def refused(message: str) -> None:
    raise AssertionError(message)


def acknowledged(alarm: int, text: str = "") -> Acknowledged:
    return Acknowledged(alarm, AT, "me", text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_events_of_every_kind_come_back_in_order(path: Path):
    raised = Raised(1, AT, "00001-20261121-0300", "figure", "slower", SeriesKey("es", "c", "t", "throughput"))
    events: list[Event] = [
        raised,
        acknowledged(1, "two\nlines \N{SNOWMAN}"),
        Recovered(1, AT, "00002-20261122-0300"),
    ]
    for event in events:
        append_event(path, event)
    assert read_events(path, refused) == events
    assert path.read_bytes().count(b"\n") == len(events)


@given(kept=st.integers(0, 5), torn=st.integers(1, 30))
def test_a_line_that_a_power_cut_tore_is_told_and_the_next_one_stands_alone(
    tmp_path_factory: pytest.TempPathFactory, kept: int, torn: int
):
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    for number in range(kept + 1):
        append_event(path, acknowledged(number))
    whole = path.read_bytes()
    path.write_bytes(whole[:-torn])
    last = [acknowledged(kept)] if torn == 1 else []
    told: list[str] = []
    before = read_events(path, told.append)
    assert before == [*map(acknowledged, range(kept)), *last]
    assert told == (
        [] if last else [f"line {kept + 1} of {path} is passed over: it was cut off as it was written"]
    )
    append_event(path, acknowledged(99))
    again: list[str] = []
    assert read_events(path, again.append) == [*before, acknowledged(99)]
    assert len(again) == len(told)


@pytest.mark.parametrize(
    "line", [b'{"type":"moved","at":"x"}', b'{"type":"recovered","alarm":1,"new":2}', b"\xff"]
)
def test_a_line_of_a_newer_benchctl_is_told_with_its_number(path: Path, line: bytes):
    append_event(path, acknowledged(1))
    path.write_bytes(path.read_bytes() + line + b"\n\n")
    append_event(path, acknowledged(2))
    told: list[str] = []
    assert read_events(path, told.append) == [acknowledged(1), acknowledged(2)]
    (text,) = told
    assert text.startswith(f"line 2 of {path} is passed over: ")
    assert "cut off" not in text


def test_an_event_that_does_not_fit_on_the_disk_leaves_nothing_behind(path: Path):
    append_event(path, acknowledged(1))
    before = path.read_bytes()
    with (
        nearly_full(len(before) + 30),
        pytest.raises(BenchctlError, match=r"cannot add to .*events\.jsonl: File too large"),
    ):
        append_event(path, acknowledged(2))
    assert path.read_bytes() == before


_APPENDS = """
import sys
from pathlib import Path
from benchctl.nightly.model import Acknowledged
from benchctl.nightly.folder import append_event
for number in range(50):
    append_event(Path(sys.argv[1]), Acknowledged(int(sys.argv[2]), "now", "me", f"{number} {'x' * 300}"))
"""


def test_two_processes_at_once_lose_and_mix_nothing(path: Path):
    alarms = (1, 2)
    commands = [[sys.executable, "-c", _APPENDS, str(path), str(alarm)] for alarm in alarms]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(60) for process in processes] == [0, 0]
    events = read_events(path, refused)
    for alarm in alarms:
        mine = [event for event in events if isinstance(event, Acknowledged) and event.alarm == alarm]
        assert [event.text.split()[0] for event in mine] == [str(number) for number in range(50)]
