"""Equipment of nodes: an installation fitted to its runtime, with plug-ins and jars, cached by content."""

import hashlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from benchctl.disk import disk_errors, link_or_copy, settle, staging, stored
from benchctl.engine.distribution import (
    OF_NODES,
    Archive,
    Installation,
    ModuleFacts,
    PluginFacts,
    check_distribution,
    download_archive,
    fetch_published,
    install,
    jar_entries,
    jar_errors,
    local_archive,
    needed_jars,
    read_entry,
    tree_digest,
    unpack,
)
from benchctl.engine.jdk import Jdk, check_java, provide_jdk
from benchctl.engine.maven import Coordinates, digest
from benchctl.engine.variant import PATCHED, RECOMPILED, base_variant, diff_path, part_kind
from benchctl.errors import BenchctlError, UsageError, nearest
from benchctl.home import Home
from benchctl.network import Progress
from benchctl.results.plan import VariantSpec

_DESCRIPTOR: Final = "plugin-descriptor.properties"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_PROPERTY: Final = re.compile(r"^\s*(?P<key>[^#!\s=:]+)[ \t]*[=:][ \t]*(?P<value>.*?)\s*$", re.MULTILINE)
_EXTENDED: Final = "extended.plugins"
_OPTIONALLY: Final = ";optional=true"


@dataclass(frozen=True)
class _Unpacked:
    asked: str
    facts: PluginFacts
    extended: tuple[str, ...]  # names of the plug-ins and modules whose classes it uses
    top: Path


def with_plugins(home: Home, original: Installation, plugins: Sequence[tuple[str, Archive]]) -> Installation:
    """Return an installation with plug-ins, each given as (the user's name for it, its zip file).

    Raises:
        UsageError: If a file is not a plug-in, is one for another engine or version, or is installed already.
    """
    if not plugins:
        return original
    with tempfile.TemporaryDirectory(dir=home.scratch, prefix="plugins-") as name:
        unpacked = [
            _unpacked(original, given_name, archive, Path(name, str(number)))
            for number, (given_name, archive) in enumerate(plugins)
        ]
        _check_extended(original, unpacked)
        names = [plugin.facts.name for plugin in unpacked]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise UsageError(f"plug-in {duplicate} is a duplicate", hint="remove one")

        def change(root: Path) -> None:
            for plugin in unpacked:
                _place(plugin, root)

        facts = tuple(plugin.facts for plugin in unpacked)
        parts = ("plugins", sorted(fact.sha256 for fact in facts))
        root = derived(home, original, parts, change)
    return replace(original, root=root, plugins=facts)


def _unpacked(original: Installation, asked: str, archive: Archive, folder: Path) -> _Unpacked:
    top = unpack(archive.path, folder)
    properties = _properties(top, asked)
    name, version = properties.get("name", ""), properties.get("version", "unknown")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{asked} has no usable name in its {_DESCRIPTOR}: {name!r}")
    _check_version(original, asked, properties)
    for kind in ("plugins", "modules"):
        if (original.root / kind / name).exists():
            raise UsageError(
                f"{asked} is plug-in {name}, which {original.engine} {original.version} has already",
                hint="remove it",
            )
    return _Unpacked(asked, PluginFacts(name, version, archive.sha256), _extended(properties), top)


