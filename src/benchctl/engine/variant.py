"""Variants as the command line and files name them: `es`, `os@2.19.0`, `es-noinline=es,jvm:-XX:-Inline`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from benchctl.disk import disk_errors, expanded
from benchctl.engine.distribution import check_named
from benchctl.engine.jdk import is_java_path
from benchctl.engine.maven import latest_version
from benchctl.engine.settings import check_environment, check_flag, check_settings
from benchctl.errors import BenchctlError, UsageError, guess, nearest, suggestion
from benchctl.quantities import SIZE
from benchctl.results.plan import NAMED_DISTRIBUTIONS, EngineName, StartMode, VariantSpec
from benchctl.track.library import challenge_names
from benchctl.yaml_file import Step

LATEST: Final = "latest"
"""The newest version; resolved by the caller before anything is fetched."""

PATCHED: Final = "patched:"
"""Before a diff of Lucene, or the name of a shipped one: jars that benchctl builds from published sources."""
RECOMPILED: Final = "recompiled:"
"""After `PATCHED`: the classes that the diff changes, compiled unchanged."""
SHIPPED_DIFFS: Final = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.diff"))}
"""Diffs of Lucene that benchctl brings, by name."""
_SHARDS: Final = "index.number_of_shards"
_REPLICAS: Final = "index.number_of_replicas"

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9][A-Za-z0-9.-]*)?", re.ASCII)
_VERSION_BEGUN: Final = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_COORDINATES: Final = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+", re.ASCII)
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)
_DIFF: Final = re.compile(rf"(?P<before>{PATCHED}(?:{RECOMPILED})?)(?P<diff>.*)", re.DOTALL)
_URL: Final = ("http://", "https://")

PartKind = Literal["file", "url", "maven", "patched"]


def _check_version(text: str, engine: EngineName) -> str:
    if text != LATEST and not _VERSION.fullmatch(text):
        is_begun = _VERSION_BEGUN.fullmatch(text)
        example = _newest_of(engine, text) if is_begun else BUILT_IN_VERSIONS[engine]
        raise UsageError(
            f"version '{text}' is incomplete" if is_begun else f"'{text}' is not a version",
            hint=f"write three numbers, such as {example}, or {LATEST}",
        )
    return text


def _newest_of(engine: EngineName, line: str) -> str:
    """The newest version of a line such as `8.11`; its first, if the repository cannot be asked."""
    try:
        return latest_version(engine, line)
    except BenchctlError:
        return ".".join((*line.split("."), "0", "0")[:3])


def flat(name: str, value: object) -> dict[str, object]:
    """Iterate over a setting by full names; several when its value is a mapping.

    Raises:
        UsageError: If there is a duplicate name.
    """
    if not isinstance(value, dict):
        return {name: value}
    flattened: dict[str, object] = {}
    for key, inner in value.items():
        more = flat(f"{name}.{key}", inner)
        duplicate = next((repeated for repeated in more if repeated in flattened), None)
        if duplicate is not None:
            raise UsageError(f"'{duplicate}' is a duplicate", hint="remove one")
        flattened |= more
    return flattened


def _as_texts(value: object) -> Any:
    """A setting as a node reads it, as text, so that a file means the same as the command line."""
    if isinstance(value, list):
        if any(isinstance(item, dict | list | None) for item in value):
            raise UsageError("the list holds more than words", hint="write [one, two]")
        return [_as_texts(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def whole_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return index settings by full names, adding `index.` where it is missing."""
    return {name if name.startswith("index.") else f"index.{name}": value for name, value in settings.items()}


