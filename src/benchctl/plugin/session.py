"""A plug-in in use: imported under a private name, loaded once per process, with its track."""

import builtins
import fcntl
import functools
import importlib
import itertools
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, NoReturn

from benchctl.errors import BenchctlError
from benchctl.plugin import rally_api
from benchctl.plugin.code import SERVED, Code, read_code
from benchctl.plugin.rally_api import Decompressor, Downloader, Lacking, Served, Unsupported
from benchctl.plugin.rally_track import CLASSES, Track, track_of
from benchctl.track import model


class PluginError(BenchctlError):
    """A plug-in's code failed, or violated the protocol."""


class PluginNeedsError(PluginError):
    """A plug-in needs something unsupported: its task is n/a."""


class Cancelled(BaseException):
    """The client of the task is to end; no plug-in is meant to catch it."""


@contextmanager
def blaming(code: Code, doing: str, *, may_end: bool = False) -> Iterator[None]:
    """Run foreign code: its exceptions become a PluginError.

    Args:
        code: the plug-in.
        doing: what is called, for the message: `param source 'x'`.
        may_end: whether StopIteration is part of the protocol, and passes.

    Raises:
        PluginError: If it raised anything but KeyboardInterrupt and Cancelled.
    """
    try:
        yield
    except (KeyboardInterrupt, Cancelled, BenchctlError):
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
    try:
        text, hint = f"{type(err).__name__}: {err}", ""
    except Exception as second:  # noqa: BLE001 - foreign code
        text, hint = f"{type(err).__name__}: it gives no reason ({type(second).__name__})", ""
    if isinstance(err, ModuleNotFoundError) and err.name and not err.name.startswith("benchctl_plugin_"):
        # Python's message names the package.
        text, module = str(err), err.name.partition(".")[0]
        hint = (
            "pip install 'benchctl[tracks]' installs what Rally brings along"
            if module in BROUGHT_BY_RALLY
            else f"install the package with '{module}' in benchctl's environment"
        )
    return PluginError(f"{_place(err, code)}: {doing} failed: {' '.join(text.split())}", hint=hint)


def _place(err: BaseException, code: Code) -> str:
    """File and line of the innermost of the plug-in's own frames, else its main file."""
    own = {str(code.root / name) for name in code.files}
    if isinstance(err, SyntaxError) and err.filename in own:
        return f"{err.filename}:{err.lineno or 1}"
    frames = [frame for frame in traceback.extract_tb(err.__traceback__) if frame.filename in own]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(code.path)