def _extended(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the plug-ins and modules that a plug-in extends."""
    names = (name.strip() for name in properties.get(_EXTENDED, "").split(","))
    return tuple(name for name in names if name and not name.endswith(_OPTIONALLY))


def _check_extended(original: Installation, plugins: Sequence[_Unpacked]) -> None:
    names = {*original.modules, *(plugin.facts.name for plugin in plugins)}
    for plugin in plugins:
        for name in plugin.extended:
            if name not in names and not (original.root / "plugins" / name).is_dir():
                raise UsageError(
                    f"{plugin.asked} extends {name}, which {original.engine} {original.version} lacks",
                    hint=f"add the plug-in {name}, or use a full distribution: distribution:official",
                )


def _extends_painless(archive: Archive) -> bool:
    """Return whether a plug-in extends that module; False if its zip is damaged, which unpacking reports."""
    with suppress(BenchctlError):
        for name in jar_entries(archive.path):
            if name.rpartition("/")[2] == _DESCRIPTOR and name.count("/") <= 1:
                text = read_entry(archive.path, name).decode(errors="replace")
                return _PAINLESS in _extended(_parsed(text))
    return False


def _properties(top: Path, asked: str) -> dict[str, str]:
    with disk_errors(f"read the {_DESCRIPTOR} of {asked}"):
        try:
            text = (top / _DESCRIPTOR).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError as err:
            raise UsageError(
                f"{asked} is not a plug-in: it has no {_DESCRIPTOR}",
                hint="give the published zip file",
            ) from err
    return _parsed(text)


def _parsed(text: str) -> dict[str, str]:
    return {match["key"]: match["value"] for match in _PROPERTY.finditer(text)}


def _check_version(original: Installation, asked: str, said: dict[str, str]) -> None:
    """A plug-in is for one engine, and nearly always one version; a range is left to the node."""
    wanted = said.get(f"{original.engine}.version")
    if wanted == original.version or (wanted is None and original.engine in said.get("dependencies", "")):
        return
    made_for = next(
        (f"{engine} {version}" for engine in ("elasticsearch", "opensearch")
         if (version := said.get(f"{engine}.version"))),
        "an engine that it does not name",
    )  # fmt: skip
    raise UsageError(
        f"{asked} was made for {made_for}, not for {original.engine} {original.version}",
        hint=f"get the one for {original.engine} {original.version}",
    )


def _place(one: _Unpacked, root: Path) -> None:
    """Unpack its configuration and programs to where the engine looks for them."""
    target = root / "plugins" / one.facts.name
    (root / "plugins").mkdir(exist_ok=True)
    (root / "plugins").chmod(0o755)
    shutil.copytree(one.top, target)
    target.chmod(0o755)
    for kind in ("config", "bin"):
        if (target / kind).is_dir():
            place = root / kind / one.facts.name
            shutil.copytree(target / kind, place, dirs_exist_ok=True, copy_function=_replace)
            shutil.rmtree(target / kind)


def _replace(source: str, target: str) -> str:
    """Copy a file without writing into an existing one, which may be a link to the original's."""
    Path(target).unlink(missing_ok=True)
    return shutil.copy2(source, target)


_TRANSPORT: Final = "transport-netty4"  # no node starts without


# The only module that is added: published plug-ins such as opensearch-knn extend it, and the archive in Maven
# Central lacks it.
_PAINLESS: Final = "lang-painless"
_GROUP: Final = "org.opensearch.plugin"
_POLICY: Final = """grant {
  permission java.lang.RuntimePermission "createClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
};
"""


def with_painless(home: Home, original: Installation, progress: Progress) -> Installation:
    """Return an installation of OpenSearch with the module of its scripting language, from published jars.

    Raises:
        UsageError: If the module is not published for this version.
        BenchctlError: If it is of another build, or cannot be downloaded.
    """
    if _PAINLESS in original.modules:
        return original
    own = f"{_GROUP}:{_PAINLESS}:{original.version}"
    archives = _published(home, original, own, progress)
    commit = _commit_of(archives[own].path)
    expected = _commit_of(original.root / "lib" / f"{original.engine}-{original.version}.jar")
    if not commit or commit != expected:
        raise BenchctlError(
            f"module {_PAINLESS} is of build {commit or 'unknown'}, not of {original.root}'s build "
            f"{expected or 'unknown'}",
            hint="use the distribution from Maven Central, or a full one: distribution:official",
        )
    classes = [match for name in jar_entries(archives[own].path) if (match := _PLUGIN_CLASS.fullmatch(name))]
    if len(classes) != 1:
        raise BenchctlError(f"{own} has {len(classes)} classes that could be its plug-in, expected 1")
    facts = ModuleFacts(_PAINLESS, tuple(sorted((text, jar.sha256) for text, jar in archives.items())))
    # Another module's descriptor has what is the same in all.
    properties = {
        **_properties(original.root / "modules" / _TRANSPORT, f"module {_TRANSPORT}"),
        "name": _PAINLESS,
        "description": f"{_PAINLESS}, from its published jar",
        "classname": classes[0]["name"].replace("/", "."),
    }

    def change(root: Path) -> None:
        folder = root / "modules" / _PAINLESS
        folder.mkdir()
        folder.chmod(0o755)
        descriptor = "".join(f"{key}={value}\n" for key, value in properties.items())
        (folder / _DESCRIPTOR).write_text(descriptor, encoding="utf-8")
        (folder / "plugin-security.policy").write_text(_POLICY, encoding="utf-8")
        for text, archive in archives.items():
            shutil.copyfile(archive.path, folder / f"{'-'.join(text.split(':')[1:])}.jar")
        for path in folder.iterdir():
            path.chmod(0o644)

    return replace(
        original,
        root=derived(home, original, ("modules", facts), change),
        modules=tuple(sorted((*original.modules, _PAINLESS))),
        added=(facts,),
    )


def _published(home: Home, original: Installation, own: str, progress: Progress) -> dict[str, Archive]:
    """Fetch the module's jar and those that it needs beyond the library, by coordinates."""
    version = original.version
    jars = needed_jars(home, (own,))
    if jars == (own,):
        # Up to 2.11 its POM names nothing of what it needs.
        expression = needed_jars(home, (f"{_GROUP}:lang-expression:{version}",))
        jars = (own, f"{_GROUP}:opensearch-scripting-painless-spi:{version}")
        jars += tuple(text for text in expression if text.split(":")[1] == "antlr4-runtime")
    library = {name for jar in _jars_in(original.root / "lib") for name in _names(jar.stem)}
    return {text: _fetched(home, text, "jar", progress) for text in jars if text.split(":")[1] not in library}


_VERSIONED: Final = re.compile(r"(?P<artifact>.+)-(?P<version>[0-9][^/]*)", re.ASCII)
_VERSION_START: Final = re.compile(r"-(?=[0-9])", re.ASCII)
_MANIFEST: Final = "META-INF/MANIFEST.MF"
_COMMIT: Final = re.compile(r"^Change: *(?P<commit>\S+)", re.MULTILINE)
_PLUGIN_CLASS: Final = re.compile(r"(?P<name>org/opensearch/[\w/]+Plugin)\.class")
_MOST_NAMES: Final = 5
_LUCENE: Final = "lucene-core"


@dataclass(frozen=True)
class Jar:
    """A replacement jar."""

    path: Path
    asked: str  # the user's name for it
    artifact: str | None = None  # such as `lucene-core`; None to find it out


def with_jars(home: Home, original: Installation, jars: Sequence[Jar]) -> Installation:
    """Return an installation with jars replaced by others of the same artifacts.

    The new file keeps the old one's name, by which the engine's security policies know it. An index is always
    built by the original, never by such an installation: so both read the same bytes.

    Raises:
        BenchctlError: If a jar cannot be read, has nothing to replace, replaces the same as another, or is
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
                hint="remove one; a variant inherits the jars of the variant it extends",
            )
        with disk_errors(f"read {jar.path}"):
            put[name] = (jar, digest(jar.path, "sha256"))
        if artifact == _LUCENE:
            lucene = _version(jar.path.stem, artifact) or lucene
    facts = tuple(sorted((name, sha256) for name, (_, sha256) in put.items()))

    def change(root: Path) -> None:
        for name, (jar, sha256) in put.items():
            place = root / "lib" / name
            # A link to the original's file: must not be written into.
            place.unlink()
            shutil.copyfile(jar.path, place)
            place.chmod(0o644)
            # The installation is cached under this digest.
            if digest(place, "sha256") != sha256:
                raise BenchctlError(
                    f"{jar.path} changed while it was put into {original.engine} {original.version}",
                    hint="start again when the build has finished",
                )

    root = derived(home, original, ("jars", facts), change)
    return replace(original, root=root, jars=facts, lucene=lucene)


def _library(root: Path) -> dict[str, str]:
    """Artifact -> file name of the jars in `lib`."""
    by_artifact = {}
    for path in sorted(root.glob("lib/*.jar")):
        versioned = _VERSIONED.fullmatch(path.stem)
        by_artifact[versioned["artifact"] if versioned else path.stem] = path.name
    return by_artifact


def _artifact(jar: Jar, original: Installation, library: dict[str, str]) -> str:
    """Return which artifact of the library a jar is: by its coordinates, else by the name of its file."""
    names = [jar.artifact] if jar.artifact else [*_names(jar.path.stem)]
    for name in names:
        if name in library:
            return name
    near = [similar for name in names if (similar := nearest(name, library))]
    # Without a near name, first what is replaced most often.
    candidates = dict.fromkeys(near) or sorted(
        library, key=lambda name: (not name.startswith("lucene"), name)
    )
    raise UsageError(
        f"{jar.asked} replaces no jar in lib/ of {original.engine} {original.version}",
        hint="name it as the one that it replaces; the nearest there: "
        f"{', '.join(library[name] for name in [*candidates][:_MOST_NAMES])}",
    )


def _names(stem: str) -> Iterator[str]:
    """Candidates from a file's name: all of it, or what precedes a version; the longest first."""
    yield stem
    for match in reversed([*_VERSION_START.finditer(stem)]):
        yield stem[: match.start()]


def _commit_of(jar: Path) -> str:
    """Return the commit that a jar was built from, as both engines' jars name it; else empty."""
    manifest = read_entry(jar, _MANIFEST) if _MANIFEST in jar_entries(jar) else b""
    commit = _COMMIT.search(manifest.decode(errors="replace"))
    return commit["commit"] if commit else ""


def _version(stem: str, artifact: str) -> str | None:
    rest = stem.removeprefix(f"{artifact}-")
    return rest if rest != stem and rest[:1].isdigit() else None


@dataclass(frozen=True)
class Equipment:
    """Installation and runtime of a variant's nodes."""

    installation: Installation  # what is measured
    builder: Installation  # what builds its index: the same, without replaced jars, or an older engine
    jdk: Jdk  # the runtime of both


def equip(home: Home, spec: VariantSpec, progress: Progress) -> Equipment:
    """Install a variant's engine, runtime, plug-ins and jars, unless they are.

    Raises:
        BenchctlError: If something cannot be downloaded, or does not fit the engine.
    """
    original = install(home, spec, progress)
    jdk = provide_jdk(home, spec.java, original)
    plugins = [(text, _plugin(home, text, progress)) for text in spec.plugins]
    if spec.engine == "opensearch" and any(_extends_painless(archive) for _, archive in plugins):
        original = with_painless(home, original, progress)
    plain = fitted(home, original, jdk)
    builder = with_plugins(home, plain, plugins)
    jars = [jar for text in spec.jars for jar in _jars(home, builder, text, progress)]
    filler = builder
    if spec.index_from is not None:
        filler = fitted(home, install(home, base_variant(spec.index_from), progress), jdk)
    return Equipment(with_jars(home, builder, jars), filler, jdk)


def check_asked(home: Home, spec: VariantSpec) -> None:
    """Check that what `equip` would use exists, without fetching anything.

    Raises:
        UsageError: If there is no such version, distribution or Java home.
        BenchctlError: If the Maven repository cannot be reached.
    """
    check_java(spec)
    check_distribution(home, spec)


def _plugin(home: Home, text: str, progress: Progress) -> Archive:
    kind = part_kind(text)
    if kind == "url":
        return download_archive(home, text, progress)
    if kind == "maven":
        return _fetched(home, text, "zip", progress)
    return local_archive(Path(text))


def _fetched(home: Home, text: str, packaging: str, progress: Progress) -> Archive:
    group, artifact, version = text.split(":")
    return fetch_published(home, Coordinates(group, artifact, packaging), version, progress)


def _jars(home: Home, installation: Installation, text: str, progress: Progress) -> list[Jar]:
    kind = part_kind(text)
    if (diff := diff_path(text)) is not None:
        # The compiler may need a newer Java than the nodes have, and gives every variant the same bytes.
        compiling = provide_jdk(home, None)
        from benchctl.engine.patched_lucene import build_diff, library_of  # noqa: PLC0415 - rarely needed

        library = library_of(installation.root, installation.lucene)
        unchanged = text.startswith(f"{PATCHED}{RECOMPILED}")
        built = build_diff(home, library, compiling, diff, progress, unchanged=unchanged)
        return [Jar(path, text, artifact) for artifact, path in built.jars.items()]
    if kind == "maven":
        return [Jar(_fetched(home, text, "jar", progress).path, text, text.split(":")[1])]
    return [Jar(Path(text), text)]


_FORMAT: Final = 1
_MANIFEST_NAME: Final = "manifest.json"
_ROOT_NAME: Final = "distribution"


class _Manifest(msgspec.Struct, frozen=True):
    """Marks a derived installation as complete; retention finds it by its archive, like its original."""

    archive_sha256: str
    parts: str


def derived(home: Home, original: Installation, parts: object, change: Callable[[Path], None]) -> Path:
    """Return the root of an installation with a change, made unless it exists.

    Files are hard links to the original's where the file system allows: nodes only read them.

    Args:
        home: keeps it, beside the original.
        original: what to start from.
        parts: describes the change, in anything JSON can hold; the cache key, with the original.
        change: applies it below the given folder; may delete, add and replace files, but never write into
            one.

    Raises:
        BenchctlError: If the disk refuses, or `change` does.
    """
    key: tuple[object, ...] = (_FORMAT, original.archive_sha256, str(original.root), parts)
    if not original.root.is_relative_to(home.engines):
        # A user's folder may be built into again.
        key = (*key, tree_digest(original.root, times=True))
    digest = hashlib.sha256(msgspec.json.encode(key)).hexdigest()
    final = home.engines / f"{original.engine}-{original.version}-with-{digest[:12]}"
    if _is_complete(final, digest):
        return final / _ROOT_NAME
    with staging(home.engines, f"make {final} of {original.root}") as partial:
        ready = partial / "ready"
        _link_tree(original.root, ready / _ROOT_NAME)
        ready.chmod(0o755)
        change(ready / _ROOT_NAME)
        (ready / _MANIFEST_NAME).write_bytes(msgspec.json.encode(_Manifest(original.archive_sha256, digest)))
        settle(ready, final, lambda: _is_complete(final, digest))
    return final / _ROOT_NAME


def _is_complete(final: Path, digest: str) -> bool:
    with disk_errors(f"use {final}"):
        manifest = stored(final / _MANIFEST_NAME, _Manifest)
    return manifest is not None and manifest.parts == digest


def _link_tree(source: Path, target: Path) -> None:
    """Folders get modes of our own, since nodes must enter; what nodes would write is left out."""
    for folder, folders, files in os.walk(source):
        here = Path(folder)
        if here == source:
            folders[:] = [name for name in folders if name not in OF_NODES]
        there = target / here.relative_to(source)
        there.mkdir(parents=True)
        there.chmod(0o755)
        for name in (*files, *(name for name in folders if (here / name).is_symlink())):
            link_or_copy(here / name, there / name)


_DECLARATION: Final = "module-info.class"
_OF_THE_RUNTIME: Final = ("java.", "jdk.")
_OPTIONAL: Final = 0x40  # `requires static` of a module descriptor
# Module -> the language whose locale data it requires without declaring that: "Thai segmentation".
_LANGUAGES: Final = {"analysis-common": "th"}
# Module of the runtime -> where its packages are, if that is not its name.
_PACKAGES: Final = {"jdk.jdi": "com/sun/jdi/", "jdk.jlink": "jdk/tools/jlink/"}
# Tag of a constant of a class file -> its size in bytes, without the tag; a text's follows its length.
_CONSTANTS: Final = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    15: 3,
}
_LONG: Final = (5, 6)
_TEXT: Final = 1


