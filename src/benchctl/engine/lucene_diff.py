"""A distribution's Lucene with a diff applied: classes of several modules, and what they may break."""

import hashlib
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from benchctl.disk import disk_errors, read_file
from benchctl.engine.class_file import ClassFile, breaks, read_class
from benchctl.engine.distribution import fetch_published
from benchctl.engine.jdk import Jdk
from benchctl.engine.maven import Coordinates, digest
from benchctl.engine.patched_lucene import (
    Compiler,
    difference,
    fetch_compiler,
    java_release,
    read_entry,
    replace_entries,
)
from benchctl.engine.unpacking import staging
from benchctl.errors import BenchctlError, UsageError
from benchctl.git import git, said
from benchctl.home import Home
from benchctl.network import Progress

GROUP: Final = "org.apache.lucene"

_FORMAT: Final = "1"  # of the written jars; part of their names
_MOST_DIFF_BYTES: Final = 4 * 1024 * 1024
_SHOWN: Final = 5
# `a/lucene/analysis/common/src/java/org/...` of a checkout, or `a/org/...` of a sources jar.
_SOURCE: Final = re.compile(
    r"(?:lucene/(?P<module>[a-z0-9/_-]+)/src/java/)?(?P<entry>org/apache/lucene/.+\.java)"
)
_LEFT_OUT: Final = re.compile(
    r".*/src/test(-fixtures|-files)?/.*|.*\.(txt|md|adoc|gradle|lockfile)|dev-docs/.*|\..*"
)
_NUMSTAT: Final = re.compile(rb"(?P<added>\d+|-)\t(?P<removed>\d+|-)\t(?P<path>.*)", re.DOTALL)


@dataclass(frozen=True)
class Library:
    """The jars that a diff is applied to.

    Attributes:
        lucene: version of Lucene.
        jars: artifact -> jar of its modules, such as `lucene-core`.
        others: whatever else uses them.
    """

    lucene: str
    jars: Mapping[str, Path]
    others: tuple[Path, ...]


def library_of(root: Path, lucene: str) -> Library:
    """That of an unpacked distribution: modules in `lib`, which modules and plug-ins use, too."""
    jars = {
        path.stem.removesuffix(f"-{lucene}"): path for path in sorted(root.glob(f"lib/lucene-*-{lucene}.jar"))
    }
    others = sorted(
        {*root.glob("lib/**/*.jar"), *root.glob("modules/**/*.jar"), *root.glob("plugins/**/*.jar")}
    )
    return Library(lucene, jars, tuple(path for path in others if path not in jars.values()))


@dataclass(frozen=True)
class BuiltDiff:
    """The changed jars.

    Attributes:
        jars: artifact -> changed jar.
        classes: entries of the sources that were compiled, sorted.
        left_out: files of the diff that have no part in a jar: tests and texts.
        difference: of the sources, as it was applied; empty for the control.
    """

    jars: Mapping[str, Path]
    classes: tuple[str, ...]
    left_out: tuple[str, ...]
    difference: str


def build_diff(
    home: Home, library: Library, jdk: Jdk, path: Path, progress: Progress, *, unchanged: bool = False
) -> BuiltDiff:
    """Build the jars that a diff changes, unless they were built before.

    Every jar is the original but for the classes of the files in the diff, which are built from the sources
    that Lucene publishes for this version. What other jars use of them is checked to be still there.

    Args:
        home: keeps them.
        library: what to change.
        jdk: the compiler's runtime, Java 17 or newer.
        path: of the diff.
        progress: of downloads.
        unchanged: compile the same classes as they are: the control, which tells the compiler's effect.

    Raises:
        UsageError: there is no such diff, or it changes what is not in these jars.
        BenchctlError: it does not apply, does not compile or breaks another jar; git, the sources or the
            compiler cannot be had; or the disk refuses.
    """
    with disk_errors(f"read {path}"):
        if not path.is_file():
            raise UsageError(f"there is no diff {path}", hint="make one with: git diff > FILE.diff")
        content = read_file(path, _MOST_DIFF_BYTES)
    compiler = fetch_compiler(home, jdk, progress)
    with staging(home.artifacts, f"build the Lucene of {path}") as folder:
        diff = folder / "changes.diff"
        diff.write_bytes(content)
        changed, left_out = _changed_files(path, diff)
        sources = _Sources(home, library, progress)
        places = {entry: sources.artifact(given, entry) for given, entry in changed.items()}
        tree = folder / "tree"
        tree.mkdir()
        before = {entry: sources.text(artifact, entry) for entry, artifact in places.items()}
        _lay_out(tree, changed, before)
        done = git(["apply", "--whitespace=nowarn", str(diff)], tree, alone=True)
        if done.returncode != 0:
            raise BenchctlError(
                f"{path} does not apply to Lucene {library.lucene}: {said(done)}",
                hint=f"make it against its published sources, the tag releases/lucene/{library.lucene}",
            )
        after = {entry: _applied(tree / given, path) for given, entry in changed.items()}
        wanted = {entry: text for entry, text in before.items() if text is not None} if unchanged else after
        if not wanted:
            raise UsageError(f"{path} only adds classes: there is nothing to compile unchanged")
        title = f"what {path.name} changes, unchanged," if unchanged else path.name
        key = _key(library, compiler, wanted)
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)[:40]
        made = {
            artifact: home.artifacts / f"{artifact}-{library.lucene}-{stem}-{key}.jar"
            for artifact in sorted({places[entry] for entry in wanted})
        }
        if not all(one.is_file() for one in made.values()):
            _build(folder, compiler, _Work(library, wanted, places, made, path, title))
    told = "".join(difference(before[entry] or "", after[entry], entry) for entry in sorted(after))
    return BuiltDiff(made, tuple(sorted(wanted)), left_out, "" if unchanged else told)


