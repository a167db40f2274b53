"""How variants differ beyond engine and version, in words: a line for each that is more than those."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from benchctl.results.model import EngineFacts, RunRecord
from benchctl.results.plan import VariantSpec

_SHORT_NAMES: Final = {"elasticsearch": "es", "opensearch": "os", "jvm": "Java"}
_DIGEST: Final = 12


@dataclass(frozen=True)
class Resolved:
    """A variant and what it resolved to.

    Attributes:
        label: its name in tables.
        spec: as it was asked for.
        facts: what it resolved to; None while no node of it was up.
    """

    label: str
    spec: VariantSpec
    facts: EngineFacts | None


def resolved(record: RunRecord) -> tuple[Resolved, ...]:
    """The variants of a run, in its order."""
    facts = {one.variant: one for one in record.engines}
    if record.plan.swept is not None and set(facts) - {one.name for one in record.plan.swept.bases}:
        # What the points of a sweep differ by is what it says anyway.
        return tuple(Resolved(spec.name, spec, None) for spec in record.plan.swept.bases)
    return tuple(Resolved(spec.name, spec, facts.get(spec.name)) for spec in record.plan.variants)


def variant_differences(variants: Sequence[Resolved]) -> tuple[str, ...]:
    """`os-17 differs from os in: JDK 17.0.15 instead of 21.0.8`, for every variant whose name is not enough.

    A variant is compared with the first plain one of its engine and version, else with the first of that
    engine at all; without any other, it is described.
    """
    return tuple(line for one in variants if (line := _line(one, variants)))


def beyond(spec: VariantSpec) -> tuple[str, ...]:
    """What a variant asks for beyond its engine and version, in words."""
    return tuple(_own(Resolved(spec.name, spec, None)))


def _line(one: Resolved, variants: Sequence[Resolved]) -> str:
    if one.spec.target is not None:
        return ""
    other = _base(one, variants)
    if other is None:
        parts = [] if _is_plain(one.spec) else list(_own(one))
        version = f"{_SHORT_NAMES[one.spec.engine]} {one.spec.version}"
        return f"{one.label} is {version} with: {'; '.join(parts)}" if parts else ""
    parts = list(_against(one, other))
    return f"{one.label} differs from {other.label} in: {'; '.join(parts)}" if parts else ""


def _base(one: Resolved, variants: Sequence[Resolved]) -> Resolved | None:
    """The variant that one is compared with; None for the base of all others."""
    if _is_plain(one.spec) and not _versionless(one.spec):
        return None
    akin = [other for other in variants if other.spec.engine == one.spec.engine and other.spec.target is None]
    same = [other for other in akin if other.spec.version == one.spec.version]
    first = next((other for other in (*same, *akin) if _is_plain(other.spec)), (same or akin)[0])
    return None if first is one else first


def _versionless(spec: VariantSpec) -> bool:
    """Whether the name says less than what is measured: a runtime or distribution is given by an option."""
    return spec.jdk is not None or spec.distribution is not None


def _is_plain(spec: VariantSpec) -> bool:
    """Whether the name says all, such as `es` or `es@8.19.0`."""
    short = _SHORT_NAMES[spec.engine]
    return spec.name in (short, f"{short}@{spec.version}")


def _own(one: Resolved) -> Iterator[str]:
    """What a variant adds to its engine and version."""
    if one.spec.jdk is not None:
        yield f"JDK {_jdk(one)}"
    yield from _against(one, Resolved("", _bare(one.spec), _bare_facts(one.facts)))


def _against(one: Resolved, other: Resolved) -> Iterator[str]:
    """How a variant differs from another."""
    here, there = one.spec, other.spec
    # What a node says is held against what a node says.
    if one.facts is None or other.facts is None:
        one, other = (replace(side, facts=None) for side in (one, other))
    versions = [side.facts.version if side.facts else side.spec.version for side in (one, other)]
    if versions[0] != versions[1]:
        yield f"version {versions[0]} instead of {versions[1]}"
    if here.distribution != there.distribution:
        places = [_bare_url(spec.distribution or "Maven Central") for spec in (here, there)]
        yield f"distribution {places[0]} instead of {places[1]}"
    if _jdk(one) != _jdk(other):
        yield f"JDK {_jdk(one)} instead of {_jdk(other)}"
    if here.heap_mb != there.heap_mb:
        heaps = ["the run's" if spec.heap_mb is None else f"{spec.heap_mb} MiB" for spec in (here, there)]
        yield f"heap {heaps[0]} instead of {heaps[1]}"
    if here.nodes != there.nodes:
        yield f"{nodes_text(here)} instead of {nodes_text(there)}"
    yield from _lists("JVM flags", here.jvm_flags, there.jvm_flags)
    yield from _mappings("settings", here.settings, there.settings)
    yield from _mappings("index settings", here.index_settings, there.index_settings)
    if here.index_from != there.index_from:
        yield f"index filled by {here.index_from or 'itself'} instead of {there.index_from or 'itself'}"
    yield from _mappings("environment", here.environment, there.environment)
    yield from _jars(one, other)
    yield from _lists("plug-ins", _plugins(one), _plugins(other))
    yield from _lists("warm-up", here.warmups, there.warmups)
    if here.start != there.start:
        yield f"started by {here.start}"


def nodes_text(spec: VariantSpec) -> str:
    """How many nodes a variant has, and what each is beyond its name, alike ones together."""
    kinds = Counter(
        " ".join(f"{key}={_text(value)}" for key, value in node.settings.items()) for node in spec.nodes
    )
    told = [f"{count} x {settings or 'no own settings'}" for settings, count in kinds.items()]
    count = max(len(spec.nodes), 1)
    return f"{count} node{'' if count == 1 else 's'}" + (f" ({', '.join(told)})" if any(kinds) else "")


def _jdk(one: Resolved) -> str:
    """The runtime's version, or its vendor if that is all there is."""
    if one.facts is not None:
        return one.facts.jdk.rpartition(" ")[2]
    return one.spec.jdk or "bundled"