def check_index_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return index settings by full names if they can be set.

    Raises:
        UsageError: If a name is empty, or a number is invalid.
    """
    named = whole_names(settings)
    for name, value in named.items():
        if name in (_SHARDS, _REPLICAS) and value is not None and not _DIGITS.fullmatch(str(value)):
            raise UsageError(
                f"'{name}' is not a number: {value}", hint=f"write index:{name.removeprefix('index.')}=1"
            )
        if name.endswith(".") or ".." in name:
            raise UsageError(f"'{name}' is not the name of an index setting")
    return named


def part_kind(text: str) -> PartKind:
    """Return the way in which a jar or plug-in is named."""
    if text.startswith(_URL):
        return "url"
    if text.startswith(PATCHED):
        return "patched"
    return "maven" if _COORDINATES.fullmatch(text) else "file"


def diff_path(text: str) -> Path | None:
    """Return the diff that a jar such as `patched:./FILE.diff` is built from; None for other jars."""
    jar = _DIFF.fullmatch(text)
    return None if jar is None else SHIPPED_DIFFS.get(jar["diff"], Path(jar["diff"]))


def _check_source(text: str) -> str:
    """Return a path, URL or coordinates that contain no secret."""
    if text.startswith(_URL):
        try:
            url = urlsplit(text)
        except ValueError as err:
            raise UsageError(f"'{text}' is not a URL", hint="write https://HOST/PATH") from err
        if "@" in url.netloc:
            raise UsageError(
                f"the URL of {url.netloc.rpartition('@')[2]}{url.path} holds a user or a password",
                hint="put them into ~/.netrc: variants are recorded with their runs",
            )
    return text


def placed(text: str, folder: Path) -> str:
    """Return a path made absolute; a URL unchanged.

    Raises:
        UsageError: If a URL contains a secret.
    """
    return _check_source(text) if text.startswith(_URL) else str((folder / expanded(text)).absolute())


def placed_jar(text: str, folder: Path) -> str:
    """Return a jar with its path, or that of its diff, made absolute.

    Raises:
        UsageError: If the jar is a URL, or has no such name as a jar or diff.
    """
    kind = part_kind(_check_source(text))
    if kind == "url":
        raise UsageError(
            f"jar '{text}' is a URL", hint="give a path, group:artifact:version, or patched:FILE.diff"
        )
    if jar := _DIFF.fullmatch(text):
        if jar["diff"] in SHIPPED_DIFFS:
            return text
        if not jar["diff"].endswith((".diff", ".patch")):
            raise UsageError(
                f"jar '{text}': no such patch '{jar['diff']}'",
                hint=f"write patched:FILE.diff, or {suggestion(jar['diff'], SHIPPED_DIFFS)}",
            )
        return f"{jar['before']}{placed(jar['diff'], folder)}"
    if kind == "file" and not text.endswith(".jar"):
        raise UsageError(
            f"'{text}' is not a jar",
            hint="give a path that ends in .jar, group:artifact:version, or patched:FILE.diff",
        )
    return placed(text, folder) if kind == "file" else text


def _placed_plugin(text: str, folder: Path) -> str:
    kind = part_kind(_check_source(text))
    if kind == "patched" or (kind != "maven" and not text.partition("?")[0].endswith(".zip")):
        raise UsageError(
            f"'{text}' is not a plug-in",
            hint="give a path or URL that ends in .zip, or group:artifact:version",
        )
    return placed(text, folder) if kind == "file" else text


def placed_challenge(text: str, folder: Path) -> str:
    """Return a challenge's name unchanged, or the path of its file made absolute."""
    is_file = "/" in text or text.endswith(".json")
    return placed(text, folder) if is_file and text not in challenge_names() else text


def check_parts(spec: VariantSpec) -> None:
    """Refuse a variant whose jars or plug-ins are missing, or whose URLs contain credentials.

    Raises:
        UsageError: If a file is missing, or a URL contains a secret.
        BenchctlError: If a file cannot be accessed.
    """
    for text in (spec.distribution or "", *spec.plugins, *spec.jars):
        _check_source(text)
    for what, texts in (("jar", spec.jars), ("plug-in", spec.plugins)):
        for text in texts:
            with disk_errors(f"look for the {what} {text} of variant '{spec.name}'"):
                diff = diff_path(text)
                path = diff or (Path(text) if part_kind(text) == "file" else None)
                missing = path is not None and not path.is_file()
            if missing:
                label = f"diff {diff}" if diff is not None else f"{what} {text}"
                raise UsageError(f"variant '{spec.name}': no such {label}")


