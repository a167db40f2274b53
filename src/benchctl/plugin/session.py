"""A plug-in in use: imported under a private name, loaded once per process, with its track."""

import builtins
import fcntl
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, Final, NoReturn

from benchctl.child import follow_parent
from benchctl.errors import BenchctlError
from benchctl.plugin import rally_classes, rally_helpers, rally_track
from benchctl.plugin.code import SERVED, Code, read_code
from benchctl.plugin.rally_classes import Unsupported
from benchctl.plugin.rally_helpers import Decompressor, Downloader
from benchctl.plugin.rally_track import Track, track_of
from benchctl.track import model


class PluginError(BenchctlError):
    """A plug-in's code failed, or violated the protocol."""


class PluginNeedsError(PluginError):
    """A plug-in needs something unsupported: its task is n/a."""


@contextmanager
def blaming(code: Code, doing: str, *, may_end: bool = False) -> Iterator[None]:
    """Run foreign code: its exceptions become a PluginError.

    Args:
        code: the plug-in.
        doing: what is called, for the message: `param source 'x'`.
        may_end: whether StopIteration is part of the protocol, and passes.

    Raises:
        PluginError: If it raised anything but KeyboardInterrupt.
    """
    try:
        yield
    except (KeyboardInterrupt, BenchctlError):
        raise
    except BaseException as err:
        if may_end and isinstance(err, StopIteration):
            raise
        raise blamed(err, code, doing) from err


BROUGHT_BY_RALLY = frozenset({"aiohttp", "ijson", "jsonschema", "requests", "tabulate"})
"""Modules of the extra `tracks`."""


def blamed(err: BaseException, code: Code, doing: str) -> PluginError:
    """Return the one-line error for an exception from a plug-in's code."""
    if isinstance(err, SystemExit):
        return PluginError(f"{doing} of the plug-in {code.path} tried to end benchctl ({err.code})")
    if isinstance(err, Unsupported):
        return PluginNeedsError(" ".join(str(err).split()))
    where = _place(err, code)
    text, hint = f"{type(err).__name__}: {_words(err)}", ""
    if isinstance(err, ModuleNotFoundError) and err.name:
        # Python's message names the package.
        text, module = str(err), err.name.partition(".")[0]
        hint = (
            "pip install 'benchctl[tracks]' installs what Rally brings along"
            if module in BROUGHT_BY_RALLY
            else f"install the package with '{module}' in benchctl's environment"
        )
    return PluginError(f"{where}: {doing} failed: {' '.join(text.split())}", hint=hint)


def _words(err: BaseException) -> str:
    """Return an exception's message, whose code may fail, too."""
    try:
        return str(err)
    except Exception as second:  # noqa: BLE001 - foreign code
        return f"it gives no reason ({type(second).__name__})"


def _place(err: BaseException, code: Code) -> str:
    """File and line of the innermost of the plug-in's own frames, else its main file."""
    own = {str(code.root / name) for name in code.files}
    if isinstance(err, SyntaxError) and err.filename in own:
        return f"{err.filename}:{err.lineno or 1}"
    frames = [frame for frame in traceback.extract_tb(err.__traceback__) if frame.filename in own]
    if not frames:
        return str(code.path)
    return f"{Path(frames[-1].filename)}:{frames[-1].lineno}"


# Imports of plug-in code: its own modules, from the digested text, under a private name.
#
# Plug-in modules get their own `__import__` instead of a finder in `sys.meta_path`: imports by benchctl or a
# library, in any thread, cannot resolve to a plug-in, and a plug-in's imports within functions still work
# when they run. It executes the bytes that were read for the digest, never a file that has changed since, nor
# a compiled one beside it.


