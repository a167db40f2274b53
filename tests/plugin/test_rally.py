"""What plug-ins import of Rally does what theirs does."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from benchctl.plugin.rally import exceptions, helpers, loader, params, runner
from benchctl.plugin.rally.names import served_modules
from benchctl.plugin.registry import Registry

# What public plug-ins import, found by reading them.
IMPORTED = {
    "esrally": ("exceptions", "track"),
    "esrally.driver": ("runner", "scheduler"),
    "esrally.driver.runner": ("BulkIndex", "Retry", "Runner", "mandatory", "runner_for", "unwrap"),
    "esrally.exceptions": ("DataError", "InvalidSyntax", "RallyAssertionError", "TrackConfigError"),
    "esrally.track": (
        "DocumentCorpus",
        "Documents",
        "Index",
        "Challenge",
        "exceptions",
        "loader",
        "params",
        "track",
    ),
    "esrally.track.loader": ("DefaultTrackPreparator", "DocumentSetPreparator"),
    "esrally.track.params": ("IndexIdConflict", "ParamSource", "Slice"),
    "esrally.utils": ("io",),
    "esrally.utils.io": ("MmapSource",),
    "osbenchmark.client": ("RequestContextHolder",),
    "osbenchmark.exceptions": ("BenchmarkError",),
    "osbenchmark.utils.parse": ("parse_int_parameter", "parse_string_parameter"),
    "osbenchmark.worker_coordinator.runner": ("Retry", "Runner", "time_func"),
    "osbenchmark.workload": ("loader",),
    "osbenchmark.workload.loader": ("Decompressor", "DefaultWorkloadPreparator", "Downloader"),
    "osbenchmark.workload.params": ("ParamSource",),
}


@pytest.mark.parametrize(("module", "names"), IMPORTED.items())
def test_what_public_plug_ins_import_is_there(module: str, names: tuple[str, ...]):
    served = served_modules(Registry())
    assert [name for name in names if not hasattr(served[module], name)] == []


class Flaky(runner.Runner):
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
    assert asyncio.run(runner.Retry(Flaky(*ends))(None, {**NOW, **said})) == result


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
        asyncio.run(runner.Retry(Flaky(error, 1))(None, {**NOW, **said}))


def test_the_innermost_runner_is_what_is_left_when_unwrapped():
    inner = Flaky()
    assert runner.unwrap(runner.Retry(runner.Retry(inner))) is inner


def test_a_runner_is_found_by_its_type_and_benchctls_own_otherwise():
    registry = Registry()
    own = Flaky()
    registry.register_runner("own", own, async_runner=True)
    find = served_modules(registry)["esrally.driver.runner"].runner_for
    assert find("own") is own
    assert repr(find("search")) == "search"


def test_the_two_drivers_hand_over_the_parameters_of_the_transport_in_two_forms():
    params = {"request-timeout": 3, "opaque-id": "x", "request-params": {"a": 1}, "index": "b"}
    rally = runner.Runner()._transport_request_params(params)
    assert rally == (
        {"request-params": {"a": 1}, "index": "b"},
        {"a": 1},
        {"request_timeout": 3},
        {"x-opaque-id": "x"},
    )
    opensearch = runner.OpenSearchRunner()._transport_request_params(params)
    assert opensearch == ({"a": 1, "request_timeout": 3}, {"x-opaque-id": "x"})
    assert params["request-timeout"] == 3


def test_a_source_without_a_size_has_no_end():
    assert params.ParamSource(None, {}).infinite

    class Sized(params.ParamSource):
        def size(self) -> int | None:
            return 3

    assert not Sized(None, {}).infinite


def test_a_mandatory_parameter_that_is_missing_is_named():
    with pytest.raises(exceptions.DataError, match="did not provide the mandatory parameter 'body'"):
        runner.mandatory({}, "body", "x")


@pytest.mark.parametrize(
    ("parse", "value", "wrong"),
    [
        (helpers.parse_int_parameter, 3, "3"),
        (helpers.parse_float_parameter, 3, "3"),
        (helpers.parse_string_parameter, "x", 3),
    ],
)
def test_parameters_are_parsed_by_their_type(parse: Any, value: Any, wrong: Any):
    assert parse("k", {"k": value}) == value
    assert parse("k", {}, value) == value
    with pytest.raises(exceptions.InvalidSyntax):
        parse("k", {"k": wrong})
    with pytest.raises(exceptions.InvalidSyntax):
        parse("k", {})


def test_lines_of_a_file_come_in_slices(tmp_path: Any):
    path = tmp_path / "docs.json"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(9)))
    part = params.Slice(helpers.FileSource, 2, 5)
    part.open(str(path), "rt", 2)
    assert list(part) == [[b"2\n", b"3\n"], [b"4\n", b"5\n"], [b"6\n"]]
    part.close()


def test_a_downloader_can_be_made_and_refuses_to_download():
    downloader = loader.Downloader(False, False)  # noqa: FBT003 - as plug-ins make it
    with pytest.raises(exceptions.SystemSetupError, match=r"let plug-ins download: Downloader\.download"):
        downloader.download("u", None, "p", 1)


@pytest.mark.parametrize(("value", "truth"), [("true", True), ("No", False), (True, True)])
def test_a_text_says_whether_it_is_true(value: object, truth: object):
    assert helpers.to_bool(value) is truth