T = TypeVar("T")
Text = Annotated[str, Meta(min_length=1)]
Word = str | int | bool
EngineWord = Literal["es", "os", "elasticsearch", "opensearch"]


class VariantEntry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True, omit_defaults=True
):
    """A variant as written; everything is optional but its base."""

    # base variant: `es`, `os`, `es@8.19.0`, or another of the same file. Lists are appended to those of the
    # base, mappings are merged, and other values replace them.
    extends: Text | None = None
    # engine, instead of `extends`
    engine: EngineWord | None = None
    # version to download, or `latest`; replaces a path or URL in the base's `distribution`
    version: Text | None = None
    # `official`, `min` (OpenSearch without plug-ins), or path or URL of an archive or directory
    distribution: Text | None = None
    # major version or a name such as `temurin-21` to download, `bundled` for the distribution's own, or path
    # of a Java home
    jdk: Annotated[int, Meta(ge=1)] | Text | None = None
    heap: Text | None = None  # heap, such as `1g`
    jvm: tuple[Text, ...] = ()  # JVM flags; of contradicting ones the last holds
    settings: dict[str, Any] = {}  # node settings, may be nested; `null` removes one of the base
    index_settings: dict[str, Any] = {}  # index settings; `null` removes one of the base
    environment: dict[str, Word | None] = {}  # environment variables; `null` removes one of the base
    # jars that replace those in `lib/`: paths, `group:artifact:version`, or for a patched Lucene
    # `patched:FILE.diff` or `patched:` with the name of a shipped diff
    jars: tuple[Text, ...] = ()
    plugins: tuple[Text, ...] = ()  # plug-ins: paths or URLs of zip files, or `group:artifact:version`
    warmups: tuple[Text, ...] = ()  # challenges that run unmeasured after every boot
    # `script` starts nodes with the engine's own script
    start: StartMode | None = None
    index_from: Text | None = None  # older engine that writes the prepared index, such as `es@7.17.29`


