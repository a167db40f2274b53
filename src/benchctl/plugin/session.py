"""A plug-in while it is in use: loaded once in a process, with the track as it has changed it."""

import fcntl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from benchctl.child import follow_parent
from benchctl.errors import BenchctlError
from benchctl.plugin.blame import PluginError, blaming
from benchctl.plugin.code import Code, read_code
from benchctl.plugin.importer import Importer
from benchctl.plugin.rally import exceptions, helpers, loader, params, runner, scheduler, subject
from benchctl.plugin.rally.subject import Track, track_of
from benchctl.plugin.registry import Registry, named
from benchctl.track import model

TRIAL_S: Final = 60.0
_END_S: Final = 10.0


# The modules that plug-ins import, by Rally's and OpenSearch Benchmark's names.

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


# A plug-in while it is in use.


@dataclass(frozen=True)
class PluginUse:
    """How load finds a plug-in, here or in another process; consent has been given to its digest.

    Attributes:
        folder: of the track.
        digest: of the files that may be executed, and no others.
        track: for the plug-in to read.
        challenge: that is being run.
        session: which use of it: one fork's tasks share what its modules hold, the next fork's do not.
    """

    folder: Path
    digest: str
    track: model.Track
    challenge: model.Challenge | None = None
    session: int = 0


class Loaded:
    """A plug-in whose code has been executed.

    Args:
        code: whose execution the user has consented to.
        tag: makes the names of its modules unique.

    Raises:
        PluginError: its code failed; the message has file and line.
    """

    def __init__(self, code: Code, tag: str) -> None:
        self.code = code
        self.registry = Registry()
        self._tracks: dict[str, Track] = {}
        self._lock = threading.RLock()
        self._importer = Importer(code, served_modules(self.registry), tag)
        try:
            self._register()
        except BaseException:
            self.close()
            raise

    def track(self, track: model.Track, challenge: model.Challenge | None) -> Track:
        """The track for a challenge, after the plug-in's processors.

        Raises:
            PluginError: a processor failed, or needs what benchctl does not do.
        """
        name = "" if challenge is None else challenge.name
        with self._lock:
            if name not in self._tracks:
                made = track_of(track, challenge, self.code.path.parent)
                with self.code.path.open("rb") as alone:
                    # Processes of one fork would write the same files.
                    fcntl.flock(alone, fcntl.LOCK_EX)
                    for processor in self.registry.processors:
                        self._process(processor, made)
                self._tracks[name] = made
            return self._tracks[name]

    def close(self) -> None:
        """Forget its modules."""
        self._importer.close()

    def _register(self) -> None:
        code = self.code
        with blaming(code, f"loading {code.main}.py"):
            main = self._importer.load(f"{code.package}.{code.main}")
            register = getattr(main, "register", None)
            if register is None:
                raise PluginError(f"{code.path} has no function register(registry)")
            register(self.registry)

    def _process(self, processor: Any, track: Track) -> None:  # noqa: ANN401 - foreign
        with blaming(self.code, f"track processor {type(processor).__name__}"):
            for kind in ("track", "workload"):
                change = getattr(processor, f"on_after_load_{kind}", None)
                if change is not None:
                    change(track)
                prepare = getattr(processor, f"on_prepare_{kind}", None)
                work = None if prepare is None else prepare(track, str(self.code.path.parent))
                # The oldest ones say only whether they did something.
                for function, given in () if work is None or isinstance(work, bool) else work:
                    function(**given)


class _Sessions:
    """The plug-in in use in this process: the last one stays until another session needs one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[Path, str, int] | None = None
        self._loaded: Loaded | None = None
        self._count = 0

    def get(self, use: PluginUse) -> Loaded:
        """The loaded plug-in.

        Raises:
            BenchctlError: it is not the one that may be executed any more, or its code failed.
        """
        key = (use.folder, use.digest, use.session)
        with self._lock:
            if self._key != key or self._loaded is None:
                self._key = None
                if self._loaded is not None:
                    self._loaded.close()
                self._loaded = None
                code = read_code(use.folder)
                if code is None or code.digest != use.digest:
                    raise BenchctlError(
                        f"the plug-in in {use.folder} has changed since the run was planned",
                        hint="start a new run",
                    )
                self._count += 1
                self._loaded = Loaded(code, f"{use.digest[:12]}_{self._count}")
                self._key = key
            return self._loaded


_sessions = _Sessions()


def loaded_plugin(use: PluginUse) -> Loaded:
    """The plug-in of a use, loaded where it is not yet.

    Raises:
        BenchctlError: it has changed since consent was given, or its code failed.
    """
    return _sessions.get(use)


def tried(
    code: Code, needed: Sequence[Mapping[str, frozenset[str]]], within_s: float = TRIAL_S
) -> list[list[str]]:
    """Execute a plug-in in a process of its own, which it may end or hold up without harm to this one.

    Args:
        code: whose execution the user has consented to.
        needed: as of `missing_names`, once a challenge.
        within_s: how long it may take to load.

    Returns:
        What it does not register of each.

    Raises:
        PluginError: its code failed.
        BenchctlError: it ended the process, or did not come to its end.
    """
    # Spawned, not forked: the caller may have threads.
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_try, args=(theirs, code, needed))
    process.start()
    theirs.close()
    loading = f"loading {code.main}.py of the plug-in {code.path}"
    try:
        if not ours.poll(within_s):
            raise BenchctlError(f"{loading} did not come to an end within {within_s:g} s")
        found = ours.recv()
    except EOFError as err:
        process.join(_END_S)
        raise BenchctlError(
            f"{loading} ended the process that executed it (exit status {process.exitcode})",
            hint="look for os._exit in it, and for libraries that crash",
        ) from err
    finally:
        ours.close()
        # Threads of its own may go on for ever.
        process.kill()
        process.join()
    if isinstance(found, list):
        return found
    message, hint = found
    raise PluginError(message, hint=hint)


def _try(line: Connection, code: Code, needed: Sequence[Mapping[str, frozenset[str]]]) -> None:
    follow_parent()
    try:
        loaded = Loaded(code, f"{code.digest[:12]}_check")
        line.send([missing_names(loaded, one) for one in needed])
    except BenchctlError as err:
        line.send((err.message, err.hint))


def missing_names(loaded: Loaded, needed: Mapping[str, frozenset[str]]) -> list[str]:
    """What of the names that a track needs a plug-in does not register, a phrase each.

    Args:
        loaded: the plug-in.
        needed: `param source`, `operation type`, `scheduler` -> names.
    """
    registry = loaded.registry
    known = {
        "param source": registry.param_sources,
        "operation type": registry.runners,
        "scheduler": registry.schedulers,
    }
    return [
        f"{kind} '{name}' (it registers {', '.join(sorted(known[kind])) or 'none'})"
        for kind, names in needed.items()
        for name in sorted(names)
        if name not in known[kind]
    ]
