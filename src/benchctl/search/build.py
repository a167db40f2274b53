"""Builds of commits by a command, kept by what decides them."""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from benchctl.disk import disk_errors, free_bytes, require_space, settle, staging
from benchctl.engine.process import Command, NodeProcess, describe_exit, last_lines
from benchctl.errors import BenchctlError, UsageError
from benchctl.git import Commit, Repository, environment
from benchctl.home import Home
from benchctl.report.numbers import duration
from benchctl.results.plan import VariantSpec
from benchctl.search.record import Source

_FORMAT: Final = "1"
_ARCHIVES: Final = (".zip", ".tar.gz", ".tgz")
_LEAST_FREE: Final = 2 * 2**30
_POLL_S: Final = 0.5
_GRACE_S: Final = 5.0
_JAVA_S: Final = 60
_TAIL: Final = 12


def java_version() -> str:
    """Return the version that the JDK of a build reports; empty if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if program is None:
        return ""
    try:
        reported = subprocess.run([program, "-version"], capture_output=True, check=False, timeout=_JAVA_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return reported.stderr.decode(errors="replace").strip()


@dataclass(frozen=True)
class Built:
    """The build of a commit: jars, or one archive of an engine; `seconds` is None if it was cached."""

    files: tuple[Path, ...]
    seconds: float | None

    def variant(self, base: VariantSpec, name: str) -> VariantSpec:
        """A variant with it."""
        jars = tuple(str(path) for path in self.files if path.suffix == ".jar")
        if jars:
            return msgspec.structs.replace(base, name=name, jars=(*base.jars, *jars))
        return msgspec.structs.replace(base, name=name, distribution=str(self.files[0]))


class Workshop:
    """Builds commits, each once: what it made is kept by commit, command, pattern and JDK."""

    def __init__(self, home: Home, source: Source) -> None:
        """Find the repository.

        Raises:
            UsageError: If there is no repository, or the source is incomplete.
            BenchctlError: If the repository cannot be fetched.
        """
        parts = PurePosixPath(source.artifact).parts
        if not parts or source.artifact.startswith("/") or ".." in parts:
            raise UsageError(
                f"--artifact {source.artifact!r} is not a pattern within a checkout",
                hint="write build/distributions/*.tar.gz, for instance",
            )
        if not source.command.strip():
            raise UsageError("--build is empty", hint="give the command that builds a checkout")
        self.repository = Repository(home, source.repository, "--source")
        self.source = source
        self._home = home

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Everything that decides what becomes of a commit."""
        return self.source.command, self.source.artifact, java_version()

    def build(self, commit: Commit, stage: Callable[[str], None]) -> Built:
        """Build a commit, unless it was; `stage` is told when it takes a build.

        Raises:
            BenchctlError: If the command fails, takes too long or makes nothing of that name, or the disk or
                git fails.
        """
        parts = (_FORMAT, commit.sha, *self.identity)
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
        final = self._home.builds / f"{commit.short}-{key}"
        log = self._home.logs / f"build-{final.name}.log"
        if final.is_dir():
            return Built(tuple(sorted(final.iterdir())), None)
        stage(f"building {commit.short}")
        require_space(
            self._home.builds, _LEAST_FREE, f"build {commit.short}", available=free_bytes(self._home.builds)
        )
        begun = time.monotonic()
        with staging(self._home.builds, f"build {commit.short}") as folder:
            tree = self.repository.checkout(commit, folder)
            self._run(commit, tree, log)
            ready = folder / "made"
            ready.mkdir()
            ready.chmod(0o755)
            for path in self._made(commit, tree):
                target = ready / path.name
                shutil.copyfile(path, target)
                target.chmod(0o644)
            settle(ready, final)
        return Built(tuple(sorted(final.iterdir())), time.monotonic() - begun)

    def _run(self, commit: Commit, tree: Path, log: Path) -> None:
        source = self.source
        log.unlink(missing_ok=True)
        command = Command(("/bin/sh", "-c", source.command), environment(), tree, log, log)
        begun = time.monotonic()
        with NodeProcess(command, grace_s=_GRACE_S) as process:
            while (status := process.wait(_POLL_S)) is None:
                if time.monotonic() - begun > source.timeout_s:
                    raise BenchctlError(
                        f"{commit.short} was not built within {duration(source.timeout_s)} (log: {log})",
                        hint="give it more with --build-timeout",
                    )
        if status != 0:
            lines = "\n  ".join(last_lines(log, _TAIL) or ["it printed nothing"])
            raise BenchctlError(
                f"{commit.short} does not build: {source.command} {describe_exit(status)} (log: {log})\n"
                f"  {lines}"
            )

    def _made(self, commit: Commit, tree: Path) -> list[Path]:
        with disk_errors(f"look for {self.source.artifact}"):
            inside = tree.resolve()
            paths = [
                path
                for path in sorted(tree.glob(self.source.artifact))
                # A link may lead to anything that this user can read.
                if path.is_file() and path.resolve().is_relative_to(inside)
            ]
        archives = [path for path in paths if path.name.endswith(_ARCHIVES)]
        others = [path for path in paths if path not in archives and path.suffix != ".jar"]
        if (
            not paths
            or others
            or (archives and len(paths) > 1)
            or len({path.name for path in paths}) < len(paths)
        ):
            names = ", ".join(str(path.relative_to(tree)) for path in paths) or "nothing"
            raise BenchctlError(
                f"{commit.short}: --artifact {self.source.artifact} finds {names}",
                hint="it has to find jars, or one .zip or .tar.gz of an engine",
            )
        return paths
