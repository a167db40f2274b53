"""The modules that plug-ins import, by Rally's and OpenSearch Benchmark's names."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

from benchctl.plugin.rally import exceptions, helpers, loader, params, runner, scheduler, subject
from benchctl.plugin.registry import Registry, named

_RUNNER = (
    "BulkIndex", "Delegator", "RequestContextHolder", "Retry", "Runner", "escape", "mandatory",
    "remove_prefix", "request_context_holder", "time_func", "unwrap",
)  # fmt: skip
_SCHEDULER = ("DeterministicScheduler", "Scheduler", "SimpleScheduler", "Unthrottled")
_PARAMS = (
    "BulkIndexParamSource", "CreateComponentTemplateParamSource", "CreateComposableTemplateParamSource",
    "DelegatingParamSource", "IndexIdConflict", "ParamSource", "SearchParamSource", "Slice",
)  # fmt: skip
_TRACK = (
    "Challenge", "ComponentTemplate", "DataStream", "DocumentCorpus", "Documents", "Index", "IndexTemplate",
    "Operation", "OperationType", "Task", "Track",
)  # fmt: skip
_LOADER = (
    "Decompressor", "DefaultTrackPreparator", "DefaultWorkloadPreparator", "DocumentSetPreparator",
    "Downloader", "TrackProcessor", "WorkloadProcessor", "render_template_from_file",
)  # fmt: skip
_IO = ("FileSource", "basename", "dirname", "ensure_dir", "splitext")
_PARSE = ("parse_bool_parameter", "parse_float_parameter", "parse_int_parameter", "parse_string_parameter")


def served_modules(registry: Registry) -> Mapping[str, ModuleType]:
    """Every module that plug-ins can import of the two, by its full name.

    Args:
        registry: of the plug-in, for those that ask for a runner by its operation type.
    """
    found: dict[str, ModuleType] = {}

    def runner_for(operation_type: object) -> Any:  # noqa: ANN401 - foreign
        name = named(operation_type)
        return registry.runners.get(name) or runner.built_in(name)()

    def add(name: str, **members: Any) -> None:  # noqa: ANN401 - members of a module
        module = ModuleType(name)
        vars(module).update(members)
        found[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(found[parent], last, module)

    runners = {
        **runner.BUILT_IN,
        **_of(runner, _RUNNER),
        "runner_for": runner_for,
        "register_runner": registry.register_runner,
    }
    holder = _of(runner, ("RequestContextHolder",))
    subjects = {**_of(subject, _TRACK), "Workload": subject.Track, "TestProcedure": subject.Challenge}
    downloads = {"download": loader.download, "download_http": loader.download}
    for root, track, driver, base in (
        ("esrally", "track", "driver", runner.Runner),
        ("osbenchmark", "workload", "worker_coordinator", runner.OpenSearchRunner),
    ):
        add(root)
        add(f"{root}.exceptions", **exceptions.OTHERS, **_public(exceptions))
        add(f"{root}.client", **holder, OsClientFactory=_Client)
        add(f"{root}.client.synchronous", RallySyncElasticsearch=_Client)
        add(f"{root}.{track}", exceptions=found[f"{root}.exceptions"], **subjects)
        add(f"{root}.{track}.{track}", **subjects)
        add(f"{root}.{track}.params", **_of(params, _PARAMS))
        add(f"{root}.{track}.loader", **_of(loader, _LOADER))
        add(f"{root}.{driver}")
        add(f"{root}.{driver}.runner", **{**runners, "Runner": base})
        add(f"{root}.{driver}.scheduler", **_of(scheduler, _SCHEDULER))
        add(f"{root}.utils")
        add(f"{root}.utils.io", **_of(helpers, _IO), MmapSource=helpers.FileSource)
        add(f"{root}.utils.net", **downloads)
        add(f"{root}.utils.opts", to_dict=helpers.to_dict, to_bool=helpers.to_bool)
        add(f"{root}.utils.convert", to_bool=helpers.to_bool)
        add(f"{root}.utils.parse", **_of(helpers, _PARSE))
    add("esrally.paths", rally_confdir=helpers.confdir("rally"))
    add("osbenchmark.paths", benchmark_confdir=helpers.confdir("benchmark"))
    return found


class _Client:
    """A client of its own that a plug-in would make."""

    def __init__(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - foreign
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise exceptions.Unsupported(
            "the track's plug-in makes a client of its own: benchctl asks nodes only over the client that "
            "runners are given"
        )


def _of(module: ModuleType, names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    return {name: getattr(module, name) for name in names}


def _public(module: ModuleType) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}
