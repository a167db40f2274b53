import json
import shutil
from datetime import timedelta
from pathlib import Path

import jsonschema
import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.nightly.model import Acknowledged, NightRecord, alarms_of
from benchctl.nightly.text import message_of
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


def by_status(record: NightRecord) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in record.findings:
        found.setdefault(one.status, set()).add(one.key.metric)
    return found


def test_a_first_night_says_that_it_has_nothing_to_be_held_against(world: World) -> None:
    record = world.night().record
    assert (record.status, record.number, record.findings, record.forks_done) == ("done", 1, (), 5)
    assert "no earlier nights to compare this one with" in record.caveats


def test_nights_that_are_alike_are_quiet(usual: World) -> None:
    ended = usual.night()
    assert (ended.record.findings, ended.raised, ended.record.canary_moved) == ((), [], "")
    assert ended.record.runs == (ended.record.run,)


def with_track(world: World, iterations: int = 3, **files: str) -> NightRecord:
    """A night after a commit to the suite's repository."""
    repository = world.root / "tracks"
    commit_files(repository, track_files("books", iterations) | files, subject=f"{iterations}")
    world.challenge = "first"
    return world.night(more=f"track: books\ntrack-repository: {repository}").record


def test_a_changed_track_is_named_before_the_engine_is_blamed(world: World) -> None:
    first, second = with_track(world), with_track(world, shared="unused")
    assert first.track is not None
    assert second.track is not None
    assert second.era == first.era
    assert [(one.what, one.variant) for one in second.changes] == [("commit of the track", "")]
    third = with_track(world, iterations=5)
    assert third.era != second.era
    assert third.findings == ()
    (caveat,) = [one for one in third.caveats if "no earlier nights" in one]
    assert "the track changed: commit of the track" in caveat
    assert second.track.changed[:12] in caveat


def test_an_engine_that_did_not_change_is_not_slower_when_the_track_did(world: World) -> None:
    for shared in ("1", "2"):
        with_track(world, shared=shared)
    world.mean_ms = lambda spec: 20.0 if spec.name == "candidate" else 10.0
    (reason, *_) = {one.reason for one in with_track(world, shared="3").findings}
    assert reason.startswith("nothing about candidate has changed since night 2, but the track has: commit")


def test_a_slowdown_is_confirmed_and_attributed_and_told_once(usual: World) -> None:
    ended = usual.night(flags=SLOW_FLAG)
    assert by_status(ended.record) == {"confirmed": {"throughput", "service_time_p90"}}
    throughput = next(one for one in ended.raised if one.key.metric == "throughput")
    assert throughput.direction == "slower"
    assert throughput.effect_percent == pytest.approx(-50, abs=3)
    assert throughput.low_percent is not None
    assert throughput.high_percent is not None
    assert throughput.low_percent < -45 < throughput.high_percent + 8
    assert throughput.since == ended.record.id
    assert throughput.last_good.startswith("00002-")
    assert any(SLOW_FLAG in change.after for change in throughput.changes)
    assert throughput.confirmation is not None
    assert throughput.confirmation.run == ended.record.runs[1]
    assert f"tonight=es@8.11.0,jvm:{SLOW_FLAG}" in throughput.command
    assert "last-good=es@8.11.0 " in throughput.command
    message = message_of(ended.record, ended.events)
    assert message.status == "alarm"
    assert "candidate is slower: range of range-only-short" in message.text

    again = usual.night(flags=SLOW_FLAG)
    assert (again.raised, again.record.findings) == ([], ())
    assert message_of(again.record, again.events).status == "quiet"
    assert len(message_of(again.record, again.events).open) == 2


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
    assert (first.raised, len(first.record.runs)) == ([], 1)
    assert {alarm.state for alarm in alarms_of(first.events)} == {"open"}
    assert {alarm.state for alarm in alarms_of(usual.night().events)} == {"open"}
    third = usual.night()
    assert third.raised == []
    assert {alarm.state for alarm in alarms_of(third.events)} == {"recovered"}
    assert len(message_of(third.record, third.events).recovered) == 2
    # The nights before the alarm are usual again: the same slowdown is found anew.
    assert len(usual.night(flags=SLOW_FLAG).raised) == 2