def fitted(home: Home, original: Installation, jdk: Jdk) -> Installation:
    """Return an installation without what a runtime cannot carry; `lacking` of it has what that is.

    What a jar requires becomes optional if its code names no class of it; else its module is left out.

    Raises:
        UsageError: If code of the library or the transport names classes that the runtime lacks.
        BenchctlError: If the disk refuses.
    """
    optional, named = _requirements_lacked(original.root / "lib", jdk)
    if not named and _TRANSPORT in original.modules:
        _, named = _requirements_lacked(original.root / "modules" / _TRANSPORT, jdk)
    if named:
        raise UsageError(
            f"{original.engine} {original.version} requires {named}, which the Java runtime lacks",
            hint="use a full JDK: jdk:PATH, or distribution:official, which brings one",
        )
    left_out = {}
    for module in original.modules:
        language = _LANGUAGES.get(module)
        more, named = _requirements_lacked(original.root / "modules" / module, jdk)
        if language is not None and jdk.languages is not None and language not in jdk.languages:
            left_out[module] = f"the Java runtime has no locale data of '{language}'"
        elif named:
            left_out[module] = f"the Java runtime lacks {named}"
        else:
            optional |= more
    if not left_out and not optional:
        return original

    def change(root: Path) -> None:
        for module in left_out:
            shutil.rmtree(root / "modules" / module)
        for jar in optional:
            _make_optional(root / jar.relative_to(original.root), jdk)

    places = sorted((str(jar.relative_to(original.root)), names) for jar, names in optional.items())
    parts = ("without", sorted(left_out), places)
    return replace(
        original,
        root=derived(home, original, parts, change),
        modules=tuple(module for module in original.modules if module not in left_out),
        added=tuple(module for module in original.added if module.name not in left_out),
        lacking=(
            *(f"module {module} is not installed: {reason}" for module, reason in left_out.items()),
            *(
                f"{jar.name} runs without {', '.join(names)}, which the Java runtime lacks"
                for jar, names in optional.items()
            ),
        ),
    )


