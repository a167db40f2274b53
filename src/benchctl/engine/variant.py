"""Variants: an engine and pairs of key and value that change it, as the command line and files spell them.

`noinline=es,jvm:-XX:-Inline` and, in a file, `noinline: {extends: es, jvm: [-XX:-Inline]}` mean the same.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from benchctl.disk import disk_errors, expanded, read_file
from benchctl.engine.distribution import check_named
from benchctl.engine.jdk import is_java_path
from benchctl.engine.maven import latest_version
from benchctl.engine.settings import check_environment, check_flag, check_flags, check_settings
from benchctl.errors import UsageError, guess, nearest, suggestion
from benchctl.quantities import SIZE
from benchctl.results.plan import NAMED_DISTRIBUTIONS, EngineName, StartMode, VariantSpec
from benchctl.track.library import challenge_names
from benchctl.yaml_file import Document, Step, read_typed

LATEST: Final = "latest"
"""The newest version; `with_newest` resolves it before anything is fetched."""

PATCHED: Final = "patched:"
"""Before a diff of Lucene, or the name of a shipped one: jars that benchctl builds from published sources."""
RECOMPILED: Final = "recompiled:"
"""After `PATCHED`: the classes that the diff changes, compiled unchanged."""
SHIPPED_DIFFS: Final = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.diff"))}
"""Diffs of Lucene that benchctl brings, by name."""
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

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9][A-Za-z0-9.-]*)?", re.ASCII)
_COORDINATES: Final = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+", re.ASCII)
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)
_DIFF: Final = re.compile(rf"(?P<before>{PATCHED}(?:{RECOMPILED})?)(?P<diff>.*)", re.DOTALL)
_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9._@-]{0,59}")  # part of file names
_NO_TEXT: Final = re.compile("[\\ud800-\\udfff]")  # surrogates: undecodable bytes of the command line
_URL: Final = ("http://", "https://")
_COUNTS: Final = ("index.number_of_shards", "index.number_of_replicas")
_MOST_LEVELS: Final = 100  # of variants that extend each other; each is a few calls deep

_EXAMPLES: Final = {
    "jvm": "jvm:-XX:-Inline",
    "jar": "jar:PATH, jar:GROUP:ARTIFACT:VERSION or jar:patched:FILE.diff",
    "plugin": "plugin:PATH, plugin:URL or plugin:GROUP:ARTIFACT:VERSION",
    "warmup": "warmup:CHALLENGE",
    "setting": "setting:indices.queries.cache.size=5%",
    "env": "env:MALLOC_ARENA_MAX=2",
    "index": "index:codec=default",
    "mapping": "mapping:message.type=match_only_text",
    "operation": "operation:range=FILE.json",
    "jdk": "jdk:17, jdk:bundled or jdk:PATH",
    "heap": "heap:1g",
    "distribution": "distribution:official, distribution:PATH or distribution:URL",
    "start": "start:script or start:direct",
    "index-from": "index-from:es@7.17.29",
}
"""Key on the command line -> how it is written."""
# Key in a file -> the key of each of its values.
_LISTS: Final = {"jvm": "jvm", "jars": "jar", "plugins": "plugin", "warmups": "warmup"}
_MAPPINGS: Final = {
    "settings": "setting",
    "environment": "env",
    "index-settings": "index",
    "mappings": "mapping",
}
_PROVISIONING: Final = frozenset({"distribution", "start", "jdk"})
"""Keys that leave an engine plain: its origin and its start."""
VARIANT_OPTIONS: Final = (*_EXAMPLES, "version")
"""Keys of `with_option`."""
_FORM: Final = f"NAME[@VERSION], or LABEL=NAME[@VERSION],KEY:VALUE,... with the keys {', '.join(_EXAMPLES)}"
_NOTHING_DEFINED: Final[Mapping[str, VariantSpec]] = MappingProxyType({})

PartKind = Literal["file", "url", "maven", "patched"]
Text = Annotated[str, Meta(min_length=1)]
Word = str | int | bool
Pair = tuple[tuple[Step, ...], str, Any]
"""Place in an entry of a file, key, and value; that of a mapping is (name, value)."""


class VariantEntry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True, omit_defaults=True
):
    """A variant as written in a file; everything is optional but its base."""

    # base variant: `es`, `os`, `es@8.19.0`, or another of the same file. Lists are appended to those of the
    # base, mappings are merged, and other values replace them.
    extends: Text
    # version to download, or `latest`; replaces a path or URL in the base's `distribution`
    version: Text | None = None
    # `official`, `min` (OpenSearch without plug-ins), or path or URL of an archive or directory
    distribution: Text | None = None
    # major version to download, `bundled` for the distribution's own, or path of a Java home
    jdk: Annotated[int, Meta(ge=1)] | Text | None = None
    heap: Text | None = None  # heap, such as `1g`
    jvm: tuple[Text, ...] = ()  # JVM flags; of contradicting ones the last holds
    settings: dict[str, Any] = {}  # node settings, may be nested; `null` removes one of the base
    index_settings: dict[str, Any] = {}  # index settings; `null` removes one of the base
    # fields of the track's index, as in its body, with or without `properties`; `null` removes a key or field
    mappings: dict[str, Any] = {}
    operations: dict[str, Text] = {}  # files with the bodies that operations of the track have instead
    environment: dict[str, Word | None] = {}  # environment variables; `null` removes one of the base
    # jars that replace those in `lib/`: paths, `group:artifact:version`, or for a patched Lucene
    # `patched:FILE.diff` or `patched:` with the name of a shipped diff
    jars: tuple[Text, ...] = ()
    plugins: tuple[Text, ...] = ()  # plug-ins: paths or URLs of zip files, or `group:artifact:version`
    warmups: tuple[Text, ...] = ()  # challenges that run unmeasured after every boot
    # `script` starts nodes with the engine's own script
    start: StartMode | None = None
    index_from: Text | None = None  # older engine that writes the prepared index, such as `es@7.17.29`

    @property
    def pairs(self) -> Iterator[Pair]:
        """The pairs of key and value that the command line would have."""
        for field in msgspec.structs.fields(type(self)):
            key, value = field.encode_name, getattr(self, field.name)
            if key in _LISTS:
                yield from (((key, place), _LISTS[key], text) for place, text in enumerate(value))
            elif key in _MAPPINGS:
                yield from (((key, name), _MAPPINGS[key], (name, inner)) for name, inner in value.items())
            elif key == "operations":
                yield from (((key, name), "operation", f"{name}={path}") for name, path in value.items())
            elif key != "extends" and value is not None:
                yield (key,), key, str(value)


class EntryError(UsageError):
    """A fault of an entry; `way` is the path from the entry to the value."""

    def __init__(self, way: tuple[Step, ...], message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.way = way


@contextmanager
def _at(*way: Step) -> Iterator[None]:
    """Locate errors about a value of an entry."""
    try:
        yield
    except UsageError as err:
        raise EntryError(way, err.message, err.hint) from err


# One pair.


def _changed(spec: VariantSpec, pairs: Iterable[Pair], folder: Path) -> VariantSpec:
    """Return a variant with further pairs, whose paths are relative to a folder."""
    for way, key, value in pairs:
        with _at(*way):
            placed_value = _PLACED[key](value, folder) if key in _PLACED else value
            spec = msgspec.structs.replace(spec, **_CHANGES[key](spec, placed_value))
    return spec


def _merged(
    base: Mapping[str, Any], own: tuple[str, Any], check: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return settings by full names with a further one; without a value, it removes the base's."""
    merged = dict(base)
    for first, value in flat(*own).items():
        (name,) = check({first: value})
        merged.pop(name, None)
        if value is not None:
            merged[name] = _as_texts(value)
    return merged


