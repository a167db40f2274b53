"""Preparing a running cluster: its indices found, or made on request; everything else stays as it is."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.declared import Places, leads_elsewhere, places, require_free, try_out
from benchctl.engine.distribution import Installation
from benchctl.engine.prepared_index import IndexKey, Sent, fill
from benchctl.engine.target import (
    NOT_OFFERED,
    Address,
    ClusterIndex,
    explained,
    find_data_stream,
    find_index,
    identify,
)
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import IndexFacts, IngestReport, SegmentFacts
from benchctl.results.plan import Plan, VariantSpec
from benchctl.run.bench import Observer
from benchctl.run.prepare import Corpora, send_parcels
from benchctl.run.session import TargetSubject
from benchctl.track.model import Track
from benchctl.track.operations import Asking, OnIndex, Operation
from benchctl.track.operations.admin import (
    CreateDataStream,
    CreateIndex,
    DeleteDataStream,
    DeleteIndex,
    names_of,
)
from benchctl.track.operations.catalogue import OPERATION_TYPES, Composite, DeletePointInTime, parts_of
from benchctl.track.operations.search import Bulk, RawRequest, Sleep

_NOT_FILLED = IngestReport(0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def check_targets(plan: Plan, track: Track) -> None:
    """Check what a plan does to running clusters, without asking them.

    Raises:
        UsageError: If the plan would change a cluster, or is allowed to and does not.
    """
    for spec in plan.variants:
        if spec.target is not None:
            if not refuse_writes(spec, plan, track) and spec.target.writes:
                raise UsageError(
                    f"--allow-writes: nothing in {', '.join(plan.challenges)} writes",
                    hint="remove it, or use a challenge that creates its data",
                )
            if spec.target.fill:
                refuse_filling(track, places(track))


def prepare_target(
    spec: VariantSpec, endpoint: Endpoint, plan: Plan, track: Track, corpus: Corpora, observer: Observer
) -> TargetSubject:
    """Inspect a cluster and its indices; creates and fills a single missing index if allowed.

    `corpus` is called only when the index has to be filled.

    Raises:
        UsageError: If the plan would change the cluster.
        BenchctlError: If the cluster cannot be used.
    """
    observer.stage(f"{spec.name}: looking at {endpoint.title}")
    subject = look_at(spec, endpoint, plan, track)
    held, wanted = subject.index_facts, plan.corpus.documents
    if spec.target is not None and spec.target.fill and held is not None and held.documents != wanted:
        observer.note(
            f"{spec.name} already has its index, with {held.documents:,} documents, and is not filled with "
            f"{wanted:,}; delete the index to fill it"
        )
    with explained(spec.name, endpoint), SearchClient(subject.facts.engine, endpoint) as client:
        if subject.makes is not None:
            try_out(client, subject.makes)
        if not subject.fills:
            return subject
        filled = _fill(subject, client, plan=plan, track=track, corpus=corpus, observer=observer)
        name = places(track).target
        index = find_index(client, name)
        if index is None:
            raise BenchctlError(f"the index '{name}' was deleted again")
    return replace(subject, shards=index.shards, index_facts=filled, fills=False)


def look_at(spec: VariantSpec, endpoint: Endpoint, plan: Plan, track: Track) -> TargetSubject:
    """A cluster as it is, with its indices; nothing is changed.

    Raises:
        UsageError: If the plan would change the cluster.
        BenchctlError: If the cluster cannot be used.
    """
    check_targets(plan, track)
    writes = refuse_writes(spec, plan, track)
    wanted = places(track, plan.corpus.files if writes else ())
    address = Address(spec.name, endpoint)
    facts = identify(address)
    if facts.engine != spec.engine:
        raise BenchctlError(f"{spec.name} at {endpoint.title} was {spec.engine}, is {facts.engine}")
    with explained(spec.name, endpoint), SearchClient(facts.engine, endpoint) as client:
        if writes:
            require_free(client, wanted)
            return TargetSubject(spec, address, facts, wanted.shards, None, wanted)
        if spec.target is not None and spec.target.fill and find_index(client, wanted.target) is None:
            return TargetSubject(spec, address, facts, wanted.shards, None, fills=True)
        indexes = [_checked(find_index(client, index.name), spec, index.name) for index in wanted.indices]
        indexes += [_checked(find_data_stream(client, name), spec, name) for name in wanted.data_streams]
        shards = sum(index.shards for index in indexes)
        held = sum(index.documents for index in indexes)
        unsized, segments = "", tuple[SegmentFacts, ...]()
        try:
            segments = tuple(client.segments(wanted.target))
            held = sum(segment.documents for segment in segments)
        except NodeRequestError as err:
            if err.status not in NOT_OFFERED:
                raise
            unsized = f"HTTP {err.status}: {err.reason}"
        size = sum(segment.size_bytes for segment in segments)
        index = IndexFacts("", held, size, segments, _NOT_FILLED, cached=True)
        return TargetSubject(spec, address, facts, shards, index, unsized=unsized)


def seen_text(subject: TargetSubject, documents: int) -> str:
    """Describe a cluster, and what would be done to it, for readers; `documents` are the run's."""
    name, facts = subject.spec.name, subject.facts
    if subject.makes is not None:
        names = ", ".join(subject.makes.names)
        does = f"challenges would make {names} there, which is removed after every fork"
    elif subject.fills:
        does = f"its index would be created and filled with {documents:,} documents (`fill: true`)"
    else:
        held = 0 if subject.index_facts is None else subject.index_facts.documents
        does = f"{held:,} documents"
    return f"{name}: {facts.engine} {facts.version} at {subject.address.endpoint.title}; {does}"


