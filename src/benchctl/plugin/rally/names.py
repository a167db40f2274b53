"""The modules that plug-ins import, by Rally's and OpenSearch Benchmark's names."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from benchctl.plugin.rally import exceptions, helpers, loader, params, runner, scheduler, subject
from benchctl.plugin.registry import Registry

_RUNNER = (
    "BulkIndex", "Delegator", "Query", "RequestContextHolder", "Retry", "Runner", "escape", "mandatory",
    "remove_prefix", "request_context_holder", "time_func", "unwrap",
)  # fmt: skip
_SCHEDULER = ("DeterministicScheduler", "Scheduler", "SimpleScheduler", "Unthrottled")
_PARAMS = ("DelegatingParamSource", "IndexIdConflict", "ParamSource", "Slice")
_TRACK = (
    "Challenge", "ComponentTemplate", "DataStream", "DocumentCorpus", "Documents", "Index", "IndexTemplate",
    "Operation", "Task", "Track",
)  # fmt: skip
_IO = ("FileSource", "basename", "dirname", "ensure_dir", "splitext")
_PARSE = ("parse_float_parameter", "parse_int_parameter", "parse_string_parameter")


def served_modules(registry: Registry) -> Mapping[str, ModuleType]:
    """Every module that plug-ins can import of the two, by its full name.

    Args:
        registry: of the plug-in, for those that ask for a runner by its operation type.
    """
    found: dict[str, ModuleType] = {}

    def runner_for(operation_type: object) -> Any:  # noqa: ANN401 - foreign
        name = str(operation_type)
        return registry.runners.get(name) or runner.BuiltIn(name)

    def add(name: str, **members: Any) -> None:  # noqa: ANN401 - members of a module
        module = ModuleType(name)
        vars(module).update(members)
        found[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(found[parent], last, module)

    file_sources = {"MmapSource": helpers.FileSource, **_of(helpers, _IO)}
    runners = {**_of(runner, _RUNNER), "runner_for": runner_for, "register_runner": registry.register_runner}
    holder = _of(runner, ("RequestContextHolder",))
    loaders = _of(loader, ("DocumentSetPreparator", "Downloader", "Decompressor"))
    for root, track, driver, preparator, base in (
        ("esrally", "track", "driver", "DefaultTrackPreparator", runner.Runner),
        (
            "osbenchmark",
            "workload",
            "worker_coordinator",
            "DefaultWorkloadPreparator",
            runner.OpenSearchRunner,
        ),
    ):
        add(root)
        add(f"{root}.exceptions", **_public(exceptions))
        add(f"{root}.client", **holder)
        add(f"{root}.{track}", exceptions=found[f"{root}.exceptions"], **_of(subject, _TRACK))
        add(f"{root}.{track}.{track}", **_of(subject, _TRACK), Workload=subject.Track)
        add(f"{root}.{track}.params", **_of(params, _PARAMS))
        add(f"{root}.{track}.loader", **loaders, **{preparator: loader.DefaultTrackPreparator})
        add(f"{root}.{driver}")
        add(f"{root}.{driver}.runner", **{**runners, "Runner": base})
        add(f"{root}.{driver}.scheduler", **_of(scheduler, _SCHEDULER))
        add(f"{root}.utils")
        add(f"{root}.utils.io", **file_sources)
        add(f"{root}.utils.convert", to_bool=helpers.to_bool)
        add(f"{root}.utils.parse", **_of(helpers, _PARSE))
    return found


def _of(module: ModuleType, names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    return {name: getattr(module, name) for name in names}


def _public(module: ModuleType) -> dict[str, object]:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}