def test_after_an_acknowledgement_the_new_level_is_usual(usual: World) -> None:
    ended = usual.night(flags=SLOW_FLAG)
    for alarm in ended.raised:
        usual.folder.append(Acknowledged(alarm.alarm, "", "ann", "known"))
    again = usual.night(flags=SLOW_FLAG)
    assert (again.raised, again.record.findings) == ([], ())
    assert {alarm.state for alarm in alarms_of(again.events)} == {"acknowledged"}


def test_a_slow_host_moves_the_canary_and_raises_nothing(usual: World) -> None:
    usual.host = 2.0
    ended = usual.night()
    assert ended.raised == []
    assert "steady" in ended.record.canary_moved
    assert by_status(ended.record) == {"held": {"throughput", "service_time_p90"}}
    assert len(ended.record.runs) == 1
    usual.host = 1.0
    assert usual.night().record.findings == ()


def test_an_engine_of_which_nothing_changed_is_not_blamed(usual: World) -> None:
    usual.mean_ms = lambda spec: 20.0 if spec.name == "candidate" else 10.0
    ended = usual.night()
    assert by_status(ended.record) == {"same engine": {"throughput", "service_time_p90"}}
    assert (ended.raised, len(ended.record.runs)) == ([], 1)


def test_a_change_that_fresh_nodes_do_not_show_is_refuted(usual: World) -> None:
    usual.build = "build-2"
    usual.mean_ms = lambda spec: 20.0 if spec.name == "candidate" else 10.0
    ended = usual.night()
    assert by_status(ended.record) == {"refuted": {"throughput", "service_time_p90"}}
    assert (ended.raised, len(ended.record.runs)) == ([], 2)


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
    assert len(usual.night(flags=SLOW_FLAG).raised) == 2


def test_a_night_keeps_within_its_budget_by_dropping_forks_of_all_variants_alike(usual: World) -> None:
    record = usual.night(more="budget: 10s\nconfirm: {share-of-budget: 0.4}").record
    assert (record.forks_planned, record.forks_done) == (5, 3)
    assert any("ended after 3 of at most 5 forks" in text for text in record.caveats)


def test_without_time_to_confirm_the_forks_that_it_takes_are_said(usual: World) -> None:
    ended = usual.night(flags=SLOW_FLAG, more="budget: 11s\nconfirm: {share-of-budget: 0}")
    assert ended.raised == []
    (reason,) = {one.reason for one in ended.record.findings}
    assert reason.startswith("the budget leaves time for 0 forks per variant")


def test_a_night_that_was_killed_is_gone_on_with(usual: World) -> None:
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night()
    assert usual.folder.nights(str)[-1].status == "running"
    usual.fail = lambda _plan: None
    usual.now -= timedelta(days=1, hours=-1)
    record = usual.night().record
    assert (record.number, record.status, record.forks_done) == (3, "done", 5)
    assert record.run == usual.runs[-1].id
    assert usual.night().record.number == 4


def test_what_cannot_be_gone_on_with_is_measured_anew(usual: World) -> None:
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night()
    usual.fail = lambda _plan: None
    usual.now -= timedelta(days=1, hours=-1)
    usual.not_resumable = "the kernel differs"
    record = usual.night().record
    assert (record.number, record.status, record.forks_done) == (3, "done", 5)
    assert any("is left out: the kernel differs" in text for text in record.caveats)
    assert record.run == usual.runs[-1].id


@pytest.mark.parametrize(
    ("flags", "more", "label"),
    [
        (SLOW_FLAG, "", "candidate"),
        ("", "", "renamed"),
        ("", "budget: 5h", "candidate"),
        ("", "params: {iterations: 7}", "candidate"),
        ("", "restart: task", "candidate"),
    ],
)
def test_a_suite_that_was_edited_since_a_night_was_cut_off_is_measured_as_it_is(
    usual: World, flags: str, more: str, label: str
) -> None:
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night()
    usual.fail = lambda _plan: None
    usual.now -= timedelta(days=1, hours=-1)
    ended = usual.night(flags=flags, more=more, label=label)
    assert (ended.record.number, ended.record.run) == (3, "run-004")
    assert any("edited" in text for text in ended.record.caveats)
    assert [one.label for one in ended.record.variants] == [label, "steady"]
    (run,) = (one for one in usual.runs if one.id == "run-004")
    assert run.plan.variants[0].jvm_flags == ((flags,) if flags else ())


