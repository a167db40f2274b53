"""Read what the command line calls a variant: `es`, `os@2.19.0`, `es-noinline=es,jvm:-XX:-Inline`."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

import msgspec

from benchctl.engine.variants.entry import EntryError, VariantEntry, applied
from benchctl.engine.variants.values import (
    LATEST,
    check_version,
    placed,
    placed_challenge,
    placed_jar,
    placed_plugin,
)
from benchctl.errors import UsageError
from benchctl.nearest import nearest, suggestion
from benchctl.results.plan import EngineName, StartMode, VariantSpec

__all__ = [
    "BUILT_IN_VERSIONS",
    "ENGINE_WORDS",
    "LATEST",
    "base_variant",
    "canonical_engine",
    "check_name",
    "check_overrides",
    "parse_variant",
    "placed_variant",
]

BUILT_IN_VERSIONS: Mapping[EngineName, str] = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}
"""What `es` and `os` mean."""

ENGINE_WORDS: Final[Mapping[str, EngineName]] = {
    "es": "elasticsearch",
    "os": "opensearch",
    "elasticsearch": "elasticsearch",
    "opensearch": "opensearch",
}
"""What engines are called; no other variant may be called so."""

_SHORT_NAMES: Mapping[EngineName, str] = {"elasticsearch": "es", "opensearch": "os"}
_LISTS: Final = {"jvm": "jvm", "jar": "jars", "plugin": "plugins", "warmup": "warmups"}
_MAPPINGS: Final = {"setting": "settings", "env": "environment", "index": "index-settings"}
_SCALARS: Final = {"jdk": "JDK", "heap": "heap", "distribution": "distribution", "start": "manner"}
_OPTIONS = (*_LISTS, *_MAPPINGS, *_SCALARS)
_LABEL = re.compile(r"[a-z0-9][a-z0-9._@-]{0,59}")  # part of file names
_NO_TEXT = re.compile("[\\ud800-\\udfff]")  # what Python makes of other bytes on the command line
_FORMS = (
    "NAME[@VERSION], or LABEL=NAME[@VERSION][,jvm:FLAG][,setting:KEY=VALUE][,jdk:JDK][,heap:SIZE]"
    "[,env:NAME=VALUE][,index:KEY=VALUE][,jar:JAR][,plugin:PLUGIN][,warmup:CHALLENGE]"
    "[,distribution:PLACE][,start:script]"
)
_NOTHING_DEFINED: Final[Mapping[str, VariantSpec]] = MappingProxyType({})


def canonical_engine(text: str) -> EngineName:
    """The engine that `es`, `os`, `elasticsearch` or `opensearch` means.

    Raises:
        UsageError: it is none of them.
    """
    try:
        return ENGINE_WORDS[text]
    except KeyError as err:
        raise UsageError(f"there is no engine '{text}'", hint=suggestion(text, ENGINE_WORDS)) from err


def base_variant(text: str) -> VariantSpec:
    """The plain variant that `es`, `opensearch` or `es@8.19.0` means; `es@latest` is not resolved here.

    Raises:
        UsageError: there is no such engine, or no version behind the @.
    """
    return _parse_base(text, _NOTHING_DEFINED)


def parse_variant(
    text: str,
    *,
    distributions: Mapping[str, str],
    jdks: Mapping[str, str],
    defined: Mapping[str, VariantSpec] = _NOTHING_DEFINED,
) -> VariantSpec:
    """Read one variant.

    A comma belongs to the value before it unless an option's name and a colon follow, so that
    `jvm:-Xlog:gc,safepoint` is one flag. What options say is added to the variant behind the label, as in
    a file: see `VariantEntry`. The version `latest` is left for the caller to resolve.

    Args:
        text: `NAME[@VERSION]`, or `LABEL=NAME[@VERSION]` with options behind commas.
        distributions: paths or URLs of archives or folders, by variant or engine; the key "" is for all. An
            own `distribution:` wins.
        jdks: paths or major versions, by variant or engine; the key "" is for all. An own `jdk:` wins.
        defined: variants of a file, which can be named like the built-in ones.

    Raises:
        UsageError: the text is in neither form, or names an engine or option that does not exist.
    """
    head, pieces = _split(text)
    label, labelled, wanted = head.rpartition("=")
    if pieces and not labelled:
        raise UsageError(f"variant '{text}' has options but no label", hint=f"write LABEL={text}")
    base = _parse_base(wanted, defined)
    name = _check_label(label, base.engine, defined) if labelled else base.name
    entry = _entry(pieces, name)
    _check_plain(name, base.name, changed=bool(pieces))
    try:
        spec = applied(entry, base, name, None)
    except EntryError as err:
        raise UsageError(f"variant '{name}': {err.message}", hint=err.hint) from err
    keys = (name, base.name, _SHORT_NAMES[base.engine], base.engine, "")
    return msgspec.structs.replace(
        spec,
        distribution=spec.distribution or _first(distributions, keys),
        jdk=spec.jdk or _first(jdks, keys),
    )


def placed_variant(text: str, folder: Path) -> str:
    """A variant in the same form, with the paths of its options made absolute.

    Args:
        text: as `parse_variant` reads it.
        folder: that they are relative to.

    Raises:
        UsageError: the text is not of the form, or an option names something else than it may.
    """
    head, pieces = _split(text)
    found = [head]
    for option, value in pieces:
        place = _PLACED.get(option)
        is_path = place is not None and value and not (option == "jdk" and value.isdigit())
        found.append(f"{option}:{place(value, folder) if place and is_path else value}")
    return ",".join(found)


def check_overrides(option: str, overrides: Mapping[str, str], variants: Sequence[VariantSpec]) -> None:
    """Refuse a distribution or JDK that is given for something that is not measured.

    Args:
        option: the command line option, for the message.
        overrides: as given to `parse_variant`.
        variants: all that are measured.

    Raises:
        UsageError: a key is neither one of the variants nor an engine's name, nor empty.
    """
    exact = [f"{_SHORT_NAMES[variant.engine]}@{variant.version}" for variant in variants]
    known = [*(variant.name for variant in variants), *exact, *ENGINE_WORDS]
    for key in overrides:
        if key and key not in known:
            raise UsageError(
                f"{option} is given for '{key}', which is not measured", hint=suggestion(key, known)
            )


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The head and the (option, value) pairs behind it."""
    if _NO_TEXT.search(text):
        raise UsageError(f"variant {text!a} is not UTF-8 text", hint="records and nodes take nothing else")
    head, *pieces = text.split(",")
    options: list[tuple[str, str]] = []
    for piece in pieces:
        option, colon, value = piece.partition(":")
        if colon and option in _OPTIONS:
            options.append((option, value))
        # `jmv:` is near enough to an option to be one, mistyped; log tags such as `safepoint:` are not.
        elif not options or (colon and nearest(option, _OPTIONS)):
            raise UsageError(f"variant '{text}': '{piece}' is no option", hint=f"the form is {_FORMS}")
        else:
            options[-1] = (options[-1][0], f"{options[-1][1]},{piece}")
    return head, options


