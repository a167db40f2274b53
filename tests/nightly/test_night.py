import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.nightly.alarms import NIGHTS_UNTIL_BLIND
from benchctl.nightly.message import message_of
from benchctl.nightly.night import Ended
from benchctl.nightly.records import NightRecord
from benchctl.results.plan import Plan
from nightly.laboratory import SLOW_FLAG, World
from reference_pages import reference
from track_repository import commit_files, track_files


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def usual(world: World) -> World:
    """Two quiet nights are behind it."""
    for _ in range(2):
        assert world.night().record.status == "done"
    return world


class Killed(BaseException):
    """The process is gone: nothing of ours runs any more."""


def kill(_plan: Plan) -> None:
    raise Killed


def raised(ended: Ended) -> list[int]:
    return [alarm.number for alarm in message_of(ended.record, ended.alarms).raised]


def by_status(record: NightRecord) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in record.findings:
        found.setdefault(one.status, set()).add(one.key.metric)
    return found


def test_a_first_night_says_that_it_has_nothing_to_be_held_against(world: World) -> None:
    record = world.night().record
    assert (record.status, record.number, record.findings) == ("done", 1, ())
    assert "no earlier nights to compare this one with" in record.caveats


def test_a_search_that_matches_nothing_is_a_warning_and_news_once(usual: World) -> None:
    assert not usual.night().record.warnings
    usual.hits = 0
    first, second = (message_of(ended.record, ended.alarms) for ended in (usual.night(), usual.night()))
    assert "range" in first.warnings[0]
    assert first.warnings[0][:60] in first.text
    assert "warning" in first.subject
    assert (first.status, first.is_news) == ("quiet", True)
    assert (second.warnings, second.is_news) == (first.warnings, False)


def test_nights_that_are_alike_are_quiet(usual: World) -> None:
    ended = usual.night()
    assert (ended.record.findings, raised(ended), ended.record.runs) == ((), [], (ended.record.run,))


def with_track(world: World, iterations: int = 3, **files: str) -> NightRecord:
    """A night after a commit to the suite's repository."""
    repository = world.root / "tracks"
    commit_files(repository, track_files("books", iterations) | files, subject=f"{iterations}")
    world.challenge = "first"
    return world.night(more=f"track: books\ntrack-repository: {repository}").record


def test_a_changed_track_is_named_before_the_engine_is_blamed(world: World) -> None:
    first, second = with_track(world), with_track(world, shared="unused")
    assert second.era == first.era
    (change,) = second.changes
    assert change.startswith("commit of the track ")
    third = with_track(world, iterations=5)
    assert third.era != second.era
    assert third.findings == ()
    assert "no earlier nights to compare this one with" in third.caveats


def test_an_engine_that_did_not_change_is_not_slower_when_the_track_did(world: World) -> None:
    for shared in ("1", "2"):
        with_track(world, shared=shared)
    world.mean_ms = lambda spec: 20.0 if spec.name == "candidate" else 10.0
    (reason, *_) = {one.reason for one in with_track(world, shared="3").findings}
    assert reason.startswith("nothing about candidate has changed since night 2, but the track has: commit")


def test_a_slowdown_is_confirmed_and_attributed_and_told_once(usual: World) -> None:
    ended = usual.night(flags=SLOW_FLAG)
    assert by_status(ended.record) == {"confirmed": {"throughput", "service_time_p90"}}
    message = message_of(ended.record, ended.alarms)
    alarm = next(one for one in message.raised if one.finding.key.metric == "throughput")
    found = alarm.finding
    assert found.direction == "slower"
    assert found.effect_percent == pytest.approx(-50, abs=3)
    assert found.low_percent < -45 < found.high_percent + 8
    assert found.since == ended.record.id
    assert found.last_good.startswith("00002-")
    assert any(SLOW_FLAG in change for change in alarm.changes)
    assert found.run == ended.record.runs[1]
    assert found.run in found.command
    assert message.status == "alarm"
    assert "candidate is slower: range of range-only-short" in message.text

    again = usual.night(flags=SLOW_FLAG)
    assert (raised(again), again.record.findings) == ([], ())
    message = message_of(again.record, again.alarms)
    assert (message.status, len(message.open)) == ("quiet", 2)


