"""Build a distribution's Lucene with a change to it, from the sources that Lucene publishes."""

import copy
import hashlib
import lzma
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchctl.disk import disk_errors
from benchctl.engine.patched.changes import change_named
from benchctl.engine.patched.edit import Change, difference
from benchctl.engine.provision.artifacts import fetch_published
from benchctl.engine.provision.checksum import digest
from benchctl.engine.provision.install import Installation
from benchctl.engine.provision.jdk import Jdk, run_java
from benchctl.engine.provision.maven import Coordinates
from benchctl.engine.provision.staging import staging
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.network import Progress

_LIBRARY = "lucene-core"
_SOURCES = Coordinates("org.apache.lucene", _LIBRARY, classifier="sources")
_FORMAT = "1"  # of the jars that are written: another one, another name


# A jar with some of its classes replaced, the same bytes whenever and wherever it is written.

_MANIFEST = "META-INF/MANIFEST.MF"
_FIRST_SECTION = re.compile(rb"\A(?P<attributes>.*?)(?P<end>\r?\n)(?=\r?\n|\Z)", re.DOTALL)


def read_entry(path: Path, name: str) -> bytes:
    """One file of a zip or jar.

    Raises:
        BenchctlError: it is no archive, or has no such file.
    """
    try:
        with zipfile.ZipFile(path) as opened:
            return opened.read(name)
    except KeyError as err:
        raise BenchctlError(f"{path} has no {name}") from err
    except (EOFError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as err:
        # A RuntimeError where it is encrypted, or packed in a way that Python does not know.
        raise BenchctlError(
            f"{path} is damaged, or no jar: {err}", hint="remove it, and get it again"
        ) from err


def replace_entries(original: Path, target: Path, classes: Mapping[str, bytes], marker: str) -> None:
    """Write a jar with other classes and one more line in its manifest; all else stays.

    Entries are stored, not compressed: compressed bytes depend on zlib's version.

    Args:
        original: the jar.
        target: the new one.
        classes: entry -> bytes; an entry that is new comes behind the others, and is as old as the manifest.
        marker: line of the manifest, such as `Name: value`.

    Raises:
        BenchctlError: the jar has no manifest, or other versions of those classes for newer Javas.
    """
    manifest = read_entry(original, _MANIFEST)
    contents = {**classes, _MANIFEST: marked(manifest, marker, str(original))}
    with zipfile.ZipFile(original) as source, zipfile.ZipFile(target, "w") as packed:
        names = source.namelist()
        for name in classes:
            others = [
                known for known in names if re.fullmatch(rf"META-INF/versions/\d+/{re.escape(name)}", known)
            ]
            if others:
                raise BenchctlError(
                    f"{original} has {others[0]}, which newer Javas use instead of the change"
                )
        for entry in source.infolist():
            content = contents.pop(entry.filename) if entry.filename in contents else source.read(entry)
            _store(packed, entry, content)
        template = source.getinfo(_MANIFEST)
        for name, content in sorted(contents.items()):
            entry = copy.copy(template)
            entry.filename = name
            _store(packed, entry, content)


def marked(manifest: bytes, marker: str, where: str) -> bytes:
    """A manifest with one more line in its first section, which is about the jar itself.

    Args:
        manifest: its bytes.
        marker: the line.
        where: what messages call the jar.

    Raises:
        BenchctlError: it does not begin as a manifest does.
    """
    section = _FIRST_SECTION.match(manifest)
    if section is None or not manifest.startswith(b"Manifest-Version:"):
        raise BenchctlError(f"the manifest of {where} is none")
    line = marker.encode() + section["end"]
    return manifest[: section.end()] + line + manifest[section.end() :]


def _store(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, content: bytes) -> None:
    written = zipfile.ZipInfo(entry.filename, entry.date_time)
    written.external_attr = entry.external_attr
    written.create_system = entry.create_system
    packed.writestr(written, content)


# Compile one Java class without a JDK: with Eclipse's compiler, a jar that any Java runtime starts.

_ECJ = Coordinates("org.eclipse.jdt", "ecj")
_ECJ_VERSION = "3.46.0"
_LEAST_JAVA = 17
_HEADER = re.compile(rb"\xca\xfe\xba\xbe..(?P<major>..)", re.DOTALL)
_JAVA_OF_CLASS_FILES = 44  # major version of a class file - release of Java
_LINES_SHOWN = 12


@dataclass(frozen=True)
class Compiler:
    """Eclipse's compiler on a Java runtime.

    Attributes:
        version: of the compiler.
        jar: it itself.
        sha256: of its bytes, hexadecimal.
        jdk: what it runs on.
    """

    version: str
    jar: Path
    sha256: str
    jdk: Jdk

    def compile(self, source: Path, class_path: Path, release: int, out: Path) -> None:
        """Compile one source file.

        Args:
            source: the file.
            class_path: the jar with the classes that it uses.
            release: of Java, that the class files are for.
            out: folder for them, in the folders of their packages.

        Raises:
            BenchctlError: it does not compile, with the compiler's first lines.
        """
        # `--release` would need the symbol file that only a JDK has: the runtime's own classes stand for it.
        flags = ["-source", str(release), "-target", str(release), "-proc:none", "-nowarn", "-g"]
        paths = ["-classpath", str(class_path), "-d", str(out), str(source)]
        start = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", str(self.jar)]
        done = run_java(self.jdk.home, [*start, "-encoding", "UTF-8", *flags, *paths], None)
        if done.returncode != 0:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip("- ")]
            shown = "\n".join(lines[:_LINES_SHOWN])
            raise BenchctlError(f"{source.name} does not compile (ecj {self.version}):\n{shown}")


def fetch_compiler(home: Home, jdk: Jdk, progress: Progress) -> Compiler:
    """Get the compiler; at once when it is cached.

    Args:
        home: where the cache is.
        jdk: what it is to run on.
        progress: told about the download.

    Raises:
        BenchctlError: the compiler cannot be had, or not run on that Java.
    """
    if jdk.major < _LEAST_JAVA:
        raise BenchctlError(
            f"ecj {_ECJ_VERSION} needs Java {_LEAST_JAVA} or newer, and {jdk.home} is Java {jdk.major}",
            hint="compile on the bundled runtime",
        )
    archive = fetch_published(home, _ECJ, _ECJ_VERSION, progress)
    return Compiler(_ECJ_VERSION, archive.path, archive.sha256, jdk)


def java_release(class_file: bytes, what: str) -> int:
    """The release of Java that a class file is for.

    Args:
        class_file: its bytes.
        what: what messages call it.

    Raises:
        BenchctlError: it is no class file.
    """
    header = _HEADER.match(class_file)
    if header is None:
        raise BenchctlError(f"{what} is no class file")
    return int.from_bytes(header["major"]) - _JAVA_OF_CLASS_FILES


# Build a distribution's Lucene with a change to it, from the sources that Lucene publishes.


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