class Importer:
    """The modules of one plug-in.

    Until they are closed, they are in `sys.modules` under their private names, where Python's libraries look
    up a class's module.

    Args:
        code: the plug-in.
        served: modules that benchctl provides, by full name; they win over installed packages of these names,
            which would bring a different driver.
        tag: makes the private name unique.
    """

    def __init__(self, code: Code, served: Mapping[str, ModuleType], tag: str) -> None:
        self.prefix = f"benchctl_plugin_{tag}"
        self._code = code
        self._served = served
        self._sources = dict(_modules(code))
        # The standard library wins: a folder `random` beside a track must not replace it.
        self._own = code.names - sys.stdlib_module_names
        # Standard output is for results.
        own = {"__import__": self._import, "print": _print}
        self._builtins = {**vars(builtins), **own}
        self._loaded: dict[str, ModuleType] = {}

    def load(self, name: str) -> ModuleType:
        """Return a module of the plug-in by its natural name, such as `geonames.track`; executed once.

        Raises:
            ModuleNotFoundError: If there is none of that name.
        """
        loaded = self._loaded.get(name)
        if loaded is not None:
            return loaded
        parent, _, last = name.rpartition(".")
        holder = self.load(parent) if parent else None
        if name not in self._sources:
            raise ModuleNotFoundError(f"the plug-in has no module '{name}'")
        module = self._execute(name, self._sources[name])
        if holder is not None:
            setattr(holder, last, module)
        return module

    def close(self) -> None:
        """Remove its modules from `sys.modules`."""
        for name in self._loaded:
            sys.modules.pop(f"{self.prefix}.{name}", None)
        self._loaded.clear()

    def _execute(self, name: str, path: str | None) -> ModuleType:
        """Return a module from its text; a folder without `__init__.py` is an empty package."""
        module = ModuleType(f"{self.prefix}.{name}")
        is_package = path is None or path.endswith("__init__.py")
        module.__package__ = module.__name__ if is_package else module.__name__.rpartition(".")[0]
        vars(module)["__builtins__"] = self._builtins
        if is_package:
            module.__path__ = []
        self._loaded[name] = module
        sys.modules[module.__name__] = module
        if path is None:
            return module
        module.__file__ = str(self._code.root / path)
        try:
            compiled = compile(self._code.files[path], module.__file__, "exec", dont_inherit=True)
            exec(compiled, vars(module))  # noqa: S102 - what the user consented to
        except BaseException:
            del self._loaded[name]
            sys.modules.pop(module.__name__, None)
            raise
        return module

    def _import(
        self,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Implements `import` statements of the plug-in's modules; see Python's `__import__`."""
        natural = self._natural(name, globals_ or {}, level)
        top = natural.partition(".")[0]
        if top in SERVED:
            return self._serve(natural, top, fromlist)
        if top not in self._own:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        module = self.load(natural)
        for item in fromlist or ():
            if not hasattr(module, item) and f"{natural}.{item}" in self._sources:
                self.load(f"{natural}.{item}")
        return module if fromlist else self.load(top)

    def _natural(self, name: str, globals_: Mapping[str, Any], level: int) -> str:
        """Return the name without the private part, relative ones resolved."""
        if not level:
            return name
        package = str(globals_.get("__package__", "")).removeprefix(f"{self.prefix}.").split(".")
        if level > len(package):
            raise ImportError("attempted relative import beyond top-level package")
        base = package[: len(package) - level + 1]
        return ".".join([*base, name] if name else base)

    def _serve(self, name: str, top: str, fromlist: tuple[str, ...] | None) -> ModuleType:
        """Return a module that benchctl provides.

        Raises:
            ImportError: If it lacks what is asked for, which is named.
        """
        module = self._served.get(name)
        if module is None:
            raise ImportError(f"benchctl has no '{name}' for plug-ins", name=name)
        for item in fromlist or ():
            if item != "*" and not hasattr(module, item):
                raise ImportError(f"benchctl has no '{item}' of '{name}' for plug-ins", name=name)
        return module if fromlist else self._served[top]


def _print(*values: object, **options: Any) -> None:
    """Python's own, to standard error by default."""
    print(*values, **{**options, "file": options.get("file") or sys.stderr})  # noqa: T201 - foreign words


def _modules(code: Code) -> Mapping[str, str | None]:
    """Natural name of every module -> path of its file; None for packages without one."""
    modules: dict[str, str | None] = {}
    for path in code.files:
        parts = PurePosixPath(path).with_suffix("").parts
        for depth in range(1, len(parts)):
            modules.setdefault(".".join(parts[:depth]), None)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = path
    return modules


_META_DATA: Mapping[str, Any] = {
    "async_runner": True,
    "rally_version": "2.13.0",
    "benchmark_version": "2.4.0",
}


@dataclass
class Registry:
    """The registrations of a plug-in; methods are named as in Rally and OpenSearch Benchmark."""

    param_sources: dict[str, Any] = field(default_factory=dict)  # name -> function or class
    # Operation type -> coroutine function, or object with `async __call__`.
    runners: dict[str, Any] = field(default_factory=dict)
    schedulers: dict[str, Any] = field(default_factory=dict)  # name -> function or class
    processors: list[Any] = field(default_factory=list)  # of the track, before it is run
    # About the driver, for plug-ins.
    meta_data: Mapping[str, Any] = field(default_factory=lambda: dict(_META_DATA))

    def register_param_source(self, name: str, param_source: Any) -> None:
        """Register a parameter source: `f(track, params, **kwargs)`, or a class."""
        self.param_sources[named(name)] = param_source

    def register_runner(self, operation_type: object, runner: Any, **kwargs: Any) -> None:
        """Register a runner of an operation type.

        One that is not asynchronous is for Rally before version 2: its tasks are n/a.
        """
        name = named(operation_type)
        self.runners[name] = runner if kwargs.get("async_runner", False) else _Blocking(name)

    def register_scheduler(self, name: str, scheduler: Any) -> None:
        """Register a scheduler: `f(current)`, or a class."""
        self.schedulers[named(name)] = scheduler

    def register_track_processor(self, processor: Any) -> None:
        """Register a track processor; it gets what it has attributes for, as in Rally."""
        for name, kind in (("downloader", Downloader), ("decompressor", Decompressor)):
            if hasattr(processor, name):
                setattr(processor, name, kind())
        self.processors.append(processor)

    register_workload_processor = register_track_processor  # OpenSearch Benchmark's name of the same

    def register_standard_value_source(
        self, operation_name: str, field_name: str, source: Callable[[], object]
    ) -> None:
        """OpenSearch Benchmark's values for optional query randomization; ignored."""

    def register_query_randomization_info(self, operation_name: str, *info: object) -> None:
        """Ignore where those values go."""


class _Blocking:
    """Replaces a runner that is not asynchronous."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def __call__(self, *_: object) -> NoReturn:
        raise Unsupported(
            f"the runner of operation type '{self._name}' is not asynchronous: it has to be registered with "
            "async_runner=True, as Rally since version 2 demands"
        )


def named(name: object) -> str:
    """Return a name as in tracks; plug-ins may also use Rally's enumeration."""
    hyphenated = getattr(name, "to_hyphenated_string", None)
    return str(hyphenated() if callable(hyphenated) else name)


LOADING_LIMIT_S: Final = 60.0
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
    """Return all modules of the two that plug-ins can import, by full name; `registry` is the plug-in's."""
    modules: dict[str, ModuleType] = {}

    def runner_for(operation_type: object) -> Any:
        name = named(operation_type)
        return registry.runners.get(name) or rally_classes.built_in(name)()

    def add(name: str, **members: Any) -> None:
        module = ModuleType(name)
        vars(module).update(members)
        modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)

    runners = {
        **rally_classes.BUILT_IN,
        **_of(rally_classes, _RUNNER),
        "runner_for": runner_for,
        "register_runner": registry.register_runner,
    }
    errors = rally_classes.OTHERS | {
        name: kind
        for name, kind in vars(rally_classes).items()
        if isinstance(kind, type) and issubclass(kind, rally_classes.RallyError)
    }
    holder = _of(rally_classes, ("RequestContextHolder",))
    subjects = {
        **_of(rally_track, _TRACK),
        "Workload": rally_track.Track,
        "TestProcedure": rally_track.Challenge,
    }
    downloads = {"download": rally_helpers.download, "download_http": rally_helpers.download}
    for root, track, driver, base in (
        ("esrally", "track", "driver", rally_classes.Runner),
        ("osbenchmark", "workload", "worker_coordinator", rally_classes.OpenSearchRunner),
    ):
        add(root)
        add(f"{root}.exceptions", **errors)
        add(f"{root}.client", **holder, OsClientFactory=_Client)
        add(f"{root}.client.synchronous", RallySyncElasticsearch=_Client)
        add(f"{root}.{track}", exceptions=modules[f"{root}.exceptions"], **subjects)
        add(f"{root}.{track}.{track}", **subjects)
        add(f"{root}.{track}.params", **_of(rally_classes, _PARAMS))
        add(f"{root}.{track}.loader", **_of(rally_helpers, _LOADER))
        add(f"{root}.{driver}")
        add(f"{root}.{driver}.runner", **{**runners, "Runner": base})
        add(f"{root}.{driver}.scheduler", **_of(rally_classes, _SCHEDULER))
        add(f"{root}.utils")
        add(f"{root}.utils.io", **_of(rally_helpers, _IO), MmapSource=rally_helpers.FileSource)
        add(f"{root}.utils.net", **downloads)
        add(f"{root}.utils.opts", to_dict=rally_helpers.to_dict, to_bool=rally_helpers.to_bool)
        add(f"{root}.utils.convert", to_bool=rally_helpers.to_bool)
        add(f"{root}.utils.parse", **_of(rally_helpers, _PARSE))
    add("esrally.paths", rally_confdir=rally_helpers.confdir("rally"))
    add("osbenchmark.paths", benchmark_confdir=rally_helpers.confdir("benchmark"))
    return modules