def test_the_confirming_run_sees_last_good_and_tonight_and_nothing_else(usual: World) -> None:
    usual.night(flags=SLOW_FLAG)
    specs = {spec.name: spec for spec in usual.runs[-1].plan.variants}
    assert set(specs) == {"last-good", "tonight"}
    assert specs["last-good"].jvm_flags == ()
    assert specs["tonight"].jvm_flags == (SLOW_FLAG,)
    assert {"nightly", "suite", "confirm"} <= set(usual.runs[-1].tags)


def test_what_is_back_for_three_nights_recovers_and_raises_nothing(usual: World) -> None:
    usual.night(flags=SLOW_FLAG)
    first = usual.night()
    assert by_status(first.record) == {"known": {"throughput", "service_time_p90"}}
    assert (raised(first), len(first.record.runs)) == ([], 1)
    assert [alarm.is_open for alarm in first.alarms] == [True, True]
    assert [alarm.is_open for alarm in usual.night().alarms] == [True, True]
    third = usual.night()
    assert raised(third) == []
    assert {alarm.recovered for alarm in third.alarms} == {third.record.id}
    assert len(message_of(third.record, third.alarms).recovered) == 2
    # The nights before the alarm are usual again: the same slowdown is found anew.
    assert raised(usual.night(flags=SLOW_FLAG)) == [3, 4]


def test_a_slow_host_moves_the_canary_and_raises_nothing(usual: World) -> None:
    usual.host = 2.0
    ended = usual.night()
    assert raised(ended) == []
    assert "steady" in ended.record.host_moved
    assert by_status(ended.record) == {name: {"throughput", "service_time_p90"} for name in ("host", "held")}
    assert len(ended.record.runs) == 1
    usual.host = 1.0
    assert usual.night().record.findings == ()


def test_a_host_that_stays_slow_is_an_alarm_and_its_level_from_then_on(usual: World) -> None:
    usual.host = 2.0
    ended = [usual.night() for _ in range(NIGHTS_UNTIL_BLIND)]
    assert [len(raised(one)) for one in ended] == [0, 0, 0, 0, 2]
    assert {alarm.finding.key.variant for alarm in ended[-1].alarms} == {"steady"}
    assert usual.night().record.findings == ()
    assert len(raised(usual.night(flags=SLOW_FLAG))) == 2


def test_an_engine_of_which_nothing_changed_is_not_blamed(usual: World) -> None:
    usual.mean_ms = lambda spec: 20.0 if spec.name == "candidate" else 10.0
    ended = usual.night()
    assert by_status(ended.record) == {"same engine": {"throughput", "service_time_p90"}}
    assert (raised(ended), len(ended.record.runs)) == ([], 1)


def test_a_change_that_fresh_nodes_do_not_show_is_refuted(usual: World) -> None:
    usual.build = "build-2"
    usual.mean_ms = lambda spec: 20.0 if spec.name == "candidate" else 10.0
    ended = usual.night()
    assert by_status(ended.record) == {"refuted": {"throughput", "service_time_p90"}}
    assert (raised(ended), len(ended.record.runs)) == ([], 2)


def test_a_confirmation_that_fails_leaves_a_finding_unconfirmed(usual: World) -> None:
    def fail(plan: Plan) -> None:
        if {spec.name for spec in plan.variants} == {"last-good", "tonight"}:
            raise BenchctlError("the archive is gone")

    usual.fail = fail
    ended = usual.night(flags=SLOW_FLAG)
    assert by_status(ended.record) == {"unconfirmed": {"throughput", "service_time_p90"}}
    assert {one.reason for one in ended.record.findings} == {"the confirming run failed: the archive is gone"}
    # It does not become usual, and is looked into again.
    usual.fail = lambda _plan: None
    assert len(raised(usual.night(flags=SLOW_FLAG))) == 2


def test_a_night_keeps_within_its_budget_by_dropping_forks_of_all_variants_alike(usual: World) -> None:
    record = usual.night(more="budget: 10s").record
    assert any("ended after 3 of at most 5 forks" in text for text in record.caveats)


def test_without_time_to_confirm_the_forks_that_it_takes_are_said(usual: World) -> None:
    ended = usual.night(flags=SLOW_FLAG, more="budget: 16s")
    assert raised(ended) == []
    (reason,) = {one.reason for one in ended.record.findings}
    assert reason.startswith("the budget leaves time for 4 forks per variant")


