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
from benchctl.track.model import Template, Track
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.schedule import challenge_text
from foreign_tracks import BOOKS, SHOP, write_files
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
    assert track.default_challenge == track.challenges["lend-and-search"]


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
    assert track.default_challenge == challenge
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


def test_templates_of_all_kinds_are_templates_themselves(tmp_path: Path):
    entry = {"name": "t", "template": "t.json"}
    track = small(
        tmp_path,
        {
            "data-streams": [{"name": "d"}],
            "templates": [{**entry, "index-pattern": "a-*"}],
            "composable-templates": [{**entry, "index-pattern": "b-*", "delete-matching-indices": False}],
            "component-templates": [{**entry, "template-path": "template.inner"}],
            "dependencies": ["numpy"],
        },
        t_json='{"template": {"inner": {"x": {{ y | default(1) }} }}}',
    )
    body = {"template": {"inner": {"x": 1}}}
    assert track.templates == (
        Template("t", "index", body, "a-*"),
        Template("t", "composable", body, "b-*", delete_matching_indices=False),
        Template("t", "component", {"x": 1}),
    )
    assert (track.data_streams, track.dependencies) == (("d",), ("numpy",))


def test_an_index_without_a_body_is_created_with_none(tmp_path: Path):
    track = small(tmp_path, {"indices": [{"name": "i", "body": ""}, {"name": "j"}]})
    assert [msgspec.json.encode(index.body) for index in track.indices] == [b"{}", b"{}"]


def test_an_only_index_is_where_documents_go(tmp_path: Path):
    documents = {"source-file": "d.json.gz", "document-count": 3}
    corpora = [{"name": "c", "documents": [documents, {**documents, "includes-action-and-meta-data": True}]}]
    (corpus,) = small(tmp_path, {"indices": [{"name": "i", "types": ["t"]}], "corpora": corpora}).corpora
    assert [one.target_type for one in corpus.documents] == ["t", None]
    assert [one.target_index for one in corpus.documents] == ["i", None]
    (corpus,) = small(tmp_path, {"data-streams": [{"name": "d"}], "corpora": corpora}).corpora
    assert [one.target_data_stream for one in corpus.documents] == ["d", None]


def test_an_unknown_type_is_a_plug_ins_unless_it_is_a_typing_mistake(tmp_path: Path):
    operation = {"operation-type": "serch", "name": "x"}
    text = refused(tmp_path, {"operations": [operation]})
    assert "$.operations[0].operation-type: benchctl has no operation type 'serch'" in text
    assert "did you mean 'search'" in text
    track = small(tmp_path, {"operations": [operation]}, track_py='registry.register_runner("serch", f)')
    assert (track.operations["x"].type_name, track.plugin) == ("serch", "track.py")
    for kind in ("warm-the-moon", "eql", "create-pipeline"):
        track = small(tmp_path, {"operations": [{**operation, "operation-type": kind}]}, track_py="")
        assert isinstance(track.operations["x"], PluginOperation)


def test_parameter_sources_of_the_types_themselves_are_no_plug_ins(tmp_path: Path):
    for kind, source in (("search", "search"), ("search", "file-reader"), ("refresh", "refresh")):
        operation = {"name": "o", "operation-type": kind, "param-source": source}
        track = small(tmp_path, {"operations": [operation]})
        assert not isinstance(track.operations["o"], PluginOperation)


def test_inline_operations_may_share_a_name_as_in_rally(tmp_path: Path):
    merges = [
        {
            "name": f"merge-{segments}",
            "operation": {"operation-type": "force-merge", "max-num-segments": segments},
        }
        for segments in (5, 1)
    ]
    track = small(tmp_path, with_schedule(*merges, {"operation": {**SEARCH, "cache": True}}))
    challenge = track.challenges["default"]
    assert [(task.label, task.operation) for task in challenge.schedule] == [
        ("merge-5", "force-merge"),
        ("merge-1", "force-merge (2)"),
        ("s", "s (2)"),
    ]
    assert len(challenge.operations) == 3


