"""Differences between nights: host, benchctl and variants."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from benchctl.nightly.model import Change, NightRecord, NightVariant
from benchctl.results.likeness import deciding
from benchctl.results.model import Environment
from benchctl.results.plan import Plan
from benchctl.track.model import Challenge, Track, TrackOperation

_GIB: Final = 2**30
_HOST: Final[Mapping[str, str]] = {
    "hostname": "host name",
    "kernel": "kernel",
    "distribution": "operating system",
    "cpu_model": "CPU",
    "cpus": "number of CPUs",
    "governor": "CPU governor",
    "virtualization": "virtualisation",
    "python": "Python",
    "benchctl": "benchctl",
    "benchctl_commit": "benchctl commit",
    "libcurl": "libcurl",
}
# What is compared by its digest says little in full.
_DIGEST: Final = 12
_DIGESTS: Final = frozenset({"build", "archive", "prepared index", "contents of warm-up challenges"})
# Where either night does not know these, there is nothing to compare.
_WHERE_KNOWN: Final = frozenset({"prepared index", "contents of warm-up challenges"})
_ANY_ORDER: Final = frozenset({"modules"})
_AS_ASKED: Final = {"JVM flags": "jvm_flags", "jars": "jars", "plug-ins": "plugins"}

# Where a track lies decides nothing; that its documents and operations are the same, digests say.
_NO_MATTER: Final = frozenset({"track", "track_digest", "corpus"})


def changes(before: NightRecord, tonight: NightRecord) -> tuple[Change, ...]:
    """Return what differs between the last measured night and tonight: host, benchctl and track first."""
    differences = [*_of_host(before.environment, tonight.environment), *track_changes(before, tonight)]
    labels = dict.fromkeys(variant.label for night in (before, tonight) for variant in night.variants)
    for label in labels:
        differences += _of_variant(label, before.variant(label), tonight.variant(label))
    return tuple(differences)


def track_changes(before: NightRecord, now: NightRecord) -> Iterator[Change]:
    """Return the change of the track between two nights: of another repository, or by a commit."""
    sources = [night.track for night in (before, now)]
    places = ["" if source is None else f"{source.track} of {source.repository}" for source in sources]
    yield from _change("track", *places)
    if places[0] == places[1]:
        commits = ["" if source is None else source.changed for source in sources]
        yield from _change("commit of the track", *commits)


def era_of(
    plan: Plan,
    environment: Environment,
    track: Track | None = None,
    left_out: Collection[str] = (),
) -> str:
    """Return a digest of what has to be the same for nights to be compared, with that of the documents.

    The host, the documents, and everything of the plan that decides figures; not its variants, whose
    changes are what nightly runs are for, and not benchctl's version, which is a change like others. With
    `track`, only the indices and the operations that the plan uses count; without it, the whole track
    does, so that an added operation begins a new era. `left_out` are searches of the pollution that some
    node refuses, so that none runs them.
    """
    decisive = {name: value for name, value in deciding(plan).items() if name not in _NO_MATTER}
    decisive["corpus"] = plan.corpus.digest or msgspec.structs.replace(plan.corpus, files=())
    decisive["track"] = plan.track_digest if track is None else _meaning(plan, track)
    decisive["host"] = environment.fingerprint
    decisive["workers"] = plan.workers
    if left_out:
        decisive["left out"] = sorted(left_out)
    return _digest(decisive)


def own_warmups(plan: Plan, track: Track, variant: str) -> str:
    """Return a digest of one variant's own warm-ups, empty without any: a change of them begins no era."""
    own = plan.variant_warmups.get(variant, ())
    if not own:
        return ""
    alone = msgspec.structs.replace(plan, warmup_challenges=own)
    return _digest([deciding(alone)["warmup_challenges"], _operations(track, own)])


def _digest(value: object) -> str:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def _operations(track: Track, challenges: Iterable[Challenge]) -> dict[str, TrackOperation]:
    challenges = tuple(challenges)
    operations = track.with_challenges(*challenges).operations
    names = {task.operation for challenge in challenges for task in challenge.schedule}
    return {name: operations[name] for name in sorted(names & operations.keys())}


