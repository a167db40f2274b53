"""What may be said of a variant, in a file or on the command line, and what it makes of its base."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from benchctl.engine.settings import check_environment, check_flag, check_settings
from benchctl.engine.variants.values import (
    as_texts,
    check_index_settings,
    check_source,
    check_version,
    flat,
    heap_mb,
    placed,
    placed_challenge,
    placed_jar,
    placed_plugin,
)
from benchctl.errors import UsageError
from benchctl.results.plan import StartMode, VariantSpec
from benchctl.yaml_file import Step

T = TypeVar("T")
Text = Annotated[str, Meta(min_length=1)]
Word = str | int | bool
EngineWord = Literal["es", "os", "elasticsearch", "opensearch"]

_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)


class VariantEntry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True, omit_defaults=True
):
    """A variant as it is written; everything may be left out but what it stands on.

    Attributes:
        extends: the variant that it is like, but for what follows: `es`, `os`, `es@8.19.0`, or another of
            the same file. Lists go behind its own, mappings over its own, and all else takes its place.
        engine: instead of `extends`; the version is then the built-in one unless there is another.
        version: to be fetched, or `latest`; a distribution of the base gives way to it.
        distribution: path or URL of an archive or folder.
        jdk: a major version, which is fetched, or the path of a Java home.
        heap: of its nodes, such as `1g`.
        jvm: flags; of those of one kind, a virtual machine obeys the last.
        settings: of its nodes; may be nested. One without a value takes the base's away.
        index_settings: of its prepared index; the same holds for them.
        environment: variables of its nodes' processes; the same holds for them.
        jars: that take the place of those in `lib/`: paths, `group:artifact:version`, or `patched:NAME`.
        plugins: to install: paths or URLs of zip files, or `group:artifact:version`.
        warmups: challenges that run unmeasured after every boot.
        start: `script` to start nodes by the engine's own script instead of the server's command line.
    """

    extends: Text | None = None
    engine: EngineWord | None = None
    version: Text | None = None
    distribution: Text | None = None
    jdk: Annotated[int, Meta(ge=1)] | Text | None = None
    heap: Text | None = None
    jvm: tuple[Text, ...] = ()
    settings: dict[str, Any] = {}
    index_settings: dict[str, Any] = {}
    environment: dict[str, Word | None] = {}
    jars: tuple[Text, ...] = ()
    plugins: tuple[Text, ...] = ()
    warmups: tuple[Text, ...] = ()
    start: StartMode | None = None


class EntryError(UsageError):
    """What is wrong with an entry, and where in it.

    Attributes:
        way: to the value, from the entry.
    """

    def __init__(self, way: tuple[Step, ...], message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.way = way


def applied(entry: VariantEntry, base: VariantSpec, name: str, folder: Path | None) -> VariantSpec:
    """What an entry makes of the variant that it stands on.

    Args:
        entry: as written; its `extends` and `engine` are the caller's business.
        base: what it stands on.
        name: of what comes out.
        folder: that paths are relative to. None for the command line: the current folder, and the JDK and
            the distribution stay as they are written there.

    Raises:
        EntryError: a value that no node can be given.
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
        version=base.version if entry.version is None else _one(entry.version, "version", check_version),
        distribution=_distribution(entry, base, folder),
        jdk=_jdk(entry, base, folder),
        heap_mb=base.heap_mb if entry.heap is None else _one(entry.heap, "heap", heap_mb),
        jvm_flags=(*base.jvm_flags, *flags),
        settings=settings,
        index_settings=index_settings,
        environment=_environment(base.environment, entry.environment),
        jars=(*base.jars, *_each(entry.jars, "jars", lambda text: placed_jar(text, here))),
        plugins=(*base.plugins, *_each(entry.plugins, "plugins", lambda text: placed_plugin(text, here))),
        warmups=(*base.warmups, *_each(entry.warmups, "warmups", lambda text: placed_challenge(text, here))),
        start=entry.start or base.start,
    )


@contextmanager
def at(*way: Step) -> Iterator[None]:
    """Complaints about the value at a place of an entry.

    Raises:
        EntryError: for any UsageError.
    """
    try:
        yield
    except UsageError as err:
        raise EntryError(way, err.message, err.hint) from err


def _one(value: str, key: str, read: Callable[[str], T]) -> T:
    with at(key):
        return read(value)


def _each(values: tuple[str, ...], key: str, read: Callable[[str], str]) -> tuple[str, ...]:
    found = []
    for place, value in enumerate(values):
        with at(key, place):
            found.append(read(value))
    return tuple(found)


def _merged(
    base: Mapping[str, Any],
    own: Mapping[str, Any],
    key: str,
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> dict[str, Any]:
    """Settings by their whole names; those without a value take the base's away."""
    merged = dict(base)
    said: set[str] = set()
    for first, value in own.items():
        with at(key, first):
            for name, inner in flat(first, value).items():
                (known,) = check({name: inner})
                if known in said:
                    raise UsageError(f"'{known}' is said twice", hint="leave one out")
                said.add(known)
                merged.pop(known, None)
                if inner is not None:
                    merged[known] = as_texts(inner)
    return merged


def _environment(base: Mapping[str, str], own: Mapping[str, Word | None]) -> dict[str, str]:
    merged = dict(base)
    for name, value in own.items():
        with at("environment", name):
            check_environment({name: ""})
            merged.pop(name, None)
            if value is not None:
                merged[name] = str(as_texts(value))
    return merged


def _distribution(entry: VariantEntry, base: VariantSpec, folder: Path | None) -> str | None:
    if entry.distribution is None:
        return base.distribution if entry.version is None else None
    with at("distribution"):
        return check_source(entry.distribution) if folder is None else placed(entry.distribution, folder)


def _jdk(entry: VariantEntry, base: VariantSpec, folder: Path | None) -> str | None:
    if entry.jdk is None:
        return base.jdk
    text = str(entry.jdk)
    with at("jdk"):
        return check_source(text) if folder is None or _DIGITS.fullmatch(text) else placed(text, folder)