def test_a_task_beside_one_that_completes_all_needs_no_end_of_its_own(tmp_path: Path):
    bulk = {"operation-type": "bulk", "bulk-size": 5}
    parallel = {
        "warmup-time-period": 10,
        "completed-by": "send",
        "tasks": [{"name": "send", "operation": bulk}, {"operation": "s"}],
    }
    small(tmp_path, with_schedule({"name": "all", "parallel": parallel}))
    del parallel["completed-by"]
    assert "tasks[1]: a warmup-time-period needs" in refused(tmp_path, with_schedule({"parallel": parallel}))


def test_an_operation_that_lacks_something_matters_to_those_who_name_it(tmp_path: Path):
    lacking = {"name": "forget", "operation-type": "delete-knn-model"}
    track = small(tmp_path, {"operations": [lacking, SEARCH], "schedule": [{"operation": "s"}]})
    assert list(track.operations) == ["s"]
    assert any("$.operations[0]: 'model_id' is missing" in str(remark) for remark in track.remarks)
    own = {**lacking, "model_id": "m"}
    track = small(tmp_path, {"operations": [lacking], "schedule": [{"operation": own}]})
    assert track.challenges["default"].operations["forget"].type_name == "delete-knn-model"
    text = refused(tmp_path, {"operations": [lacking], "schedule": [{"operation": "forget"}]})
    assert "track.json, line 1 of the rendered text: $.operations[0]: 'model_id' is missing" in text


def test_parameters_that_say_nothing_are_empty_objects_and_texts(tmp_path: Path):
    asked = {"operation-type": "vector-search", "filter_type": {}, "filter_body": {}, "data_set_path": ""}
    operation: Any = small(tmp_path, with_schedule({"operation": asked})).challenges["default"].operations
    assert operation["vector-search"].reads_data_set


def test_null_says_nothing(tmp_path: Path):
    asked = {"operation-type": "raw-request", "path": "/x", "body": None, "request-timeout": None}
    track = small(tmp_path, with_schedule({"operation": asked}))
    plain = {"operation-type": "raw-request", "path": "/x"}
    assert track.challenges == small(tmp_path, with_schedule({"operation": plain})).challenges


def test_keys_that_belong_elsewhere_are_noted(tmp_path: Path):
    task = {"operation": "s", "request-params": {}, "#COMMENT": "x", "include-in-reporting": True}
    notes = small(tmp_path, with_schedule(task, default=True)).remarks
    assert len(notes) == 3
    assert all("means nothing here" in note.message for note in notes)
    assert "$.schedule[0]: 'request-params'" in "".join(map(str, notes))
    mistyped = with_schedule({"operation": "s", "iteratons": 3})
    assert "did you mean 'iterations'" in refused(tmp_path, mistyped)


def test_what_is_wrong_is_named_with_file_line_and_path(cases: Cases, tmp_path: Path):
    cases(
        "foreign",
        lambda main: refused(
            tmp_path, json.loads(main), i_json='{"settings": {"index.number_of_shards": "many"}}'
        ),
        tmp_path,
    )


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


def test_a_fault_in_one_challenge_leaves_the_others(tmp_path: Path):
    main = in_challenges(sound=[SOUND], slow=[{**SOUND, "clients": 0}], typo=[{"operation": "srch"}])
    track = small(tmp_path, main)
    assert list(track.challenges) == ["sound"]
    assert [fault.challenge for fault in track.faults] == ["slow", "typo"]
    with pytest.raises(UsageError, match=r"\[0\]\.clients: "):
        load_challenge("slow", track, {})


def test_a_faulty_default_is_not_replaced_by_another_challenge(tmp_path: Path):
    main = in_challenges(sound=[SOUND], slow=[{**SOUND, "clients": 0}])
    assert small(tmp_path, main).default_name is None
    main["challenges"][1]["default"] = True
    track = small(tmp_path, main)
    assert (track.default_name, track.default_challenge) == ("slow", None)


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


def test_a_bare_name_that_nothing_defines_is_a_type_for_a_plug_in(tmp_path: Path):
    track = small(tmp_path, in_challenges(sound=[SOUND], moon=[{"operation": "warm-the-moon"}]))
    assert track.faults == ()
    assert track.lacking(track.challenges["moon"]) == (
        "task 'warm-the-moon': operation type 'warm-the-moon'",
    )
    reject_lacking(track, track.challenges["sound"])


