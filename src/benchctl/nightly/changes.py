"""What is not what it was in the night before, and what makes nights comparable at all."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from benchctl.results.likeness import deciding
from benchctl.results.model import EngineFacts, Environment
from benchctl.results.nightly.model import Change, NightRecord, NightVariant
from benchctl.results.plan import Plan, TargetSpec, VariantSpec
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
_FACTS: Final[Mapping[str, str]] = {
    "build": "build",
    "lucene": "Lucene",
    "archive_sha256": "archive",
    "jdk": "JDK",
}
_MAPPINGS: Final[Mapping[str, str]] = {
    "settings": "settings",
    "index settings": "index_settings",
    "environment": "environment",
}
# What is compared by its digest says little in full.
_DIGEST: Final = 12
_DIGESTS: Final = frozenset({"build", "archive_sha256"})

# Where a track lies decides nothing; that its documents and operations are the same, digests say.
_NO_MATTER: Final = frozenset({"track", "track_digest", "corpus"})


def changes(before: NightRecord, tonight: NightRecord) -> tuple[Change, ...]:
    """What differs between two nights: the host and benchctl first, then every variant.

    Args:
        before: the last night that was measured.
        tonight: the one to be explained.
    """
    found = list(_of_host(before.environment, tonight.environment))
    labels = dict.fromkeys(one.label for night in (before, tonight) for one in night.variants)
    for label in labels:
        found += _of_variant(label, before.variant(label), tonight.variant(label))
    return tuple(found)


def era_of(plan: Plan, environment: Environment, track: Track | None = None) -> str:
    """A digest of what has to be alike for nights to be compared.

    The host, the documents, and everything of the plan that decides figures; not its variants, whose changes
    are what nightly runs are for, and not benchctl's version, which is a change like others.

    Args:
        plan: of a night's run, once the digest of its documents is known.
        environment: the host.
        track: of the plan. With it, only the operations that the plan uses count, and the indices; without
            it, the whole track does, so that an operation which is added begins a new era.
    """
    decisive = {name: value for name, value in deciding(plan).items() if name not in _NO_MATTER}
    decisive["corpus"] = plan.corpus.digest or msgspec.structs.replace(plan.corpus, files=())
    decisive["track"] = plan.track_digest if track is None else _meaning(plan, track)
    decisive["host"] = environment.fingerprint
    decisive["workers"] = plan.workers
    return _digest(decisive)


def own_warmups(plan: Plan, track: Track, variant: str) -> str:
    """A digest of what one variant alone warms up with: it is the variant's, and begins no era.

    Args:
        plan: of a night's run.
        track: of the plan.
        variant: name of the variant.

    Returns:
        Empty when there is nothing.
    """
    own = plan.variant_warmups.get(variant, ())
    if not own:
        return ""
    alone = msgspec.structs.replace(plan, warmup_challenges=own)
    return _digest([deciding(alone)["warmup_challenges"], _operations(track, own)])


def _digest(value: object) -> str:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def _operations(track: Track, challenges: Iterable[Challenge]) -> dict[str, TrackOperation]:
    """Those that challenges use, by name."""
    challenges = tuple(challenges)
    operations = track.with_challenges(*challenges).operations
    names = {task.operation for challenge in challenges for task in challenge.schedule}
    return {name: operations[name] for name in sorted(names & operations.keys())}


def _meaning(plan: Plan, track: Track) -> dict[str, Any]:
    """What a track says of a plan's tasks and data."""
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
    yield from _change(f"{label}: asked for", before.asked, now.asked, label)
    yield from _change(f"{label}: role", before.role, now.role, label)
    yield from _change(f"{label}: version", _version(before), _version(now), label)
    yield from _of_spec(label, before.spec, now.spec)
    yield from _of_warmups(label, before, now)
    if before.facts is not None and now.facts is not None:
        yield from _of_facts(label, before.facts, now.facts)
    else:
        for words, name in (("JVM flags", "jvm_flags"), ("jars", "jars"), ("plug-ins", "plugins")):
            was, became = getattr(before.spec, name), getattr(now.spec, name)
            yield from _difference(f"{label}: {words}", was, became, label)
    if before.index_key and now.index_key:
        yield from _digest_change(f"{label}: prepared index", before.index_key, now.index_key, label)


