"""Read what the command line calls a variant: `es`, `os@2.19.0`, `es-noinline=es,jvm:-XX:-Inline`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchctl.errors import UsageError
from benchctl.nearest import nearest, suggestion
from benchctl.results.plan import EngineName, VariantSpec

LATEST = "latest"
"""Stands for the newest version; whoever asked resolves it before anything is fetched."""

BUILT_IN_VERSIONS: Mapping[EngineName, str] = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}
"""What `es` and `os` mean."""

_ENGINES: Mapping[str, EngineName] = {
    "es": "elasticsearch",
    "os": "opensearch",
    "elasticsearch": "elasticsearch",
    "opensearch": "opensearch",
}
_SHORT_NAMES: Mapping[EngineName, str] = {"elasticsearch": "es", "opensearch": "os"}
_OPTIONS = ("jvm", "setting", "jdk")
_LABEL = re.compile(r"[a-z0-9][a-z0-9._@-]{0,59}")  # part of file names
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9][A-Za-z0-9.-]*)?")
_FORMS = "NAME[@VERSION], or LABEL=NAME[@VERSION][,jvm:FLAG][,setting:KEY=VALUE][,jdk:JDK]"


@dataclass(frozen=True)
class _Options:
    """What follows the base in a variant's text."""

    jvm_flags: tuple[str, ...]
    settings: dict[str, str]
    jdk: str | None


def canonical_engine(text: str) -> EngineName:
    """The engine that `es`, `os`, `elasticsearch` or `opensearch` means.

    Raises:
        UsageError: it is none of them.
    """
    try:
        return _ENGINES[text]
    except KeyError as err:
        raise UsageError(f"there is no engine '{text}'", hint=suggestion(text, _ENGINES)) from err


def parse_variant(text: str, *, distributions: Mapping[str, str], jdks: Mapping[str, str]) -> VariantSpec:
    """Read one variant.

    A comma belongs to the value before it unless `jvm:`, `setting:` or `jdk:` follows, so that
    `jvm:-Xlog:gc,safepoint` is one flag. The version `latest` is left for the caller to resolve.

    Args:
        text: `NAME[@VERSION]`, or `LABEL=NAME[@VERSION]` with options behind commas.
        distributions: paths or URLs of archives or folders, by variant or engine; the key "" is for all.
        jdks: paths or major versions, by variant or engine; the key "" is for all. An own `jdk:` wins.

    Raises:
        UsageError: the text is in neither form, or names an engine or option that does not exist.
    """
    head, pieces = _split(text)
    label, labelled, base = head.rpartition("=")
    if pieces and not labelled:
        raise UsageError(f"variant '{text}' has options but no label", hint=f"write LABEL={text}")
    engine, version = _parse_base(base)
    short = _SHORT_NAMES[engine]
    plain = f"{short}@{version}" if "@" in base else short
    name = _check_label(label, engine) if labelled else plain
    options = _parse_options(pieces, name)
    _check_plain(name, plain, changed=bool(pieces))
    keys = (name, plain, short, engine, "")
    return VariantSpec(
        name=name,
        engine=engine,
        version=version,
        distribution=_first(distributions, keys),
        jdk=options.jdk or _first(jdks, keys),
        jvm_flags=options.jvm_flags,
        settings=options.settings,
    )


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
    known = [*(variant.name for variant in variants), *exact, *_ENGINES]
    for key in overrides:
        if key and key not in known:
            raise UsageError(
                f"{option} is given for '{key}', which is not measured", hint=suggestion(key, known)
            )


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The head and the (option, value) pairs behind it."""
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


def _parse_base(base: str) -> tuple[EngineName, str]:
    name, at, version = base.partition("@")
    if name not in _ENGINES:
        raise UsageError(
            f"there is no variant '{base}'", hint=f"{suggestion(name, _ENGINES)}; the form is {_FORMS}"
        )
    engine = canonical_engine(name)
    if not at:
        return engine, BUILT_IN_VERSIONS[engine]
    if version != LATEST and not _VERSION.fullmatch(version):
        raise UsageError(
            f"'{base}' has no version behind the @",
            hint=f"write three numbers, as in {name}@8.11.0, or {LATEST}",
        )
    return engine, version


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


def _check_label(label: str, engine: EngineName) -> str:
    check_name(label)
    named = _ENGINES.get(label.partition("@")[0], engine)
    if named != engine:
        raise UsageError(
            f"the label '{label}' says {named}, but stands for {engine}", hint="choose another label"
        )
    return label


def _check_plain(name: str, plain: str, *, changed: bool) -> None:
    """A name such as `es` or `es@8.19.0` says all there is to say: stored results are found by it."""
    says_more = name.partition("@")[0] in _ENGINES and (changed or name != plain)
    if says_more:
        raise UsageError(
            f"the label '{name}' stands for the plain engine, not for this one",
            hint=f"choose another label, such as {name.partition('@')[0]}-changed",
        )


def _parse_options(pieces: Iterable[tuple[str, str]], name: str) -> _Options:
    flags: list[str] = []
    settings: dict[str, str] = {}
    jdk: str | None = None
    for option, value in pieces:
        if option == "jvm":
            if not re.fullmatch(r"-\S+", value):
                raise UsageError(f"variant '{name}': '{value}' is no JVM flag", hint="a flag starts with -")
            flags.append(value)
        elif option == "setting":
            key, equals, content = value.partition("=")
            if not key or not equals or key in settings:
                raise UsageError(
                    f"variant '{name}': setting '{value}' is not KEY=VALUE, or given twice",
                    hint="write setting:indices.queries.cache.size=5%",
                )
            settings[key] = content
        elif not value or jdk is not None:
            raise UsageError(f"variant '{name}' needs one JDK behind jdk:", hint="write jdk:17 or jdk:PATH")
        else:
            jdk = value
    return _Options(tuple(flags), settings, jdk)


def _first(overrides: Mapping[str, str], keys: Iterable[str]) -> str | None:
    """The override of the most particular key that has one."""
    return next((overrides[key] for key in keys if key in overrides), None)