@pytest.mark.parametrize(("size", "read"), [(2500.0, 2500), ("2500", 2500), (1, 1)])
def test_a_bulk_size_that_a_template_computes_is_a_whole_number(tmp_path: Path, size: Any, read: int):
    operation = {"name": "b", "operation-type": "bulk", "bulk-size": size}
    assert small(tmp_path, {"operations": [operation]}).operations["b"].bulk_size == read  # type: ignore[union-attr]


def test_half_a_document_is_cut_off_as_in_rally_and_remarked(tmp_path: Path):
    operation = {"name": "b", "operation-type": "bulk", "bulk-size": 10_000 / 3}
    track = small(tmp_path, {"operations": [operation], "schedule": [{"operation": "b"}]})
    assert track.operations["b"].bulk_size == 3333  # type: ignore[union-attr]
    (remark,) = track.remarks
    assert (remark.place.partition(": ")[2], remark.operation) == ("$.operations[0]", "b")
    assert "3,333" in remark.message


def test_documents_a_request_of_a_plug_ins_operation_may_be_computed(tmp_path: Path):
    operation = {"operation-type": "my-bulk", "bulk-size": 2500.0}
    main = with_schedule({"operation": operation, "target-throughput": "5000 docs/s"})
    (task,) = small(tmp_path, main, track_py='f("my-bulk")').challenges["default"].schedule
    assert task.rate_per_s == 2
    main["schedule"][0]["operation"].pop("bulk-size")
    track = small(tmp_path, main, track_py='f("my-bulk")')
    assert track.challenges["default"].schedule[0].rate_per_s == 5000
    assert [remark.place.rpartition(": ")[2] for remark in track.remarks] == [
        "$.schedule[0].target-throughput"
    ]


@pytest.mark.parametrize("kind", ["bulk", "proto-bulk", "my-bulk"])
def test_a_bulk_ends_a_task_that_has_a_warm_up_only(tmp_path: Path, kind: str):
    task = {"operation": {"operation-type": kind, "bulk-size": 5}, "warmup-time-period": 120}
    track = small(tmp_path, with_schedule(task), track_py='f("my-bulk")')
    assert (track.faults, track.challenges["default"].schedule[0].warmup_time_period) == ((), 120)


@pytest.mark.parametrize("key", ["target-interval", "target-throughput"])
@pytest.mark.parametrize("value", [0, "", "0", "none", " None ", "0.0"])
@pytest.mark.parametrize("spacing", ["deterministic", "poisson"])
def test_no_rate_is_unthrottled(tmp_path: Path, key: str, value: float | str, spacing: str):
    track = small(tmp_path, with_schedule({"operation": "s", key: value, "schedule": spacing}))
    (task,) = track.challenges["default"].schedule
    assert (task.rate_per_s, task.schedule) == (None, "deterministic")
    assert [remark.place[-13:] for remark in track.remarks] == ["$.schedule[0]"] * (spacing == "poisson")


@pytest.mark.parametrize(
    ("keys", "read"),
    [
        *(({"target-interval": interval}, {"rate_per_s": rate})
          for interval, rate in (("0.1", 10), (2, 0.5), ("4", 0.25))),
        ({"iterations": 5, "time-period": 9}, {"iterations": None, "time_period": 9}),
        ({"clients": 4.0, "iterations": 100.0, "warmup-iterations": 2.0},
         {"clients": 4, "iterations": 100, "warmup_iterations": 2}),
    ],
)  # fmt: skip
def test_keys_of_tasks_are_read_as_rally_reads_them(
    tmp_path: Path, keys: dict[str, Any], read: dict[str, Any]
):
    (task,) = small(tmp_path, with_schedule({"operation": "s", **keys})).challenges["default"].schedule
    assert {name: getattr(task, name) for name in read} == pytest.approx(read)


@pytest.mark.parametrize("unit", ["pages", "searches", "docs"])
def test_a_rate_in_anything_but_requests_is_refused(tmp_path: Path, unit: str):
    operation = {"operation-type": "scroll-search", "pages": 25}
    text = refused(tmp_path, with_schedule({"operation": operation, "target-throughput": f"10 {unit}/s"}))
    assert f"$.schedule[0].target-throughput: '{unit}/s' is not a unit" in text


TWO_INDICES = {"indices": [{"name": "shop"}, {"name": "logs"}]}