def refuse_writes(spec: VariantSpec, plan: Plan, track: Track) -> bool:
    """Refuse challenges that would change a cluster that benchctl did not start, beyond what it allows.

    Returns:
        Whether they write what `--allow-writes` lets them write.

    Raises:
        UsageError: If a challenge writes, deletes or configures.
    """
    names = places(track, plan.corpus.files).names
    allowed = spec.target is not None and spec.target.writes and plan.origin == "empty"
    allowed &= bool(names) and all(map(_PLAIN.fullmatch, names))
    is_writing = False
    for challenge in (*plan.warmup_challenges, *plan.schedules):
        operations = {**track.operations, **challenge.operations}
        writing = [
            task.operation for task in challenge.schedule if not only_reads(operations[task.operation])
        ]
        writes = [
            f"operation '{name}'"
            for name in writing
            if not (allowed and _stays_at_home(operations[name], plan, track))
        ]
        if challenge.cluster_settings:
            writes.append("its cluster-settings")
        if writes:
            listed = ", ".join(dict.fromkeys(writes))
            raise UsageError(
                f"challenge {challenge.name} would change the cluster {spec.name}: {listed}",
                hint="--allow-writes lets a challenge that makes its own data create, fill, merge and delete "
                "the track's indices and data streams by name; all else needs nodes that benchctl starts: "
                "--variant, not --target",
            )
        is_writing |= bool(writing)
    return is_writing


def _stays_at_home(operation: Operation, plan: Plan, track: Track) -> bool:
    """Return whether it writes to what the track names, and cannot reach anything else."""
    own = {*places(track, plan.corpus.files).names}
    match operation:
        case CreateIndex():
            bodies = [operation.body or {}, {"settings": operation.settings}]
            bodies += [msgspec.to_builtins(index.body) for index in track.indices]
            return {*names_of(operation.index)} <= own and not any(map(leads_elsewhere, bodies))
        case DeleteIndex():
            return {*names_of(operation.index)} <= own
        case CreateDataStream() | DeleteDataStream():
            return {*names_of(operation.data_stream)} <= own
        case OnIndex() if operation.type_name in {"refresh", "flush", "force-merge"}:
            # Without a name it works on the only one there is; of several, on the whole cluster.
            return operation.target in own or (operation.target is None and len(own) == 1)
        case Bulk():
            acting = [
                documents.includes_action_and_meta_data for c in track.corpora for documents in c.documents
            ]
            acting += [file.has_actions for file in plan.corpus.files]
            piped = operation.pipeline is not None or "pipeline" in operation.request_params
            return {operation.index, operation.data_stream} - {None} <= own and not any(acting) and not piped
    return False


# No pattern, list, date expression, exclusion, hidden index or `_all`.
_PLAIN = re.compile(r"[^-_+.*?,<>%/\\\s][^*?,<>%/\\\s]*")


def refuse_filling(track: Track, wanted: Places) -> None:
    """Refuse to create more than one index on a cluster that benchctl did not start.

    Raises:
        UsageError: If the track needs more.
    """
    if len(wanted.indices) == 1 and not wanted.data_streams and not track.templates:
        return
    raise UsageError(
        f"`fill: true` creates one index, but track '{track.name}' has "
        f"{', '.join((*wanted.names, *(f'template {template.name}' for template in track.templates)))}",
        hint="fill the cluster yourself, and remove `fill`",
    )


