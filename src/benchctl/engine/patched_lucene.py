"""Lucene with a diff applied: jars with classes compiled from the sources that Lucene publishes."""

import copy
import hashlib
import os
import re
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from benchctl.disk import disk_errors, read_file, staging
from benchctl.engine.distribution import fetch_published, jar_entries, read_entry
from benchctl.engine.jdk import Jdk, run_java
from benchctl.engine.maven import Coordinates, digest
from benchctl.errors import BenchctlError, UsageError
from benchctl.git import complaint, git
from benchctl.home import Home
from benchctl.network import Progress

GROUP: Final = "org.apache.lucene"
_FORMAT: Final = "2"  # of the written jars; part of their names
_MOST_DIFF_BYTES: Final = 4 * 1024 * 1024
# `a/lucene/analysis/common/src/java/org/...` of a checkout, or `a/org/...` of a sources jar.
_SOURCE: Final = re.compile(r"(?:lucene/[a-z0-9/_-]+/src/java/)?(?P<entry>org/apache/lucene/.+\.java)")
_LEFT_OUT: Final = re.compile(
    r".*/src/test(-fixtures|-files)?/.*|.*\.(txt|md|adoc|gradle|lockfile)|dev-docs/.*|\..*"
)
_NUMSTAT: Final = re.compile(rb"(?P<added>\d+|-)\t(?P<removed>\d+|-)\t(?P<path>.*)", re.DOTALL)

# Compiles without a JDK: Eclipse's compiler is a jar that runs on any Java runtime.
_ECJ: Final = Coordinates("org.eclipse.jdt", "ecj")
_ECJ_VERSION: Final = "3.46.0"
_LEAST_JAVA: Final = 17
_LINES_SHOWN: Final = 12

_MANIFEST: Final = "META-INF/MANIFEST.MF"
_CLASS_HEADER: Final = re.compile(rb"\xca\xfe\xba\xbe..(?P<major>..)", re.DOTALL)
_JAVA_OF_CLASS_FILES: Final = 44  # major version of a class file minus the Java release


@dataclass(frozen=True)
class Compiler:
    """Eclipse's compiler, a jar with its SHA-256 (hexadecimal), and the Java runtime it runs on."""

    version: str
    jar: Path
    sha256: str
    jdk: Jdk

    def compile(
        self,
        sources: Sequence[Path],
        class_path: Sequence[Path],
        release: int,
        out: Path,
        *,
        name: str,
        generated: Path | None = None,
    ) -> None:
        """Compile sources for a Java release, into the folders of their packages below `out`.

        Args:
            sources: the files.
            class_path: jars with the classes that they use.
            release: of Java.
            out: the folder.
            name: of the sources in messages.
            generated: directory for the sources that annotation processors on the class path generate; none
                is run without it. ecj finds no processor on a processor path, and its default for generated
                sources is the root of the file system.

        Raises:
            BenchctlError: If the sources do not compile, with the compiler's first lines.
        """
        # `--release` would need a JDK's symbol file; this uses the runtime's own classes instead.
        flags = ["-source", str(release), "-target", str(release), "-nowarn", "-g"]
        flags += ["-proc:none"] if generated is None else ["-s", str(generated)]
        paths = ["-classpath", os.pathsep.join(map(str, class_path)), "-d", str(out), *map(str, sources)]
        start = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", str(self.jar)]
        done = run_java(self.jdk.home, [*start, "-encoding", "UTF-8", *flags, *paths], None)
        if done.returncode != 0:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip("- ")]
            shown = "\n".join(lines[:_LINES_SHOWN])
            raise BenchctlError(f"{name} does not compile (ecj {self.version}):\n{shown}")


def fetch_compiler(home: Home, jdk: Jdk, progress: Progress) -> Compiler:
    """Download the compiler, unless it is cached.

    Raises:
        BenchctlError: If the compiler cannot be downloaded, or not run on that Java.
    """
    if jdk.major < _LEAST_JAVA:
        raise BenchctlError(
            f"ecj {_ECJ_VERSION} needs Java {_LEAST_JAVA} or newer, and {jdk.home} is Java {jdk.major}",
            hint="compile on the default runtime",
        )
    archive = fetch_published(home, _ECJ, _ECJ_VERSION, progress)
    return Compiler(_ECJ_VERSION, archive.path, archive.sha256, jdk)