class EntryError(UsageError):
    """A fault of an entry; `way` is the path from the entry to the value."""

    def __init__(self, way: tuple[Step, ...], message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.way = way


def applied(entry: VariantEntry, base: VariantSpec, name: str, folder: Path | None) -> VariantSpec:
    """Return the variant that results from an entry on top of its base.

    Args:
        entry: as written; its `extends` and `engine` are up to the caller.
        base: what it extends.
        name: of the result.
        folder: that paths are relative to. None for the command line: the current folder, and the JDK and
            the distribution stay as written.

    Raises:
        EntryError: If a value is one that no node can have.
    """
    here = Path.cwd() if folder is None else folder
    flags = _each(entry.jvm, "jvm", lambda flag: check_flag(base.engine, flag))
    settings = _merged(base.settings, entry.settings, "settings", check_settings)
    index_settings = _merged(
        base.index_settings, entry.index_settings, "index-settings", check_index_settings
    )
    return msgspec.structs.replace(
        base,
        name=name,
        version=base.version
        if entry.version is None
        else _one(entry.version, "version", partial(_check_version, engine=base.engine)),
        distribution=_distribution(entry, base, folder),
        jdk=_jdk(entry, base, folder),
        heap_mb=base.heap_mb if entry.heap is None else _one(entry.heap, "heap", SIZE.parse),
        jvm_flags=(*base.jvm_flags, *flags),
        settings=settings,
        index_settings=index_settings,
        environment=_environment(base.environment, entry.environment),
        jars=(*base.jars, *_each(entry.jars, "jars", lambda text: placed_jar(text, here))),
        plugins=(*base.plugins, *_each(entry.plugins, "plugins", lambda text: _placed_plugin(text, here))),
        warmups=(*base.warmups, *_each(entry.warmups, "warmups", lambda text: placed_challenge(text, here))),
        start=entry.start or base.start,
        index_from=base.index_from
        if entry.index_from is None
        else _one(entry.index_from, "index-from", _filler),
    )


def _filler(text: str) -> str:
    """An engine that fills an index for another, with its version."""
    spec = base_variant(text)
    if "@" not in text or spec.version == LATEST:
        raise UsageError(
            f"'{text}' names no version", hint="write the engine that fills it, such as es@7.17.29"
        )
    return f"{_SHORT_NAMES[spec.engine]}@{spec.version}"


def check_filler(spec: VariantSpec) -> None:
    """Refuse an index that another engine fills, and this one would not read.

    Both engines read what the major version before has written.

    Raises:
        UsageError: If the engine would not read the index.
    """
    if spec.index_from is None:
        return
    by = base_variant(spec.index_from)
    written, read = _numbers(by.version), _numbers(spec.version)
    fits = by.engine == spec.engine and (not read or (written <= read and read[0] - written[0] <= 1))
    if not fits:
        raise UsageError(
            f"variant '{spec.name}': {spec.engine} {spec.version} does not read what {by.engine} "
            f"{by.version} has written",
            hint="name an older version of it, of the same major version or the one before",
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version to compare by; none where it is not known yet."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return () if match is None else tuple(int(part or 0) for part in match.groups())


@contextmanager
def at(*way: Step) -> Iterator[None]:
    """Locate errors about a value of an entry.

    Raises:
        EntryError: If there is a UsageError.
    """
    try:
        yield
    except UsageError as err:
        raise EntryError(way, err.message, err.hint) from err


def _one(value: str, key: str, read: Callable[[str], T]) -> T:
    with at(key):
        return read(value)


def _each(values: tuple[str, ...], key: str, read: Callable[[str], str]) -> tuple[str, ...]:
    results = []
    for place, value in enumerate(values):
        with at(key, place):
            results.append(read(value))
    return tuple(results)


def _merged(
    base: Mapping[str, Any],
    own: Mapping[str, Any],
    key: str,
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> dict[str, Any]:
    """Settings by full names; those without a value remove the base's."""
    merged = dict(base)
    seen: set[str] = set()
    for first, value in own.items():
        with at(key, first):
            for name, inner in flat(first, value).items():
                (known,) = check({name: inner})
                if known in seen:
                    raise UsageError(f"'{known}' is a duplicate", hint="remove one")
                seen.add(known)
                merged.pop(known, None)
                if inner is not None:
                    merged[known] = _as_texts(inner)
    return merged


def _environment(base: Mapping[str, str], own: Mapping[str, Word | None]) -> dict[str, str]:
    merged = dict(base)
    for name, value in own.items():
        with at("environment", name):
            check_environment({name: ""})
            merged.pop(name, None)
            if value is not None:
                merged[name] = str(_as_texts(value))
    return merged


def _distribution(entry: VariantEntry, base: VariantSpec, folder: Path | None) -> str | None:
    if entry.distribution is None:
        is_kept = entry.version is None or base.distribution in NAMED_DISTRIBUTIONS
        return base.distribution if is_kept else None
    with at("distribution"):
        if entry.distribution in NAMED_DISTRIBUTIONS:
            return check_named(entry.distribution, base.engine)
        return _check_source(entry.distribution) if folder is None else placed(entry.distribution, folder)


def _jdk(entry: VariantEntry, base: VariantSpec, folder: Path | None) -> str | None:
    if entry.jdk is None:
        return base.jdk
    text = str(entry.jdk)
    with at("jdk"):
        return _check_source(text) if folder is None else _placed_jdk(text, folder)


def _placed_jdk(text: str, folder: Path) -> str:
    return placed(text, folder) if is_java_path(text) else text


def _placed_distribution(text: str, folder: Path) -> str:
    return text if text in NAMED_DISTRIBUTIONS else placed(text, folder)


BUILT_IN_VERSIONS: Mapping[EngineName, str] = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}
"""The versions of `es` and `os`."""

ENGINE_WORDS: Final[Mapping[str, EngineName]] = {
    "es": "elasticsearch",
    "os": "opensearch",
    "elasticsearch": "elasticsearch",
    "opensearch": "opensearch",
}
"""Names of engines, reserved among names of variants."""

_SHORT_NAMES: Mapping[EngineName, str] = {"elasticsearch": "es", "opensearch": "os"}
_LISTS: Final = {"jvm": "jvm", "jar": "jars", "plugin": "plugins", "warmup": "warmups"}
_MAPPINGS: Final = {"setting": "settings", "env": "environment", "index": "index-settings"}
_SCALARS: Final = {
    "jdk": "JDK",
    "heap": "heap",
    "distribution": "distribution",
    "start": "manner",
    "index-from": "engine",
}
_PROVISIONING: Final = frozenset({"distribution", "start", "jdk"})
"""Keys that leave an engine plain: its origin and its start."""
_OPTIONS = (*_LISTS, *_MAPPINGS, *_SCALARS)
VARIANT_OPTIONS: Final = (*_OPTIONS, "version")
"""Keys of `with_option`."""
_LABEL = re.compile(r"[a-z0-9][a-z0-9._@-]{0,59}")  # part of file names
_NO_TEXT = re.compile("[\\ud800-\\udfff]")  # surrogates: undecodable bytes of the command line
_FORMS = (
    "NAME[@VERSION], or LABEL=NAME[@VERSION][,jvm:FLAG][,setting:KEY=VALUE][,jdk:JDK][,heap:SIZE]"
    "[,env:NAME=VALUE][,index:KEY=VALUE][,jar:JAR][,plugin:PLUGIN][,warmup:CHALLENGE]"
    "[,distribution:PLACE][,start:script][,index-from:NAME@VERSION]"
)
_NOTHING_DEFINED: Final[Mapping[str, VariantSpec]] = MappingProxyType({})


def canonical_engine(text: str) -> EngineName:
    """Return the engine of `es`, `os`, `elasticsearch` or `opensearch`.

    Raises:
        UsageError: If the name is not an engine.
    """
    try:
        return ENGINE_WORDS[text]
    except KeyError as err:
        raise UsageError(f"unknown engine '{text}'", hint=suggestion(text, ENGINE_WORDS)) from err


def base_variant(text: str) -> VariantSpec:
    """Return the plain variant of `es`, `opensearch` or `es@8.19.0`; `es@latest` stays unresolved.

    Raises:
        UsageError: If there is no such engine, or no version after the @.
    """
    return _parse_base(text, _NOTHING_DEFINED)


def parse_variant(
    text: str,
    *,
    jdks: Mapping[str, str] = MappingProxyType({}),
    defined: Mapping[str, VariantSpec] = _NOTHING_DEFINED,
) -> VariantSpec:
    """Parse one variant.

    A comma belongs to the preceding value unless an option's name and a colon follow, so that
    `jvm:-Xlog:gc,safepoint` is one flag. Options are added to the variant after the label, as in a file: see
    `VariantEntry`. The version `latest` is left for the caller to resolve.

    Args:
        text: `NAME[@VERSION]`, or `LABEL=NAME[@VERSION]` followed by options, separated by commas. What only
            says where a plain engine comes from and how it starts needs no label.
        jdks: paths or major versions, by variant or engine; the key "" is for all. The variant's `jdk:` wins.
        defined: variants of a file, which can be named like the built-in ones.

    Raises:
        UsageError: If the text has neither form, or names an engine or option that does not exist.
    """
    head, pieces = _split(text)
    label, labelled, wanted = head.rpartition("=")
    changed = any(option not in _PROVISIONING for option, _ in pieces)
    if changed and not labelled:
        raise UsageError(f"variant '{text}' has options but no label", hint=f"write LABEL={text}")
    base = _parse_base(wanted, defined)
    name = _check_label(label, base.engine, defined) if labelled else base.name
    entry = _entry(pieces, name)
    _check_plain(name, base.name, changed=changed)
    try:
        spec = applied(entry, base, name, None)
    except EntryError as err:
        raise UsageError(f"variant '{name}': {err.message}", hint=err.hint) from err
    keys = (name, base.name, _SHORT_NAMES[base.engine], base.engine, "")
    jdk = next((jdks[key] for key in keys if key in jdks), None)
    return msgspec.structs.replace(spec, jdk=spec.jdk or jdk)


def with_option(base: VariantSpec, option: str, value: str) -> VariantSpec:
    """Return a variant with another option, as on the command line, or with another `version`.

    Raises:
        UsageError: If the option or version is invalid.
    """
    entry = VariantEntry(version=value) if option == "version" else _entry([(option, value)], base.name)
    try:
        return applied(entry, base, base.name, None)
    except EntryError as err:
        raise UsageError(f"variant '{base.name}': {err.message}", hint=err.hint) from err


def placed_variant(text: str, folder: Path) -> str:
    """Return a variant's text with paths of options, relative to `folder`, made absolute.

    Raises:
        UsageError: If the text does not have the form, or an option has an invalid value.
    """
    head, pieces = _split(text)
    parts = [head]
    for option, value in pieces:
        place = _PLACED.get(option)
        parts.append(f"{option}:{place(value, folder) if place and value else value}")
    return ",".join(parts)


def check_jdks(jdks: Mapping[str, str], variants: Sequence[VariantSpec]) -> None:
    """Refuse a JDK of `--jdk` for something that is not measured.

    Args:
        jdks: as for `parse_variant`.
        variants: all that are measured.

    Raises:
        UsageError: If a key is neither one of the variants nor an engine's name, nor empty.
    """
    exact = [f"{_SHORT_NAMES[variant.engine]}@{variant.version}" for variant in variants]
    names = [*(variant.name for variant in variants), *exact, *ENGINE_WORDS]
    for key in jdks:
        if key and key not in names:
            raise UsageError(
                f"--jdk is given for '{key}', which is not measured", hint=suggestion(key, names)
            )


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The head and the (option, value) pairs after it."""
    if _NO_TEXT.search(text):
        raise UsageError(f"variant {text!a} is not UTF-8 text", hint="records and nodes take nothing else")
    head, *pieces = text.split(",")
    options: list[tuple[str, str]] = []
    for piece in pieces:
        option, colon, value = piece.partition(":")
        if colon and option in _OPTIONS:
            options.append((option, value))
        # `jmv:` is close enough to an option to be a typo; log tags such as `safepoint:` are not.
        elif not options or (colon and nearest(option, _OPTIONS)):
            raise _unknown_piece(text, head, piece)
        else:
            options[-1] = (options[-1][0], f"{options[-1][1]},{piece}")
    return head, options


def _unknown_piece(text: str, head: str, piece: str) -> UsageError:
    """Return the error about a piece of a variant that is not an option."""
    option, colon, _ = piece.partition(":")
    if colon:
        hint = guess(option, _OPTIONS) or f"the form is {_FORMS}"
        return UsageError(f"variant '{text}': unknown key '{option}'", hint=hint)
    hint = f"the form is {_FORMS}"
    key, equals, value = piece.partition("=")
    if equals and key in _OPTIONS:
        hint = f"write {key}:{value}"
    elif equals and "." in key:
        hint = f"write setting:{piece} for a node setting, index:{piece} for an index setting"
    elif equals or piece.partition("@")[0] in ENGINE_WORDS:
        hint = f"repeat --variant: --variant {head} --variant {piece}"
    return UsageError(f"variant '{text}': '{piece}' is not a key and value", hint=hint)


def _parse_base(text: str, defined: Mapping[str, VariantSpec]) -> VariantSpec:
    if text in defined:
        return defined[text]
    word, at, version = text.partition("@")
    if word not in ENGINE_WORDS:
        names = [*defined, *ENGINE_WORDS]
        hint = guess(word, names) or f"known: {', '.join(names)}; the form is {_FORMS}"
        raise UsageError(f"unknown variant '{text}'", hint=hint)
    engine = canonical_engine(word)
    short = _SHORT_NAMES[engine]
    if not at:
        return VariantSpec(short, engine, BUILT_IN_VERSIONS[engine])
    try:
        return VariantSpec(f"{short}@{version}", engine, _check_version(version, engine))
    except UsageError as err:
        raise UsageError(
            f"variant '{text}': {err.message}" if version else f"'{text}' has no version after the @",
            hint=err.hint,
        ) from err


def check_name(name: str, what: str = "a variant's label") -> str:
    """Return a name of something that is valid in file names.

    Raises:
        UsageError: If the name is not valid.
    """
    if not _LABEL.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot be {what}",
            hint="use at most 60 lower-case letters, digits and . _ @ - after a letter or digit",
        )
    return name


def _check_label(label: str, engine: EngineName, defined: Mapping[str, VariantSpec]) -> str:
    check_name(label)
    if label in defined:
        raise UsageError(f"the variants file says already what '{label}' is", hint="choose another label")
    named = ENGINE_WORDS.get(label.partition("@")[0], engine)
    if named != engine:
        raise UsageError(
            f"the label '{label}' says {named}, but the variant runs {engine}", hint="choose another label"
        )
    return label


def _check_plain(name: str, plain: str, *, changed: bool) -> None:
    """Names such as `es` or `es@8.19.0` are reserved for plain variants: stored results are found by them."""
    says_more = name.partition("@")[0] in ENGINE_WORDS and (changed or name != plain)
    if says_more:
        raise UsageError(
            f"the label '{name}' means the plain engine, not this one",
            hint=f"choose another label, such as {name.partition('@')[0]}-changed",
        )


def _entry(pieces: Iterable[tuple[str, str]], name: str) -> VariantEntry:
    """Options in the form of a file."""
    fields: dict[str, Any] = {}
    for option, value in pieces:
        if option in _LISTS:
            if option == "jvm" and not re.fullmatch(r"-\S+", value):
                raise UsageError(
                    f"variant '{name}': '{value}' is not a JVM flag", hint="a flag starts with -"
                )
            if not value:
                raise UsageError(
                    f"variant '{name}' has nothing behind {option}:", hint=f"write {_EXAMPLES[option]}"
                )
            fields.setdefault(_LISTS[option], []).append(value)
        elif option in _MAPPINGS:
            mapping = fields.setdefault(_MAPPINGS[option], {})
            key, equals, content = value.partition("=")
            if not key or not equals:
                raise UsageError(
                    f"variant '{name}': {option} '{value}' is not KEY=VALUE",
                    hint=f"write {_EXAMPLES[option]}",
                )
            if key in mapping:
                raise UsageError(
                    f"variant '{name}': duplicate {option} '{key}'", hint=f"remove {option}:{value}"
                )
            mapping[key] = content
        elif not value or option in fields:
            raise UsageError(
                f"variant '{name}' needs one {_SCALARS[option]} behind {option}:",
                hint=f"write {_EXAMPLES[option]}",
            )
        else:
            fields[option] = value
    if fields.get("start", "direct") not in get_args(StartMode):
        raise UsageError(
            f"variant '{name}': nodes cannot start by '{fields['start']}'", hint=f"write {_EXAMPLES['start']}"
        )
    return msgspec.convert(fields, VariantEntry)


_PLACED: Final[Mapping[str, Callable[[str, Path], str]]] = {
    "jar": placed_jar,
    "plugin": _placed_plugin,
    "warmup": placed_challenge,
    "jdk": _placed_jdk,
    "distribution": _placed_distribution,
}
_EXAMPLES: Final = {
    "setting": "setting:indices.queries.cache.size=5%",
    "env": "env:MALLOC_ARENA_MAX=2",
    "index": "index:codec=default",
    "jar": "jar:PATH, jar:GROUP:ARTIFACT:VERSION or jar:patched:FILE.diff",
    "plugin": "plugin:PATH, plugin:URL or plugin:GROUP:ARTIFACT:VERSION",
    "warmup": "warmup:CHALLENGE",
    "jdk": "jdk:17, jdk:temurin-21, jdk:bundled or jdk:PATH",
    "heap": "heap:1g",
    "distribution": "distribution:official, distribution:PATH or distribution:URL",
    "start": "start:script or start:direct",
    "index-from": "index-from:es@7.17.29",
}