class Importer(MetaPathFinder, Loader):
    """Imports the modules of one plug-in, from the digested text, under a private name, until it is closed.

    Plug-in modules get their own `__import__`, which knows their natural names: imports by benchctl or a
    library, in any thread, cannot resolve to a plug-in. It executes the bytes that were read for the digest,
    never a file that has changed since, nor a compiled one beside it.

    Args:
        code: the plug-in.
        served: the packages that benchctl provides, by name; they win over installed ones, of other drivers.
        tag: makes the private name unique.
    """

    def __init__(self, code: Code, served: Mapping[str, Served], tag: str) -> None:
        self._root = f"benchctl_plugin_{tag}"
        self._code = code
        self._served = served
        self._sources: dict[str, str | None] = {self._root: None}  # None for packages without a file
        for path in code.files:
            parts = [self._root, *PurePosixPath(path).with_suffix("").parts]
            for depth in range(2, len(parts)):
                self._sources.setdefault(".".join(parts[:depth]), None)
            self._sources[".".join(parts).removesuffix(".__init__")] = path
        # The standard library wins: a folder `random` beside a track must not replace it.
        self._own = code.names - sys.stdlib_module_names
        # Standard output is for results.
        own = {"__import__": self._import, "print": functools.partial(print, file=sys.stderr)}
        self._builtins = {**vars(builtins), **own}
        sys.meta_path.append(self)

    def load(self, name: str) -> ModuleType:
        """Return a module by its natural name, such as `geonames.track`; executed once.

        Raises:
            ModuleNotFoundError: If there is none of that name.
        """
        return importlib.import_module(f"{self._root}.{name}")

    def close(self) -> None:
        """Forget its modules."""
        sys.meta_path.remove(self)
        for name in self._sources:
            sys.modules.pop(name, None)

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return how to load one of its modules; see `importlib`."""
        del path, target
        if not f"{fullname}.".startswith(f"{self._root}."):
            return None
        if fullname not in self._sources:
            natural = fullname.removeprefix(f"{self._root}.")
            raise ModuleNotFoundError(f"the plug-in has no module '{natural}'", name=fullname)
        source = self._sources[fullname]
        is_package = source is None or source.endswith("__init__.py")
        spec = ModuleSpec(
            fullname, self, origin=source and str(self._code.root / source), is_package=is_package
        )
        spec.has_location = source is not None
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Execute a module's text."""
        vars(module)["__builtins__"] = self._builtins
        source = self._sources[module.__name__]
        if source is not None:
            compiled = compile(self._code.files[source], str(module.__file__), "exec", dont_inherit=True)
            exec(compiled, vars(module))  # noqa: S102 - what the user consented to

    def _import(
        self,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Implements `import` statements of the plug-in's modules; see Python's `__import__`."""
        top, *inner = name.split(".")
        if level == 0 and top in self._served:
            module: ModuleType = functools.reduce(getattr, inner, self._served[top])
            return module if fromlist else self._served[top]
        if level or top not in self._own:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        module = builtins.__import__(f"{self._root}.{name}", globals_, locals_, fromlist or ())
        return module if fromlist else sys.modules[f"{self._root}.{top}"]


@dataclass
class Registry:
    """The registrations of a plug-in; methods are named as in Rally and OpenSearch Benchmark."""

    param_sources: dict[str, Any] = field(default_factory=dict)  # name -> function or class
    # Operation type -> coroutine function, or object with `async __call__`.
    runners: dict[str, Any] = field(default_factory=dict)
    schedulers: dict[str, Any] = field(default_factory=dict)  # name -> function or class
    processors: list[Any] = field(default_factory=list)  # of the track, before it is run
    # About the driver, for plug-ins.
    meta_data: Mapping[str, Any] = field(
        default_factory=lambda: {
            "async_runner": True,
            "rally_version": "2.13.0",
            "benchmark_version": "2.4.0",
        }
    )

    def register_param_source(self, name: object, param_source: Any) -> None:
        """Register a parameter source: `f(track, params, **kwargs)`, or a class."""
        self.param_sources[_named(name)] = param_source

    def register_runner(self, operation_type: object, runner: Any, **kwargs: Any) -> None:
        """Register a runner of an operation type.

        One that is not asynchronous is for Rally before version 2: its tasks are n/a.
        """
        name = _named(operation_type)

        async def blocking(*_: object) -> NoReturn:
            raise Unsupported(
                f"the runner of operation type '{name}' is not asynchronous: it has to be registered with "
                "async_runner=True, as Rally since version 2 demands"
            )

        self.runners[name] = runner if kwargs.get("async_runner", False) else blocking

    def runner_for(self, operation_type: object) -> Any:
        """Return the runner of an operation type, which may be benchctl's own."""
        name = _named(operation_type)
        return self.runners.get(name) or rally_api.built_in(name)()

    def register_scheduler(self, name: str, scheduler: Any) -> None:
        """Register a scheduler: `f(current)`, or a class."""
        self.schedulers[name] = scheduler

    def register_track_processor(self, processor: Any) -> None:
        """Register a track processor; it gets what it has attributes for, as in Rally."""
        for name, kind in (("downloader", Downloader), ("decompressor", Decompressor)):
            if hasattr(processor, name):
                setattr(processor, name, kind())
        self.processors.append(processor)

    register_workload_processor = register_track_processor  # OpenSearch Benchmark's name of the same

    def register_standard_value_source(self, *_: object) -> None:
        """Ignore OpenSearch Benchmark's values for optional query randomization."""

    register_query_randomization_info = register_standard_value_source


def _named(name: object) -> str:
    """Return a name as in tracks; plug-ins may also use Rally's enumeration."""
    hyphenated = getattr(name, "to_hyphenated_string", None)
    return str(hyphenated() if callable(hyphenated) else name)


def served_packages(registry: Registry) -> dict[str, Served]:
    """Return the packages that plug-ins import, by name; `registry` is the plug-in's."""
    own = {"runner_for": registry.runner_for, "register_runner": registry.register_runner}
    members = {**rally_api.MEMBERS, **CLASSES, **own}
    return {name: Served(name, members) for name in SERVED}


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
        self._importer = Importer(code, served_packages(self.registry), tag)
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

    def missing(self, needed: Mapping[str, frozenset[str]]) -> list[str]:
        """Return the names that a track needs and the plug-in does not register, one phrase each.

        `needed` maps `param source`, `operation type` and `scheduler` to names.
        """
        registered = {
            "param source": self.registry.param_sources,
            "operation type": self.registry.runners,
            "scheduler": self.registry.schedulers,
        }
        return [
            f"{kind} '{name}' (it registers {', '.join(sorted(registered[kind])) or 'none'})"
            for kind, names in needed.items()
            for name in sorted(names - registered[kind].keys())
        ]

    def close(self) -> None:
        """Forget its modules."""
        self._importer.close()

    def _register(self) -> None:
        with blaming(self.code, f"loading {self.code.main}.py"):
            register = vars(self._importer.load(f"{self.code.package}.{self.code.main}")).get("register")
            if register is None:
                raise PluginError(f"{self.code.path} has no function register(registry)")
            register(self.registry)

    def _process(self, processor: Any, track: Track) -> None:
        with blaming(self.code, f"track processor {type(processor).__name__}"):
            if isinstance(processor, Lacking):
                Lacking.__call__(processor)
            for kind in ("track", "workload"):
                change = getattr(processor, f"on_after_load_{kind}", None)
                if change is not None:
                    change(track)
                prepare = getattr(processor, f"on_prepare_{kind}", None)
                work = None if prepare is None else prepare(track, str(self.code.path.parent))
                # The oldest ones only return whether they did something.
                for function, given in () if work is None or isinstance(work, bool) else work:
                    function(**given)


def check_registered(code: Code, needed: Sequence[Mapping[str, frozenset[str]]]) -> list[list[str]]:
    """Execute a plug-in to check what it registers.

    Returns:
        What it does not register of `needed`, for each challenge; see `Loaded.missing`.

    Raises:
        PluginError: If its code failed.
    """
    loaded = Loaded(code, f"{code.digest[:12]}_check")
    loaded.close()
    return [loaded.missing(names) for names in needed]


_lock = threading.Lock()
_numbers = itertools.count(1)
# The plug-in in use in this process, by what it was loaded for: it stays until another session needs one.
_in_use: dict[tuple[Path, str, int], Loaded] = {}


def loaded_plugin(use: PluginUse) -> Loaded:
    """Return the plug-in of a use, loaded if necessary.

    Raises:
        BenchctlError: If it has changed since consent was given, or its code failed.
    """
    key = (use.folder, use.digest, use.session)
    with _lock:
        if key not in _in_use:
            while _in_use:
                _in_use.popitem()[1].close()
            code = read_code(use.folder)
            if code is None or code.digest != use.digest:
                raise BenchctlError(
                    f"the plug-in in {use.folder} has changed since the run was planned",
                    hint="start a new run",
                )
            _in_use[key] = Loaded(code, f"{use.digest[:12]}_{next(_numbers)}")
        return _in_use[key]
