"""Rally's tracks and OpenSearch Benchmark's workloads load unchanged; what is wrong with one is named."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.track.library import find_track
from benchctl.track.load import load_challenge, load_track, reject_lacking, reject_unused
from benchctl.track.model import Track
from benchctl.track.operations.catalogue import PluginOperation
from foreign_tracks import BOOKS, SHOP, challenge_text, write_files
from golden import Cases


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return write_files(tmp_path / "books", BOOKS)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_files(tmp_path, SHOP) / "shop"


def load(folder: Path, **params: Any) -> Track:
    return load_track(str(folder), params)[0]


def small(folder: Path, main: Mapping[str, Any], **files: str) -> Track:
    """A track of one file, given as an object, and others beside it."""
    texts = {name.replace("_", ".", 1): text for name, text in files.items()}
    write_files(folder / "small", {"track.json": json.dumps(main), **texts})
    return load(folder / "small")


def refused(folder: Path, main: Mapping[str, Any], **files: str) -> str:
    with pytest.raises(UsageError) as caught:
        small(folder, main, **files)
    return str(caught.value)


SEARCH = {"name": "s", "operation-type": "search"}
DEFAULT = {"name": "a", "schedule": [{"operation": "refresh"}], "default": True}


def with_schedule(*tasks: Any, **keys: Any) -> dict[str, Any]:
    return {"operations": [SEARCH], "schedule": list(tasks), **keys}


@pytest.mark.parametrize("name", ["../../x", "..", "A", "a b", "a,b", "a*", "-a", "", "x" * 256])
@pytest.mark.parametrize("section", ["indices", "data-streams"])
def test_names_that_become_addresses_are_checked(tmp_path: Path, section: str, name: str):
    assert f"$.{section}[0].name: " in refused(tmp_path, with_schedule(**{section: [{"name": name}]}))


@pytest.mark.parametrize("word", ["a\nb", "a\x1b[31m", "\x85"])
def test_names_are_shown_on_one_line(tmp_path: Path, word: str):
    search = {"operation-type": "search", "name": "s"}
    for task in ({"operation": "s", "name": word}, {"operation": "s", "tags": word}):
        said = refused(tmp_path, with_schedule(task))
        assert (f"$.schedule[0].{'name' if 'name' in task else 'tags'}" in said, word in said) == (
            True,
            False,
        )
    assert "$.operations[0].name" in refused(tmp_path, {"operations": [{**search, "name": word}]})
    small(tmp_path, with_schedule({"operation": "s", "name": "größe & 量"}, indices=[{"name": ".x-1"}]))


def test_a_track_of_rallys_has_everything_that_its_files_say(books: Path):
    track = load(books)
    assert (track.name, track.description) == ("books", "Books and who lent them")
    assert [(index.name, index.body.shards) for index in track.indices] == [("books", 2), ("loans", 2)]
    assert {name: one.type_name for name, one in track.operations.items()} == {
        "index-append": "bulk",
        "all": "search",
        "old": "search",
        "by-author": "search",
    }
    assert list(track.challenges) == ["lend-and-search", "authors"]
    assert track.challenges[track.default_name or ""] == track.challenges["lend-and-search"]


def test_a_schedule_of_rallys_is_expanded(books: Path):
    challenge = load(books).challenges["lend-and-search"]
    assert [task.label for task in challenge.schedule] == [
        "delete-index",
        "create-index",
        "index-append",
        "all",
        "old",
        "all-beside",
    ]
    assert challenge.steps == ((0,), (1,), (2,), (3,), (4, 5))
    append, search, old, beside = challenge.schedule[2:]
    assert (append.clients, append.warmup_time_period, append.ignore_response_error_level) == (
        4,
        30,
        "non-fatal",
    )
    assert (search.warmup_iterations, search.iterations, search.rate_per_s) == (50, 100, 20)
    assert search.tags == ("fast", "search")
    assert (old.time_period, old.schedule, old.rate_per_s, old.clients) == (60, "poisson", 2, 2)
    assert (beside.time_period, beside.meta) == (60, {"why": "beside"})


def test_corpora_say_where_documents_come_from_and_go(books: Path):
    (corpus,) = load(books, base_url="http://mirror.invalid").corpora
    first, second = corpus.documents
    assert (first.base_url, first.target_index) == ("http://mirror.invalid", "books")
    assert (first.document_count, first.published_bytes, first.uncompressed_bytes) == (1000, 4000, 90000)
    assert (second.source_file, second.target_index, second.published_bytes) == ("loans.json", "loans", None)


def test_what_only_a_plug_in_has_is_marked_and_named(books: Path):
    track = load(books)
    operation = track.operations["by-author"]
    assert isinstance(operation, PluginOperation)
    assert (operation.param_source, operation.params["authors"]) == ("author-source", ["a", "b"])
    assert track.lacking(track.challenges["authors"]) == (
        "task 'by-author': param source 'author-source'",
        "task 'by-author': scheduler 'by-the-clock'",
    )
    assert track.challenges["authors"].schedule[1].scheduler_params == {"grain": 5}
    assert track.lacking(track.challenges["lend-and-search"]) == ()
    reject_lacking(track, track.challenges["lend-and-search"])
    with pytest.raises(
        UsageError, match="needs a Python plug-in, which is not in the track's directory"
    ) as caught:
        reject_lacking(track, track.challenges["authors"])
    assert "param source 'author-source'; task 'by-author': scheduler" in caught.value.message


def test_a_workload_of_opensearch_benchmarks_loads(shop: Path):
    track = load(shop)
    assert (track.indices[0].name, track.indices[0].body.shards) == ("shop", 3)
    assert list(track.operations) == ["day-1", "day-2", "day-3", "prices"]
    assert '"interval"' in msgspec.json.encode(track.operations["prices"]).decode()
    challenge = track.challenges["buy"]
    assert track.challenges[track.default_name or ""] == challenge
    assert [(task.label, task.clients) for task in challenge.schedule] == [
        ("check-cluster-health", 1),
        ("day-1", 1),
        ("prices_1_clients", 1),
        ("prices_8_clients", 8),
    ]
    health = challenge.operations["cluster-health"]
    assert health.index == "shop"  # type: ignore[union-attr]


def test_parameters_change_a_workload(shop: Path):
    track = load(shop, distribution_version="7.10.2", day_iterations=3)
    assert '"calendar_interval"' in msgspec.json.encode(track.operations["prices"]).decode()
    assert track.challenges["buy"].schedule[1].iterations == 3
    assert load(shop, iterations=4).challenges["buy"].schedule[1].iterations == 4
    (documents,) = load(shop, size=10).corpora[0].documents
    assert documents.source_file_parts == ()


def test_parts_of_a_published_file_have_its_size(shop: Path):
    (documents,) = load(shop, size=5).corpora[0].documents
    assert [part.size for part in documents.source_file_parts] == [35, 15]
    assert documents.published_bytes == 50
    with pytest.raises(UsageError, match=r"its source-file-parts have 60 bytes together, the file 50"):
        load(shop, size=5, first=9)


def test_parameters_that_index_bodies_use_are_known_and_others_are_not(books: Path):
    track, known = load_track(str(books), {"number_of_shards": 5, "codec": "best"})
    assert track.indices[0].body.settings == {"index.number_of_shards": 5, "index.codec": "best"}
    assert {"number_of_shards", "codec", "bulk_size", "index_settings", "rate"} <= known
    with pytest.raises(UsageError, match="bulk_sze") as caught:
        reject_unused({"bulk_sze": 3}, known)
    assert "did you mean 'bulk_size'" in caught.value.hint


def test_a_challenge_of_the_track_is_loaded_by_its_name(books: Path):
    track = load(books)
    challenge, known = load_challenge("lend-and-search", track, {"iterations": 7})
    assert {"rate", "iterations"} <= known
    assert [task.iterations for task in challenge.schedule] == [None, None, None, 7, 7, 7]
    with pytest.raises(UsageError) as caught:
        load_challenge("lend-and-serch", track, {})
    assert "did you mean 'lend-and-search'" in caught.value.hint


def test_the_digest_follows_indices_and_corpora_too(books: Path):
    digests = {
        load(books, **params).digest
        for params in ({}, {"number_of_shards": 3}, {"base_url": "http://x.invalid"}, {"bulk_size": 7})
    }
    assert len(digests) == 4
    assert load(books).digest == load(books).digest


def test_folders_and_files_and_checkouts_name_a_track(tmp_path: Path, shop: Path):
    assert find_track(str(shop)) == shop / "workload.json"
    assert find_track(str(shop / "workload.json")) == shop / "workload.json"
    write_files(tmp_path / "lent" / "books", BOOKS)
    with pytest.raises(UsageError, match=r"no track.json and no workload.json"):
        find_track(str(tmp_path / "common"))


def summary(folder: Path, main: str, plugin: str = "") -> str:
    """A line for each thing that a track of one file has, whose `description` says what it is a case of."""
    (folder / "small" / "track.py").unlink(missing_ok=True)
    files = {
        "t_json": '{"settings": {"x": {{ y | default(1) }} }}',
        "i_json": '{"settings": {"number_of_shards": "many"}}',
        **({"track_py": plugin} if plugin else {}),
    }
    track = small(folder, json.loads(main), **files)
    parts: list[Any] = [*track.indices, *track.templates, *track.corpora, *track.operations.values()]
    for challenge in track.challenges.values():
        parts += [*challenge.schedule, *challenge.operations.values()]
    lines = [f"{type(part).__name__} {msgspec.json.encode(part).decode()}" for part in parts]
    lines += [f"lacks {text}" for challenge in track.challenges.values() for text in track.lacking(challenge)]
    lines += [f"remark {remark}" for remark in track.remarks]
    lines += [f"fault {fault.challenge or fault.operation}: {fault.message}" for fault in track.faults]
    return "\n".join([*lines, f"default {track.default_name}"])


def test_tracks_of_one_file_load_as_in_rally_and_mistakes_are_named(cases: Cases, tmp_path: Path):
    cases("foreign", lambda *files: summary(tmp_path, *files), tmp_path)


def test_a_mistake_in_a_part_is_named_by_line_and_path_of_the_rendered_track(books: Path):
    path = books / "operations" / "search.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"index":', '"indexx":', 1), encoding="utf-8")
    track = load(books)
    (operation, challenge) = track.faults
    assert f"{books / 'track.json'}, line " in operation.message
    assert "$.operations[1]: unknown key 'indexx'" in operation.message
    assert (operation.operation, challenge.challenge) == ("all", "lend-and-search")
    assert challenge.message == operation.message
    assert list(track.challenges) == ["authors"]
    with pytest.raises(UsageError, match="unknown key 'indexx'"):
        load_challenge("lend-and-search", track, {})
    assert load_challenge("authors", track, {})[0].name == "authors"


def in_challenges(**schedules: list[Any]) -> dict[str, Any]:
    return {
        "operations": [SEARCH],
        "challenges": [{"name": name, "schedule": schedule} for name, schedule in schedules.items()],
    }


SOUND = {"operation": "s"}


def test_a_challenge_of_its_own_file_is_told_what_is_wrong_with_the_operation_that_it_names(tmp_path: Path):
    main = in_challenges(sound=[SOUND])
    main["operations"].append({"name": "deep", "operation-type": "search", "bdy": {}})
    track = small(tmp_path, main)
    own = (
        write_files(tmp_path, {"own.json": '{"name": "own", "schedule": [{"operation": "deep"}]}'})
        / "own.json"
    )
    with pytest.raises(UsageError, match="unknown key 'bdy'"):
        load_challenge(str(own), track, {})


def test_a_variable_that_came_out_as_nothing_is_remarked(tmp_path: Path):
    main = """{
  "operations": [{"name": "s", "operation-type": "search", "meta": {"a": "{% raw %}{{wanted}}{% endraw %}"}}],
  "schedule": [{"operation": "s", "meta": {
    "is": "{{wanted}}", "was": "{{ other | default('x') }}"
  }}]
}"""
    write_files(tmp_path / "small", {"track.json": main})
    (remark,) = load(tmp_path / "small").remarks
    assert remark.place == f"{tmp_path}/small/track.json"
    assert "'wanted'" in remark.message
    assert load(tmp_path / "small", wanted="tea").remarks == ()


def test_remarks_are_of_the_challenges_and_operations_that_are_run(tmp_path: Path):
    operations = [{**SEARCH, "name": name, "request-params": {}, "clients": 1} for name in ("a", "b")]
    challenges = [
        {"name": name, "schedule": [{"operation": operation, "clients": 1, "body": {}} for _ in range(3)]}
        for name, operation in (("first", "a"), ("second", "b"))
    ]
    track = small(tmp_path, {"operations": operations, "challenges": challenges})
    (first, second) = (track.remarks_on(track.challenges[name]) for name in ("first", "second"))
    assert [remark.partition(": ")[2][:28] for remark in first] == [
        "$.operations[0]: 'clients' h", "$.challenges[0].schedule[0]:",
    ]  # fmt: skip
    assert first[1].endswith("(2 more places)")
    assert [remark.partition(": ")[2][:28] for remark in second] == [
        "$.operations[1]: 'clients' h", "$.challenges[1].schedule[0]:",
    ]  # fmt: skip
    assert len(track.remarks_on(*track.challenges.values())) == 2
    # Runs keep them, and files of challenges do not have them.
    loaded, _ = load_challenge("first", track, {})
    assert loaded.remarks == first
    assert '"remarks"' not in challenge_text(loaded)
