"""Imports of plug-in code: its own modules from the text that was digested, under a private name.

Plug-in modules get an `__import__` of their own instead of a finder in `sys.meta_path`: nothing that benchctl
or a library imports meanwhile, in whatever thread, can land in a plug-in, and a plug-in's imports within
functions still work when they run. It executes the bytes that were read for the digest, never a file that has
changed since, nor a compiled one that lies beside it.
"""

import builtins
import sys
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from benchctl.plugin.code import SERVED, Code


class Importer:
    """The modules of one plug-in.

    They stand in `sys.modules` under their private names, where Python's own libraries look for the module of
    a class, until they are closed.

    Args:
        code: the plug-in.
        served: modules that benchctl stands in for, by their full names; they win over installed packages of
            these names, which would bring a driver of their own.
        tag: makes the private name unique.
    """

    def __init__(self, code: Code, served: Mapping[str, ModuleType], tag: str) -> None:
        self.prefix = f"benchctl_plugin_{tag}"
        self._code = code
        self._served = served
        self._sources = dict(_modules(code))
        # Python's own modules win: a folder `random` beside a track must not replace the library's.
        self._own = code.names - sys.stdlib_module_names
        # Standard output is for results.
        own = {"__import__": self._import, "print": _print}
        self._builtins = {**vars(builtins), **own}
        self._loaded: dict[str, ModuleType] = {}

    def load(self, name: str) -> ModuleType:
        """One of the plug-in's modules by its natural name, such as `geonames.track`; executed once.

        Raises:
            ModuleNotFoundError: there is none of that name.
        """
        known = self._loaded.get(name)
        if known is not None:
            return known
        parent, _, last = name.rpartition(".")
        holder = self.load(parent) if parent else None
        if name not in self._sources:
            raise ModuleNotFoundError(f"the plug-in has no module '{name}'")
        module = self._execute(name, self._sources[name])
        if holder is not None:
            setattr(holder, last, module)
        return module

    def close(self) -> None:
        """Take its modules out of `sys.modules`."""
        for name in self._loaded:
            sys.modules.pop(f"{self.prefix}.{name}", None)
        self._loaded.clear()

    def _execute(self, name: str, path: str | None) -> ModuleType:
        """A module from its text; a folder without `__init__.py` is an empty package."""
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
        """What an `import` statement in a plug-in's module calls; see Python's `__import__`."""
        natural = self._natural(name, globals_ or {}, level)
        top = natural.partition(".")[0]
        if top in SERVED:
            return self._serve(natural, top, fromlist)
        if top not in self._own:
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        module = self.load(natural)
        for one in fromlist or ():
            if not hasattr(module, one) and f"{natural}.{one}" in self._sources:
                self.load(f"{natural}.{one}")
        return module if fromlist else self.load(top)

    def _natural(self, name: str, globals_: Mapping[str, Any], level: int) -> str:
        """The name without the private part, relative ones resolved."""
        if not level:
            return name
        package = str(globals_.get("__package__", "")).removeprefix(f"{self.prefix}.").split(".")
        if level > len(package):
            raise ImportError("attempted relative import beyond top-level package")
        base = package[: len(package) - level + 1]
        return ".".join([*base, name] if name else base)

    def _serve(self, name: str, top: str, fromlist: tuple[str, ...] | None) -> ModuleType:
        """One of the modules that benchctl stands in for.

        Raises:
            ImportError: it does not have what is asked for, which is said by name.
        """
        module = self._served.get(name)
        if module is None:
            raise ImportError(f"benchctl has no '{name}' for plug-ins", name=name)
        for one in fromlist or ():
            if one != "*" and not hasattr(module, one):
                raise ImportError(f"benchctl has no '{one}' of '{name}' for plug-ins", name=name)
        return module if fromlist else self._served[top]


def _print(*values: object, **options: Any) -> None:  # noqa: ANN401 - as of `print`
    """Python's own, to standard error unless the plug-in says otherwise."""
    print(*values, **{**options, "file": options.get("file") or sys.stderr})  # noqa: T201 - foreign words


def _modules(code: Code) -> Mapping[str, str | None]:
    """Natural name of every module -> path of its file; None for folders that are packages without one."""
    found: dict[str, str | None] = {}
    for path in code.files:
        parts = PurePosixPath(path).with_suffix("").parts
        for depth in range(1, len(parts)):
            found.setdefault(".".join(parts[:depth]), None)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path
    return found