def _parse_base(text: str, defined: Mapping[str, VariantSpec]) -> VariantSpec:
    if text in defined:
        return defined[text]
    word, at, version = text.partition("@")
    if word not in ENGINE_WORDS:
        known = [*defined, *ENGINE_WORDS]
        raise UsageError(
            f"there is no variant '{text}'", hint=f"{suggestion(word, known)}; the form is {_FORMS}"
        )
    engine = canonical_engine(word)
    short = _SHORT_NAMES[engine]
    if not at:
        return VariantSpec(short, engine, BUILT_IN_VERSIONS[engine])
    try:
        return VariantSpec(f"{short}@{version}", engine, check_version(version))
    except UsageError as err:
        raise UsageError(
            f"'{text}' has no version behind the @",
            hint=f"write three numbers, as in {word}@8.11.0, or {LATEST}",
        ) from err


def check_name(name: str) -> str:
    """Give a variant's name back when it is one, so that files can be called like it.

    Raises:
        UsageError: it cannot be a variant's name.
    """
    if not _LABEL.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot be a variant's label",
            hint="use at most 60 lower-case letters, digits and . _ @ - behind a letter or digit",
        )
    return name


def _check_label(label: str, engine: EngineName, defined: Mapping[str, VariantSpec]) -> str:
    check_name(label)
    if label in defined:
        raise UsageError(f"the variants file says already what '{label}' is", hint="choose another label")
    named = ENGINE_WORDS.get(label.partition("@")[0], engine)
    if named != engine:
        raise UsageError(
            f"the label '{label}' says {named}, but stands for {engine}", hint="choose another label"
        )
    return label