def test_a_night_that_was_killed_is_interrupted_and_the_next_is_measured_anew(usual: World) -> None:
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night()
    assert usual.folder.nights(pytest.fail)[-1].status == "running"
    usual.fail = lambda _plan: None
    record = usual.night().record
    assert (record.number, record.status) == (4, "done")
    cut_off = usual.folder.nights(pytest.fail)[2]
    assert (cut_off.number, cut_off.status) == (3, "interrupted")
    assert message_of(cut_off, []).status == "broken"


def test_a_host_that_is_not_fit_is_refused_and_nothing_is_measured(usual: World) -> None:
    usual.host_limits = "least-free-gb: 1000000"
    runs = len(usual.runs)
    record = usual.night().record
    assert record.status == "refused"
    assert "1e+06 GB are required" in record.reason
    assert len(usual.runs) == runs


def test_a_variant_that_does_not_start_is_told_and_the_others_are_watched(usual: World) -> None:
    usual.broken = "candidate"
    ended = usual.night()
    message = message_of(ended.record, ended.alarms)
    assert (ended.record.status, message.status) == ("done", "broken")
    assert message.subject.startswith(
        "Suite suite, night 3: broken (no fork of candidate was measured: no node started"
    )
    assert "2 series that had values in the night before have none tonight" in ended.record.caveats
    usual.broken = "steady"
    ended = usual.night(flags=SLOW_FLAG)
    assert (len(raised(ended)), message_of(ended.record, ended.alarms).status) == (2, "alarm")


def test_requests_that_fail_are_said(usual: World) -> None:
    usual.failures = {"timeout": 3}
    (warning, *_) = (text for text in usual.night().record.warnings if "candidate" in text)
    assert "15 timeout" in warning


def test_a_bug_ends_the_night_and_is_told(usual: World) -> None:
    def bug(_plan: Plan) -> None:
        raise ZeroDivisionError("division by zero")

    usual.fail = bug
    ended = usual.night()
    assert isinstance(ended.bug, ZeroDivisionError)
    assert (ended.record.status, ended.record.reason) == (
        "failed",
        "internal error: ZeroDivisionError: division by zero",
    )
    assert message_of(ended.record, ended.alarms).status == "broken"


def test_a_failure_is_a_broken_night_and_the_next_one_is_held_against_those_before(usual: World) -> None:
    def full(_plan: Plan) -> None:
        raise BenchctlError("no space is left", hint="free some")

    usual.fail = full
    ended = usual.night()
    assert (ended.record.status, ended.record.reason) == ("failed", "no space is left; free some")
    usual.fail = lambda _plan: None
    assert len(raised(usual.night(flags=SLOW_FLAG))) == 2


def test_what_is_told_keeps_to_its_schema(usual: World) -> None:
    validator = jsonschema.Draft202012Validator(reference().schema("message"))
    for flags in ("", SLOW_FLAG):
        ended = usual.night(flags=flags)
        validator.validate(json.loads(msgspec.json.encode(message_of(ended.record, ended.alarms))))


def with_raw(world: World) -> list[str]:
    """Nights whose runs still have samples."""
    return [path.name for path in sorted(world.home.runs.iterdir()) if (path / "forks").exists()]


def test_samples_of_old_nights_go_and_the_values_stay(usual: World) -> None:
    record = usual.night(more="raw-nights: 2").record
    assert with_raw(usual) == ["run-002", "run-003"]
    assert any("run run-001 has no samples" in text for text in usual.observer.notes)
    assert record.findings == ()
    # Those that an open alarm is about are kept; its confirming run is its night's.
    for _ in range(3):
        ended = usual.night(flags=SLOW_FLAG, more="raw-nights: 1")
    assert with_raw(usual) == ["run-003", "run-004", "run-005", "run-007"]
    assert not any(alarm.recovered for alarm in ended.alarms)


def test_a_run_that_cannot_be_read_is_told_and_keeps_its_samples(usual: World) -> None:
    (usual.home.runs / "run-001" / "run.json").write_text("{")
    ended = usual.night(more="raw-nights: 1")
    assert (ended.record.status, ended.trouble) == ("done", ())
    told = [text for text in usual.observer.notes if "run-001" in text]
    assert len(told) == 2
    assert with_raw(usual) == ["run-001", "run-003"]