def flat(name: str, value: object) -> dict[str, object]:
    """Return a setting by full names; several when its value is a mapping.

    Raises:
        UsageError: If there is a duplicate name.
    """
    if not isinstance(value, dict):
        return {name: value}
    flattened: dict[str, object] = {}
    for key, inner in value.items():
        more = flat(f"{name}.{key}", inner)
        if duplicate := next((repeated for repeated in more if repeated in flattened), None):
            raise UsageError(f"'{duplicate}' is a duplicate", hint="remove one")
        flattened |= more
    return flattened


def _as_texts(value: object) -> Any:
    """A setting as a node reads it, as text, so that a file means the same as the command line."""
    if isinstance(value, list):
        if any(isinstance(item, dict | list | None) for item in value):
            raise UsageError("the list contains more than plain values", hint="write [one, two]")
        return [_as_texts(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def text_of(value: object) -> str:
    """Return a value of a mapping or setting in one form, however it was written."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="sorted").decode()


def flat_mapping(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping by full names, such as `message.type`, with or without `properties` in it."""
    return {
        ".".join(part for part in name.split(".") if part != "properties"): value
        for key, inner in mapping.items()
        for name, value in flat(key, inner).items()
    }


_MAPPING_HINT: Final = (
    "write FIELD.KEY=VALUE, as in message.type=match_only_text; null removes the track's value"
)


def _mapped(base: Mapping[str, Any], name: str, value: object) -> dict[str, Any]:
    """Return the mappings of a variant with a further one; None stays, since it removes the track's."""
    if isinstance(value, str):
        # The command line's `false`, `256` and `null` are what they are in a body.
        with suppress(msgspec.DecodeError):
            value = msgspec.json.decode(value)
    changed = flat_mapping({name: value})
    if any(not key or not key.isprintable() or one == "" for key, one in changed.items()):
        raise UsageError(f"mapping '{name}' has no field or no value", hint=_MAPPING_HINT)
    return {**base, **changed}


def _bodies(text: str) -> dict[str, dict[str, Any]]:
    """Return the body in the file of `NAME=FILE`, by the operation's name."""
    name, _, path = text.partition("=")
    with disk_errors(f"read {path}, the body of operation '{name}'"):
        content = read_file(Path(path))
    try:
        return {name: msgspec.json.decode(content, type=dict[str, Any])}
    except msgspec.DecodeError as err:
        raise UsageError(f"{path} is not the body of a search: {err}", hint='write {"query": ...}') from err


def _placed_body(text: str, folder: Path) -> str:
    name, _, path = text.partition("=")
    if not (name and path):
        raise UsageError(f"'operation:{text}' has no file", hint=f"write {_EXAMPLES['operation']}")
    return f"{name}={_placed(path, folder)}"


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
        if name in _COUNTS and value is not None and not _DIGITS.fullmatch(str(value)):
            raise UsageError(
                f"'{name}' is not a number: {value}", hint=f"write index:{name.removeprefix('index.')}=1"
            )
        if name.endswith(".") or ".." in name:
            raise UsageError(f"'{name}' is not the name of an index setting")
    return named


def _check_version(text: str, engine: EngineName) -> str:
    if text != LATEST and not _VERSION.fullmatch(text):
        raise UsageError(
            f"'{text}' is not a version",
            hint=f"write three numbers, such as {BUILT_IN_VERSIONS[engine]}, or {LATEST}",
        )
    return text


def _filler(text: str) -> str:
    """An engine that fills an index for another, with its version."""
    spec = base_variant(text)
    if "@" not in text or spec.version == LATEST:
        raise UsageError(
            f"'{text}' names no version", hint="write the engine that fills it, such as es@7.17.29"
        )
    return f"{_SHORT_NAMES[spec.engine]}@{spec.version}"


# Paths, URLs and names.


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


def _placed(text: str, folder: Path) -> str:
    """Return a path made absolute; a URL unchanged if it holds no secret."""
    if not text.startswith(_URL):
        return str((folder / expanded(text)).absolute())
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


def placed_jar(text: str, folder: Path) -> str:
    """Return a jar with its path, or that of its diff, made absolute.

    Raises:
        UsageError: If the jar is a URL, or has no such name as a jar or diff.
    """
    kind = part_kind(text)
    if kind == "url":
        text = _placed(text, folder)
    if jar := _DIFF.fullmatch(text):
        if jar["diff"] in SHIPPED_DIFFS:
            return text
        if not jar["diff"].endswith((".diff", ".patch")):
            raise UsageError(
                f"jar '{text}': no such patch '{jar['diff']}'",
                hint=f"write patched:FILE.diff, or {suggestion(jar['diff'], SHIPPED_DIFFS)}",
            )
        return f"{jar['before']}{_placed(jar['diff'], folder)}"
    if kind == "url" or (kind == "file" and not text.endswith(".jar")):
        raise UsageError(
            f"'{text}' is not a jar",
            hint="give a path that ends in .jar, group:artifact:version, or patched:FILE.diff",
        )
    return _placed(text, folder) if kind == "file" else text


def _placed_plugin(text: str, folder: Path) -> str:
    kind = part_kind(text)
    if kind == "url":
        text = _placed(text, folder)
    if kind == "patched" or (kind != "maven" and not text.partition("?")[0].endswith(".zip")):
        raise UsageError(
            f"'{text}' is not a plug-in",
            hint="give a path or URL that ends in .zip, or group:artifact:version",
        )
    return _placed(text, folder) if kind == "file" else text


def placed_challenge(text: str, folder: Path) -> str:
    """Return a challenge's name unchanged, or the path of its file made absolute."""
    is_file = "/" in text or text.endswith(".json")
    return _placed(text, folder) if is_file and text not in challenge_names() else text


def placed_jdk(text: str, folder: Path) -> str:
    """Return the path of a Java home made absolute; a version or `bundled` unchanged."""
    return _placed(text, folder) if is_java_path(text) else text


_PLACED: Final[Mapping[str, Callable[[str, Path], str]]] = {
    "jar": placed_jar,
    "plugin": _placed_plugin,
    "warmup": placed_challenge,
    "jdk": placed_jdk,
    "operation": _placed_body,
    "distribution": lambda text, folder: text if text in NAMED_DISTRIBUTIONS else _placed(text, folder),
}


def _with_version(spec: VariantSpec, value: str) -> dict[str, Any]:
    named = spec.distribution in NAMED_DISTRIBUTIONS
    return {
        "version": _check_version(value, spec.engine),
        "distribution": spec.distribution if named else None,
    }


def _with_distribution(spec: VariantSpec, value: str) -> dict[str, Any]:
    return {"distribution": check_named(value, spec.engine) if value in NAMED_DISTRIBUTIONS else value}


def _with_start(_spec: VariantSpec, value: str) -> dict[str, Any]:
    if value not in get_args(StartMode):
        raise UsageError(f"nodes cannot start by '{value}'", hint=f"write {_EXAMPLES['start']}")
    return {"start": value}


_CHANGES: Final[Mapping[str, Callable[[VariantSpec, Any], dict[str, Any]]]] = {
    "jvm": lambda spec, value: {"jvm_flags": (*spec.jvm_flags, check_flag(spec.engine, value))},
    "jar": lambda spec, value: {"jars": (*spec.jars, value)},
    "plugin": lambda spec, value: {"plugins": (*spec.plugins, value)},
    "warmup": lambda spec, value: {"warmups": (*spec.warmups, value)},
    "setting": lambda spec, value: {"settings": _merged(spec.settings, value, check_settings)},
    "env": lambda spec, value: {"environment": _merged(spec.environment, value, check_environment)},
    "index": lambda spec, value: {
        "index_settings": _merged(spec.index_settings, value, check_index_settings)
    },
    "mapping": lambda spec, value: {"mappings": _mapped(spec.mappings, *value)},
    "operation": lambda spec, value: {"operations": {**spec.operations, **_bodies(value)}},
    "jdk": lambda _, value: {"jdk": value},
    "heap": lambda _, value: {"heap_mb": SIZE.parse(value)},
    "version": _with_version,
    "distribution": _with_distribution,
    "start": _with_start,
    "index-from": lambda _, value: {"index_from": _filler(value)},
}
"""Key -> the fields of a variant that one more such pair changes."""


# Whole variants.


def canonical_engine(text: str) -> EngineName:
    """Return the engine of `es`, `os`, `elasticsearch` or `opensearch`.

    Raises:
        UsageError: If the name is not an engine.
    """
    try:
        return ENGINE_WORDS[text]
    except KeyError as err:
        raise UsageError(f"unknown engine '{text}'", hint=suggestion(text, ENGINE_WORDS)) from err


def base_variant(
    text: str, defined: Mapping[str, VariantSpec] = _NOTHING_DEFINED, *, others: Iterable[str] = ()
) -> VariantSpec:
    """Return the plain variant of `es`, `opensearch` or `es@8.19.0`, or a defined one.

    The version `latest` stays unresolved; `others` are further names, for hints.

    Raises:
        UsageError: If there is no such engine, or no version after the @.
    """
    if text in defined:
        return defined[text]
    word, at, version = text.partition("@")
    if word not in ENGINE_WORDS:
        names = [*defined, *others, *ENGINE_WORDS]
        hint = guess(word, names) or f"known: {', '.join(names)}; the form is {_FORM}"
        raise UsageError(f"unknown variant '{text}'", hint=hint)
    engine = canonical_engine(word)
    short = _SHORT_NAMES[engine]
    if not at:
        return VariantSpec(short, engine, BUILT_IN_VERSIONS[engine])
    try:
        return VariantSpec(f"{short}@{version}", engine, _check_version(version, engine))
    except UsageError as err:
        raise UsageError(f"variant '{text}': {err.message}", hint=err.hint) from err


def parse_variant(
    text: str, *, jdk: str = "", defined: Mapping[str, VariantSpec] = _NOTHING_DEFINED
) -> VariantSpec:
    """Parse one variant of the command line, whose paths are relative to the current folder.

    A comma belongs to the preceding value unless a key and a colon follow, so that `jvm:-Xlog:gc,safepoint`
    is one flag. The version `latest` is left for `with_newest`.

    Args:
        text: `NAME[@VERSION]`, or `LABEL=NAME[@VERSION]` followed by pairs `KEY:VALUE`, separated by commas.
            What only says where a plain engine comes from and how it starts needs no label.
        jdk: of a variant that has no `jdk:`; empty for the default.
        defined: variants of a file, which can be named like the built-in ones.

    Raises:
        UsageError: If the text has neither form, or names an engine or key that does not exist.
    """
    head, pieces = _split(text)
    label, labelled, wanted = head.rpartition("=")
    changed = any(key not in _PROVISIONING for key, _ in pieces)
    if changed and not labelled:
        raise UsageError(f"variant '{text}' has options but no label", hint=f"write LABEL={text}")
    base = base_variant(wanted, defined)
    name = _check_label(label, base.engine, defined) if labelled else base.name
    # Names such as `es@8.19.0` are reserved for plain variants: stored results are found by them.
    if name.partition("@")[0] in ENGINE_WORDS and (changed or name != base.name):
        raise UsageError(
            f"the label '{name}' means the plain engine, not this one",
            hint=f"choose another label, such as {name.partition('@')[0]}-changed",
        )
    spec = _with_pieces(msgspec.structs.replace(base, name=name), pieces)
    return spec if spec.jdk or not jdk else with_option(spec, "jdk", jdk)


def with_option(base: VariantSpec, option: str, value: str) -> VariantSpec:
    """Return a variant with one more pair, as on the command line, or with another `version`.

    Raises:
        UsageError: If the key or value is invalid.
    """
    return _with_pieces(base, [(option, value)])


def _with_pieces(base: VariantSpec, pieces: Iterable[tuple[str, str]]) -> VariantSpec:
    try:
        return _changed(base, (((), key, _value(key, text)) for key, text in pieces), Path.cwd())
    except UsageError as err:
        raise UsageError(f"variant '{base.name}': {err.message}", hint=err.hint) from err


def _value(key: str, text: str) -> Any:
    """Return the value of a pair of the command line."""
    name, equals, content = text.partition("=")
    is_setting = key in _MAPPINGS.values()
    if not text or (is_setting and not (name and equals)):
        raise UsageError(f"'{key}:{text}' has no value", hint=f"write {_EXAMPLES.get(key, _FORM)}")
    return (name, content) if is_setting else text


def placed_variant(text: str, folder: Path) -> str:
    """Return a variant's text with paths, relative to `folder`, made absolute.

    Raises:
        UsageError: If the text does not have the form, or a key has an invalid value.
    """
    head, pieces = _split(text)
    values = (_PLACED[key](value, folder) if key in _PLACED and value else value for key, value in pieces)
    return ",".join((head, *(f"{key}:{value}" for (key, _), value in zip(pieces, values, strict=True))))


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the head, and the keys and values after it."""
    if _NO_TEXT.search(text):
        raise UsageError(f"variant {text!a} is not UTF-8 text", hint="only UTF-8 text is supported")
    head, *pieces = text.split(",")
    pairs: list[tuple[str, str]] = []
    for piece in pieces:
        key, colon, value = piece.partition(":")
        if colon and key in _EXAMPLES:
            pairs.append((key, value))
        # `jmv:` is close enough to a key to be a typo; log tags such as `safepoint:` are not.
        elif not pairs or (colon and nearest(key, _EXAMPLES)):
            hint = guess(key, _EXAMPLES) if colon else ""
            raise UsageError(
                f"variant '{text}': '{piece}' is not a known key and its value",
                hint=hint or f"the form is {_FORM}; a second variant has its own --variant",
            )
        else:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]},{piece}")
    return head, pairs


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
        raise UsageError(f"the variants file already defines '{label}'", hint="choose another label")
    named = ENGINE_WORDS.get(label.partition("@")[0], engine)
    if named != engine:
        raise UsageError(
            f"the label '{label}' names {named}, but the variant runs {engine}", hint="choose another label"
        )
    return label


def check_spec(spec: VariantSpec) -> VariantSpec:
    """Return a variant that a node can have: what its single pairs do not tell.

    Raises:
        UsageError: If flags open it to the network, a jar or plug-in is missing, or it cannot read its index.
        BenchctlError: If a file cannot be accessed.
    """
    check_flags(spec.engine, spec.jvm_flags)
    for what, texts in (("jar", spec.jars), ("plug-in", spec.plugins)):
        for text in texts:
            with disk_errors(f"look for the {what} {text} of variant '{spec.name}'"):
                path = diff_path(text) or (Path(text) if part_kind(text) == "file" else None)
                missing = path is not None and not path.is_file()
            if missing:
                raise UsageError(f"variant '{spec.name}': no such {what} {text}")
    if spec.index_from is not None:
        # Both engines read what the major version before has written.
        by = base_variant(spec.index_from)
        written, read = _numbers(by.version), _numbers(spec.version)
        if by.engine != spec.engine or (read and (written > read or read[0] - written[0] > 1)):
            raise UsageError(
                f"variant '{spec.name}': {spec.engine} {spec.version} does not read what {by.engine} "
                f"{by.version} has written",
                hint="name an older version of it, of the same major version or the one before",
            )
    return spec


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version to compare by; none where it is not known yet."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return () if match is None else tuple(int(part or 0) for part in match.groups())


def with_newest(
    specs: Iterable[VariantSpec], newest: Callable[[EngineName], str] = latest_version
) -> tuple[VariantSpec, ...]:
    """Return the variants with `latest` resolved; `newest` asks the repository, once per engine.

    Raises:
        BenchctlError: If the repository cannot be reached, or has no release.
    """
    cached_newest = cache(newest)
    return tuple(
        msgspec.structs.replace(spec, version=cached_newest(spec.engine)) if spec.version == LATEST else spec
        for spec in specs
    )


# Files.


def load_variants(path: Path) -> dict[str, VariantSpec]:
    """Read a file of variants; its paths are relative to it.

    Returns:
        By name, in the order of the file.

    Raises:
        UsageError: If the file cannot be read, or a variant is invalid, with file, line and column.
    """
    typed = read_typed(path, dict[str, VariantEntry])
    if not typed.value:
        raise UsageError(f"{path} defines no variant", hint="write NAME: {extends: es, jvm: [-XX:-Inline]}")
    return resolve_variants_mapping(typed.value, typed.document, (), path.absolute().parent)


def resolve_variants_mapping(
    entries: Mapping[str, VariantEntry], document: Document, steps: tuple[Step, ...], folder: Path
) -> dict[str, VariantSpec]:
    """Return the variants of a mapping, each with everything it extends; invalid ones are refused.

    `latest` is left for `with_newest`.

    Args:
        entries: by name, as written.
        document: that they are in, for places in errors.
        steps: the path to the mapping in it; empty when it is the whole file.
        folder: that their paths are relative to.

    Returns:
        By name, in the order of the file, without the built-in `es` and `os`.

    Raises:
        UsageError: If a variant is invalid, with file, line and column.
    """
    specs: dict[str, VariantSpec] = {}

    def resolve(name: str, below: tuple[str, ...] = ()) -> VariantSpec:
        """Return a variant; `below` are the names that led here, each extending the next."""
        if name in specs:
            return specs[name]
        try:
            _check_own(name)
        except UsageError as err:
            raise document.refuse(steps, err.message, hint=err.hint, key=name) from err
        entry, chain = entries[name], (*below, name)
        try:
            with _at("extends"):
                _check_chain(entry.extends, chain)
                base = None if entry.extends in entries else base_variant(entry.extends, others=entries)
            base = msgspec.structs.replace(base or resolve(entry.extends, chain), name=name)
            spec = _changed(base, entry.pairs, folder)
            with _at():
                specs[name] = check_spec(spec)
        except EntryError as err:
            raise document.refuse((*steps, name, *err.way), err.message, hint=err.hint) from err
        return specs[name]

    return {name: resolve(name) for name in entries}


def _check_own(name: str) -> None:
    word = name.partition("@")[0]
    if word in ENGINE_WORDS:
        raise UsageError(
            f"'{name}' is built in and cannot be redefined",
            hint=f"give it another name, such as {word}-changed",
        )
    check_name(name)


def _check_chain(wanted: str, chain: tuple[str, ...]) -> None:
    if wanted in chain:
        circle = " -> ".join((*chain[chain.index(wanted) :], wanted))
        raise UsageError(f"variants extend each other in a circle: {circle}", hint="remove one `extends`")
    if len(chain) > _MOST_LEVELS:
        raise UsageError(
            f"more than {_MOST_LEVELS} variants extend each other in a row",
            hint="extend a variant that is closer to the engine",
        )