def _jars_in(folder: Path) -> list[Path]:
    with disk_errors(f"read {folder}"):
        return sorted(folder.glob("*.jar"))


def _declaration(jar: Path) -> bytes:
    """The descriptor of a modular jar; empty if it has none, or is damaged, which its node will tell."""
    with suppress(BenchctlError):
        return read_entry(jar, _DECLARATION) if _DECLARATION in jar_entries(jar) else b""
    return b""


def _lacking(jar: Path, jdk: Jdk) -> Iterator[str]:
    for name, _, flags in _requirements(_declaration(jar)):
        if name.startswith(_OF_THE_RUNTIME) and name not in jdk.modules and not flags & _OPTIONAL:
            yield name


def _requirements_lacked(folder: Path, jdk: Jdk) -> tuple[dict[Path, list[str]], str]:
    """By jar, the modules that it requires and the runtime lacks; those whose classes its code names."""
    lacked: dict[Path, list[str]] = {}
    named: set[str] = set()
    for jar in _jars_in(folder):
        names = sorted(set(_lacking(jar, jdk)))
        if not names:
            continue
        lacked[jar] = names
        packages = {name: _PACKAGES.get(name, name.replace(".", "/") + "/").encode() for name in names}
        with jar_errors(jar), zipfile.ZipFile(jar) as archive:
            code = [archive.read(name) for name in archive.namelist() if name.endswith(".class")]
        named |= {name for name, package in packages.items() if any(package in content for content in code)}
    return lacked, ", ".join(sorted(named))


