"""Whether results of two runs may stand side by side, and if not, in what they differ."""

import itertools
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from benchctl.results.foreign import TITLES, UNKNOWN
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.spec import run_settings
from benchctl.track.model import Challenge

# What of a plan decides the figures. Variants are what is compared; seed and forks only decide how well.
_ALIKE = (
    "track", "track_digest", "corpus", "segments", "ingest_clients", "schedules", "warmup_challenges",
    "restart", "heap_mb", "page_cache", "redline", "pin", "index_builds", "plugin", "evidence",
    "load_hosts", "index", "micro", "ingest_transport",
)  # fmt: skip

# Words for listings, which decide nothing.
_WORDS: Final[dict[str, Any]] = {"default": False, "description": "", "user_info": "", "meta": {}}

_PLURAL = frozenset(
    {"load_hosts", "segments", "ingest_clients", "schedules", "warmup_challenges", "index_builds"}
)

_PARTS = (
    "JVM flags", "settings", "heap", "environment", "index settings", "index", "jars", "plug-ins",
    "warm-up challenges", "documents", "nodes", "hosts",
)  # fmt: skip

_EXCERPT = 40
_LEAD = 12
_ABSENT = object()

Variant = tuple[str, RunRecord]
"""(name, record): one variant's results in one run."""


# Why results that another tool measured may not stand beside others, as far as anybody can know.


def imported_reasons(one: RunRecord, other: RunRecord) -> Iterator[str]:
    """Reasons why results of two runs, at least one of them imported, cannot be compared.

    Races of one tool are alike when all that their files say is: tool and version, environment, car,
    track with its parameters, challenge and tasks. That their hosts were the same, no file says.
    """
    measured = [_measured_by(record) for record in (one, other)]
    if measured[0] != measured[1]:
        yield f"measured by different tools ({measured[0]}, {measured[1]})"
    if one.imported is None or other.imported is None:
        foreign = measured[0] if one.imported else measured[1]
        yield f"host, heap and documents of {foreign} are unknown, and its throughput is another figure"
    elif _named(one) != _named(other):
        names = [_named(record) for record in (one, other)]
        yield f"the environments differ ({names[0]}, {names[1]})"
    if UNKNOWN not in (one.plan.track, other.plan.track) and one.plan.track != other.plan.track:
        yield f"track differs ({one.plan.track}, {other.plan.track})"
    if one.imported and other.imported and one.plan.params != other.plan.params:
        yield f"track parameters differ ({_assignments(one.plan)}, {_assignments(other.plan)})"
    tasks = [_tasks(record.plan) for record in (one, other)]
    if tasks[0] != tasks[1]:
        yield f"the tasks differ ({'; '.join(' '.join(names) for names in tasks)})"


def _named(record: RunRecord) -> str:
    """The user's names of environment and nodes: all that a file says of a host."""
    return record.environment.fingerprint.split(":", 1)[1]


def _measured_by(record: RunRecord) -> str:
    found = record.imported
    if found is None:
        return "benchctl"
    return f"{TITLES[found.tool]} {found.version}".rstrip()


def _assignments(plan: Plan) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(plan.params.items())) or "none"


def _tasks(plan: Plan) -> tuple[str, ...]:
    """Their names in order, challenge by challenge."""
    return tuple(task.label for challenge in plan.schedules for task in challenge.schedule)


# Whether results of two runs may stand side by side, and if not, in what they differ.


def unlike(one: RunRecord, other: RunRecord) -> tuple[str, ...]:
    """Why the results of two runs cannot be compared; empty when they can."""
    return tuple(_reasons(one, other))


def unlike_variants(one: Variant, other: Variant) -> tuple[str, ...]:
    """As `unlike`, with Java runtimes: within a run they were chosen, across runs they happened."""
    return tuple(_variant_reasons(one, other))


def unlike_settings(one: Variant, other: Variant) -> bool:
    """Whether a setting of runs differs that decides figures: variants of one run cannot differ in it."""
    names = {setting.name for setting in run_settings()}.intersection(_ALIKE)
    return any(getattr(one[1].plan, name) != getattr(other[1].plan, name) for name in names)


def alike_variants(one: Variant, other: Variant) -> bool:
    """Whether `unlike_variants` finds nothing; stops at the first difference."""
    return next(_variant_reasons(one, other), None) is None


def _variant_reasons(one: Variant, other: Variant) -> Iterator[str]:
    if one[1].id == other[1].id:
        return
    runtimes = [_runtime(variant, record) for variant, record in (one, other)]
    yield from _reasons(one[1], other[1])
    if runtimes[0] != runtimes[1]:
        yield f"the Java runtimes differ ({runtimes[0]}, {runtimes[1]})"
    if one[0] == other[0]:
        yield from _changed_parts(one, other)


def _changed_parts(one: Variant, other: Variant) -> Iterator[str]:
    """A name stands for one thing: different parts make another variant, whatever its name.

    Version and distribution are excepted: comparing those of one name is what runs are tagged for.
    """
    first, second = _parts(*one), _parts(*other)
    for name, part in first.items():
        if _bare(part) != _bare(second[name]):
            yield f"{one[0]} has other {name} ({_difference(_bare(part), _bare(second[name]))})"