def _changed_files(path: Path, copy: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """The Java files of a diff, path in it -> entry of a sources jar, and what is left out."""
    done = git(["apply", "--numstat", "-z", str(copy)], copy.parent, alone=True)
    if done.returncode != 0:
        raise UsageError(f"{path} is no diff: {said(done)}", hint="make one with: git diff > FILE.diff")
    # The listing has the new names only.
    summary = git(["apply", "--summary", str(copy)], copy.parent, alone=True).stdout
    if re.search(rb"^ (rename|copy) ", summary, re.MULTILINE):
        raise UsageError(f"{path} renames files", hint="make it with: git diff --no-renames > FILE.diff")
    changed, left_out = {}, []
    for line in done.stdout.split(b"\0"):
        found = _NUMSTAT.fullmatch(line)
        if found is None:
            continue
        given = found["path"].decode(errors="replace")
        source = _SOURCE.fullmatch(given)
        if source is not None and ".." not in PurePosixPath(given).parts and found["added"] != b"-":
            changed[given] = source["entry"]
        elif _LEFT_OUT.fullmatch(given):
            left_out.append(given)
        else:
            raise UsageError(
                f"{path} changes {given}, which cannot be built into Lucene's jars",
                hint="leave all but src/java/org/apache/lucene/**/*.java out of it",
            )
    if not changed:
        raise UsageError(f"{path} changes no class of Lucene", hint="make one with: git diff > FILE.diff")
    if len({*changed.values()}) < len(changed):
        raise UsageError(f"{path} changes a class twice", hint="name it by one path only")
    return changed, tuple(left_out)


class _Sources:
    """Published sources of modules."""

    def __init__(self, home: Home, library: Library, progress: Progress) -> None:
        self._home = home
        self._library = library
        self._progress = progress
        self._names = cache(self._read_names)

    def artifact(self, given: str, entry: str) -> str:
        """The module that a class is, or belongs, in: that which has it, or others of its package."""
        package = f"{PurePosixPath(entry).parent}/"
        compiled = str(PurePosixPath(entry).with_suffix(".class"))
        holds = [name for name in self._library.jars if compiled in self._names(name)]
        holds = holds or [
            name for name in self._library.jars
            if any(one.startswith(package) and "/" not in one[len(package) :] for one in self._names(name))
        ]  # fmt: skip
        if len(holds) == 1:
            return holds[0]
        raise UsageError(
            f"{given} is of no module of Lucene {self._library.lucene} in lib/",
            hint=f"those there: {', '.join(self._library.jars)}",
        )

    def text(self, artifact: str, entry: str) -> str | None:
        """A published source; None if there is none of that name."""
        coordinates = Coordinates(GROUP, artifact, classifier="sources")
        archive = fetch_published(self._home, coordinates, self._library.lucene, self._progress).path
        with zipfile.ZipFile(archive) as opened:
            if entry not in opened.namelist():
                return None
        return read_entry(archive, entry).decode()

    def _read_names(self, artifact: str) -> frozenset[str]:
        path = self._library.jars[artifact]
        with disk_errors(f"read {path}"), zipfile.ZipFile(path) as opened:
            return frozenset(opened.namelist())


def _lay_out(tree: Path, changed: Mapping[str, str], before: Mapping[str, str | None]) -> None:
    for given, entry in changed.items():
        text = before[entry]
        if text is not None:
            target = tree / given
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="")


def _applied(target: Path, path: Path) -> str:
    try:
        return read_file(target, follow=False).decode()
    except FileNotFoundError as err:
        raise UsageError(
            f"{path} deletes {target.name}, and a class that is gone cannot be told from one that is needed",
            hint="leave the deletion out: a class that nobody uses does no harm",
        ) from err