@dataclass(frozen=True)
class Library:
    """The jars that a diff is applied to."""

    lucene: str  # version of Lucene
    jars: Mapping[str, Path]  # artifact, such as `lucene-core`, to the jar of that module
    others: tuple[Path, ...]  # jars that its classes may use


def library_of(root: Path, lucene: str) -> Library:
    """Return the library of an unpacked distribution: modules in `lib`, with what surrounds them."""
    jars = {
        path.stem.removesuffix(f"-{lucene}"): path for path in sorted(root.glob(f"lib/lucene-*-{lucene}.jar"))
    }
    others = sorted(
        {*root.glob("lib/**/*.jar"), *root.glob("modules/**/*.jar"), *root.glob("plugins/**/*.jar")}
    )
    return Library(lucene, jars, tuple(path for path in others if path not in jars.values()))


@dataclass(frozen=True)
class BuiltDiff:
    """The changed jars of a diff."""

    jars: Mapping[str, Path]  # artifact to changed jar
    classes: tuple[str, ...]  # entries of the sources that were compiled, sorted
    left_out: tuple[str, ...]  # files of the diff that have no part in a jar: tests and texts
    text: str  # the diff


def build_diff(
    home: Home, library: Library, jdk: Jdk, path: Path, progress: Progress, *, unchanged: bool = False
) -> BuiltDiff:
    """Build the jars that a diff changes, unless they are cached.

    Every jar is the original except for the classes of the files in the diff, which are built from the
    sources that Lucene publishes for this version. What other jars use of these classes is not checked: the
    node's start reports a member that no longer exists.

    Args:
        home: keeps them.
        library: what to change.
        jdk: the compiler's runtime, Java 17 or newer: the default one serves every variant, whatever its
            nodes run on.
        path: of the diff.
        progress: of downloads.
        unchanged: compile the same classes as they are: the control, which shows the compiler's effect.

    Raises:
        UsageError: If there is no such diff, or it changes what is not in these jars.
        BenchctlError: If the diff does not apply or does not compile; if git, the sources or the compiler
            are not available; or if the disk refuses.
    """
    with disk_errors(f"read {path}"):
        if not path.is_file():
            raise UsageError(f"no such diff: {path}", hint="make one with: git diff > FILE.diff")
        content = read_file(path, _MOST_DIFF_BYTES)
    compiler = fetch_compiler(home, jdk, progress)
    with staging(home.artifacts, f"build the Lucene of {path}") as folder:
        diff = folder / "changes.diff"
        diff.write_bytes(content)
        changed, left_out = _changed_files(path, diff)
        sources = _Sources(home, library, progress)
        places = {entry: sources.artifact(name, entry) for name, entry in changed.items()}
        before = {entry: sources.text(artifact, entry) for entry, artifact in places.items()}
        tree = folder / "tree"
        tree.mkdir()
        for name, entry in changed.items():
            _write(tree / name, before[entry])
        done = git(["apply", "--whitespace=nowarn", str(diff)], tree, alone=True)
        if done.returncode != 0:
            raise BenchctlError(
                f"{path} does not apply to Lucene {library.lucene}: {complaint(done)}",
                hint=f"make it against its published sources, the tag releases/lucene/{library.lucene}",
            )
        after = {entry: _applied(tree / name, path) for name, entry in changed.items()}
        texts = {entry: text for entry, text in before.items() if text is not None} if unchanged else after
        if not texts:
            raise UsageError(f"{path} only adds classes: there is nothing to compile unchanged")
        key = _key(library, compiler, texts)
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)[:40]
        jars = {
            artifact: home.artifacts / f"{artifact}-{library.lucene}-{stem}-{key}.jar"
            for artifact in sorted({places[entry] for entry in texts})
        }
        if not all(jar.is_file() for jar in jars.values()):
            title = f"what {path.name} changes, unchanged," if unchanged else path.name
            release = min(_release(library.jars[artifact]) for artifact in jars)
            classes = _compile(folder, compiler, library, texts, release=release, title=title)
            _pack(folder, library, places, classes, jars, marker=f"Benchctl-Patch: {stem}")
    return BuiltDiff(jars, tuple(sorted(texts)), left_out, content.decode(errors="replace"))