def _meaning(plan: Plan, track: Track) -> dict[str, Any]:
    """Return what a track says of a plan's tasks and data."""
    return {
        "operations": _operations(track, (*plan.warmup_challenges, *plan.schedules)),
        "indices": track.indices,
        "data streams": track.data_streams,
        "templates": track.templates,
    }


def _of_host(before: Environment | None, now: Environment | None) -> Iterator[Change]:
    if before is None or now is None:
        return
    for name, words in _HOST.items():
        yield from _change(words, getattr(before, name), getattr(now, name))
    # Kernels reserve a little more or less from boot to boot.
    yield from _change("memory", _memory(before), _memory(now))


def _memory(environment: Environment) -> str:
    return f"{round(environment.memory_bytes / _GIB)} GiB"


def _of_variant(label: str, before: NightVariant | None, now: NightVariant | None) -> Iterator[Change]:
    if before is None or now is None:
        yield from _change(
            f"{label}: variant",
            None if before is None else before.asked,
            None if now is None else now.asked,
            label,
        )
        return
    by_facts = before.facts is not None and now.facts is not None
    was, became = _described(before, by_facts=by_facts), _described(now, by_facts=by_facts)
    for name, here in became.items():
        there, what = was[name], f"{label}: {name}"
        if name in _WHERE_KNOWN and not (here and there):
            continue
        if isinstance(here, list):
            yield from _difference(what, there, here, label, ordered=name not in _ANY_ORDER)
        elif here != there:
            most = _DIGEST if name in _DIGESTS else None
            yield Change(what, _words(there)[:most], _words(here)[:most], label)


def _described(variant: NightVariant, *, by_facts: bool) -> dict[str, Any]:
    """Return what a variant is, by the words for it; what the node said, or else what was asked for."""
    spec, facts = variant.spec, variant.facts
    description: dict[str, Any] = {
        "asked for": variant.asked,
        "role": variant.role,
        "version": spec.version if facts is None else facts.version,
        "engine": spec.engine,
        "distribution": spec.distribution,
        "JDK asked for": spec.jdk,
        # A change of all variants' heap begins a new era.
        "heap": "that of all" if spec.heap_mb is None else f"{spec.heap_mb} MiB",
        "settings": _pairs(spec.settings),
        "index settings": _pairs(spec.index_settings),
        "environment": _pairs(spec.environment),
        "target": "" if spec.target is None else " ".join(spec.target.hosts),
        "warm-up challenges": list(spec.warmups),
        "contents of warm-up challenges": variant.warmups,
    }
    if by_facts and facts is not None:
        description |= {
            "build": facts.build,
            "Lucene": facts.lucene,
            "archive": facts.archive_sha256,
            "JDK": facts.jdk,
            "JVM flags": list(facts.jvm_flags),
            "modules": list(facts.modules),
            "jars": _pairs({name: digest[:_DIGEST] for name, digest in facts.jars.items()}),
            "plug-ins": _pairs(facts.plugins),
        }
    else:
        description |= {name: list(getattr(spec, field)) for name, field in _AS_ASKED.items()}
    return description | {"prepared index": variant.index_key}


def _change(what: str, before: object, after: object, variant: str = "") -> Iterator[Change]:
    if before != after:
        yield Change(what, _words(before), _words(after), variant)


def _difference(
    what: str, before: Iterable[str], after: Iterable[str], variant: str, *, ordered: bool = True
) -> Iterator[Change]:
    """Return what came and went; a change of order alone matters if the last of a kind counts."""
    old, new = list(before), list(after)
    gone, come = (
        [*(Counter(these) - Counter(those)).elements()] for these, those in ((old, new), (new, old))
    )
    if gone or come:
        # An empty text means that there was, or is, nothing at all.
        lacking = "without it" if len(gone or come) == 1 else "without them"
        was = " ".join(gone) or (old and lacking) or ""
        became = " ".join(come) or (new and lacking) or ""
        yield Change(what, was, became, variant)
    elif ordered and old != new:
        moved = [place for place, (was, now) in enumerate(zip(old, new, strict=True)) if was != now]
        there = slice(moved[0], moved[-1] + 1)
        yield Change(f"{what} in another order", " ".join(old[there]), " ".join(new[there]), variant)


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(values.items())]


def _words(value: object) -> str:
    return "" if value is None else str(value)