def _check_plain(name: str, plain: str, *, changed: bool) -> None:
    """A name such as `es` or `es@8.19.0` says all there is to say: stored results are found by it."""
    says_more = name.partition("@")[0] in ENGINE_WORDS and (changed or name != plain)
    if says_more:
        raise UsageError(
            f"the label '{name}' stands for the plain engine, not for this one",
            hint=f"choose another label, such as {name.partition('@')[0]}-changed",
        )


def _entry(pieces: Iterable[tuple[str, str]], name: str) -> VariantEntry:
    """What options say, in the form of a file."""
    found: dict[str, Any] = {}
    for option, value in pieces:
        if option in _LISTS:
            found.setdefault(_LISTS[option], []).append(
                _CHECKS.get(option, _check_present)(option, value, name)
            )
        elif option in _MAPPINGS:
            mapping = found.setdefault(_MAPPINGS[option], {})
            key, equals, content = value.partition("=")
            if not key or not equals or key in mapping:
                raise UsageError(
                    f"variant '{name}': {option} '{value}' is not KEY=VALUE, or given twice",
                    hint=f"write {_EXAMPLES[option]}",
                )
            mapping[key] = content
        elif not value or option in found:
            raise UsageError(
                f"variant '{name}' needs one {_SCALARS[option]} behind {option}:",
                hint=f"write {_EXAMPLES[option]}",
            )
        else:
            found[option] = value
    if found.get("start", "direct") not in get_args(StartMode):
        raise UsageError(
            f"variant '{name}': nodes cannot start by '{found['start']}'", hint=f"write {_EXAMPLES['start']}"
        )
    return msgspec.convert(found, VariantEntry)


def _check_present(option: str, value: str, name: str) -> str:
    if not value:
        raise UsageError(f"variant '{name}' has nothing behind {option}:", hint=f"write {_EXAMPLES[option]}")
    return value


def _check_flag(option: str, value: str, name: str) -> str:
    del option
    if not re.fullmatch(r"-\S+", value):
        raise UsageError(f"variant '{name}': '{value}' is no JVM flag", hint="a flag starts with -")
    return value


_CHECKS: Final[Mapping[str, Callable[[str, str, str], str]]] = {"jvm": _check_flag}
_PLACED: Final[Mapping[str, Callable[[str, Path], str]]] = {
    "jar": placed_jar,
    "plugin": placed_plugin,
    "warmup": placed_challenge,
    "jdk": placed,
    "distribution": placed,
}
_EXAMPLES: Final = {
    "setting": "setting:indices.queries.cache.size=5%",
    "env": "env:MALLOC_ARENA_MAX=2",
    "index": "index:codec=best_compression",
    "jar": "jar:PATH, jar:GROUP:ARTIFACT:VERSION or jar:patched:NAME",
    "plugin": "plugin:PATH, plugin:URL or plugin:GROUP:ARTIFACT:VERSION",
    "warmup": "warmup:CHALLENGE",
    "jdk": "jdk:17 or jdk:PATH",
    "heap": "heap:1g",
    "distribution": "distribution:PATH or distribution:URL",
    "start": "start:script or start:direct",
}


def _first(overrides: Mapping[str, str], keys: Iterable[str]) -> str | None:
    """The override of the most particular key that has one."""
    return next((overrides[key] for key in keys if key in overrides), None)
