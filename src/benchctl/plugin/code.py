"""The Python files of a track's plug-in, and consent to execute them."""

import ast
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.track.operations.catalogue import FILE_NAMES

# Files are read once, so that the digest is of what gets executed.

SERVED = frozenset({"esrally", "osbenchmark"})
"""Top-level packages that plug-ins import and benchctl provides."""

_MOST_FILES = 2_000
_MOST_BYTES = 2**26


@dataclass(frozen=True)
class Code:
    """A plug-in's source text.

    As in Rally, a plug-in is the package formed by its track's folder, and may import packages and modules
    beside that folder. Only what is in here is ever executed as part of it.
    """

    root: Path  # the folder that has its package
    package: str  # name of the track's folder
    main: str  # name of its main module, `track` or `workload`
    files: Mapping[str, bytes]  # path relative to the root, with slashes -> content
    digest: str  # SHA-256 over names and contents of all files

    @property
    def path(self) -> Path:
        """The main file."""
        return self.root / self.package / f"{self.main}.py"

    @property
    def names(self) -> frozenset[str]:
        """Top-level names by which it imports its own modules."""
        return frozenset(PurePosixPath(path).parts[0].removesuffix(".py") for path in self.files)

    @property
    def processes(self) -> bool:
        """Return whether it may change the track even though no operation refers to it."""
        return any(b"_processor(" in content for content in self.files.values())

    def describe(self) -> str:
        """Return a summary of its files, for deciding whether to trust them."""
        names = sorted(self.files, key=lambda name: (PurePosixPath(name).name != f"{self.main}.py", name))
        shown = ", ".join(names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"{len(names)} file{'s' if len(names) > 1 else ''} in {self.root}: {shown}{more}"


_SHOWN = 6


def read_code(folder: Path) -> Code | None:
    """Return the plug-in in a track's folder, without executing it; None when there is none.

    Raises:
        UsageError: If a file cannot be read, or there are too many.
    """
    folder = folder.resolve()
    main = next((name for name in FILE_NAMES if (folder / name).is_file()), None)
    if main is None:
        return None
    files: dict[str, bytes] = {}
    waiting, seen = [folder.name], {folder.name}
    while waiting:
        for path in _python_files(folder.parent, waiting.pop()):
            name = path.relative_to(folder.parent).as_posix()
            files[name] = _content(path, sum(map(len, files.values())))
            if len(files) > _MOST_FILES:
                raise UsageError(f"the plug-in of {folder} has more than {_MOST_FILES:,} Python files")
            for beside in _imported(files[name]) - seen:
                seen.add(beside)
                waiting.append(beside)
    return Code(folder.parent, folder.name, main.removesuffix(".py"), files, _digest(main, files))


def _python_files(root: Path, name: str) -> list[Path]:
    """Return the files of a package or module, without hidden folders."""
    if (root / f"{name}.py").is_file() and not (root / name).is_dir():
        return [root / f"{name}.py"]
    folder = root / name
    return [
        path
        for path in sorted(folder.rglob("*.py"))
        if not any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts)
        and path.is_file()  # reading a pipe or device might never end
    ]


def _content(path: Path, so_far: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as err:
        raise UsageError(f"the plug-in's file {path} cannot be read: {err.strerror}") from err
    if so_far + len(content) > _MOST_BYTES:
        raise UsageError(f"the plug-in's files have more than {_MOST_BYTES // 2**20} MB", hint=str(path))
    return content


def _imported(source: bytes) -> set[str]:
    """Top-level names that a file imports, except the standard library and what benchctl provides."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Executing it will fail, with an explanation.
        return set()
    except SystemError:
        # CPython 3.11's parser is not thread-safe (python/cpython#106905).
        tree = ast.parse(source)
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules.add(node.module.partition(".")[0])
    return modules - SERVED - sys.stdlib_module_names


def _digest(main: str, files: Mapping[str, bytes]) -> str:
    """Over the main file's name and all files, with lengths in between, so that no two plug-ins collide."""
    digest = hashlib.sha256()
    for name, content in sorted({"": main.encode(), **files}.items()):
        digest.update(f"{len(name.encode())} {len(content)} ".encode())
        digest.update(name.encode() + content)
    return digest.hexdigest()


@dataclass(frozen=True)
class Consent:
    """The plug-ins that may be executed.

    Consent is remembered for the digest of all files: any change revokes it. `given` is consent for this
    command only.
    """

    home: Home
    given: bool = False

    def covers(self, code: Code) -> bool:
        """Return whether a plug-in may be executed."""
        return self.given or self.is_remembered(code)

    def is_remembered(self, code: Code) -> bool:
        """Return whether consent to it is remembered."""
        return (self.home.trusted / f"{code.digest}.json").is_file()

    def remember(self, code: Code) -> None:
        """Remember consent.

        Raises:
            BenchctlError: If the home cannot be written to.
        """
        path = self.home.trusted / f"{code.digest}.json"
        fields = {
            "plug-in": str(code.path),
            "files": sorted(code.files),
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        try:
            path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
        except OSError as err:
            raise BenchctlError(f"cannot write {path}: {err.strerror}") from err

    def forget(self, code: Code) -> int:
        """Revoke consent to a plug-in, including earlier contents of the same file.

        Returns:
            How many there were.
        """
        recorded = f'"plug-in": {json.dumps(str(code.path))},'
        paths = [
            path
            for path in self.home.trusted.glob("*.json")
            if path.stem == code.digest or recorded in path.read_text(encoding="utf-8", errors="replace")
        ]
        for path in paths:
            path.unlink()
        return len(paths)


def refusal(problem: str, code: Code | None) -> UsageError:
    """Return the error when something needs a plug-in, None if there is none, that may not be executed."""
    if code is None:
        return UsageError(problem)
    return UsageError(
        problem,
        hint=f"it would execute {code.describe()}; review them, then add --trust or run "
        f"`benchctl track trust {code.path.parent}` once",
    )
