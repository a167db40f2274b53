"""What plug-ins import of Rally does what theirs does."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from benchctl.plugin import rally_classes, rally_helpers, rally_track
from benchctl.plugin.session import Registry, served_modules

# What public tracks and workloads import, found by reading their Python files.
RUNNERS = ("BulkIndex", "PutSettings", "Query", "Retry", "Runner", "mandatory", "runner_for", "unwrap")
EXCEPTIONS = ("DataError", "InvalidSyntax", "NotFoundError", "SystemSetupError")
SUBJECTS = (
    "Challenge", "ComponentTemplate", "DocumentCorpus", "Documents", "Index", "IndexTemplate", "Operation",
    "OperationType", "Task", "Track", "exceptions", "loader", "params",
)  # fmt: skip
SOURCES = (
    "BulkIndexParamSource", "CreateComponentTemplateParamSource", "CreateComposableTemplateParamSource",
    "IndexIdConflict", "ParamSource", "Slice",
)  # fmt: skip
PREPARATORS = ("Decompressor", "DocumentSetPreparator", "Downloader", "render_template_from_file")
PARSERS = ("parse_int_parameter", "parse_string_parameter")
IMPORTED = {
    "esrally": ("exceptions", "paths", "track"),
    "esrally.client.synchronous": ("RallySyncElasticsearch",),
    "esrally.driver": ("runner", "scheduler"),
    "esrally.driver.runner": RUNNERS,
    "esrally.exceptions": (*EXCEPTIONS, "RallyAssertionError", "RallyError", "TrackConfigError"),
    "esrally.track": (*SUBJECTS, "track"),
    "esrally.track.loader": (*PREPARATORS, "DefaultTrackPreparator", "TrackProcessor"),
    "esrally.track.params": SOURCES,
    "esrally.utils": ("io", "net", "opts", "parse"),
    "esrally.utils.io": ("MmapSource",),
    "esrally.utils.net": ("download", "download_http"),
    "esrally.utils.opts": ("to_dict",),
    "esrally.utils.parse": PARSERS,
    "osbenchmark": ("exceptions", "workload"),
    "osbenchmark.client": ("RequestContextHolder",),
    "osbenchmark.exceptions": (
        *EXCEPTIONS,
        "BenchmarkAssertionError",
        "BenchmarkError",
        "WorkloadConfigError",
    ),
    "osbenchmark.utils": ("io", "net", "opts", "parse"),
    "osbenchmark.utils.parse": PARSERS,
    "osbenchmark.worker_coordinator.runner": (*RUNNERS, "time_func"),
    "osbenchmark.workload": (*SUBJECTS, "Workload", "workload"),
    "osbenchmark.workload.loader": (*PREPARATORS, "DefaultWorkloadPreparator", "WorkloadProcessor"),
    "osbenchmark.workload.params": SOURCES,
}


@pytest.mark.parametrize(("module", "names"), IMPORTED.items())
def test_what_public_plug_ins_import_is_there(module: str, names: tuple[str, ...]):
    served = served_modules(Registry())
    assert [name for name in names if not hasattr(served[module], name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "register_param_source", "register_runner", "register_scheduler", "register_standard_value_source",
        "register_query_randomization_info", "register_track_processor", "register_workload_processor",
        "meta_data",
    ],
)  # fmt: skip
def test_what_public_plug_ins_register_with_is_there(name: str):
    assert hasattr(Registry(), name)


class Flaky(rally_classes.Runner):
    """Times out, then fails, then succeeds."""

    def __init__(self, *ends: Any) -> None:
        super().__init__()
        self.ends = list(ends)

    async def __call__(self, es: Any, params: Mapping[str, Any]) -> Any:
        del es, params
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


class ConnectionTimeout(Exception):  # noqa: N818 - as the clients call it
    """What both clients raise."""


NOW = {"retry-wait-period": 0}


@pytest.mark.parametrize(
    ("ends", "said", "result"),
    [
        ([ConnectionTimeout(), {"success": True}], {"retries": 1}, {"success": True}),
        ([{"success": False}, {"success": True}], {"retries": 1, "retry-on-error": True}, {"success": True}),
        ([{"success": False}], {"retries": 1}, {"success": False}),
        ([{"success": False}] * 3, {"retries": 2, "retry-on-error": True}, {"success": False}),
        ([{"success": False}] * 9 + [3], {"retry-until-success": True}, 3),
    ],
)
def test_a_retry_goes_on_as_its_parameters_say(ends: list[Any], said: dict[str, Any], result: Any):
    assert asyncio.run(rally_classes.Retry(Flaky(*ends))(None, {**NOW, **said})) == result


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionTimeout(), {"retries": 0}),
        (ConnectionTimeout(), {"retries": 3, "retry-on-timeout": False}),
        (ValueError(), {"retries": 3}),
    ],
)
def test_a_retry_gives_up_on_what_is_not_worth_it(error: Exception, said: dict[str, Any]):
    with pytest.raises(type(error)):
        asyncio.run(rally_classes.Retry(Flaky(error, 1))(None, {**NOW, **said}))


def test_the_innermost_runner_is_what_is_left_when_unwrapped():
    inner = Flaky()
    assert rally_classes.unwrap(rally_classes.Retry(rally_classes.Retry(inner))) is inner


def test_a_runner_is_found_by_its_type_and_benchctls_own_otherwise():
    registry = Registry()
    own = Flaky()
    registry.register_runner("own", own, async_runner=True)
    find = served_modules(registry)["esrally.driver.runner"].runner_for
    assert find("own") is own
    assert repr(find("search")) == "search"


def test_the_two_drivers_hand_over_the_parameters_of_the_transport_in_two_forms():
    params = {"request-timeout": 3, "opaque-id": "x", "request-params": {"a": 1}, "index": "b"}
    rally = rally_classes.Runner()._transport_request_params(params)
    assert rally == (
        {"request-params": {"a": 1}, "index": "b"},
        {"a": 1},
        {"request_timeout": 3},
        {"x-opaque-id": "x"},
    )
    opensearch = rally_classes.OpenSearchRunner()._transport_request_params(params)
    assert opensearch == ({"a": 1, "request_timeout": 3}, {"x-opaque-id": "x"})
    assert params["request-timeout"] == 3


def test_a_source_without_a_size_has_no_end():
    assert rally_classes.ParamSource(None, {}).infinite

    class Sized(rally_classes.ParamSource):
        def size(self) -> int | None:
            return 3

    assert not Sized(None, {}).infinite


def test_a_mandatory_parameter_that_is_missing_is_named():
    with pytest.raises(rally_classes.DataError, match="did not provide the mandatory parameter 'body'"):
        rally_classes.mandatory({}, "body", "x")


@pytest.mark.parametrize(
    ("parse", "value", "wrong"),
    [
        (rally_helpers.parse_int_parameter, 3, "3"),
        (rally_helpers.parse_float_parameter, 3, "3"),
        (rally_helpers.parse_string_parameter, "x", 3),
    ],
)
def test_parameters_are_parsed_by_their_type(parse: Any, value: Any, wrong: Any):
    assert parse("k", {"k": value}) == value
    assert parse("k", {}, value) == value
    with pytest.raises(rally_classes.InvalidSyntax):
        parse("k", {"k": wrong})
    with pytest.raises(rally_classes.InvalidSyntax):
        parse("k", {})


def test_lines_of_a_file_come_in_slices(tmp_path: Any):
    path = tmp_path / "docs.json"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(9)))
    part = rally_classes.Slice(rally_helpers.FileSource, 2, 5)
    part.open(str(path), "rt", 2)
    assert list(part) == [[b"2\n", b"3\n"], [b"4\n", b"5\n"], [b"6\n"]]
    part.close()


def test_a_file_that_is_there_needs_no_download_and_another_is_asked_for(tmp_path: Any):
    downloader = rally_helpers.Downloader(False, False)  # noqa: FBT003 - as plug-ins make it
    path = tmp_path / "q.json"
    with pytest.raises(
        rally_classes.SystemSetupError, match=rf"http://x\.invalid/q\.json, .* put the file at {path}"
    ):
        downloader.download("http://x.invalid/", str(path), size_in_bytes=None)
    path.touch()
    downloader.download("http://x.invalid", str(path), None)
    rally_helpers.download("http://x.invalid/q.json", str(path))


def test_a_document_set_has_to_be_unpacked_beforehand(tmp_path: Any):
    preparator = rally_helpers.DocumentSetPreparator(
        "books", rally_helpers.Downloader(), rally_helpers.Decompressor()
    )
    documents = rally_track.Documents(document_file="d.json", base_url="http://x.invalid")
    with pytest.raises(rally_classes.Unsupported, match=r"put the file at .*d\.json"):
        preparator.prepare_document_set(documents, str(tmp_path))
    (tmp_path / "d.json").touch()
    preparator.prepare_document_set(documents, str(tmp_path))
    with pytest.raises(rally_classes.Unsupported, match=r"put its content at b\.json"):
        preparator.decompressor.decompress("b.json.bz2", "b.json", 3)


def test_a_template_beside_the_track_is_rendered_with_its_values(tmp_path: Any):
    path = tmp_path / "t.json"
    path.write_text('{"a": {{ a }}, "b": {{ b | default(2) }}}', encoding="utf-8")
    assert rally_helpers.render_template_from_file(str(path), {"a": 1}) == '{"a": 1, "b": 2}'


def test_operation_types_are_named_as_tracks_name_them():
    kind = rally_track.OperationType.PutSettings  # type: ignore[attr-defined]
    assert (kind.to_hyphenated_string(), kind.admin_op) == ("put-settings", True)
    assert rally_track.OperationType.from_hyphenated_string("search").name == "Search"
    with pytest.raises(KeyError):
        rally_track.OperationType.from_hyphenated_string("serch")
    registry = Registry()
    registry.register_runner(kind, own := Flaky(), async_runner=True)
    assert served_modules(registry)["esrally.driver.runner"].runner_for(kind) is own


def test_a_runner_that_blocks_can_be_registered_and_cannot_be_run():
    registry = Registry()
    registry.register_runner("old", print)
    with pytest.raises(rally_classes.Unsupported, match="'old' is not asynchronous"):
        asyncio.run(registry.runners["old"](None, {}))


def test_a_client_of_its_own_can_be_imported_and_not_made():
    client = served_modules(Registry())["esrally.client.synchronous"].RallySyncElasticsearch
    with pytest.raises(rally_classes.Unsupported, match="its own client"):
        client(hosts=[])


TEMPLATES = [
    rally_track.ComponentTemplate("a", {"template": {"settings": {"x": 1, "y": {"z": 1}}}}),
    rally_track.ComponentTemplate("b", {}),
]


@pytest.mark.parametrize(
    ("said", "templates"),
    [
        (
            {},
            [
                ("a", {"template": {"settings": {"x": 1, "y": {"z": 1}}}}),
                ("b", {"template": {"settings": {}}}),
            ],
        ),
        (
            {"template": "a", "settings": {"y": {"w": 2}}},
            [("a", {"template": {"settings": {"x": 1, "y": {"z": 1, "w": 2}}}})],
        ),
        ({"template": "c", "body": {"v": 3}}, [("c", {"v": 3})]),
    ],
)
def test_a_source_of_templates_lists_them_with_their_settings(said: dict[str, Any], templates: list[Any]):
    source = rally_classes.CreateComponentTemplateParamSource(
        rally_track.Track("t", component_templates=TEMPLATES), said
    )
    assert source.params() == {"templates": templates, "request-params": {}}
    assert TEMPLATES[1].content == {}


def test_a_template_that_the_track_does_not_declare_is_named():
    with pytest.raises(rally_classes.InvalidSyntax, match=r"Unknown template: c\. Available templates: a, b"):
        rally_classes.CreateComponentTemplateParamSource(
            rally_track.Track("t", component_templates=TEMPLATES), {"template": "c"}
        )


def test_parameters_of_a_command_line_become_a_dictionary():
    assert rally_helpers.to_dict("a:1,b:'x',c:true") == {"a": 1, "b": "x", "c": True}
    assert rally_helpers.to_dict('{"a": [1]}') == {"a": [1]}


def test_a_corpus_can_be_cut_to_the_documents_of_an_index():
    documents = [rally_track.Documents(target_index=name, number_of_documents=3) for name in ("a", "b")]
    corpus = rally_track.DocumentCorpus("c", documents)
    assert corpus.filter(target_indices=["b"]).documents == documents[1:]
    assert corpus.filter(source_format="bulk").number_of_documents() == 6
    assert corpus.filter(target_data_streams=["a"]).documents == []


@pytest.mark.parametrize(("value", "truth"), [("true", True), ("No", False), (True, True)])
def test_a_text_says_whether_it_is_true(value: object, truth: object):
    assert rally_helpers.to_bool(value) is truth