def _changed_files(path: Path, copy: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """The Java files of a diff, path in it -> entry of a sources jar, and what is left out."""
    done = git(["apply", "--numstat", "-z", str(copy)], copy.parent, alone=True)
    if done.returncode != 0:
        raise UsageError(
            f"{path} is not a diff: {complaint(done)}", hint="make one with: git diff > FILE.diff"
        )
    # The listing has the new names only.
    summary = git(["apply", "--summary", str(copy)], copy.parent, alone=True).stdout
    if re.search(rb"^ (rename|copy) ", summary, re.MULTILINE):
        raise UsageError(f"{path} renames files", hint="make it with: git diff --no-renames > FILE.diff")
    changed, left_out = {}, []
    for line in done.stdout.split(b"\0"):
        file = _NUMSTAT.fullmatch(line)
        if file is None:
            continue
        name = file["path"].decode(errors="replace")
        source = _SOURCE.fullmatch(name)
        if source is not None and ".." not in PurePosixPath(name).parts and file["added"] != b"-":
            changed[name] = source["entry"]
        elif _LEFT_OUT.fullmatch(name):
            left_out.append(name)
        else:
            raise UsageError(
                f"{path} changes {name}, which cannot be built into Lucene's jars",
                hint="restrict it to src/java/org/apache/lucene/**/*.java",
            )
    if not changed:
        raise UsageError(f"{path} changes no class of Lucene", hint="make one with: git diff > FILE.diff")
    if len({*changed.values()}) < len(changed):
        raise UsageError(f"{path} changes a class more than once", hint="name it by one path only")
    return changed, tuple(left_out)


class _Sources:
    """Published sources of modules."""

    def __init__(self, home: Home, library: Library, progress: Progress) -> None:
        self._home = home
        self._library = library
        self._progress = progress
        self._names = cache(lambda artifact: frozenset(jar_entries(library.jars[artifact])))

    def artifact(self, name: str, entry: str) -> str:
        """The module that a class is, or belongs, in: that which has it, or others of its package."""
        package = f"{PurePosixPath(entry).parent}/"
        compiled = str(PurePosixPath(entry).with_suffix(".class"))
        modules = [module for module in self._library.jars if compiled in self._names(module)]
        modules = modules or [
            module
            for module in self._library.jars
            if any(f"{PurePosixPath(other).parent}/" == package for other in self._names(module))
        ]
        if len(modules) == 1:
            return modules[0]
        raise UsageError(
            f"{name} is of no module of Lucene {self._library.lucene} in lib/",
            hint=f"available: {', '.join(self._library.jars)}",
        )

    def text(self, artifact: str, entry: str) -> str | None:
        """A published source; None if there is none of that name."""
        coordinates = Coordinates(GROUP, artifact, classifier="sources")
        archive = fetch_published(self._home, coordinates, self._library.lucene, self._progress).path
        return read_entry(archive, entry).decode() if entry in jar_entries(archive) else None


def _write(target: Path, text: str | None) -> None:
    if text is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")


def _applied(target: Path, path: Path) -> str:
    try:
        return read_file(target, follow=False).decode()
    except FileNotFoundError as err:
        raise UsageError(
            f"{path} deletes {target.name}, and benchctl cannot prove that the class is unused",
            hint="remove the deletion: an unused class does no harm",
        ) from err


def _key(library: Library, compiler: Compiler, texts: Mapping[str, str]) -> str:
    """Of all that decides the jars."""
    parts = [_FORMAT, compiler.sha256]
    for path in library.jars.values():
        with disk_errors(f"read {path}"):
            parts.append(digest(path, "sha256"))
    parts += [f"{entry}\0{texts[entry]}" for entry in sorted(texts)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _compile(
    folder: Path, compiler: Compiler, library: Library, texts: Mapping[str, str], *, release: int, title: str
) -> dict[str, bytes]:
    """Class files of sources by entry."""
    sources = folder / "sources"
    for entry, text in texts.items():
        _write(sources / entry, text)
    out = folder / "classes"
    class_path = [*library.jars.values(), *library.others]
    try:
        compiler.compile([sources / entry for entry in texts], class_path, release, out, name=title)
    except BenchctlError as err:
        raise BenchctlError(err.message.replace(f"{sources}/", ""), hint=err.hint) from err
    return {file.relative_to(out).as_posix(): file.read_bytes() for file in out.rglob("*.class")}


def _pack(
    folder: Path,
    library: Library,
    places: Mapping[str, str],
    classes: Mapping[str, bytes],
    jars: Mapping[str, Path],
    *,
    marker: str,
) -> None:
    """Put classes into copies of their jars, which appear complete or not at all."""
    by_source = {entry.removesuffix(".java"): artifact for entry, artifact in places.items()}
    by_package = {str(PurePosixPath(entry).parent): artifact for entry, artifact in places.items()}
    own: dict[str, dict[str, bytes]] = {artifact: {} for artifact in jars}
    for name, content in classes.items():
        # A source may hold further classes beside its own: they go where their package is.
        artifact = by_source.get(_source_of(name)) or by_package[str(PurePosixPath(name).parent)]
        own[artifact][name] = content
    for artifact, target in jars.items():
        original = library.jars[artifact]
        stale = {
            name
            for name in jar_entries(original)
            if name.endswith(".class") and _source_of(name) in by_source and name not in own[artifact]
        }
        ready = folder / target.name
        replace_entries(original, ready, own[artifact], marker, without=stale)
        ready.chmod(0o644)
        ready.replace(target)


def _source_of(name: str) -> str:
    """The source of a class file or of one nested in it, without its suffix."""
    return name.removesuffix(".class").partition("$")[0]


def _release(jar: Path) -> int:
    """The Java release that a module is built for."""
    first = next(name for name in jar_entries(jar) if name.startswith("org/") and name.endswith(".class"))
    header = _CLASS_HEADER.match(read_entry(jar, first))
    if header is None:
        raise BenchctlError(f"{first} of {jar} is not a class file")
    return int.from_bytes(header["major"]) - _JAVA_OF_CLASS_FILES


def replace_entries(
    original: Path, target: Path, classes: Mapping[str, bytes], marker: str, *, without: Collection[str] = ()
) -> None:
    """Write a jar with some classes replaced and one more line in its manifest; all else stays.

    Entries are stored, not compressed: compressed bytes depend on zlib's version.

    Args:
        original: the jar.
        target: the new one.
        classes: entry -> bytes; new entries come last, with the manifest's date.
        marker: line of the manifest, such as `Name: value`.
        without: entries to leave out.

    Raises:
        BenchctlError: If the jar has no manifest, or other versions of those classes for newer Javas.
    """
    version, _, attributes = read_entry(original, _MANIFEST).partition(b"\n")
    if not version.startswith(b"Manifest-Version:"):
        raise BenchctlError(f"the manifest of {original} is invalid")
    contents = {**classes, _MANIFEST: b"\n".join((version, marker.encode(), attributes))}
    with zipfile.ZipFile(original) as source, zipfile.ZipFile(target, "w") as packed:
        for entry in source.infolist():
            name = entry.filename
            if name.startswith("META-INF/versions/") and name.split("/", 3)[-1] in classes:
                raise BenchctlError(
                    f"{original} has {name}, which newer Java versions use instead of the change"
                )
            if name not in without:
                _store(packed, entry, contents.pop(name) if name in contents else source.read(entry))
        for name, content in sorted(contents.items()):
            entry = copy.copy(source.getinfo(_MANIFEST))
            entry.filename = name
            _store(packed, entry, content)


def _store(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, content: bytes) -> None:
    written = zipfile.ZipInfo(entry.filename, entry.date_time)
    written.external_attr = entry.external_attr
    written.create_system = entry.create_system
    packed.writestr(written, content)