class _Client:
    """A client that a plug-in tries to create."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise rally_classes.Unsupported(
            "the track's plug-in creates its own client: benchctl asks nodes only over the client that "
            "runners are given"
        )


def _of(module: ModuleType, names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    return {name: getattr(module, name) for name in names}


@dataclass(frozen=True)
class PluginUse:
    """The location of a plug-in for the load, in any process; its digest has been consented to."""

    folder: Path  # of the track
    digest: str  # of the files that may be executed
    track: model.Track  # for the plug-in to read
    challenge: model.Challenge | None = None  # being run
    session: int = 0  # one fork's tasks share its modules' state, the next fork's do not


class Loaded:
    """A plug-in whose code has been executed, with the user's consent; `tag` makes its modules' names unique.

    Raises:
        PluginError: If its code failed; the message has file and line.
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
        """Return the track for a challenge, after the plug-in's processors.

        Raises:
            PluginError: If a processor failed, or needs something unsupported.
        """
        name = "" if challenge is None else challenge.name
        with self._lock:
            if name not in self._tracks:
                processed = track_of(track, challenge, self.code.path.parent)
                with self.code.path.open("rb") as lock_file:
                    # Processes of one fork would write the same files.
                    fcntl.flock(lock_file, fcntl.LOCK_EX)
                    for processor in self.registry.processors:
                        self._process(processor, processed)
                self._tracks[name] = processed
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

    def _process(self, processor: Any, track: Track) -> None:
        with blaming(self.code, f"track processor {type(processor).__name__}"):
            for kind in ("track", "workload"):
                change = getattr(processor, f"on_after_load_{kind}", None)
                if change is not None:
                    change(track)
                prepare = getattr(processor, f"on_prepare_{kind}", None)
                work = None if prepare is None else prepare(track, str(self.code.path.parent))
                # The oldest ones only return whether they did something.
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
    """Return the plug-in of a use, loaded if necessary.

    Raises:
        BenchctlError: If it has changed since consent was given, or its code failed.
    """
    return _sessions.get(use)


