"""Which stored results may stand side by side."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import EngineFacts, RunRecord
from benchctl.results.select import select_sides, unlike
from benchctl.track.model import Challenge, Task
from redlines import SEARCH

RecordMaker = Callable[..., RunRecord]


def with_plan(record: RunRecord, **changes: Any) -> RunRecord:
    return msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, **changes))


def test_the_newest_run_with_both_wins(record: RecordMaker):
    records = [record("1", "es", "os"), record("2", "es", "os"), record("3", "es")]
    chosen = select_sides(records, ["es", "os"])
    assert [side.run.id for side in chosen.sides] == ["2", "2"]
    assert chosen.differences == ()


def test_else_the_newest_comparable_runs(record: RecordMaker):
    odd = with_plan(record("3", "os"), heap_mb=1024)
    chosen = select_sides([record("1", "es"), record("2", "os"), odd], ["es", "os"])
    assert [side.run.id for side in chosen.sides] == ["1", "2"]


def test_unlike_results_are_refused_with_the_reason_and_marked_when_forced(record: RecordMaker):
    records = [record("1", "es"), with_plan(record("2", "os"), heap_mb=1024)]
    with pytest.raises(BenchctlError, match="heap mb differs") as caught:
        select_sides(records, ["es", "os"])
    assert "--force" in caught.value.hint
    forced = select_sides(records, ["es", "os"], force=True)
    assert [side.run.id for side in forced.sides] == ["1", "2"]
    assert any("heap mb differs (512, 1024)" in text for text in forced.differences)


def test_challenges_of_one_name_are_told_apart_by_their_tasks(record: RecordMaker):
    more = Challenge("c", (Task("range", iterations=300),))
    with pytest.raises(BenchctlError) as caught:
        select_sides([record("1", "es"), with_plan(record("2", "os"), schedules=(more,))], ["es", "os"])
    assert '"iterations":300' in caught.value.message
    assert '"iterations":3}' in caught.value.message


def test_another_host_is_another_world(record: RecordMaker):
    here = record("1", "es")
    there = msgspec.structs.replace(
        here, environment=msgspec.structs.replace(here.environment, fingerprint="g", hostname="lab2")
    )
    assert unlike(here, there) == ("the hosts differ (lab1, lab2)",)
    assert unlike(here, here) == ()


def test_a_missing_variant_or_challenge_is_a_usage_error(record: RecordMaker):
    with pytest.raises(UsageError, match="no results of variant 'os'") as caught:
        select_sides([record("1", "es")], ["es", "os"])
    assert "stored variants: es" in caught.value.hint
    with pytest.raises(UsageError, match="challenge d"):
        select_sides([record("1", "es", "os")], ["es", "os"], challenge="d")
    assert select_sides([record("1", "es", "os")], ["es", "os"], challenge="c").sides


def test_failed_forks_are_no_results(record: RecordMaker):
    good = record("1", "es", "os")
    failed = tuple(msgspec.structs.replace(fork, status="failed") for fork in good.forks)
    with pytest.raises(UsageError):
        select_sides([msgspec.structs.replace(good, forks=failed)], ["es", "os"])


def test_across_runs_the_java_runtimes_must_be_alike(record: RecordMaker):
    def on(jdk: str, run_id: str, variant: str) -> RunRecord:
        facts = EngineFacts(variant, "1", "b", "9", "s", jdk, (), ())
        return msgspec.structs.replace(record(run_id, variant), engines=(facts,))

    with pytest.raises(BenchctlError, match="Java runtimes differ"):
        select_sides([on("21", "1", "es"), on("17", "2", "os")], ["es", "os"])
    chosen = select_sides([on("21", "1", "es"), on("21", "2", "os"), on("17", "3", "os")], ["es", "os"])
    assert [side.run.id for side in chosen.sides] == ["1", "2"]


def test_a_search_is_compared_with_searches_for_the_same_objective_only(record: RecordMaker):
    looser = msgspec.structs.replace(SEARCH, limit_ns=100_000_000)
    found = [with_plan(record(name, name), redline=one) for name, one in (("es", SEARCH), ("os", looser))]
    assert unlike(*found)[0].startswith("redline differs")
    assert unlike(found[0], with_plan(record("os", "os"), redline=SEARCH)) == ()
    assert unlike(found[0], record("os", "os")) != ()
