"""`benchctl nightly run`: what is refused before a lock is waited for, and who gets which message."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

import benchctl.home as boundary_home
from benchctl.cli import root
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.nightly.commands import run
from benchctl.nightly.folder import Known, SuiteFolder, remember
from benchctl.nightly.model import Message, NightRecord
from nightly.laboratory import SLOW_FLAG, World
from receivers import Web, web_server


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two quiet nights, and commands that make up the next."""
    found = World(tmp_path)
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(found.home.root))
    monkeypatch.setattr(run, "Shift", partial(run.Shift, laboratory=found.laboratory))
    found.notified_night()
    found.notified_night()
    return found


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


def call(world: World, flags: str = "", more: str = "") -> Result:
    path = world.write_suite(flags=flags, more=more)
    return CliRunner().invoke(run.run_command, ["--quiet", str(path)])


def last(world: World) -> NightRecord:
    return world.folder.nights(pytest.fail)[-1]


def test_a_challenge_that_nobody_has_is_found_before_any_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    suite = tmp_path / "big5.yml"
    suite.write_text("variants: [es@8.19.0]\nchallenges: [range-onyl]\n")
    ended = CliRunner().invoke(run.run_command, [str(suite)], env={"BENCHCTL_HOME": str(tmp_path / "home")})
    assert isinstance(ended.exception, UsageError)
    assert ended.exception.message.startswith(f"{suite}:2:14: challenges, entry 1: unknown challenge")
    assert not list(tmp_path.glob("home/nightly/*"))


def test_a_dry_run_plans_the_next_night_and_begins_none(world: World):
    def dry(more: str) -> Result:
        path = world.write_suite(more=more)
        return CliRunner().invoke(run.run_command, [str(path), "--dry-run"], catch_exceptions=True)

    nights = world.folder.nights(pytest.fail)
    ended = dry("budget: 30m")
    assert ended.exit_code == ExitCode.OK
    assert "range-only-short with candidate, steady, forks for 30m, at most 5 per variant" in ended.stdout
    assert "resume" not in ended.stdout
    assert isinstance(dry("include-tasks: none-such").exception, UsageError)
    assert (world.folder.nights(pytest.fail), len(world.runs)) == (nights, 2)
    begun = world.folder.begin("suite", datetime.now(UTC))
    assert f"would resume night {begun.id}" in dry("").stdout
    assert "resume" not in dry("on-cut-off: discard").stdout
    assert last(world) == begun


def test_a_webhook_that_was_down_gets_the_message_with_the_next_night(world: World, web: Web):
    notify = f"notify: [{{webhook: {web.url}}}]"
    web.status = 503
    alarm = call(world, SLOW_FLAG, notify)
    assert isinstance(alarm.exception, BenchctlError)
    assert alarm.exception.exit_code == ExitCode.REGRESSION
    assert "HTTP 503" in alarm.exception.message
    missed = last(world)
    assert len(missed.unnotified or ()) == 1
    web.status = 204
    quiet = call(world, SLOW_FLAG, notify)
    assert (quiet.exit_code, quiet.output) == (0, "")
    received = msgspec.json.decode(web.posted[-1].body, type=Message)
    assert (len(web.posted), received.night, received.status) == (2, missed.id, "alarm")
    assert [one.unnotified for one in world.folder.nights(pytest.fail)[2:]] == [(), ()]
    call(world, SLOW_FLAG, notify)
    assert len(web.posted) == 2


def test_a_night_that_was_killed_before_its_message_is_reported_by_the_next(world: World, web: Web):
    notify = f"notify: [{{webhook: {web.url}}}]"
    killed = world.night(flags=SLOW_FLAG, more=notify).record
    assert killed.unnotified is None
    ended = call(world, SLOW_FLAG, notify)
    assert isinstance(ended.exception, BenchctlError)
    assert ended.exception.exit_code == ExitCode.REGRESSION
    assert f"night {killed.id}" in ended.stderr
    assert "candidate is slower" in ended.stderr
    assert [msgspec.json.decode(one.body, type=Message).night for one in web.posted] == [killed.id]


def test_a_night_is_resumed_by_its_id_or_its_run_unless_it_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    done, path = last(world), world.write_suite()
    remember(world.folder, Known(str(path), str(world.home.runs)))
    ended = CliRunner().invoke(root, ["resume", done.id])
    assert ended.exception is None
    assert f"night {done.id} of {world.folder.root.name} is done" in ended.stderr
    for words in (["--format", "csv"], ["--budget", "1h"]):
        assert isinstance(CliRunner().invoke(root, ["resume", done.id, *words]).exception, UsageError)
    ended = CliRunner().invoke(root, ["extend", done.id])
    assert isinstance(ended.exception, UsageError)

    begun = SuiteFolder(world.folder.root).begin("big5", datetime.now(UTC))
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(run.run_command, "callback", lambda **words: asked.append(words))
    assert CliRunner().invoke(root, ["resume", begun.id, "-q"]).exception is None
    (words,) = asked
    assert words == {
        "path": path,
        "output_format": "text",
        "dry_run": False,
        "on_busy": None,
        "quiet": True,
    }
    late = msgspec.structs.replace(begun, started="2026-01-01T03:00:00+00:00")
    world.folder.save(late)
    assert "would be two nights in one" in str(CliRunner().invoke(root, ["resume", begun.id]).exception)