def _make_optional(jar: Path, jdk: Jdk) -> None:
    declaration = bytearray(_declaration(jar))
    for name, place, flags in list(_requirements(bytes(declaration))):
        if name.startswith(_OF_THE_RUNTIME) and name not in jdk.modules:
            declaration[place : place + 2] = (flags | _OPTIONAL).to_bytes(2)
    # A link to the original's file: must not be written into.
    made = jar.with_suffix(".new")
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(made, "w") as target:
        for entry in source.infolist():
            target.writestr(
                entry, bytes(declaration) if entry.filename == _DECLARATION else source.read(entry)
            )
    made.replace(jar)
    jar.chmod(0o644)


def _requirements(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield each required module of a descriptor, where its flags are, and the flags.

    https://docs.oracle.com/javase/specs/jvms/se21/html/jvms-4.html#jvms-4.7.25
    """
    if not data:
        return

    def number(place: int, size: int = 2) -> int:
        return int.from_bytes(data[place : place + size])

    constants: dict[int, bytes | int] = {}
    place, index, count = 10, 1, number(8)
    while index < count:
        tag = data[place]
        if tag == _TEXT:
            size = 2 + number(place + 1)
            constants[index] = data[place + 3 : place + 1 + size]
        else:
            size = 8 if tag in _LONG else _CONSTANTS[tag]
            constants[index] = number(place + 1)
        place += 1 + size
        index += 2 if tag in _LONG else 1
    place += 12  # access, names of the class and its superclass; no interfaces, fields and methods
    for _ in range(number(place)):
        name, place = constants[number(place + 2)], place + 8
        if name == b"Module":
            first = place + 8
            for entry in range(first, first + 6 * number(place + 6), 6):
                required = constants[number(entry)]
                text = constants[required] if isinstance(required, int) else b""
                if isinstance(text, bytes):
                    yield text.decode(), entry + 2, number(entry + 2)
            return
        place += number(place - 4, 4) - 2
