"""`benchctl nightly ack`, `annotate`, `status` and `report`: suites as they are kept, no node."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchctl import home as boundary_home
from benchctl.errors import UsageError
from benchctl.nightly.commands import nightly_group
from benchctl.nightly.folder import Known, remember
from benchctl.nightly.model import alarms_of, annotations_of
from golden import Cases
from nightly.laboratory import SLOW_FLAG, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two quiet nights and a slow one, with two alarms."""
    found = World(tmp_path)
    monkeypatch.setenv("BENCHCTL_HOME", str(found.home.root))
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    for flags in ("", "", SLOW_FLAG):
        found.night(flags=flags)
    store = str(found.home.runs)
    remember(found.folder, Known("suite", "Suite", str(tmp_path / "suite.yml"), str(found.site), store))
    return found


def call(*arguments: str) -> Result:
    return CliRunner().invoke(nightly_group, list(arguments), catch_exceptions=False)


def states(world: World) -> dict[int, str]:
    return {one.raised.alarm: one.state for one in alarms_of(world.folder.events(pytest.fail))}


def test_an_alarm_is_acknowledged_by_its_number_once(world: World) -> None:
    assert states(world) == {1: "open", 2: "open"}
    assert (
        "alarm 1 is acknowledged: candidate is slower" in call("ack", "suite", "1", "--text", "known").stdout
    )
    assert states(world) == {1: "acknowledged", 2: "open"}
    assert "alarm 1 was acknowledged by" in call("ack", "suite", "1").stdout
    assert "alarm 2 is acknowledged" in call("ack", str(world.root / "suite.yml"), "--all").stdout
    assert states(world) == {1: "acknowledged", 2: "acknowledged"}
    assert call("ack", "suite", "--all").stdout == "no alarm of suite is open\n"


def test_what_is_not_there_is_told(cases: Cases, world: World, tmp_path: Path):
    cases("suites", lambda words: call(*json.loads(words)), tmp_path)
    assert states(world) == {1: "open", 2: "open"}


def test_an_annotation_bears_on_the_next_night_or_a_named_one(world: World) -> None:
    assert "from night 4 on" in call("annotate", "suite", "new disk").stdout
    assert "levels restart" in call("annotate", "suite", "new host", "--night", "2", "--rebase").stdout
    found = annotations_of(world.folder.events(pytest.fail))
    assert [(one.text, one.number, one.night, one.rebase) for one in found] == [
        ("new disk", 4, "", False),
        ("new host", 2, "00002-20261102-0300", True),
    ]


def test_the_status_says_when_and_what_is_alarming(world: World) -> None:
    text = call("status").stdout
    assert text == call("status", "suite").stdout
    assert "suite night 3: 2 alarms raised" in text
    assert "2 alarms open" in text
    assert str(world.site) in text


def test_without_a_night_the_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    assert "no suite has had a night" in call("status").stdout
    with pytest.raises(UsageError, match="no suite has had a night"):
        call("report")


def test_pages_are_written_anew_wherever_they_are_wanted(world: World) -> None:
    target = world.root / "elsewhere"
    assert call("report", "--html", str(target)).stdout == f"Report: {target}/suite/index.html\n"
    assert (target / "suite" / "alarms.html").is_file()
    assert not (target / "suite" / "runs").exists()
    call("report", "suite", "--html", str(target), "--runs")
    assert len(list((target / "suite" / "runs").glob("*.html"))) == 4
