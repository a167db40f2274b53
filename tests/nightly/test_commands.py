"""`benchctl nightly`: a suite to begin with, a night and how it exits, the status, and alarms."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

import benchctl.home as boundary_home
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.nightly import run as night_run
from benchctl.nightly.commands import nightly_group
from benchctl.nightly.message import Message
from benchctl.nightly.records import NightRecord
from benchctl.nightly.suite import load_suite
from golden import Cases
from nightly.laboratory import SLOW_FLAG, World
from receivers import Web, web_server


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two quiet nights, and commands that make up the next."""
    found = World(tmp_path)
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(found.home.root))
    monkeypatch.setattr(night_run, "Shift", partial(night_run.Shift, laboratory=found.laboratory))
    found.notified_night()
    found.notified_night()
    return found


@pytest.fixture
def slow(world: World) -> World:
    """A slow night after them, with two alarms."""
    world.night(flags=SLOW_FLAG)
    return world


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with web_server() as server:
        monkeypatch.setenv("HOOK", server.url)
        yield server


def call(*arguments: str) -> Result:
    return CliRunner().invoke(nightly_group, list(arguments))


def run(world: World, *options: str, flags: str = "", more: str = "") -> Result:
    return call("run", "--quiet", str(world.write_suite(flags=flags, more=more)), *options)


def last(world: World) -> NightRecord:
    return world.folder.nights(pytest.fail)[-1]


# init.


def test_the_template_is_printed_or_written_and_can_be_loaded(tmp_path: Path):
    path = tmp_path / "search.yml"
    printed, written = call("init"), call("init", str(path))
    assert written.stdout == ""
    assert f"benchctl nightly run {path}" in written.stderr
    assert "0 3 * * * /" in written.stderr
    assert f" nightly run --quiet {path}\n" in written.stderr
    assert path.read_text(encoding="utf-8") == printed.stdout
    assert load_suite(path).confirm_forks == 50
    assert isinstance(call("init", str(path)).exception, UsageError)
    assert isinstance(call("init", str(tmp_path / "none" / "s.yml")).exception, UsageError)


# run.


def test_a_dry_run_plans_the_next_night_and_begins_none(world: World):
    ended = run(world, "--dry-run", more="budget: 30m")
    assert ended.exit_code == ExitCode.OK
    assert "range-only-short with candidate, steady, forks for 30m, at most 5 per variant" in ended.stdout
    assert isinstance(run(world, "--dry-run", more="include-tasks: none-such").exception, UsageError)
    assert (len(world.folder.nights(pytest.fail)), len(world.runs)) == (2, 2)


def test_a_quiet_night_says_nothing_and_json_is_the_message(world: World):
    ended = run(world)
    assert (ended.exit_code, ended.output) == (0, "")
    printed = call("run", str(world.write_suite(flags=SLOW_FLAG)), "--format", "json")
    assert isinstance(printed.exception, BenchctlError)
    assert printed.exception.exit_code == ExitCode.REGRESSION
    assert msgspec.json.decode(printed.stdout.encode(), type=Message).status == "alarm"


def test_a_challenge_that_nobody_has_is_a_broken_night(world: World):
    world.challenge = "range-onyl"
    ended = run(world)
    assert isinstance(ended.exception, BenchctlError)
    assert ended.exception.exit_code == ExitCode.FAILED
    assert (last(world).status, "range-onyl" in last(world).reason) == ("failed", True)


def test_two_nights_at_once_are_one(world: World):
    with world.folder.lock():
        ended = run(world)
        assert (ended.exit_code, "is already running" in ended.stdout) == (0, True)
        assert isinstance(run(world, "--on-busy", "fail").exception, BenchctlError)
    assert last(world).number == 2


def test_a_night_that_cannot_begin_is_reported(world: World, web: Web):
    (world.folder.root / "suite.json").write_text("{")
    ended = run(world, more="notify: {webhook-env: HOOK}")
    assert isinstance(ended.exception, BenchctlError)
    assert "suite.json is damaged" in ended.exception.message
    assert [msgspec.json.decode(one.body, type=Message).status for one in web.posted] == ["broken"]


def test_a_webhook_that_was_down_gets_the_message_with_the_next_night(world: World, web: Web):
    notify = "notify: {webhook-env: HOOK}"
    web.status = 503
    alarm = run(world, flags=SLOW_FLAG, more=notify)
    assert isinstance(alarm.exception, BenchctlError)
    assert alarm.exception.exit_code == ExitCode.REGRESSION
    assert "HTTP 503" in alarm.exception.message
    missed = last(world)
    assert not missed.told
    web.status = 204
    quiet = run(world, flags=SLOW_FLAG, more=notify)
    assert (quiet.exit_code, quiet.output) == (0, "")
    received = msgspec.json.decode(web.posted[-1].body, type=Message)
    assert (len(web.posted), received.night, received.status) == (2, missed.id, "alarm")
    assert all(night.told for night in world.folder.nights(pytest.fail))
    run(world, flags=SLOW_FLAG, more=notify)
    assert len(web.posted) == 2


def test_a_night_that_was_killed_before_its_message_is_reported_by_the_next(world: World, web: Web):
    killed = world.night(flags=SLOW_FLAG).record
    run(world, flags=SLOW_FLAG, more="notify: {webhook-env: HOOK}")
    assert [msgspec.json.decode(one.body, type=Message).night for one in web.posted] == [killed.id]


# status and ack.


def test_an_alarm_is_acknowledged_by_its_number_once(slow: World):
    def acknowledged() -> list[bool]:
        return [bool(alarm.acknowledged) for alarm in slow.folder.state().alarms]

    assert acknowledged() == [False, False]
    ended = call("ack", "suite", "1", "--text", "known")
    assert "alarm 1 is acknowledged: candidate is slower" in ended.stdout
    assert slow.folder.state().alarms[0].acknowledged.endswith(": known")
    assert "alarm 1 was acknowledged by" in call("ack", "suite", "1").stdout
    assert "alarm 2 is acknowledged" in call("ack", str(slow.root / "suite.yml"), "--all").stdout
    assert acknowledged() == [True, True]
    assert call("ack", "suite", "--all").stdout == "no alarm of suite is open\n"


def test_what_is_not_there_is_told(cases: Cases, slow: World, tmp_path: Path):
    def refused(words: str) -> object:
        return CliRunner().invoke(nightly_group, json.loads(words), catch_exceptions=False)

    cases("suites", refused, tmp_path)
    assert all(alarm.is_open for alarm in slow.folder.state().alarms)


@pytest.mark.usefixtures("slow")
def test_the_status_says_when_and_what_is_alarming():
    text = call("status").stdout
    assert text == call("status", "suite").stdout
    assert "Suite suite, night 3: 2 new alarms" in text
    assert "Open alarms: 2" in text


def test_without_a_night_the_status_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    assert "no suite has had a night" in call("status").stdout


def test_a_page_of_the_nights_is_written(slow: World):
    target = slow.root / "page"
    assert call("status", "suite", "--html", str(target)).stdout == f"Report: {target}/index.html\n"
    text = (target / "index.html").read_text()
    assert "Suite suite, night 3: 2 new alarms" in text
    assert text.count('class="plot"') == 2