def _of_spec(label: str, before: VariantSpec, now: VariantSpec) -> Iterator[Change]:
    yield from _change(f"{label}: engine", before.engine, now.engine, label)
    yield from _change(f"{label}: distribution", before.distribution, now.distribution, label)
    yield from _change(f"{label}: JDK asked for", before.jdk, now.jdk, label)
    yield from _change(f"{label}: heap", _heap(before), _heap(now), label)
    for words, name in _MAPPINGS.items():
        was, became = _pairs(getattr(before, name)), _pairs(getattr(now, name))
        yield from _difference(f"{label}: {words}", was, became, label)
    yield from _change(f"{label}: target", _hosts(before.target), _hosts(now.target), label)


def _of_warmups(label: str, before: NightVariant, now: NightVariant) -> Iterator[Change]:
    """Which they are; and where these are the same, what is in them."""
    what = f"{label}: warm-up challenges"
    if before.spec.warmups != now.spec.warmups:
        yield from _difference(what, before.spec.warmups, now.spec.warmups, label)
    elif before.warmups and now.warmups:
        yield from _digest_change(what, before.warmups, now.warmups, label)


def _of_facts(label: str, before: EngineFacts, now: EngineFacts) -> Iterator[Change]:
    for name, words in _FACTS.items():
        told = _digest_change if name in _DIGESTS else _change
        yield from told(f"{label}: {words}", getattr(before, name), getattr(now, name), label)
    yield from _difference(f"{label}: JVM flags", before.jvm_flags, now.jvm_flags, label)
    yield from _difference(f"{label}: modules", before.modules, now.modules, label, ordered=False)
    yield from _difference(f"{label}: jars", _jars(before), _jars(now), label)
    yield from _difference(f"{label}: plug-ins", _pairs(before.plugins), _pairs(now.plugins), label)


def _change(what: str, before: object, after: object, variant: str = "") -> Iterator[Change]:
    if before != after:
        yield Change(what, _words(before), _words(after), variant)


def _digest_change(what: str, before: str, after: str, variant: str) -> Iterator[Change]:
    if before != after:
        yield Change(what, before[:_DIGEST], after[:_DIGEST], variant)


def _difference(
    what: str, before: Iterable[str], after: Iterable[str], variant: str, *, ordered: bool = True
) -> Iterator[Change]:
    """What went and what came; another order alone is told where the last of a kind counts, as of flags."""
    one, other = list(before), list(after)
    gone, come = _without(one, other), _without(other, one)
    if gone or come:
        yield Change(what, " ".join(gone), " ".join(come), variant)
    elif ordered and one != other:
        yield Change(what, "the same in another order", "", variant)


def _without(these: list[str], those: list[str]) -> list[str]:
    """Those of a list that another has not, as often as it has fewer of them."""
    left = list(those)
    found = []
    for one in these:
        if one in left:
            left.remove(one)
        else:
            found.append(one)
    return found


def _version(variant: NightVariant) -> str:
    return variant.spec.version if variant.facts is None else variant.facts.version


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(values.items())]


def _jars(facts: EngineFacts) -> list[str]:
    return _pairs({name: digest[:_DIGEST] for name, digest in facts.jars.items()})


def _heap(spec: VariantSpec) -> str:
    """Its own one; that of all variants begins a new era."""
    return "" if spec.heap_mb is None else f"{spec.heap_mb} MiB"


def _hosts(target: TargetSpec | None) -> str:
    return "" if target is None else " ".join(target.hosts)


def _words(value: object) -> str:
    return "" if value is None else str(value)
