"""Direct node starts: the server's command line, learnt once from the engine's start script.

A start script runs short-lived JVMs for two to three seconds before the server, and ends up with the same
command line every time. It is run once with a stand-in for `java` that records its arguments; from then on
the server is started with these, with the folders of each start filled in. A class-data-sharing archive
halves the server's own start time.
"""

import base64
import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec
import psutil

from benchctl.disk import disk_errors, link_or_copy, open_regular, read_file, replacing, stored
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.process import Command, NodeProcess, Patience
from benchctl.engine.settings import BootFolders, hand_over
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.results.plan import EngineName

MAIN_CLASSES: Final[Mapping[EngineName, str]] = {
    "elasticsearch": "org.elasticsearch.bootstrap.Elasticsearch",
    "opensearch": "org.opensearch.bootstrap.OpenSearch",
}
ARCHIVE_FLAG: Final = "-XX:SharedArchiveFile="
# Arguments of a server that no archive goes with. HotSpot shares no classes where java.base is patched, as by
# Elasticsearch from 8.19 on; with an agent, as OpenSearch's from 3.0 on, its diagnostic options write an
# archive, and JVMs crash on it.
_RULING_OUT: Final = {
    "--patch-module=java.base=": "the engine patches the runtime's base module, which rules one out",
    "-javaagent:": "the engine has an agent in the JVM, which rules one out",
}
_MIN_ARCHIVING_JAVA: Final = 13
_ARCHIVING_AGAIN_S: Final = 86_400.0
_FORMAT: Final = 1
_LEARN_TIMEOUT_S: Final = 60.0
_LAUNCHER_GRACE_S: Final = 2.0
_POLL_S: Final = 0.02
_NOTES: Final = "BENCHCTL_LAUNCH"
# What Elasticsearch's launcher writes after its last argument when it is terminated.
_END_OF_ARGUMENTS: Final = b"\x1b"
_MOST_STDIN: Final = 32768
# Waits, tried in turn, until the launcher of a ready server can be terminated.
_LAUNCHER_WAITS_S: Final = (0.2, 1.0, 5.0)
# Replaces `java`: records the server's command line and reports it as ready; runs anything else.
_STAND_IN: Final = """#!/bin/sh
case "$*" in
*{main}*)
  printf '%s\\0' "$@" >"${notes}/argv"
  env -0 >"${notes}/env"
  pwd >"${notes}/cwd"
  echo $$ >"${notes}/pid"
  printf '\\030\\n' >&2
  trap '' TERM
  exec cat >"${notes}/stdin"
  ;;
esac
exec "${{0%/*}}/{java}" "$@"
"""
_REAL_JAVA: Final = "java-itself"
_SHELLS_OWN: Final = frozenset({_NOTES, "_", "PWD", "OLDPWD", "SHLVL"})


class UnlearnableError(BenchctlError):
    """A script's start that cannot be recorded: nodes are started by the script itself."""


class _Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to start the server; folders of a start are placeholders."""

    argv: tuple[str, ...]  # arguments, without the program
    env: dict[str, str]  # variables
    cwd: str  # working folder
    # what is written to standard input, in pieces: base64 of bytes, or a path as a string that the engine's
    # wire format prefixes with its length
    stdin: tuple[tuple[str, str], ...]
    stdin_open: bool  # whether standard input stays open for as long as the node runs
    files: dict[str, str]  # name -> base64 of what the script left in the configuration folder


@dataclass(frozen=True)
class ClassArchive:
    """The class-data-sharing archive of an engine's nodes on a runtime, or why there is none."""

    path: Path
    java: int  # major version of the runtime

    @property
    def refusal(self) -> str | None:
        """Reason why there is no archive; empty if there is one, None if a node has yet to write it.

        A JVM may be killed, its time to stop being over, before it has written one: a day later it is tried
        again.
        """
        if self.path.exists():
            return ""
        if self.java < _MIN_ARCHIVING_JAVA:
            return f"Java {self.java} writes none"
        with disk_errors(f"read {self._refusal_file}"), contextlib.suppress(FileNotFoundError):
            if 0 <= time.time() - self._refusal_file.stat().st_mtime < _ARCHIVING_AGAIN_S:
                return self._refusal_file.read_text(encoding="utf-8")
        return None

    def refuse(self, reason: str) -> None:
        """Record why there is no archive.

        Raises:
            BenchctlError: If the disk refuses.
        """
        with disk_errors(f"make {self.path}"):
            self._refusal_file.write_text(reason, encoding="utf-8")

    def keep(self, written: Path, otherwise: str) -> None:
        """Keep the archive that a node wrote, else the reason why it did not; no link is followed.

        An empty reason is not kept.

        Raises:
            BenchctlError: If the disk refuses, or the archive is not a file.
        """
        with disk_errors(f"make {self.path}"):
            try:
                with (
                    open_regular(written, follow=False) as source,
                    replacing(self.path) as partial,
                    partial.open("wb") as target,
                ):
                    shutil.copyfileobj(source, target)
                    partial.chmod(0o644)
            except FileNotFoundError:
                if otherwise:
                    self.refuse(otherwise)

    @property
    def _refusal_file(self) -> Path:
        return self.path.with_suffix(".refused")


