"""`benchctl nightly ack` and `status`: suites as they are kept, no node."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchctl import home as boundary_home
from benchctl.nightly.commands import nightly_group
from benchctl.nightly.folder import Known, remember
from benchctl.nightly.model import alarms_of
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
    remember(found.folder, Known(str(tmp_path / "suite.yml"), store))
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


@pytest.mark.usefixtures("world")
def test_the_status_says_when_and_what_is_alarming() -> None:
    text = call("status").stdout
    assert text == call("status", "suite").stdout
    assert "suite night 3: 2 alarms raised" in text
    assert "2 alarms open" in text


def test_without_a_night_the_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    assert "no suite has had a night" in call("status").stdout


def test_a_page_of_the_nights_is_written_beside_that_of_the_last_run(world: World) -> None:
    target = world.root / "page"
    assert call("status", "suite", "--html", str(target)).stdout == f"Report: {target}/index.html\n"
    night = world.folder.nights(pytest.fail)[-1]
    text = (target / "index.html").read_text()
    assert f'href="{night.run}.html"' in text
    assert (target / f"{night.run}.html").is_file()
    assert "suite night 3: 2 alarms raised" in text
    assert text.count('class="plot"') == 2