def _parts(variant: str, record: RunRecord) -> dict[str, object]:
    """Parts of a variant beyond its engine, by name; jars and plug-ins as found."""
    spec = next((spec for spec in record.plan.variants if spec.name == variant), None)
    facts = next((facts for facts in record.engines if facts.variant == variant), None)
    if spec is None:
        return dict.fromkeys(_PARTS)
    return {
        "JVM flags": list(spec.jvm_flags),
        "settings": spec.settings,
        "heap": spec.heap_mb,
        "environment": spec.environment,
        "index settings": spec.index_settings,
        "index": spec.index_from,
        "jars": list(spec.jars) if facts is None else facts.jars,
        "plug-ins": list(spec.plugins) if facts is None else facts.plugins,
        "warm-up challenges": record.plan.variant_warmups.get(variant, ()),
        "documents": spec.documents,
        "nodes": [msgspec.to_builtins(node) for node in spec.nodes],
        "hosts": [host or "that of benchctl" for host in record.plan.node_hosts.get(variant, ())],
    }


def _runtime(variant: str, record: RunRecord) -> str:
    return next((facts.jdk for facts in record.engines if facts.variant == variant), "unknown")


def _reasons(one: RunRecord, other: RunRecord) -> Iterator[str]:
    if one.imported or other.imported:
        yield from imported_reasons(one, other)
        return
    here, there = one.environment, other.environment
    if here.fingerprint != there.fingerprint:
        yield f"the hosts differ ({here.hostname}, {there.hostname})"
    for name in _ALIKE:
        first, second = _deciding(one.plan, name), _deciding(other.plan, name)
        # Challenges are the same object or equal in nearly all cases; only others are looked at twice.
        if first != second and (first := _bare(first)) != (second := _bare(second)):
            verb = "differ" if name in _PLURAL else "differs"
            yield f"{name.replace('_', ' ')} {verb} ({_difference(first, second)})"
    if here.benchctl != there.benchctl:
        yield f"benchctl differs ({here.benchctl}, {there.benchctl})"


def deciding(plan: Plan) -> dict[str, object]:
    """Everything of a plan that decides its figures, by name."""
    found = {name: _bare(_deciding(plan, name)) for name in _ALIKE}
    # Digests of all this were made before there were any of these.
    later = {"evidence", "load_hosts", "micro"}
    return {name: value for name, value in found.items() if value or name not in later}


def _deciding(plan: Plan, name: str) -> object:
    if name == "plugin":
        # What was executed, wherever it lay.
        return None if plan.plugin is None else plan.plugin.digest
    if name == "evidence":
        # Of the forks that are compared: others bear no cost of it.
        return "+".join(plan.evidence_in(0)) or None
    if name == "micro" and plan.micro is not None:
        # Tasks say what was chosen, and the track's digest what the source is, wherever that lies.
        return " ".join((*plan.micro.dependencies, *plan.micro.arguments))
    if name == "corpus" and plan.corpus.files:
        # Its digest says which documents; files may lie anywhere.
        return msgspec.structs.replace(plan.corpus, files=())
    value: object = getattr(plan, name)
    return value


def _bare(value: object) -> object:
    """Challenges without their descriptions."""
    if not isinstance(value, tuple):
        return value
    return tuple(
        msgspec.structs.replace(
            one,
            schedule=tuple(msgspec.structs.replace(task, tags=(), meta={}) for task in one.schedule),
            **_WORDS,
        )
        if isinstance(one, Challenge)
        else one
        for one in value
    )


def _difference(first: object, second: object) -> str:
    """The first difference, with the way to it: `documents: 1, 2`."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        names = ["+".join(one.name for one in challenges) or "none" for challenges in (first, second)]
        if names[0] != names[1]:
            return f"{names[0]}, {names[1]}"
        one, other = next(pair for pair in zip(first, second, strict=True) if pair[0] != pair[1])
        return f"in {one.name}, {_found(_of_challenge(one), _of_challenge(other))}"
    return _found(msgspec.to_builtins(first), msgspec.to_builtins(second))


def _of_challenge(challenge: Challenge) -> dict[str, Any]:
    """With its tasks by number and name: `task 2 (range)` says more than `schedule.1`."""
    whole: dict[str, Any] = msgspec.to_builtins(challenge)
    tasks = whole.pop("schedule")
    labelled = {
        f"task {place} ({task.label})": fields
        for place, (task, fields) in enumerate(zip(challenge.schedule, tasks, strict=True), 1)
    }
    return {**labelled, **whole}


def _found(first: object, second: object) -> str:
    way, one, other = _first_difference(first, second)
    shown = ", ".join(_excerpts(_text(one), _text(other)))
    return f"{'.'.join(way)}: {shown}" if way else shown


def _first_difference(
    first: object, second: object, way: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], object, object]:
    """The deepest place of the first difference between two structures, and what is there."""
    pairs: Iterator[tuple[str, object, object]] = iter(())
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys((*first, *second))
        pairs = ((str(key), first.get(key, _ABSENT), second.get(key, _ABSENT)) for key in keys)
    elif isinstance(first, list) and isinstance(second, list):
        lined = enumerate(itertools.zip_longest(first, second, fillvalue=_ABSENT))
        pairs = ((str(place), one, other) for place, (one, other) in lined)
    for name, one, other in pairs:
        if one != other:
            return _first_difference(one, other, (*way, name))
    return way, first, second


def _text(value: object) -> str:
    if value is _ABSENT or value is None:
        return "none"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _excerpts(one: str, other: str) -> tuple[str, str]:
    """Both in brief, from shortly before the first difference."""
    same = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    start = max(0, same - _LEAD) if same >= _EXCERPT - _LEAD else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    before, after = "..." if start else "", "..." if len(text) > start + _EXCERPT else ""
    return f"{before}{text[start : start + _EXCERPT]}{after}"