@dataclass(frozen=True)
class Starts:
    """The kept recipes of an installation's starts."""

    folder: Path  # beside the installation
    scratch: Path  # where scripts are run to learn from them, in folders that only benchctl can replace
    refused: dict[str, str] = field(default_factory=dict)  # starts that were found to need the script -> why
    archived: bool = True  # whether servers start with the archive of their classes, where there is one

    def archive(self, installation: Installation, jdk: Jdk) -> ClassArchive:
        """Return the archive of nodes on a runtime.

        A JVM rejects it once a jar has changed, so the jars are part of its name.
        """
        jars = sorted(
            (str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in installation.root.rglob("*.jar")
        )
        key = hashlib.sha256(repr((jars, str(jdk.home), jdk.version, jdk.vendor)).encode()).hexdigest()[:12]
        return ClassArchive(self.folder / f"classes-{key}.jsa", jdk.major)

    def forget(self) -> None:
        """Drop all recipes: a start failed for an unknown reason."""
        for recipe in self.folder.glob("start-*.json"):
            recipe.unlink(missing_ok=True)


def starts_of(home: Home, installation: Installation) -> Starts:
    """Return the folder of an installation's starts, created if missing.

    Raises:
        BenchctlError: If the disk refuses.
    """
    key = hashlib.sha256(f"{installation.root}\0{installation.archive_sha256}".encode()).hexdigest()[:12]
    folder = home.engines / f"{installation.engine}-{installation.version}-starts-{key}"
    with disk_errors(f"make {folder}"):
        folder.mkdir(exist_ok=True)
        manifest = folder / "manifest.json"
        if not manifest.exists():  # by which retention finds it
            with replacing(manifest) as partial:
                partial.write_bytes(msgspec.json.encode({"archive_sha256": installation.archive_sha256}))
        return Starts(open_folder(folder), home.scratch)


def direct(
    script: Command,
    starts: Starts,
    folders: BootFolders,
    installation: Installation,
    jdk: Jdk,
    data: Path,
    *,
    archive_to: Path | None = None,
) -> Command:
    """Return the command that starts the server directly, as the script would in the end.

    The first start of its kind runs the script, without a server, to learn it. What a script writes to the
    configuration is put there, too, so the folder must not be the nodes' user's yet.

    Args:
        script: the command that runs the engine's own script.
        starts: where recipes are kept.
        folders: of this start, configured; handed over to the script's user if that has to run.
        installation: which engine.
        jdk: its runtime.
        data: its data folder.
        archive_to: where the server dumps its classes when it ends, if it can; it then uses no archive.

    Raises:
        UnlearnableError: If what the script does cannot be recorded.
        BenchctlError: If the disk refuses.
    """
    places = _Places(folders, data.absolute())
    key = _key(script, places, installation, jdk)
    if key in starts.refused:
        raise UnlearnableError(starts.refused[key])
    recipe_file = starts.folder / f"start-{key}.json"
    with disk_errors(f"use {recipe_file}"):
        recipe = stored(recipe_file, _Recipe)
        if recipe is None:
            try:
                recipe = _learn(script, places, installation, jdk, starts.scratch)
            except UnlearnableError as err:
                starts.refused[key] = err.message
                raise
            with replacing(recipe_file) as partial:
                partial.touch(0o600)
                partial.write_bytes(msgspec.json.encode(recipe))
        else:
            for name, content in recipe.files.items():
                (folders.config / name).write_bytes(base64.b64decode(content))
    archive = starts.archive(installation, jdk).path
    shared: tuple[str, ...] = ()
    if archive_to is not None and not ruled_out(recipe.argv):
        shared = (f"-XX:ArchiveClassesAtExit={archive_to}",)
    elif archive_to is None and starts.archived and archive.exists():
        shared = (f"{ARCHIVE_FLAG}{archive}",)
    return replace(
        script,
        argv=(str(jdk.home.absolute() / "bin" / "java"), *shared, *map(places.fill, recipe.argv)),
        env={name: places.fill(value) for name, value in recipe.env.items()},
        cwd=Path(places.fill(recipe.cwd)),
        stdin=places.fill_pieces(recipe.stdin),
        stdin_open=recipe.stdin_open,
    )


def ruled_out(arguments: Iterable[str]) -> str:
    """Return why no archive of classes goes with a server's arguments; empty if nothing rules it out."""
    starts = ((argument, start) for argument in arguments for start in _RULING_OUT)
    return next((_RULING_OUT[start] for argument, start in starts if argument.startswith(start)), "")


@dataclass(frozen=True)
class _Places:
    """The folders of one start, and their placeholders."""

    folders: BootFolders
    data: Path

    @property
    def _names(self) -> tuple[tuple[str, str], ...]:
        """(path, placeholder), the longer path first: one may contain the other."""
        names = ((str(self.folders.root), "@START@"), (str(self.data), "@DATA@"))
        return tuple(sorted(names, key=lambda pair: -len(pair[0])))

    def clear(self, text: str) -> str:
        for path, placeholder in self._names:
            text = text.replace(path, placeholder)
        return text

    def fill(self, text: str) -> str:
        for path, placeholder in self._names:
            text = text.replace(placeholder, path)
        return text

    def pieces(self, raw: bytes) -> tuple[tuple[str, str], ...]:
        """Cut standard input at every path of this start.

        In the engine's wire format a string follows its length; where a path does not, it is part of
        something else whose encoding is unknown.
        """
        strings = {
            _string(str(path)): path
            for path in (
                self.data,
                *(
                    getattr(self.folders, name)
                    for name in ("config", "logs", "temporary", "repository", "root")
                ),
            )
        }
        pieces: list[tuple[str, str]] = []
        rest = raw
        while rest:
            candidates = [
                (rest.index(string), -len(string), path) for string, path in strings.items() if string in rest
            ]
            if not candidates:
                pieces.append(("bytes", base64.b64encode(rest).decode()))
                break
            at, minus_size, path = min(candidates)
            pieces += [("bytes", base64.b64encode(rest[:at]).decode()), ("path", self.clear(str(path)))]
            rest = rest[at - minus_size :]
        left = b"".join(base64.b64decode(piece) for kind, piece in pieces if kind == "bytes")
        if any(path.encode() in left for path, _ in self._names):
            raise UnlearnableError("its launcher passes a path in a way that benchctl does not support")
        return tuple(pieces)

    def fill_pieces(self, pieces: Iterable[tuple[str, str]]) -> bytes:
        return b"".join(
            base64.b64decode(piece) if kind == "bytes" else _string(self.fill(piece))
            for kind, piece in pieces
        )


def _string(text: str) -> bytes:
    """An ASCII string as engines write it: its length as a variable-length integer, then the text."""
    length, head = len(text), bytearray()
    while length >> 7:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + text.encode("ascii")


def _key(script: Command, places: _Places, installation: Installation, jdk: Jdk) -> str:
    """Return what a script's outcome depends on: configuration, environment, and the host's resources."""
    config = places.folders.config
    files = {
        str(path.relative_to(config)): places.clear(
            path.read_text(encoding="utf-8", errors="surrogateescape")
        )
        for path in sorted(config.rglob("*"))
        if path.is_file()
    }
    facts = (
        _FORMAT,
        installation.engine,
        installation.archive_sha256,
        str(installation.root),
        str(jdk.home),
        jdk.version,
        jdk.vendor,
        sorted((name, places.clear(value)) for name, value in script.env.items()),
        sorted(files.items()),
        script.cpus,
        os.cpu_count(),
        psutil.virtual_memory().total,
    )
    encoded = repr(facts).encode(errors="surrogateescape")
    return hashlib.sha256(encoded).hexdigest()[:20]


def _learn(script: Command, places: _Places, installation: Installation, jdk: Jdk, scratch: Path) -> _Recipe:
    """Run an engine's script with a stand-in for `java`."""
    if not str(places.folders.root).isascii() or not str(places.data).isascii():
        raise UnlearnableError("the path of its directories is not ASCII")
    before = {path.name for path in places.folders.config.iterdir()}
    hand_over(places.folders.root, script.owner)
    # The script's user may do anything in its own folders, such as replacing them by links to ours.
    folder = open_folder(Path(tempfile.mkdtemp(prefix="start-", dir=scratch)))
    notes, runtime = folder / "notes", folder / "java"
    try:
        notes.mkdir()
        notes.chmod(0o777)
        _stand_in(jdk, runtime, MAIN_CLASSES[installation.engine])
        real, ours = str(jdk.home.absolute()), str(runtime)
        env = {name: ours if value == real else value for name, value in script.env.items()}
        learning = replace(script, env={**env, _NOTES: str(notes)})
        learnt = next(filter(None, (_watch(learning, notes, wait_s) for wait_s in _LAUNCHER_WAITS_S)), None)
        if learnt is None:
            raise UnlearnableError("its launcher never confirmed that the server received its arguments")
        stdin, stays_open = learnt
        if len(stdin) > _MOST_STDIN:
            raise UnlearnableError(f"its launcher sends the server {len(stdin):,} bytes")
        argv, variables, cwd = (
            _noted(notes / name).decode("utf-8", "surrogateescape").replace(ours, real)
            for name in ("argv", "env", "cwd")
        )
        # A launcher that resolves links would bring back the white space that a home's link is for: a JVM
        # finds no jar of such a path again when it writes an archive of its classes.
        argv = argv.replace(str(installation.root.resolve()), str(installation.root))
        return _Recipe(
            argv=tuple(places.clear(argv).split("\0")[:-1]),
            env={
                name: places.clear(value)
                for name, _, value in (entry.partition("=") for entry in variables.split("\0")[:-1])
                if name not in _SHELLS_OWN
            },
            cwd=places.clear(cwd.removesuffix("\n")),
            stdin=places.pieces(stdin),
            stdin_open=stays_open,
            files={
                path.name: base64.b64encode(_noted(path)).decode()
                for path in places.folders.config.iterdir()
                if path.name not in before
            },
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _noted(path: Path) -> bytes:
    """A file that a script wrote."""
    try:
        return read_file(path, follow=False)
    except OSError as err:
        raise UnlearnableError(f"the {path.name} that it wrote cannot be read: {err.strerror}") from err


def _stand_in(jdk: Jdk, runtime: Path, main: str) -> None:
    """A runtime whose `java` is a stand-in. A JVM's home is where its library is: links must be hard."""
    shutil.copytree(jdk.home, runtime, symlinks=True, copy_function=link_or_copy)
    java = runtime / "bin" / "java"
    java.rename(java.with_name(_REAL_JAVA))
    java.write_text(_STAND_IN.format(main=main, notes=_NOTES, java=_REAL_JAVA), encoding="utf-8")
    java.chmod(0o755)


def _watch(learning: Command, notes: Path, launcher_wait_s: float) -> tuple[bytes, bool] | None:
    """Run the script until its server would run."""
    stdin, pid = notes / "stdin", notes / "pid"
    stdin.unlink(missing_ok=True)
    with NodeProcess(learning, grace_s=_LAUNCHER_GRACE_S) as process:
        patience = Patience(_LEARN_TIMEOUT_S, process.used_s, learning.cpus)
        while not patience.is_over():
            status = process.wait(_POLL_S)
            if status is not None and (status or not stdin.exists()):
                # One that failed after the server's start may not have sent everything.
                output = " ".join(process.tail(3)) or "no output"
                raise UnlearnableError(f"its script started no server, or failed: {output}")
            if status is not None:
                return _noted(stdin), False
            if stdin.exists() and stdin.lstat().st_size and int(_noted(pid)) != process.group:
                # A launcher that keeps running marks the end of its arguments when it is terminated.
                process.wait(launcher_wait_s)
                return _all_arguments(stdin, process)
    raise UnlearnableError(f"its script started no server within {_LEARN_TIMEOUT_S:g} s")


def _all_arguments(file: Path, process: NodeProcess) -> tuple[bytes, bool] | None:
    """Return what a launcher sends its server until it is terminated; None when it did not mark the end."""
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(process.group).terminate()
    deadline = time.monotonic() + _LAUNCHER_GRACE_S
    while time.monotonic() < deadline:
        stdin = _noted(file)
        if stdin.endswith(_END_OF_ARGUMENTS):
            process.stop(0.0)
            return stdin.removesuffix(_END_OF_ARGUMENTS), True
        time.sleep(_POLL_S)
    return None