def only_reads(operation: Operation) -> bool:
    """Return whether an operation certainly changes nothing."""
    if isinstance(operation, Composite):
        return all(map(only_reads, parts_of(operation)))
    if isinstance(operation, DeletePointInTime):
        # Without a name, it closes those of others.
        return operation.with_point_in_time_from is not None
    if isinstance(operation, RawRequest):
        return operation.method in {"GET", "HEAD"}
    # Those of a plug-in are known by the name of their type alone.
    kind = OPERATION_TYPES.get(operation.type_name, Operation)
    return isinstance(operation, Asking | Sleep) or kind.reads


def _checked(index: ClusterIndex | None, spec: VariantSpec, name: str) -> ClusterIndex:
    if index is None:
        raise BenchctlError(
            f"{spec.name} has no index '{name}'",
            hint="`fill: true` in --targets FILE creates the only index of a track and sends the corpus; or "
            "restore it from a snapshot",
        )
    if index.documents == 0:
        raise BenchctlError(
            f"the index '{name}' of {spec.name} is empty",
            hint="fill it, or delete it and give `fill: true`: benchctl fills only what it has created",
        )
    return index


def _fill(
    subject: TargetSubject,
    client: SearchClient,
    *,
    plan: Plan,
    track: Track,
    corpus: Corpora,
    observer: Observer,
) -> IndexFacts:
    """Create the index and send the corpus. After a failure it stays: nothing is deleted on a target."""
    address, facts = subject.address, subject.facts
    spec, parcels = corpus(plan.corpus.documents)
    # Nothing was installed; this only distinguishes fillings by different engines.
    stand_in = Installation(
        facts.engine, facts.version, Path(), facts.build, facts.modules, facts.lucene, "none"
    )
    key = IndexKey(stand_in, spec, track, plan.segments, plan.ingest_clients)
    observer.stage(f"{address.name}: ingesting {spec.documents:,} documents")

    def send() -> Sent:
        done = send_parcels(
            parcels,
            endpoint=address.endpoint,
            clients=plan.ingest_clients,
            helper=facts.engine if plan.ingest_client == "official" else None,
            on_progress=lambda sent: observer.progress("documents", sent, spec.documents),
        )
        observer.stage("refresh, force-merge, flush")
        return done

    try:
        return fill(client, key, send)
    except BenchctlError as err:
        raise BenchctlError(
            f"{address.name} was not filled: {err.message}",
            hint=f"delete the index '{places(track).target}' there before the next attempt; benchctl deletes "
            "nothing on a cluster that it did not start",
        ) from err


def _way_caveats(name: str, endpoint: Endpoint) -> Iterator[str]:
    """Yield what is doubtful about the way to a cluster."""
    if not endpoint.verify and any(host.startswith("https:") for host in endpoint.hosts):
        yield f"{name}: its certificate was not checked (`insecure: true`): another server may have responded"
    if endpoint.auth is not None and not (endpoint.is_encrypted or endpoint.is_local):
        yield f"{name}: credentials were sent unencrypted"
    if endpoint.proxy is not None:
        yield f"{name} is behind the proxy {endpoint.proxy}, which is part of its times"
    if not endpoint.is_local:
        yield f"{name} is not on this host: the network is part of its times"


def target_caveats(subjects: Sequence[TargetSubject], documents: int) -> tuple[str, ...]:
    """Caveats about variants that benchctl did not start, for a run's corpus of `documents`."""
    caveats: list[str] = []
    for subject in subjects:
        name, index = subject.spec.name, subject.index_facts
        caveats += _way_caveats(name, subject.address.endpoint)
        if subject.unsized:
            caveats.append(f"{name} does not report the size of its index: {subject.unsized}")
        if index is None:
            caveats.append(
                f"{name}: every fork made its own indices on the running cluster, which were removed after it"
            )
            continue
        if not index.key:
            caveats.append(
                f"{name} was not filled by this run: it is unknown whether its {index.documents:,} documents "
                "are the track's corpus"
            )
        if index.documents != documents:
            caveats.append(f"{name} holds {index.documents:,} documents, the run's corpus has {documents:,}")
        if subject.shards > 1:
            caveats.append(
                f"{name}: with {subject.shards} shards its count of searches cannot show whether others "
                "searched, too"
            )
        caveats.append(f"every operation ran on {name} before its first task, to compare results")
    return tuple(caveats)


def corpus_of_targets(plan: Plan, subjects: Collection[TargetSubject]) -> Plan | None:
    """The plan of a run whose targets were all filled before: its corpus is what they hold; else None."""
    held = [subject.index_facts for subject in subjects if subject.index_facts is not None]
    if len(held) < len(plan.variants) or any(index.key for index in held):
        return None
    spec = msgspec.structs.replace(plan.corpus, documents=held[0].documents)
    return msgspec.structs.replace(plan, corpus=spec)
