"""What users write to say what is compared."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import RunRecord
from benchctl.results.select import Archive, Selection, choose_sides
from benchctl.results.store import RunStore
from builders import ES, OS

RecordMaker = Callable[..., RunRecord]

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
            plan=msgspec.structs.replace(made.plan, variants=specs),
        )
        store.create(run_id).save(made)
    return store


def choose(store: RunStore, *texts: str, runs: Sequence[str] = (), **options: Any) -> Selection:
    return choose_sides(Archive(store, runs), texts, **options)


def found(selection: Selection) -> list[tuple[str, str, str]]:
    return [(side.label, side.variant, side.run.id[-1]) for side in selection.sides]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("es", "os"), [("es", "es", "3"), ("os", "os", "3")]),
        (("es@8.11.0", "opensearch@2.11.0"), [("es@8.11.0", "es", "3"), ("opensearch@2.11.0", "os", "3")]),
        (("latest:os", "latest:es"), [("os", "os", "3"), ("es", "es", "3")]),
        ((f"{FIRST}:os", SECOND), [("os", "os", "1"), ("es", "es", "2")]),
        (("20260101-08:es", "20260101-09"), [("before:es", "es", "1"), ("after:es", "es", "2")]),
        (("run:20260101-09", "variant:os"), [("es", "es", "2"), ("os", "os", "3")]),
        (("tag:before:es", "tag:after:es"), [("before:es", "es", "1"), ("after:es", "es", "3")]),
        (("tag:nightly:os", "es"), [("os", "os", "3"), ("es", "es", "3")]),
    ],
)
def test_sides_are_found(store: RunStore, texts: Sequence[str], expected: Sequence[tuple[str, str, str]]):
    assert found(choose(store, *texts)) == list(expected)


def test_a_run_may_be_a_path_with_a_colon_in_it(store: RunStore, tmp_path: Path, record: RecordMaker):
    elsewhere = RunStore(tmp_path / "a:b").create("copy")
    elsewhere.save(record("20250101-000000-c-0004", "es"))
    assert found(choose(store, str(elsewhere.path), "latest:os"))[0] == ("es", "es", "4")
    assert found(choose(store, f"{elsewhere.path}:es", "latest:os")) == [("es", "es", "4"), ("os", "os", "3")]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("es",), "two variants or more"),
        (("es", "latest"), "'latest' fits several variants of run 20260102-080000-a-0003: es, os"),
        (("es", "20260101"), "'20260101' fits 2 runs"),
        (("es", "nonesuch:es"), "there is no run 'nonesuch'"),
        (("es", "solr"), "there are no results of variant 'solr'"),
        (("es", "es@9.9.9"), "there are no results of variant 'es@9.9.9'"),
        (("es", "tag:never"), "no run has the tag 'never'"),
        (("es", "tag:before:solr"), "no run has the tag 'before' and results of variant 'solr'"),
        (("es", f"{SECOND}:os"), f"run {SECOND} has no results of '{SECOND}:os'"),
        (("es", "variant:es"), "'es' and 'es' are the same results"),
    ],
)
def test_what_fits_nothing_or_too_much_is_explained(store: RunStore, texts: Sequence[str], message: str):
    with pytest.raises(UsageError) as caught:
        choose(store, *texts)
    assert message in caught.value.message


def test_a_name_that_is_a_variant_and_a_run_needs_a_word_before_it(store: RunStore, record: RecordMaker):
    store.create("es").save(record("es", "os"))
    with pytest.raises(UsageError, match="'es' is a variant, and it names run es") as caught:
        choose(store, "es", "latest:os")
    assert caught.value.hint == "write variant:es or run:es"


def test_the_baseline_may_be_named_as_written_or_by_its_column(store: RunStore):
    assert found(choose(store, "es", "os", baseline="os"))[0][0] == "os"
    chosen = choose(store, "tag:before:es", "tag:after:es", baseline="after:es")
    assert [label for label, _, _ in found(chosen)] == ["after:es", "before:es"]
    with pytest.raises(UsageError, match="baseline"):
        choose(store, "es", "os", baseline="solr")


def test_one_variant_over_several_runs_is_compared_with_itself(store: RunStore):
    chosen = choose(store, "es", runs=("20260101-08", "20260101-09"))
    assert found(chosen) == [("before:es", "es", "1"), ("after:es", "es", "2")]
    assert chosen.remarks == ()


def test_runs_alone_are_compared_as_they_are(store: RunStore):
    with pytest.raises(UsageError, match="fits several variants"):
        choose(store, runs=(FIRST, SECOND))
    assert found(choose(store, f"{FIRST}:os", SECOND, runs=(FIRST, SECOND)))[0] == ("os", "os", "1")


def test_a_named_run_that_is_not_needed_is_said_to_be_left_out(store: RunStore):
    chosen = choose(store, "es", "os", runs=(FIRST, THIRD))
    assert found(chosen) == [("es", "es", "3"), ("os", "os", "3")]
    assert chosen.remarks == (
        f"run {FIRST} is not in these figures: {THIRD} has newer results of all that is compared",
    )


def test_a_run_that_cannot_be_read_is_passed_over_and_said(store: RunStore):
    store.create("20260103-080000-a-0005").record_path.write_text("{", encoding="utf-8")
    chosen = choose(store, "es", "os")
    assert found(chosen)[0][2] == "3"
    assert len(chosen.remarks) == 1
    assert "is damaged" in chosen.remarks[0]


def test_no_more_runs_are_read_than_needed(store: RunStore):
    store.find(SECOND).record_path.write_text("{", encoding="utf-8")
    assert choose(store, "es", "os").remarks == ()
    with pytest.raises(BenchctlError, match="damaged"):
        choose(store, "es", "os", runs=(SECOND,))


def test_an_archive_may_be_looked_through_twice_at_a_time(store: RunStore):
    archive = Archive(store)
    pairs = [(one.id[-1], other.id[-1]) for one in archive for other in archive]
    assert pairs == [(one, other) for one in "321" for other in "321"]
    assert archive.folder_of(archive.find("latest")).path.name == THIRD