def _key(library: Library, compiler: Compiler, wanted: Mapping[str, str]) -> str:
    """Of all that decides the jars, and whether they were checked against these others."""
    parts = [_FORMAT, compiler.sha256]
    for path in library.jars.values():
        with disk_errors(f"read {path}"):
            parts.append(digest(path, "sha256"))
    for path in library.others:
        with disk_errors(f"look at {path}"):
            parts.append(f"{path.name} {path.stat().st_size}")
    parts += [f"{entry}\0{wanted[entry]}" for entry in sorted(wanted)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class _Work:
    """What is to be compiled: texts and modules by entry, and the jars to be made by module."""

    library: Library
    wanted: Mapping[str, str]
    places: Mapping[str, str]
    made: Mapping[str, Path]
    path: Path
    title: str


def _build(folder: Path, compiler: Compiler, work: _Work) -> None:
    """Compile the classes into copies of their jars, which appear complete or not at all."""
    library, wanted, places, made, path = work.library, work.wanted, work.places, work.made, work.path
    texts = []
    for entry, text in wanted.items():
        target = folder / "sources" / entry
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        texts.append(target)
    release = _release(library, made)
    out = folder / "classes"
    try:
        compiler.compile(texts, [*library.jars.values(), *library.others], release, out, name=work.title)
    except BenchctlError as err:
        raise BenchctlError(err.message.replace(f"{folder}/sources/", ""), hint=err.hint) from err
    compiled = {file.relative_to(out).as_posix(): file.read_bytes() for file in out.rglob("*.class")}
    own: dict[str, dict[str, bytes]] = {artifact: {} for artifact in made}
    by_outer = {str(PurePosixPath(entry).with_suffix("")): places[entry] for entry in wanted}
    for name, content in compiled.items():
        # A source may hold further classes beside its own: they go where their package is.
        outer = name.removesuffix(".class").partition("$")[0]
        artifact = by_outer.get(outer) or next(
            place
            for one, place in by_outer.items()
            if PurePosixPath(one).parent == PurePosixPath(outer).parent
        )
        own[artifact][name] = content
    stale = {
        artifact: [
            name for name in _names(library.jars[artifact]) if _is_of(name, by_outer) and name not in found
        ]
        for artifact, found in own.items()
    }
    _check_links(library, own, stale, path)
    for artifact, target in made.items():
        ready = folder / target.name
        marker = f"Benchctl-Patch: {path.stem[:40]}".encode("ascii", "replace").decode()
        replace_entries(library.jars[artifact], ready, own[artifact], marker, without=stale[artifact])
        ready.chmod(0o644)
        ready.replace(target)


def _release(library: Library, made: Mapping[str, Path]) -> int:
    """The Java release that the modules are built for."""
    found = set()
    for artifact in made:
        jar = library.jars[artifact]
        first = next(name for name in _names(jar) if name.startswith("org/") and name.endswith(".class"))
        found.add(java_release(read_entry(jar, first), f"{first} of {jar}"))
    return min(found)


def _names(jar: Path) -> list[str]:
    with zipfile.ZipFile(jar) as opened:
        return opened.namelist()


def _is_of(name: str, outer: Mapping[str, str]) -> bool:
    """Whether an entry is a class of one of these sources, or nested in one."""
    return name.endswith(".class") and name.removesuffix(".class").partition("$")[0] in outer


def _check_links(
    library: Library,
    own: Mapping[str, Mapping[str, bytes]],
    stale: Mapping[str, Sequence[str]],
    path: Path,
) -> None:
    """Refuse changes by which another class no longer links.

    Raises:
        BenchctlError: there are some, with the first of them.
    """
    after = [read_class(content, name) for found in own.values() for name, content in found.items()]
    before = []
    for artifact, found in own.items():
        jar = library.jars[artifact]
        known = {*_names(jar)}
        replaced = [name for name in (*found, *stale[artifact]) if name in known]
        before += [read_class(read_entry(jar, name), name) for name in replaced]
    replaced_names = {one.name for one in (*before, *after)}
    jars = _Jars([*library.jars.values(), *library.others])
    found_breaks = breaks(
        {one.name: one for one in before},
        {one.name: one for one in after},
        (pair for pair in jars.using(replaced_names) if pair[1].name not in replaced_names),
        jars.find,
    )
    if found_breaks:
        more = f"; and {len(found_breaks) - _SHOWN} more" if len(found_breaks) > _SHOWN else ""
        raise BenchctlError(
            f"{path} breaks what other classes use: {'; '.join(found_breaks[:_SHOWN])}{more}",
            hint="keep the old signature beside the new one",
        )


class _Jars:
    """The classes of several jars."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._by_name: dict[str, bytes] = {}
        self.find = cache(self._find)

    def using(self, names: set[str]) -> Iterator[tuple[str, ClassFile]]:
        """Those whose constants have one of these names, with the jar that they are in."""
        wanted = re.compile(b"|".join(re.escape(name.encode()) for name in sorted(names)))
        pairs: list[tuple[str, str]] = []
        for path in self._paths:
            with disk_errors(f"read {path}"), zipfile.ZipFile(path) as opened:
                for entry in opened.namelist():
                    if entry.endswith(".class") and not entry.startswith("META-INF/"):
                        content = opened.read(entry)
                        self._by_name.setdefault(entry.removesuffix(".class"), content)
                        if wanted.search(content):
                            pairs.append((path.name, entry.removesuffix(".class")))
        for where, name in pairs:
            one = self.find(name)
            if one is not None:
                yield where, one

    def _find(self, name: str) -> ClassFile | None:
        """A class by its internal name, once all are known."""
        content = self._by_name.get(name)
        return None if content is None else read_class(content, name)
