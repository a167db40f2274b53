"""Files of variants: each with everything it extends, and `latest` resolved."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from benchctl.engine.maven import latest_version
from benchctl.engine.settings import check_environment, check_flags, check_settings
from benchctl.engine.variant import (
    ENGINE_WORDS,
    LATEST,
    EntryError,
    VariantEntry,
    applied,
    at,
    base_variant,
    canonical_engine,
    check_filler,
    check_index_settings,
    check_name,
    check_parts,
)
from benchctl.errors import UsageError, suggestion
from benchctl.results.plan import EngineName, VariantSpec
from benchctl.yaml_file import Document, Step, read_typed


def check_spec(spec: VariantSpec) -> VariantSpec:
    """Return a variant that a node can have.

    Raises:
        UsageError: If a flag, setting, variable, jar or plug-in is invalid.
    """
    check_settings(spec.settings)
    check_index_settings(spec.index_settings)
    check_flags(spec.engine, spec.jvm_flags)
    check_environment(spec.environment)
    check_parts(spec)
    check_filler(spec)
    return spec


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


_BASES = ("es", "os")
_MOST_LEVELS = 100  # each is a few calls deep


def resolve_variants_mapping(
    entries: Mapping[str, VariantEntry], document: Document, steps: tuple[Step, ...], folder: Path
) -> dict[str, VariantSpec]:
    """Return the variants of a mapping, each with everything it extends; invalid ones are refused.

    `latest` is left for the caller to resolve, with `with_newest`.

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
    resolver = _Resolver(entries, document, steps, folder)
    return {name: resolver.spec(name) for name in entries}


class _Resolver:
    """Variants of one mapping; each is built once, however many extend it."""

    def __init__(
        self, entries: Mapping[str, VariantEntry], document: Document, steps: tuple[Step, ...], folder: Path
    ) -> None:
        self._entries = entries
        self._document = document
        self._steps = steps
        self._folder = folder
        self._known: dict[str, VariantSpec] = {}

    def spec(self, name: str, below: tuple[str, ...] = ()) -> VariantSpec:
        """Return a variant; `below` are the names that led here, each extending the next."""
        if name not in self._known:
            try:
                self._known[name] = self._build(name, below)
            except EntryError as err:
                raise self._refuse((name, *err.way), err.message, err.hint) from err
        return self._known[name]

    def _build(self, name: str, below: tuple[str, ...]) -> VariantSpec:
        self._check_key(name)
        entry = self._entries[name]
        base = self._base(name, entry, (*below, name))
        spec = applied(entry, base, name, self._folder)
        with at():
            return check_spec(spec)

    def _check_key(self, name: str) -> None:
        word = name.partition("@")[0]
        if word in ENGINE_WORDS:
            raise self._refuse(
                (),
                f"'{name}' is built in and cannot be another",
                f"give it another name, such as {word}-changed",
                key=name,
            )
        try:
            check_name(name)
        except UsageError as err:
            raise self._refuse((), err.message, err.hint, key=name) from err

    def _base(self, name: str, entry: VariantEntry, chain: tuple[str, ...]) -> VariantSpec:
        if entry.extends is None:
            if entry.engine is None:
                raise EntryError((), "it has neither 'engine' nor 'extends'", "write extends: es, or os")
            return base_variant(entry.engine)
        base = self._extended(entry.extends, chain)
        if entry.engine is not None and canonical_engine(entry.engine) != base.engine:
            raise EntryError(
                ("engine",),
                f"'{name}' extends '{entry.extends}', which is {base.engine}",
                "extend another, or remove one of the two",
            )
        return base

    def _extended(self, wanted: str, chain: tuple[str, ...]) -> VariantSpec:
        if wanted in chain:
            circle = " -> ".join((*chain[chain.index(wanted) :], wanted))
            raise EntryError(("extends",), f"variants extend each other in a circle: {circle}", "break it")
        if len(chain) > _MOST_LEVELS:
            raise EntryError(
                ("extends",),
                f"more than {_MOST_LEVELS} variants extend each other in a row",
                "extend one nearer to the engine",
            )
        if wanted in self._entries:
            return self.spec(wanted, chain)
        if wanted.partition("@")[0] in ENGINE_WORDS:
            with at("extends"):
                return base_variant(wanted)
        names = [name for name in self._entries if name not in chain]
        raise EntryError(("extends",), f"unknown variant '{wanted}'", suggestion(wanted, [*names, *_BASES]))

    def _refuse(self, way: tuple[Step, ...], message: str, hint: str, key: str | None = None) -> UsageError:
        return self._document.refuse((*self._steps, *way), message, hint=hint, key=key)


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