def test_what_no_measurement_depends_on_can_be_edited_while_a_night_is_cut_off(usual: World) -> None:
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night()
    usual.fail = lambda _plan: None
    usual.now -= timedelta(days=1, hours=-1)
    record = usual.night(more="margins: {throughput: 9%}").record
    assert (record.number, record.run) == (3, "run-003")
    assert not any("edited" in text for text in record.caveats)


def test_a_release_since_a_night_was_cut_off_is_no_edit_of_the_suite(
    usual: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = iter(("8.12.0", "8.13.0"))
    monkeypatch.setattr("benchctl.nightly.measure.latest_version", lambda _engine: next(newest))
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night(options="@latest")
    usual.fail = lambda _plan: None
    usual.now -= timedelta(days=1, hours=-1)
    record = usual.night(options="@latest").record
    assert (record.run, record.variants[0].spec.version) == ("run-003", "8.12.0")


def test_a_night_whose_run_is_gone_is_measured_anew_and_says_so(usual: World) -> None:
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night()
    usual.fail = lambda _plan: None
    shutil.rmtree(usual.home.runs / "run-003")
    usual.now -= timedelta(days=1, hours=-1)
    record = usual.night().record
    assert (record.number, record.status) == (3, "done")
    assert any(str(usual.home.runs) in text for text in record.caveats)


@pytest.mark.parametrize(("hours", "more"), [(1, "on-cut-off: discard"), (24, ""), (-9999, "")])
def test_a_night_that_was_killed_long_ago_is_discarded(usual: World, hours: int, more: str) -> None:
    usual.fail = kill
    with pytest.raises(Killed):
        usual.night()
    usual.fail = lambda _plan: None
    usual.now += timedelta(days=-1, hours=hours)
    assert usual.night(more=more).record.number == 4
    cut_off = usual.folder.nights(str)[2]
    assert (cut_off.number, cut_off.status) == (3, "discarded")
    # It is missing, and stays so.
    assert 3 not in {int(night) for one in usual.folder.series(None, None) for night in one.nights}


def test_alarms_of_a_night_that_was_killed_after_raising_them_are_not_raised_twice(usual: World) -> None:
    first = usual.night(flags=SLOW_FLAG)
    usual.folder.save(msgspec.structs.replace(first.record, status="running", findings=(), runs=()))
    usual.now -= timedelta(days=1, hours=-1)
    again = usual.night(flags=SLOW_FLAG)
    assert again.record.number == first.record.number
    assert len(alarms_of(again.events)) == len(first.raised)


def test_a_host_that_is_not_fit_is_refused_and_nothing_is_measured(usual: World) -> None:
    usual.host_limits = "least-free-gb: 1000000"
    runs = len(usual.runs)
    record = usual.night().record
    assert record.status == "refused"
    assert "1e+06 GB are wanted" in record.reason
    assert len(usual.runs) == runs


def test_a_variant_that_does_not_start_is_told_and_the_others_are_watched(usual: World) -> None:
    usual.broken = "candidate"
    ended = usual.night()
    message = message_of(ended.record, ended.events)
    assert (ended.record.status, message.status) == ("done", "broken")
    assert message.subject.startswith(
        "suite night 3: broken: no fork of candidate was measured: no node started"
    )
    assert "2 series that had figures in the night before have none tonight" in ended.record.caveats
    usual.broken = "steady"
    ended = usual.night(flags=SLOW_FLAG)
    assert (len(ended.raised), message_of(ended.record, ended.events).status) == (2, "alarm")


def test_requests_that_fail_are_said(usual: World) -> None:
    usual.failures = {"timeout": 3}
    assert any(
        "of range failed on candidate" in text and text.startswith("15 of ")
        for text in usual.night().record.caveats
    )


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
    assert message_of(ended.record, ended.events).status == "broken"


def test_a_failure_is_a_broken_night_and_the_next_one_is_held_against_those_before(usual: World) -> None:
    def full(_plan: Plan) -> None:
        raise BenchctlError("no space is left", hint="free some")

    usual.fail = full
    ended = usual.night()
    assert (ended.record.status, ended.record.reason) == ("failed", "no space is left; free some")
    usual.fail = lambda _plan: None
    assert len(usual.night(flags=SLOW_FLAG).raised) == 2


def test_what_is_told_keeps_to_its_schema(usual: World) -> None:
    validator = jsonschema.Draft202012Validator(reference().schema("message"))
    for flags in ("", SLOW_FLAG):
        ended = usual.night(flags=flags)
        validator.validate(json.loads(msgspec.json.encode(message_of(ended.record, ended.events))))