def _jars(one: Resolved, other: Resolved) -> Iterator[str]:
    """What replaces what; by digest if only that tells two of them apart."""
    if one.facts is None or other.facts is None:
        yield from _lists("jars", one.spec.jars, other.spec.jars)
        return
    here, there = one.facts.jars, other.facts.jars
    changed = [name for name in sorted(here.keys() | there.keys()) if here.get(name) != there.get(name)]
    if not changed:
        return
    named = ", ".join(_short(text) for text in one.spec.jars if text not in other.spec.jars)
    digests = [f"{name} {here[name][:_DIGEST] if name in here else 'its own'}" for name in changed]
    yield f"{'jars' if len(changed) > 1 else 'jar'} {', '.join(digests)}{f' ({named})' if named else ''}"


def _plugins(one: Resolved) -> tuple[str, ...]:
    if one.facts is None:
        return tuple(_short(text) for text in one.spec.plugins)
    return tuple(f"{name} {version}" for name, version in one.facts.plugins.items())


def _lists(what: str, here: Sequence[str], there: Sequence[str]) -> Iterator[str]:
    more = [_short(text) for text in here if text not in there]
    less = [_short(text) for text in there if text not in here]
    if more:
        yield f"{what} {' '.join(more)}"
    if less:
        yield f"without {what} {' '.join(less)}"
    if not more and not less and tuple(here) != tuple(there):
        yield f"{what} in the order {' '.join(here)}"


def _mappings(what: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[str]:
    names = [name for name in sorted(here.keys() | there.keys()) if here.get(name) != there.get(name)]
    said = [f"{name}={_text(here[name])}" if name in here else f"without {name}" for name in names]
    if said:
        yield f"{what} {' '.join(said)}"


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _short(text: str) -> str:
    """A file by its name: its folder makes no difference."""
    return PurePath(text).name if text.startswith("/") else _bare_url(text)


def _bare_url(text: str) -> str:
    """A URL by its file's name: the rest may hold credentials, and reports are passed on."""
    return PurePath(urlsplit(text).path).name if text.startswith(("http://", "https://")) else text


def _bare(spec: VariantSpec) -> VariantSpec:
    return VariantSpec(spec.name, spec.engine, spec.version, jdk=spec.jdk)


def _bare_facts(facts: EngineFacts | None) -> EngineFacts | None:
    return None if facts is None else msgspec.structs.replace(facts, jars={}, plugins={})
