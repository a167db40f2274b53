"""What is no longer as it was when a run began: such a run cannot go on."""

from collections.abc import Sequence

import msgspec

from benchctl.results.cpus import cpu_list
from benchctl.results.model import Environment, IndexFacts, RunRecord
from benchctl.results.plan import Plan
from benchctl.run.plugin import plugin_changes
from benchctl.run.session import AnySubject, TargetSubject
from benchctl.track.model import Track


def environment_changes(before: Environment, now: Environment) -> list[str]:
    """What differs between two descriptions of a host that a run may not cross."""
    fixed = (
        "hostname", "kernel", "cpu_model", "cpus", "governor", "memory_bytes", "virtualization", "python",
        "benchctl", "benchctl_commit", "libcurl",
    )  # fmt: skip
    return [
        f"{name.replace('_', ' ')} was {getattr(before, name)}, is {getattr(now, name)}"
        for name in fixed
        if getattr(before, name) != getattr(now, name)
    ]


def track_changes(plan: Plan, track: Track) -> list[str]:
    """Whether a track that was loaded again is another one than the plan's, or its plug-in."""
    changes = plugin_changes(plan)
    if plan.track_digest != track.digest:
        changes.append(f"track {track.name} was {plan.track_digest[:12]}, is {track.digest[:12]}")
    return changes


def corpus_changes(before: Plan, now: Plan) -> list[str]:
    """Whether the documents are others."""
    if before.corpus.digest == now.corpus.digest:
        return []
    return [f"corpus was {before.corpus.digest[:12]}, is {now.corpus.digest[:12]}"]


def engine_changes(record: RunRecord, subjects: Sequence[AnySubject]) -> list[str]:
    """What differs in archives, runtimes and prepared indices; an index that was built again is another."""
    changes = []
    known = {facts.variant: facts for facts in record.engines}
    for subject in subjects:
        name = subject.spec.name
        facts = known.get(name)
        if facts is not None:
            changes += subject.changes(facts)
        index = record.indices.get(name)
        if index is None:
            continue
        if isinstance(subject, TargetSubject):
            if (index.documents, index.segments) != (
                subject.index_facts.documents,
                subject.index_facts.segments,
            ):
                changes.append(f"the index of {name} has changed")
        elif not _same_builds(record.builds.get(name, (index,)), subject.builds):
            changes.append(f"the prepared index of {name} has changed or was built again")
    return changes


def pin_changes(plan: Plan, allowed: Sequence[int]) -> list[str]:
    """Whether CPUs that nodes and driver were pinned to cannot be had any more."""
    wanted = () if plan.pin is None else (*plan.pin.node, *plan.pin.driver)
    missing = set(wanted) - set(allowed)
    if not missing:
        return []
    return [f"it was pinned to CPUs of which {cpu_list(missing)} cannot be had ({cpu_list(allowed)} can)"]


def _same_builds(before: Sequence[IndexFacts], now: Sequence[IndexFacts]) -> bool:
    """Equal keys say that the same was wanted; the times of the ingest tell one build from the next."""
    pairs = [
        (msgspec.structs.replace(one, cached=False), msgspec.structs.replace(other, cached=False))
        for one, other in zip(before, now, strict=False)
    ]
    return len(before) == len(now) and all(one == other for one, other in pairs)
