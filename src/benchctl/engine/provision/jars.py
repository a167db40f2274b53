"""Jars that take the place of those in an installation's `lib/`, by the name of their artifact."""

import lzma
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchctl.disk import disk_errors
from benchctl.engine.provision.checksum import digest
from benchctl.engine.provision.derived import derived
from benchctl.engine.provision.install import Installation
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.nearest import nearest

_VERSIONED: Final = re.compile(r"(?P<artifact>.+)-(?P<version>[0-9][^/]*)", re.ASCII)
_VERSION_START: Final = re.compile(r"-(?=[0-9])", re.ASCII)
_POM: Final = re.compile(r"META-INF/maven/[^/]+/(?P<artifact>[^/]+)/pom\.properties")
_MANIFEST: Final = "META-INF/MANIFEST.MF"
_TITLE: Final = re.compile(
    r"^(?P<key>(?:Implementation|Specification)-Title|Bundle-SymbolicName|Automatic-Module-Name):"
    r" *(?P<value>.*?) *$",
    re.MULTILINE,
)
_MOST_MANIFEST_BYTES: Final = 1024 * 1024
_MOST_NAMES: Final = 5
_LUCENE: Final = "lucene-core"


@dataclass(frozen=True)
class Jar:
    """A jar to put in.

    Attributes:
        path: where it is.
        asked: what the user called it.
        artifact: what it is, where that is known, such as `lucene-core`; None to find it out.
    """

    path: Path
    asked: str
    artifact: str | None = None


def with_jars(home: Home, original: Installation, jars: Sequence[Jar]) -> Installation:
    """An installation in which jars have taken the place of those of the same artifact.

    The new file keeps the old one's name, by which the engine's own security policies know it. An index is
    never built by such an installation, but by its original: so both of them read the same bytes.

    Args:
        home: where it is kept.
        original: with all else that the variant wants.
        jars: to put in, one for an artifact.

    Raises:
        BenchctlError: a jar cannot be read, has nothing to replace, replaces what another one does, or is
            changed meanwhile.
    """
    if not jars:
        return original
    library = _library(original.root)
    put: dict[str, tuple[Jar, str]] = {}
    lucene = original.lucene
    for jar in jars:
        artifact = _artifact(jar, original, library)
        name = library[artifact]
        if name in put:
            raise UsageError(
                f"{put[name][0].asked} and {jar.asked} would both replace lib/{name}",
                hint="leave one out; jars are added to those of what a variant extends",
            )
        with disk_errors(f"read {jar.path}"):
            put[name] = (jar, digest(jar.path, "sha256"))
        if artifact == _LUCENE:
            lucene = _version(jar.path.stem, artifact) or lucene
    facts = tuple(sorted((name, sha256) for name, (_, sha256) in put.items()))

    def change(root: Path) -> None:
        for name, (jar, sha256) in put.items():
            place = root / "lib" / name
            # A link to the original's file: to be replaced, not written into.
            place.unlink()
            shutil.copyfile(jar.path, place)
            place.chmod(0o644)
            # What lies there is found by this digest ever after.
            if digest(place, "sha256") != sha256:
                raise BenchctlError(
                    f"{jar.path} changed while it was put into {original.engine} {original.version}",
                    hint="start again when it is built",
                )

    root = derived(home, original, ("jars", facts), change)
    return replace(original, root=root, jars=facts, lucene=lucene)


def _library(root: Path) -> dict[str, str]:
    """Artifact -> file name of the jars in `lib`."""
    found = {}
    for path in sorted(root.glob("lib/*.jar")):
        versioned = _VERSIONED.fullmatch(path.stem)
        found[versioned["artifact"] if versioned else path.stem] = path.name
    return found


def _artifact(jar: Jar, original: Installation, library: dict[str, str]) -> str:
    """Which artifact of the library a jar is.

    Its coordinates say so, else its name, else Maven's properties inside it, else a manifest that bears the
    same titles as that of one jar there alone: Lucene's have no other mark.
    """
    said = [jar.artifact] if jar.artifact else [*_names(jar.path.stem)]
    own = None if jar.artifact else _said_inside(jar.path)
    if own is not None and own.artifact:
        said.append(own.artifact)
    for name in said:
        if name in library:
            return name
    if own is not None and own.titles:
        lib = original.root / "lib"
        alike = [name for name, file in library.items() if _said_inside(lib / file).titles == own.titles]
        if len(alike) == 1:
            return alike[0]
    near = [found for name in said if (found := nearest(name, library))]
    known = dict.fromkeys(near) or _like(library)
    raise UsageError(
        f"{jar.asked} replaces no jar in lib/ of {original.engine} {original.version} "
        f"(it calls itself {', '.join(dict.fromkeys(said))})",
        hint=f"the nearest there: {', '.join(library[name] for name in [*known][:_MOST_NAMES])}",
    )


def _like(library: dict[str, str]) -> Iterable[str]:
    """What is replaced most often comes first."""
    return sorted(library, key=lambda name: (not name.startswith("lucene"), name))


def _names(stem: str) -> Iterator[str]:
    """What a file's name may call it: all of it, or what stands before a version; the longest first."""
    yield stem
    for found in reversed([*_VERSION_START.finditer(stem)]):
        yield stem[: found.start()]


@dataclass(frozen=True)
class _Inside:
    """What a jar says of itself: its artifact, and the titles of its manifest."""

    artifact: str | None
    titles: frozenset[tuple[str, str]]


def _said_inside(path: Path) -> _Inside:
    with disk_errors(f"read {path}"):
        try:
            with zipfile.ZipFile(path) as opened:
                poms = [found["artifact"] for name in opened.namelist() if (found := _POM.fullmatch(name))]
                text = ""
                if _MANIFEST in opened.namelist():
                    with opened.open(_MANIFEST) as manifest:
                        text = manifest.read(_MOST_MANIFEST_BYTES).decode(errors="replace")
        except (EOFError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as err:
            # A RuntimeError where it is encrypted, or packed in a way that Python does not know.
            raise UsageError(
                f"{path} is damaged, or no jar: {err}", hint="build it, or get it again"
            ) from err
    # A long line goes on in the next one, behind a space.
    unfolded = text.replace("\r\n", "\n").replace("\n ", "")
    titles = frozenset((found["key"], found["value"]) for found in _TITLE.finditer(unfolded))
    # One that carries others' properties is none of them.
    return _Inside(poms[0] if len(poms) == 1 else None, titles)


def _version(stem: str, artifact: str) -> str | None:
    """The version in a jar's file name; None where it says none."""
    rest = stem.removeprefix(f"{artifact}-")
    return rest if rest != stem and rest[:1].isdigit() else None
