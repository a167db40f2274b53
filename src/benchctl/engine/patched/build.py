"""Build a distribution's Lucene with a change to it, from the sources that Lucene publishes."""

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchctl.disk import disk_errors
from benchctl.engine.patched.changes import change_named
from benchctl.engine.patched.compiler import Compiler, fetch_compiler, java_release
from benchctl.engine.patched.edit import Change, difference
from benchctl.engine.patched.jar import read_entry, replace_entries
from benchctl.engine.provision.artifacts import fetch_published
from benchctl.engine.provision.checksum import digest
from benchctl.engine.provision.install import Installation
from benchctl.engine.provision.jdk import Jdk
from benchctl.engine.provision.maven import Coordinates
from benchctl.engine.provision.staging import staging
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.network import Progress

_LIBRARY = "lucene-core"
_SOURCES = Coordinates("org.apache.lucene", _LIBRARY, classifier="sources")
_FORMAT = "1"  # of the jars that are written: another one, another name


@dataclass(frozen=True)
class PatchedJar:
    """A changed lucene-core.

    Attributes:
        path: where it is.
        sha256: of its bytes, hexadecimal.
        lucene: the version that was changed.
        difference: what was changed in the source, as a unified diff; empty when nothing was.
    """

    path: Path
    sha256: str
    lucene: str
    difference: str


def build_jar(home: Home, installation: Installation, jdk: Jdk, name: str, progress: Progress) -> Path:
    """The jar of `build`."""
    return build(home, installation, jdk, name, progress).path


def build(home: Home, installation: Installation, jdk: Jdk, name: str, progress: Progress) -> PatchedJar:
    """Make the changed jar of a distribution's lucene-core; at once when it was made before.

    It is the distribution's own jar, whatever its makers did to it, but for the class of the change. That one
    comes from the sources that Lucene publishes for this version.

    Args:
        home: where it is kept, and what is downloaded for it.
        installation: the distribution.
        jdk: what the compiler runs on, Java 17 or newer. The bundled one serves every variant, whatever its
            nodes run on.
        name: of the change, such as `bulk-visit`.
        progress: told about downloads.

    Raises:
        UsageError: there is no such change.
        BenchctlError: the change does not fit this Lucene, the sources or the compiler cannot be had, the
            result does not compile, or the disk refuses.
    """
    change = change_named(name)
    original = installation.root / "lib" / f"{_LIBRARY}-{installation.lucene}.jar"
    sources = fetch_published(home, _SOURCES, installation.lucene, progress)
    where = f"{PurePosixPath(change.source).name} of Lucene {installation.lucene}"
    before = read_entry(sources.path, change.source).decode()
    after = change.apply(before, where)
    compiler = fetch_compiler(home, jdk, progress)
    with disk_errors(f"read {original}"):
        parts = (_FORMAT, name, after, compiler.sha256, digest(original, "sha256"))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    path = home.artifacts / f"{_LIBRARY}-{installation.lucene}-{name}-{key}.jar"
    if not path.is_file():
        _write(path, original, change, after, compiler)
    return PatchedJar(
        path, digest(path, "sha256"), installation.lucene, difference(before, after, change.source)
    )


def _write(path: Path, original: Path, change: Change, source: str, compiler: Compiler) -> None:
    """Compile the class and put it into a copy of the jar, which appears complete or not at all."""
    entry = PurePosixPath(change.source).with_suffix(".class")
    release = java_release(read_entry(original, str(entry)), f"{entry} of {original}")
    with staging(path.parent, f"build {path}") as folder:
        text = folder / entry.with_suffix(".java").name
        text.write_text(source, encoding="utf-8")
        out = folder / "classes"
        compiler.compile(text, original, release, out)
        compiled = {file.relative_to(out).as_posix(): file.read_bytes() for file in out.rglob("*.class")}
        for name, content in compiled.items():
            made = java_release(content, name)
            if made != release:
                raise BenchctlError(
                    f"ecj {compiler.version} made {name} for Java {made}, and Lucene's is for {release}"
                )
        ready = folder / path.name
        replace_entries(original, ready, compiled, f"Benchctl-Patch: {change.name}")
        ready.chmod(0o644)
        ready.replace(path)
