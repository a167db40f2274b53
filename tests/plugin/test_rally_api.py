"""What plug-ins import of Rally does what theirs does; the rest refuses by name."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchctl.plugin import rally_api, rally_track
from benchctl.plugin.rally_api import MEMBERS, Lacking, Unsupported
from benchctl.plugin.rally_track import ComponentTemplate, DocumentCorpus, Documents, Track
from benchctl.plugin.session import Registry, served_packages

# What public tracks and workloads import, found by reading their Python files.
RUNNERS = ("BulkIndex", "PutSettings", "Query", "Retry", "Runner", "mandatory", "runner_for", "unwrap")
ERRORS = ("DataError", "InvalidSyntax", "NotFoundError", "SystemSetupError")
SUBJECTS = (
    "Challenge", "ComponentTemplate", "DocumentCorpus", "Documents", "Index", "IndexTemplate", "Operation",
    "OperationType", "Task", "Track",
)  # fmt: skip
SOURCES = (
    "BulkIndexParamSource", "CreateComponentTemplateParamSource", "CreateComposableTemplateParamSource",
    "IndexIdConflict", "ParamSource", "Slice",
)  # fmt: skip
PREPARATORS = ("Decompressor", "DocumentSetPreparator", "Downloader", "render_template_from_file")
PARSERS = ("parse_int_parameter", "parse_string_parameter")
IMPORTED = {
    "esrally.paths": ("rally_confdir",),
    "esrally.driver.runner": RUNNERS,
    "esrally.exceptions": (*ERRORS, "RallyAssertionError", "RallyError", "TrackConfigError"),
    "esrally.track": SUBJECTS,
    "esrally.track.exceptions": ERRORS,
    "esrally.track.loader": (*PREPARATORS, "DefaultTrackPreparator", "TrackProcessor"),
    "esrally.track.params": SOURCES,
    "esrally.utils.io": ("MmapSource",),
    "esrally.utils.net": ("download", "download_http"),
    "esrally.utils.opts": ("to_dict",),
    "esrally.utils.parse": PARSERS,
    "osbenchmark.client": ("RequestContextHolder",),
    "osbenchmark.exceptions": (*ERRORS, "BenchmarkAssertionError", "BenchmarkError", "WorkloadConfigError"),
    "osbenchmark.utils.parse": PARSERS,
    "osbenchmark.worker_coordinator.runner": (*RUNNERS, "time_func"),
    "osbenchmark.workload": (*SUBJECTS, "Workload"),
    "osbenchmark.workload.loader": (*PREPARATORS, "DefaultWorkloadPreparator", "WorkloadProcessor"),
    "osbenchmark.workload.params": SOURCES,
}


def served(path: str, registry: Registry | None = None) -> Any:
    """A module or a member of one, by its full name."""
    top, *inner = path.split(".")
    found: Any = served_packages(registry or Registry())[top]
    for name in inner:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(("module", "names"), IMPORTED.items())
def test_what_public_plug_ins_import_is_there(module: str, names: tuple[str, ...]):
    found = served(module)
    for name in names:
        kind = getattr(found, name)
        if module.endswith(".exceptions"):
            assert issubclass(kind, rally_api.RallyError)
        else:
            assert callable(kind)
            assert not isinstance(kind, rally_api.Served)
            assert not (isinstance(kind, type) and issubclass(kind, Lacking))


def test_an_exception_is_the_same_from_wherever_it_is_imported():
    packages = served_packages(Registry())
    error = packages["esrally"].exceptions.TrackConfigError
    assert packages["esrally"].track.exceptions.TrackConfigError is error
    with pytest.raises(error, match="wrong"):
        raise error("wrong")


def test_what_benchctl_lacks_can_be_imported_derived_from_and_created_and_not_used():
    ponder = served("esrally.driver.runner.Ponder")

    class Own(ponder):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(7, x=8)

        def inner(self) -> Any:
            return self.thoughts

    assert not hasattr(Own(), "percent_completed")
    for use in (Own(), Own().inner, served("esrally.driver.runner.ponder")):
        with pytest.raises(
            Unsupported, match=r"benchctl has no 'esrally\.driver\.runner\.[Pp]onder' for plug"
        ):
            use()


def test_what_public_plug_ins_register_with_is_there():
    for name in ("standard_value_source", "query_randomization_info"):
        getattr(Registry(), f"register_{name}")("operation", "field", print)
    assert Registry().meta_data["async_runner"]


class Flaky(rally_api.Runner):
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
        ([ConnectionTimeout()], {"retries": 0}, ConnectionTimeout),
        ([ConnectionTimeout()], {"retries": 3, "retry-on-timeout": False}, ConnectionTimeout),
        ([ValueError()], {"retries": 3}, ValueError),
    ],
)
def test_a_retry_goes_on_as_its_parameters_say(ends: list[Any], said: dict[str, Any], result: Any):
    retry = rally_api.Retry(Flaky(*ends))
    if isinstance(result, type):
        with pytest.raises(result):
            asyncio.run(retry(None, {**NOW, **said}))
    else:
        assert asyncio.run(retry(None, {**NOW, **said})) == result


def test_the_innermost_runner_is_what_is_left_when_unwrapped():
    inner = Flaky()
    assert rally_api.unwrap(rally_api.Retry(rally_api.Retry(inner))) is inner


def test_a_runner_is_found_by_its_type_and_benchctls_own_otherwise():
    registry, own, other = Registry(), Flaky(), Flaky()
    registry.register_runner("own", own, async_runner=True)
    registry.register_runner(served("esrally.track.OperationType.PutSettings"), other, async_runner=True)
    find = served("esrally.driver.runner.runner_for", registry)
    assert find("own") is own
    assert find("put-settings") is other
    assert repr(find("search")) == "search"


def test_the_parameters_of_the_transport_are_handed_over_in_rallys_form():
    params = {"request-timeout": 3, "opaque-id": "x", "request-params": {"a": 1}, "index": "b"}
    assert rally_api.Runner()._transport_request_params(params) == (
        {"request-params": {"a": 1}, "index": "b"},
        {"a": 1},
        {"request_timeout": 3},
        {"x-opaque-id": "x"},
    )
    assert params["request-timeout"] == 3


def test_a_source_without_a_size_has_no_end():
    assert rally_api.ParamSource(None, {}).infinite

    class Sized(rally_api.ParamSource):
        def size(self) -> int | None:
            return 3

    assert not Sized(None, {}).infinite


def test_a_mandatory_parameter_that_is_missing_is_named():
    with pytest.raises(rally_api.DataError, match="did not provide the mandatory parameter 'body'"):
        rally_api.mandatory({}, "body", "x")


@pytest.mark.parametrize(("kind", "value", "wrong"), [("int", 3, "3"), ("string", "x", 3)])
def test_parameters_are_parsed_by_their_type(kind: str, value: Any, wrong: Any):
    parse = MEMBERS[f"parse_{kind}_parameter"]
    assert parse("k", {"k": value}) == value
    assert parse("k", {}, value) == value
    for params in ({"k": wrong}, {}):
        with pytest.raises(rally_api.InvalidSyntax, match="for param k"):
            parse("k", params)


def test_lines_of_a_file_come_in_slices(tmp_path: Path):
    path = tmp_path / "docs.json"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(9)))
    lines = rally_api.Slice(rally_api.FileSource, 2, 5).open(str(path), "rt", 3)
    assert list(lines) == [[b"2\n", b"3\n", b"4\n"], [b"5\n", b"6\n"]]
    lines.source.seek(0)
    assert lines.source.readline() == b"0\n"
    lines.close()


def test_nothing_is_downloaded_and_the_place_of_a_missing_file_is_named(tmp_path: Path):
    downloader, decompressor = rally_api.Downloader(0, 0), rally_api.Decompressor()
    path = str(tmp_path / "d.json")
    documents = Documents(document_file="d.json", base_url="http://x.invalid")
    attempts = (
        lambda: rally_api.DocumentSetPreparator("t", downloader, decompressor).prepare_document_set(
            documents, str(tmp_path)
        ),
        lambda: downloader.download("http://x.invalid", path, 3),
        lambda: downloader.download("http://x.invalid", None, path, 3),
        lambda: downloader.download(base_url="http://x.invalid", target_path=path, size_in_bytes=3),
        lambda: decompressor.decompress("d.json.bz2", path, 3),
        lambda: rally_api.download("http://x.invalid/d.json", path),
    )
    for attempt in attempts:
        with pytest.raises(Unsupported, match=r"put the file at .*d\.json"):
            attempt()
    (tmp_path / "d.json").touch()
    for attempt in attempts:
        attempt()


def test_a_template_beside_the_track_is_rendered_with_its_values(tmp_path: Path):
    path = tmp_path / "t.json"
    path.write_text('{"a": {{ a }}, "b": {{ b | default(2) }}}', encoding="utf-8")
    assert rally_api.render_template_from_file(str(path), {"a": 1}) == '{"a": 1, "b": 2}'


def test_a_runner_that_blocks_can_be_registered_and_cannot_be_run():
    registry = Registry()
    registry.register_runner("old", print)
    with pytest.raises(Unsupported, match="'old' is not asynchronous"):
        asyncio.run(registry.runners["old"](None, {}))


TEMPLATES = [
    ComponentTemplate("a", {"template": {"settings": {"x": 1, "y": {"z": 1}}}}),
    ComponentTemplate("b", {}),
]
AS_DECLARED = {"template": {"settings": {"x": 1, "y": {"z": 1}}}}


@pytest.mark.parametrize(
    ("said", "templates"),
    [
        ({}, [("a", AS_DECLARED), ("b", {"template": {"settings": {}}})]),
        (
            {"template": "a", "settings": {"y": {"w": 2}}},
            [("a", {"template": {"settings": {"x": 1, "y": {"z": 1, "w": 2}}}})],
        ),
        ({"template": "c", "body": {"v": 3}}, [("c", {"v": 3})]),
    ],
)
def test_a_source_of_templates_lists_them_with_their_settings(said: dict[str, Any], templates: list[Any]):
    track = Track("t", component_templates=TEMPLATES)
    source = rally_api.CreateComponentTemplateParamSource(track, said)
    assert source.params() == {"templates": templates, "request-params": {}}
    assert TEMPLATES[1].content == {}


def test_a_template_that_the_track_does_not_declare_is_named():
    with pytest.raises(rally_api.InvalidSyntax, match=r"Unknown template: c\. Available templates: a, b"):
        rally_api.CreateComponentTemplateParamSource(
            Track("t", component_templates=TEMPLATES), {"template": "c"}
        )


def test_documents_can_be_derived_with_properties_for_attributes():
    class Lazy(Documents):
        @property
        def number_of_documents(self) -> int:  # type: ignore[override]
            return 4

    documents = [Lazy(document_file="a.json"), Documents(number_of_documents=3, source_format="other")]
    assert (documents[0].document_file, documents[0].target_index) == ("a.json", None)
    assert DocumentCorpus("c", documents).number_of_documents() == 4


def test_operation_types_are_named_as_tracks_name_them():
    assert rally_track.OperationType.PutSettings.to_hyphenated_string() == "put-settings"