@pytest.mark.parametrize(
    "operation",
    [
        {"operation-type": "search"},
        {"operation-type": "scroll-search"},
        {"operation-type": "vector-search", "body": {"size": 1}},
        {"operation-type": "multi-search", "searches": [{"body": {}, "index": "shop"}, {"body": {}}]},
    ],
)
def test_a_search_names_its_index_where_the_track_has_several(tmp_path: Path, operation: dict[str, Any]):
    task = {"name": "q", "operation": {"name": "q", **operation}}
    text = refused(tmp_path, {**with_schedule({"operation": "refresh"}, task), **TWO_INDICES})
    assert "$.schedule[1]: task 'q'" in text
    assert "shop, logs" in text
    named = {**task, "operation": {**task["operation"], "index": "logs"}}  # type: ignore[dict-item]
    assert small(tmp_path, {**with_schedule(named), **TWO_INDICES}).faults == ()
    assert small(tmp_path, {**with_schedule(task), "indices": [{"name": "shop"}]}).faults == ()


@pytest.mark.parametrize("kind", ["index", "composable", "component"])
def test_a_template_that_is_created_is_declared_or_has_a_body(tmp_path: Path, kind: str):
    create = {"name": "t", "operation-type": f"create-{kind}-template", "template": "metrics"}
    text = refused(tmp_path, with_schedule({"operation": create}))
    assert f"$.schedule[0]: task 't': the track declares no {kind} template 'metrics'" in text
    every = {"name": "t", "operation-type": f"create-{kind}-template"}
    assert f"declares no {kind} template" in refused(tmp_path, with_schedule({"operation": every}))
    assert small(tmp_path, with_schedule({"operation": {**create, "body": {}}})).faults == ()
    key = "templates" if kind == "index" else f"{kind}-templates"
    declared = {key: [{"name": "metrics", "template": "t.json", "index-pattern": "m*"}]}
    for task in (create, every):
        track = small(tmp_path, {**with_schedule({"operation": task}), **declared}, t_json="{}")
        assert track.faults == ()


def test_tasks_of_one_name_are_numbered(tmp_path: Path):
    tasks = [
        {"operation": "s"}, {"operation": "s"}, {"name": "s#2", "operation": "s"},
        {"parallel": {"tasks": [{"operation": "s"}, {"name": "t", "operation": "s"}]}},
    ]  # fmt: skip
    schedule = small(tmp_path, with_schedule(*tasks)).challenges["default"].schedule
    assert [task.label for task in schedule] == ["s#1", "s#3", "s#2", "s#4", "t"]
    assert {task.operation for task in schedule} == {"s"}


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
        "$.operations[0]: 'clients' m", "$.challenges[0].schedule[0]:",
    ]  # fmt: skip
    assert first[1].endswith("(2 more places)")
    assert [remark.partition(": ")[2][:28] for remark in second] == [
        "$.operations[1]: 'clients' m", "$.challenges[1].schedule[0]:",
    ]  # fmt: skip
    assert len(track.remarks_on(*track.challenges.values())) == 2
    # Runs keep them, and files of challenges do not have them.
    loaded, _ = load_challenge("first", track, {})
    assert loaded.remarks == first
    assert '"remarks"' not in challenge_text(loaded)


@pytest.mark.parametrize(
    ("element", "own", "left"),
    [
        ({"time-period": 9}, {"iterations": 5}, (None, None, None, 9)),
        ({"warmup-time-period": 3, "time-period": 9}, {"warmup-iterations": 5}, (None, None, 3, 9)),
        ({"warmup-time-period": 3}, {"iterations": 5}, (None, 5, None, None)),
        ({"warmup-iterations": 2, "iterations": 5}, {"time-period": 9}, (None, None, None, 9)),
    ],
)
def test_iterations_and_a_time_period_that_meet_in_a_parallel_task_are_one_kind(
    tmp_path: Path, element: dict[str, Any], own: dict[str, Any], left: tuple[Any, ...]
):
    track = small(tmp_path, with_schedule({"parallel": {**element, "tasks": [{**SOUND, **own}]}}))
    (task,) = track.challenges["default"].schedule
    found = (task.warmup_iterations, task.iterations, task.warmup_time_period, task.time_period)
    assert found == left
    assert any("iterations and a" in str(remark) for remark in track.remarks)
