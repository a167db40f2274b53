"""A distribution's Lucene with one class changed, compiled from Lucene's published sources."""

import copy
import difflib
import hashlib
import itertools
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path, PurePosixPath

from benchctl.disk import disk_errors
from benchctl.engine.distribution import Installation, fetch_published
from benchctl.engine.jdk import Jdk, run_java
from benchctl.engine.maven import Coordinates, digest
from benchctl.engine.unpacking import staging
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.nearest import suggestion
from benchctl.network import Progress

# A minimal parser for the members of a Java class.

_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<space>\s+)
    |(?P<other>\"\"\".*?\"\"\"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|[\w$]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING, _CLOSING = "({[", ")}]"


@dataclass(frozen=True)
class Token:
    """One token of the code, comments and white space excluded; `start` is its offset in the source."""

    text: str
    start: int


@dataclass(frozen=True)
class Member:
    """A field, method or nested class of a class.

    Attributes:
        signature: of a method, such as `visit(int,byte[])`; empty otherwise.
        start: its offset in the source, including comments before it.
        end: after its last character.
        digest: SHA-256 of its tokens, hexadecimal: comments and white space don't matter.
    """

    signature: str
    start: int
    end: int
    digest: str


def members_of(source: str, name: str, where: str) -> tuple[Member, ...]:
    """The members of a top-level class, in order; `where` is the file's name in messages.

    Raises:
        BenchctlError: there is no such class, or its braces don't match.
    """
    tokens = list(_tokens(source))
    opening = _opening_brace(tokens, name)
    if opening is None:
        raise BenchctlError(f"{where} has no class {name}")
    members = []
    begin = opening + 1
    while begin < len(tokens) and tokens[begin].text != "}":
        last = _last_of_member(tokens, begin)
        if last is None:
            break
        members.append(_member(tokens[begin : last + 1], tokens[begin - 1]))
        begin = last + 1
    else:
        if begin < len(tokens):
            return tuple(members)
    raise BenchctlError(f"{where} ends inside class {name}")


def _tokens(source: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(source):
        if found.lastgroup == "other":
            yield Token(found[0], found.start())


def _opening_brace(tokens: Sequence[Token], name: str) -> int | None:
    for number, (first, second) in enumerate(itertools.pairwise(tokens)):
        if (first.text, second.text) == ("class", name):
            rest = range(number, len(tokens))
            return next((place for place in rest if tokens[place].text == "{"), None)
    return None


def _last_of_member(tokens: Sequence[Token], begin: int) -> int | None:
    """A field ends with a semicolon, anything else with its closing brace."""
    depth = 0
    is_field = False
    for place in range(begin, len(tokens)):
        text = tokens[place].text
        if depth == 0 and text == "=":
            is_field = True
        depth += (text in _OPENING) - (text in _CLOSING)
        if depth == 0 and (text == ";" or (text == "}" and not is_field)):
            return place
    return None


def _member(tokens: Sequence[Token], before: Token) -> Member:
    code = " ".join(token.text for token in tokens)
    return Member(
        signature=_signature([token.text for token in tokens]),
        start=before.start + len(before.text),
        end=tokens[-1].start + len(tokens[-1].text),
        digest=hashlib.sha256(code.encode()).hexdigest(),
    )


def _signature(words: list[str]) -> str:
    """Name and parameter types of a method or constructor; annotations with arguments are skipped."""
    place = 0
    while place < len(words) and words[place] not in ("=", "{", ";", "class", "interface", "enum"):
        if words[place] == "(":
            close = _closing(words, place)
            if words[place - 2] != "@":
                return f"{words[place - 1]}({','.join(_types(words[place + 1 : close]))})"
            place = close
        place += 1
    return ""


def _closing(words: list[str], opening: int) -> int:
    depth = 0
    for place in range(opening, len(words)):
        depth += (words[place] == "(") - (words[place] == ")")
        if depth == 0:
            return place
    return len(words)


def _types(words: list[str]) -> Iterator[str]:
    """The types in a parameter list: all but `final` and the name at the end."""
    depth = 0
    one: list[str] = []
    for word in [*words, ","]:
        depth += (word == "<") - (word == ">")
        if word == "," and depth == 0:
            if one:
                yield "".join(one[:-1])
            one = []
        elif word != "final":
            one.append(word)


# A change to one class of Lucene.


@dataclass(frozen=True)
class Change:
    """A change of one class, and its preconditions.

    Attributes:
        name: as in `patched:bulk-visit`.
        about: what it does, in one line.
        source: path of the class's source in the sources jar.
        members: Java text of a class of the same name: its methods replace those with the same name and
            parameter types, all else is added; empty to compile the class as it is.
        known: signature -> required digest of the methods that are replaced or relied on.
        fits: the versions of Lucene that have those methods, for messages.
    """

    name: str
    about: str
    source: str
    members: str
    known: Mapping[str, str]
    fits: str

    @property
    def class_name(self) -> str:
        """The class, without its package."""
        return PurePosixPath(self.source).stem

    def apply(self, source: str, where: str) -> str:
        """The class's source with the change; `where` is its name in messages.

        Raises:
            BenchctlError: a method is not what this change was written for.
        """
        if not self.members:
            return source
        found = members_of(source, self.class_name, where)
        methods = {member.signature: member for member in found if member.signature}
        self._check(methods, where)
        replacements: list[tuple[Member, str]] = []
        additions = ""
        for member in members_of(self.members, self.class_name, f"the change '{self.name}'"):
            text = self.members[member.start : member.end]
            if member.signature in methods:
                replacements.append((methods[member.signature], text))
            else:
                additions += text
        source = source[: found[-1].end] + additions + source[found[-1].end :]
        # Backwards, so that earlier offsets stay valid.
        for member, text in sorted(replacements, key=lambda pair: pair[0].start, reverse=True):
            source = source[: member.start] + text + source[member.end :]
        return source

    def _check(self, methods: Mapping[str, Member], where: str) -> None:
        for signature, expected in self.known.items():
            if signature not in methods or methods[signature].digest != expected:
                what = "another" if signature in methods else "no"
                raise BenchctlError(
                    f"'{self.name}' does not fit {where}, which has {what} {signature}",
                    hint=f"this change was written for {self.fits}",
                )


def difference(before: str, after: str, name: str) -> str:
    """The unified diff of two versions of a file."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(lines)


# The changes to Lucene that benchctl can build.

_DOC_IDS_WRITER = "org/apache/lucene/util/bkd/DocIdsWriter.java"


def _java(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


_ALL = (
    Change(
        name="bulk-visit",
        about="a leaf's document ids go to the visitor at once, not by a virtual call each",
        source=_DOC_IDS_WRITER,
        members=_java("bulk_visit.java"),
        known={
            "readDelta16(IndexInput,int,IntersectVisitor)": (
                "9189a5ee2f276f6b8346d7e4ca581653fa9f0720e4e299f2bf40b1e7d6e2c166"
            ),
            "readInts24(IndexInput,int,IntersectVisitor)": (
                "5948cf98e63543d8eba90d63158cc0dfa5bf19a12a49ce20f694edf00b833bb0"
            ),
            "readInts32(IndexInput,int,IntersectVisitor)": (
                "2e2aee83253e8a9c61782baaee989799fb0d47bb11309ab621c2e28c9fab50c8"
            ),
            # The variants that fill an array, which the changed ones call.
            "readDelta16(IndexInput,int,int[])": (
                "af4274ff788c4ea1277b676c2a25fa0f4892152a9abfd721b03fdb6921b63df1"
            ),
            "readInts24(IndexInput,int,int[])": (
                "ac4ec40aa902feb430ad93c8be96c10b50cc19089774f6e106a1fe3b29b963c2"
            ),
            "readInts32(IndexInput,int,int[])": (
                "c8de68b6fe2ddbb387f7dcc70a3f375940582832f2c8d7df35f5f61170ce7e86"
            ),
        },
        fits="Lucene 9.7 to 9.10; from 9.11 on Lucene does the same for 16 and 32 bits, from 10.2 on for 24",
    ),
    # Two compilers don't write the same bytecode: this separates the compiler's effect from the change's.
    Change(
        name="recompiled",
        about="the class that bulk-visit changes, compiled as it is: the control",
        source=_DOC_IDS_WRITER,
        members="",
        known={},
        fits="every Lucene with that class",
    ),
)

CHANGES = {change.name: change for change in _ALL}


def change_named(name: str) -> Change:
    """A change by its name.

    Raises:
        UsageError: there is none of that name.
    """
    try:
        return CHANGES[name]
    except KeyError as err:
        raise UsageError(f"there is no patch '{name}' of Lucene", hint=suggestion(name, CHANGES)) from err


LIBRARY = "lucene-core"
_SOURCES = Coordinates("org.apache.lucene", LIBRARY, classifier="sources")
_FORMAT = "1"  # of the written jars; part of their names
# Jars with some of their classes replaced; reproducible.

_MANIFEST = "META-INF/MANIFEST.MF"
_FIRST_SECTION = re.compile(rb"\A(?P<attributes>.*?)(?P<end>\r?\n)(?=\r?\n|\Z)", re.DOTALL)


def read_entry(path: Path, name: str) -> bytes:
    """One file of a zip or jar.

    Raises:
        BenchctlError: it is not an archive, or has no such file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except KeyError as err:
        raise BenchctlError(f"{path} has no {name}") from err
    except (EOFError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as err:
        # RuntimeError: it is encrypted, or compressed by an unknown method.
        raise BenchctlError(
            f"{path} is damaged, or no jar: {err}", hint="remove it, and get it again"
        ) from err


def replace_entries(
    original: Path,
    target: Path,
    classes: Mapping[str, bytes],
    marker: str,
    *,
    without: Collection[str] = (),
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
            if entry.filename in without:
                continue
            content = contents.pop(entry.filename) if entry.filename in contents else source.read(entry)
            _store(packed, entry, content)
        template = source.getinfo(_MANIFEST)
        for name, content in sorted(contents.items()):
            entry = copy.copy(template)
            entry.filename = name
            _store(packed, entry, content)


def marked(manifest: bytes, marker: str, where: str) -> bytes:
    """A manifest with one more line in its main section; `where` is the jar's name in messages.

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


# Compiles without a JDK: Eclipse's compiler is a jar that runs on any Java runtime.

_ECJ = Coordinates("org.eclipse.jdt", "ecj")
_ECJ_VERSION = "3.46.0"
_LEAST_JAVA = 17
_HEADER = re.compile(rb"\xca\xfe\xba\xbe..(?P<major>..)", re.DOTALL)
_JAVA_OF_CLASS_FILES = 44  # major version of a class file minus the Java release
_LINES_SHOWN = 12


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
            BenchctlError: they do not compile, with the compiler's first lines.
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
        BenchctlError: it cannot be had, or not run on that Java.
    """
    if jdk.major < _LEAST_JAVA:
        raise BenchctlError(
            f"ecj {_ECJ_VERSION} needs Java {_LEAST_JAVA} or newer, and {jdk.home} is Java {jdk.major}",
            hint="compile on the bundled runtime",
        )
    archive = fetch_published(home, _ECJ, _ECJ_VERSION, progress)
    return Compiler(_ECJ_VERSION, archive.path, archive.sha256, jdk)


def java_release(class_file: bytes, what: str) -> int:
    """The Java release that a class file targets; `what` is its name in messages.

    Raises:
        BenchctlError: it is not a class file.
    """
    header = _HEADER.match(class_file)
    if header is None:
        raise BenchctlError(f"{what} is not a class file")
    return int.from_bytes(header["major"]) - _JAVA_OF_CLASS_FILES


@dataclass(frozen=True)
class PatchedJar:
    """A changed lucene-core.

    Attributes:
        sha256: of its bytes, hexadecimal.
        lucene: the version that was changed.
        difference: the source's unified diff; empty without a change.
    """

    path: Path
    sha256: str
    lucene: str
    difference: str


def build_lucene(
    home: Home, installation: Installation, jdk: Jdk, name: str, progress: Progress
) -> PatchedJar:
    """The changed jar of a distribution's lucene-core; see `patch_jar`."""
    original = installation.root / "lib" / f"{LIBRARY}-{installation.lucene}.jar"
    return patch_jar(home, original, installation.lucene, jdk, name, progress)


def patch_jar(home: Home, original: Path, lucene: str, jdk: Jdk, name: str, progress: Progress) -> PatchedJar:
    """Build the changed jar of a lucene-core, unless it was built before.

    It is the original, whatever its makers did to it, except for the changed class, which is built from the
    sources that Lucene publishes for this version.

    Args:
        home: keeps it.
        original: the jar.
        lucene: its version.
        jdk: the compiler's runtime, Java 17 or newer: the bundled one serves every variant, whatever its
            nodes run on.
        name: of the change, such as `bulk-visit`.
        progress: of downloads.

    Raises:
        UsageError: there is no such change.
        BenchctlError: the change does not fit this Lucene, the sources or the compiler cannot be had, the
            result does not compile, or the disk refuses.
    """
    change = change_named(name)
    sources = fetch_published(home, _SOURCES, lucene, progress)
    where = f"{PurePosixPath(change.source).name} of Lucene {lucene}"
    before = read_entry(sources.path, change.source).decode()
    after = change.apply(before, where)
    compiler = fetch_compiler(home, jdk, progress)
    with disk_errors(f"read {original}"):
        parts = (_FORMAT, name, after, compiler.sha256, digest(original, "sha256"))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
    path = home.artifacts / f"{LIBRARY}-{lucene}-{name}-{key}.jar"
    if not path.is_file():
        _write(path, original, change, after, compiler)
    return PatchedJar(path, digest(path, "sha256"), lucene, difference(before, after, change.source))


def _write(path: Path, original: Path, change: Change, source: str, compiler: Compiler) -> None:
    """Compile the class into a copy of the jar, which appears complete or not at all."""
    entry = PurePosixPath(change.source).with_suffix(".class")
    release = java_release(read_entry(original, str(entry)), f"{entry} of {original}")
    with staging(path.parent, f"build {path}") as folder:
        text = folder / entry.with_suffix(".java").name
        text.write_text(source, encoding="utf-8")
        out = folder / "classes"
        compiler.compile([text], [original], release, out, name=text.name)
        compiled = {file.relative_to(out).as_posix(): file.read_bytes() for file in out.rglob("*.class")}
        for name, content in compiled.items():
            built_for = java_release(content, name)
            if built_for != release:
                raise BenchctlError(
                    f"ecj {compiler.version} made {name} for Java {built_for}, and Lucene's is for {release}"
                )
        ready = folder / path.name
        replace_entries(original, ready, compiled, f"Benchctl-Patch: {change.name}")
        ready.chmod(0o644)
        ready.replace(path)
