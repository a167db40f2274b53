"""Which stored results may stand side by side."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import EngineFacts, RunRecord
from benchctl.results.plan import EvidenceSpec, SweepSpec, Swept
from benchctl.results.select import Archive, Selection, Wanted, choose_sides, select_sides
from benchctl.results.store import RunStore
from builders import ES, OS
from golden import Cases

RecordMaker = Callable[..., RunRecord]


def with_plan(record: RunRecord, **changes: Any) -> RunRecord:
    return msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, **changes))


def choose(records: Sequence[RunRecord], names: Sequence[str], **options: Any) -> Selection:
    """Of records given oldest first, as a store lists them."""
    return select_sides(records[::-1], [Wanted(name, variant=name) for name in names], **options)


def ids(selection: Selection) -> list[str]:
    return [side.run.id for side in selection.sides]


def labels(selection: Selection) -> list[str]:
    return [side.label for side in selection.sides]


@pytest.mark.parametrize(
    ("status", "forks", "changes", "reason"),
    [
        ("complete", 1, {}, "it has 1 fork of es, and a verdict takes 3"),
        ("running", 3, {}, "running"),
        ("failed", 3, {}, "failed"),
        ("complete", 3, {"test_mode": True}, "it was a --test-mode run"),
        ("complete", 3, {"evidence": EvidenceSpec(("profile",))}, "its forks collected evidence"),
    ],
)
def test_sound_results_come_before_newer_ones(
    record: RecordMaker, status: str, forks: int, changes: dict[str, Any], reason: str
):
    newer = with_plan(record("2", "es", "os", status=status, count=forks), **changes)
    chosen = choose([record("1", "es", "os"), newer], ["es", "os"])
    assert ids(chosen) == ["1", "1"]
    assert chosen.remarks == (f"run 2 was skipped: {reason}; to compare it anyway, write 2:es",)
    # Without others it will have to do; and whoever names it gets it, other sides from it, too.
    alone = choose([newer], ["es", "os"])
    assert (ids(alone), alone.remarks) == (["2", "2"], ())
    named = select_sides(
        [newer, record("1", "es", "os")],
        [Wanted("2:es", variant="es", runs=(newer,)), Wanted("os", variant="os")],
    )
    assert (ids(named), named.remarks) == (["2", "2"], ())


def test_sound_results_of_two_runs_come_before_one_run_that_is_not(record: RecordMaker):
    records = [record("1", "es"), record("2", "os"), record("3", "es", "os", count=1)]
    chosen = choose(records, ["es", "os"])
    assert ids(chosen) == ["1", "2"]
    assert [text.partition(":")[0] for text in chosen.remarks] == ["run 3 was skipped"]


def test_the_first_side_may_be_older_where_the_newest_has_no_like(record: RecordMaker):
    odd = with_plan(record("3", "es"), heap_mb=1024)
    assert ids(choose([record("1", "es"), record("2", "os"), odd], ["es", "os"])) == ["1", "2"]


def test_unlike_results_are_refused_with_the_reason_and_marked_when_forced(record: RecordMaker):
    records = [record("1", "es"), with_plan(record("2", "os"), heap_mb=1024)]
    with pytest.raises(UsageError, match="different heap mb") as caught:
        choose(records, ["es", "os"])
    assert "--force" in caught.value.hint
    assert "--variant" in caught.value.hint
    forced = choose(records, ["es", "os"], force=True)
    assert ids(forced) == ["1", "2"]
    assert any("different heap mb: 512 vs 1024" in text for text in forced.differences)


def test_force_takes_an_unlike_run_for_that_side_only_which_has_no_other(record: RecordMaker):
    older, newer = record("2", "os"), with_plan(record("3", "os"), heap_mb=1024)
    odd = with_plan(record("4", "odd"), heap_mb=2048, variants=(msgspec.structs.replace(ES, name="odd"),))
    records = [record("1", "es"), older, newer, odd]
    forced = choose([record("0", "es"), *records], ["es", "os", "odd"], force=True)
    assert ids(forced) == ["1", "2", "4"]
    assert [text.partition(":")[0] for text in forced.differences] == ["odd"]


def test_a_missing_variant_or_challenge_is_a_usage_error(record: RecordMaker):
    with pytest.raises(UsageError, match="no results of variant 'os'") as caught:
        choose([record("1", "es")], ["es", "os"])
    assert "stored variants: es" in caught.value.hint
    with pytest.raises(UsageError, match="challenge d"):
        choose([record("1", "es", "os")], ["es", "os"], challenge="d")
    assert choose([record("1", "es", "os")], ["es", "os"], challenge="c").sides


def test_a_challenge_is_found_whether_or_not_it_was_swept(record: RecordMaker):
    older = record("1", "es", "os")
    name = older.plan.schedules[0].name
    schedules = tuple(
        msgspec.structs.replace(older.plan.schedules[0], name=f"{name}@history={history}")
        for history in ("fresh", "scheduled")
    )
    swept = SweepSpec((), older.plan.variants, {}, tuple(Swept(name) for _ in schedules))
    newer = with_plan(record("2", "es", "os"), schedules=schedules, swept=swept)
    assert ids(choose([older, newer], ["es", "os"], challenge=name)) == ["2", "2"]


def test_a_tag_where_a_variant_was_meant_is_recognised(record: RecordMaker):
    tagged = msgspec.structs.replace(record("1", "es"), tags=("before",))
    with pytest.raises(UsageError) as caught:
        choose([tagged], ["es", "before"])
    assert caught.value.hint == "it is a tag: write tag:before"


def test_failed_forks_are_no_results(record: RecordMaker):
    good = record("1", "es", "os")
    failed = tuple(msgspec.structs.replace(fork, status="failed") for fork in good.forks)
    with pytest.raises(UsageError):
        choose([msgspec.structs.replace(good, forks=failed)], ["es", "os"])


def test_across_runs_the_java_runtimes_must_be_alike(record: RecordMaker):
    def on(jdk: str, run_id: str, variant: str) -> RunRecord:
        facts = EngineFacts(variant, "1", "b", "9", "s", jdk, (), ())
        return msgspec.structs.replace(record(run_id, variant), engines=(facts,))

    with pytest.raises(UsageError, match="different Java runtime"):
        choose([on("21", "1", "es"), on("17", "2", "os")], ["es", "os"])
    chosen = choose([on("21", "1", "es"), on("21", "2", "os"), on("17", "3", "os")], ["es", "os"])
    assert ids(chosen) == ["1", "2"]


def test_a_version_is_found_whatever_its_variant_is_called(record: RecordMaker):
    old = msgspec.structs.replace(ES, name="old")
    new = msgspec.structs.replace(ES, name="new", version="8.19.0")
    records = [with_plan(record("1", "old", "new"), variants=(old, new))]
    wanted = [Wanted(f"es@{version}", version=("elasticsearch", version)) for version in ("8.19.0", "8.11.0")]
    chosen = select_sides(records, wanted)
    assert [side.variant for side in chosen.sides] == ["new", "old"]
    assert labels(chosen) == ["es@8.19.0", "es@8.11.0"]


def test_a_version_with_flags_of_its_own_is_not_that_version(record: RecordMaker):
    tuned = msgspec.structs.replace(ES, name="noinline", jvm_flags=("-XX:-Inline",))
    version = Wanted("es@8.11.0", version=("elasticsearch", "8.11.0"))
    records = [
        with_plan(record("2", "noinline", "os"), variants=(tuned, OS)),
        with_plan(record("1", "es", "os"), variants=(ES, OS)),
    ]
    assert ids(select_sides(records, [version, Wanted("os", variant="os")])) == ["1", "1"]


def test_a_version_that_several_variants_of_a_run_have_must_be_named(record: RecordMaker):
    again = msgspec.structs.replace(ES, name="again")
    records = [with_plan(record("1", "es", "again", "os"), variants=(ES, again, OS))]
    version = Wanted("es@8.11.0", version=("elasticsearch", "8.11.0"))
    with pytest.raises(UsageError, match="fits several variants of run 1: es, again"):
        select_sides(records, [version, Wanted("os", variant="os")])


def test_a_run_that_is_named_is_taken_and_the_others_are_looked_for_like_it(record: RecordMaker):
    first = record("1", "es")
    records = [with_plan(record("3", "os"), heap_mb=1024), record("2", "os"), first]
    chosen = select_sides(records, [Wanted("os", variant="os"), Wanted("1:es", variant="es", runs=(first,))])
    assert ids(chosen) == ["2", "1"]
    assert labels(chosen) == ["os", "es"]


def test_the_same_variant_of_two_runs_is_told_apart_by_tag_or_else_by_the_beginning_of_the_id(
    record: RecordMaker,
):
    before = record("20260101-080000-a-0001", "es")
    after = record("20260101-090000-a-0002", "es")
    wanted = [Wanted("x", variant="es", runs=(before,)), Wanted("y", variant="es", runs=(after,))]
    assert labels(select_sides([], wanted)) == ["20260101-080000:es", "20260101-090000:es"]
    tagged = [
        msgspec.structs.replace(one, tags=("nightly", name)) for one, name in ((before, "a"), (after, "b"))
    ]
    wanted = [Wanted("x", variant="es", runs=(one,)) for one in tagged]
    assert labels(select_sides([], wanted)) == ["a:es", "b:es"]
    wanted = [Wanted("x", variant="es", runs=(one,), tag="nightly") for one in tagged]
    assert len(set(labels(select_sides([], wanted)))) == 2


FIRST, SECOND, THIRD = "20260101-080000-a-0001", "20260101-090000-a-0002", "20260102-080000-a-0003"


@pytest.fixture
def store(tmp_path: Path, record: RecordMaker) -> RunStore:
    """Three runs: of both, tagged `before`; of es, tagged `after`; and the newest of both, tagged `after`."""
    store = RunStore(tmp_path / "runs")
    for number, (run_id, variants, tags) in enumerate(
        (
            (FIRST, ("es", "os"), ("before", "nightly")),
            (SECOND, ("es",), ("after",)),
            (THIRD, ("es", "os"), ("after", "nightly")),
        )
    ):
        specs = tuple(spec for spec in (ES, OS) if spec.name in variants)
        made = record(run_id, *variants)
        made = msgspec.structs.replace(
            made,
            tags=tags,
            created=f"2026-01-0{1 + number}T00:00:00Z",
            plan=msgspec.structs.replace(made.plan, variants=specs, apart="asked for"),
        )
        store.create(run_id).save(made)
    return store


def choose_by_text(store: RunStore, *texts: str, runs: Sequence[str] = (), **options: Any) -> Selection:
    return choose_sides(Archive(store, runs), texts, **options)


def found(selection: Selection) -> list[tuple[str, str, str]]:
    return [(side.label, side.variant, side.run.id[-1]) for side in selection.sides]


def test_sides_are_found(cases: Cases, store: RunStore):
    cases(
        "sides",
        lambda texts: "\n".join(map(str, found(choose_by_text(store, *json.loads(texts))))),
        store.root,
    )


def test_what_fits_nothing_or_too_much_is_explained(cases: Cases, store: RunStore):
    cases("select", lambda texts: choose_by_text(store, *json.loads(texts)), store.root)


def test_a_name_that_is_a_variant_and_a_run_needs_a_word_before_it(store: RunStore, record: RecordMaker):
    store.create("es").save(record("es", "os"))
    with pytest.raises(UsageError, match="'es' names both a variant and a run") as caught:
        choose_by_text(store, "es", "latest:os")
    assert caught.value.hint == "write variant:es or run:es"


def test_the_baseline_may_be_named_as_written_or_by_its_column(store: RunStore):
    assert found(choose_by_text(store, "es", "os", baseline="os"))[0][0] == "os"
    chosen = choose_by_text(store, "tag:before:es", "tag:after:es", baseline="after:es")
    assert [label for label, _, _ in found(chosen)] == ["after:es", "before:es"]
    with pytest.raises(UsageError, match="baseline"):
        choose_by_text(store, "es", "os", baseline="solr")


def test_one_variant_over_several_runs_is_compared_with_itself(store: RunStore):
    chosen = choose_by_text(store, "es", runs=("20260101-08", "20260101-09"))
    assert found(chosen) == [("before:es", "es", "1"), ("after:es", "es", "2")]
    assert chosen.remarks == ()


def in_runs(selection: Selection) -> list[list[str]]:
    return [[run.id[-1] for run in side.runs] for side in selection.sides]


def test_all_runs_that_were_named_are_compared(store: RunStore):
    chosen = choose_by_text(store, "es", "os", runs=(FIRST, SECOND, THIRD))
    assert (in_runs(chosen), chosen.remarks) == ([["3", "2", "1"], ["3", "1"]], ())
    joined = choose_by_text(store, f"{FIRST}:es,{SECOND}:es,{FIRST}:es", f"{THIRD}:os,{FIRST}:os")
    assert (in_runs(joined), joined.remarks) == ([["1", "2"], ["1", "3"]], ())


def test_a_tag_means_all_its_runs_where_no_run_has_all_sides(store: RunStore):
    assert in_runs(choose_by_text(store, "tag:before:es", "tag:after:es")) == [["1"], ["3", "2"]]
    assert in_runs(choose_by_text(store, "tag:after:es", "tag:after:os")) == [["3"], ["3"]]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"heap_mb": 1024}, "different heap mb"),
        ({"variants": (msgspec.structs.replace(ES, version="8.19.0"), OS)}, "another build"),
        ({"test_mode": True}, "it was a --test-mode run"),
    ],
)
def test_a_run_that_is_another_measurement_does_not_join_the_others(
    store: RunStore, changes: dict[str, Any], reason: str
):
    folder = store.find(SECOND)
    folder.save(with_plan(folder.load(), **changes))
    tagged = choose_by_text(store, "tag:before:es", "tag:after:es")
    assert in_runs(tagged) == [["1"], ["3"]]
    assert tagged.remarks[0].startswith(f"run {SECOND} is not included: {reason}")
    if "test_mode" not in changes:
        with pytest.raises(UsageError, match=f"run {SECOND} cannot join run {FIRST}: {reason}"):
            choose_by_text(store, f"{FIRST}:es,{SECOND}:es", f"{THIRD}:os")


def test_a_run_that_cannot_be_read_is_passed_over_and_said(store: RunStore):
    store.create("20260103-080000-a-0005").record_path.write_text("{", encoding="utf-8")
    chosen = choose_by_text(store, "es", "os")
    assert found(chosen)[0][2] == "3"
    assert len(chosen.remarks) == 1
    assert "is damaged" in chosen.remarks[0]


def test_no_more_runs_are_read_than_needed(store: RunStore):
    store.find(SECOND).record_path.write_text("{", encoding="utf-8")
    assert choose_by_text(store, "es", "os").remarks == ()
    with pytest.raises(BenchctlError, match="damaged"):
        choose_by_text(store, "es", "os", runs=(SECOND,))


def test_a_copy_of_a_run_is_not_another_run(store: RunStore):
    record = store.find(THIRD).load()
    store.create(f"{THIRD}-copy").save(record)
    assert [one.id for one in Archive(store)] == [THIRD, SECOND, FIRST]
    assert [one.id for one in Archive(store, (THIRD, f"{THIRD}-copy"))] == [THIRD]
    (text,) = choose_by_text(store, "es", "os").remarks
    assert f"{THIRD}-copy is another copy" in text