def check_registered(
    code: Code, needed: Sequence[Mapping[str, frozenset[str]]], within_s: float = LOADING_LIMIT_S
) -> list[list[str]]:
    """Execute a plug-in in a separate process, which it may kill or block, to check what it registers.

    Returns:
        What it does not register of `needed`, for each challenge; see `missing_names`.

    Raises:
        PluginError: If its code failed.
        BenchctlError: If it ended the process, or took longer than `within_s`.
    """
    # Spawned, not forked: the caller may have threads.
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_check, args=(theirs, code, needed))
    process.start()
    theirs.close()
    loading = f"loading {code.main}.py of the plug-in {code.path}"
    try:
        if not ours.poll(within_s):
            raise BenchctlError(f"{loading} did not come to an end within {within_s:g} s")
        reply = ours.recv()
    except EOFError as err:
        process.join(_END_S)
        raise BenchctlError(
            f"{loading} ended the process that executed it (exit status {process.exitcode})",
            hint="look for os._exit in it, and for libraries that crash",
        ) from err
    finally:
        ours.close()
        # Its threads may never end.
        process.kill()
        process.join()
    if isinstance(reply, list):
        return reply
    message, hint = reply
    raise PluginError(message, hint=hint)


def _check(line: Connection, code: Code, needed: Sequence[Mapping[str, frozenset[str]]]) -> None:
    follow_parent()
    try:
        loaded = Loaded(code, f"{code.digest[:12]}_check")
        line.send([missing_names(loaded, name) for name in needed])
    except BenchctlError as err:
        line.send((err.message, err.hint))


def missing_names(loaded: Loaded, needed: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the names that a track needs and a plug-in does not register, one phrase each.

    `needed` maps `param source`, `operation type` and `scheduler` to names.
    """
    registry = loaded.registry
    registered = {
        "param source": registry.param_sources,
        "operation type": registry.runners,
        "scheduler": registry.schedulers,
    }
    return [
        f"{kind} '{name}' (it registers {', '.join(sorted(registered[kind])) or 'none'})"
        for kind, names in needed.items()
        for name in sorted(names)
        if name not in registered[kind]
    ]
