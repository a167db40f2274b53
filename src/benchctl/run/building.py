"""Building a prepared index: a node on a scratch folder, filled, stopped, its data kept; resumable."""

import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from benchctl.corpus.bulk import (
    Range,
    batches,
    frame_bodies,
    frame_created,
    frame_lines,
    frame_numbered,
    within,
)
from benchctl.disk import disk_errors, free_bytes
from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.cluster import boot, exercise
from benchctl.engine.filling import SETTLE_TIMEOUT_S, Declared, PartialIndex, Progress, Sent, create, finish
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import ClassArchive, Starts, starts_of
from benchctl.engine.prepared_index import (
    IndexKey,
    PreparedIndex,
    building,
    bytes_per_document,
    content_digest,
    keep,
)
from benchctl.engine.usage import Readings, cpu_by_kind
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.hosts.file import Spread
from benchctl.load.ingest import Checkpoints, Cuts, Ingested, Stream, ingest
from benchctl.results.model import IndexFacts, IngestCosts
from benchctl.results.plan import EngineName
from benchctl.run.bench import Observer
from benchctl.run.documents import Parcel
from benchctl.run.session import Workspace, reaching


def keep_logs(folder: Path, target: Path) -> None:
    """Move the folder of a node start (log, GC log, settings), if there is one; replaces the target.

    The target may be on another file system.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    if not folder.is_dir():
        return
    with disk_errors(f"keep the node's logs in {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.move(folder, target)
        except shutil.Error as err:
            raise OSError(None, f"not all of {folder} can be copied: {str(err)[:300]}") from err


@contextmanager
def logs_kept_of_failure(folder: Path, target: Path) -> Iterator[None]:
    """Keep the logs of a node start that fails inside the block, beyond its scratch folder.

    Raises:
        BenchctlError: If the block raises one; with the new path of the logs.
    """
    try:
        yield
    except BenchctlError as err:
        # Why the node failed matters more than that its logs cannot be kept.
        with suppress(BenchctlError):
            keep_logs(folder, target)
        if folder.is_dir():
            raise
        raise relocated(err, folder, target) from err


def relocated(err: BenchctlError, folder: Path, target: Path) -> BenchctlError:
    """Return the error with the new path of a directory."""
    return BenchctlError(
        err.message.replace(str(folder), str(target)),
        hint=err.hint.replace(str(folder), str(target)),
        exit_code=err.exit_code,
    )


MOST_DOCUMENTS_PER_BODY = 2000
# Nodes accept 100 MB; bodies of a tenth are as fast, and several are in memory at a time.
MOST_BODY_BYTES = 8_000_000
# An index that is the same each time is cut into segments by us: of a size that fits into the memory that
# engines index in, and never too many to be merged at once.
_CUT_DOCUMENTS = 50_000
_CUT_BYTES = 100_000_000
_LEAST_CUTS, _MOST_CUTS = 4, 400
_NO_CUTS_BY_MEMORY = {"indices.memory.index_buffer_size": "50%"}


def send_parcels(
    parcels: Sequence[Parcel],
    *,
    endpoint: Endpoint,
    clients: int,
    helper: EngineName | None = None,
    on_progress: Callable[[int], None],
    checkpoints: Checkpoints | None = None,
    refresh: Callable[[], None] | None = None,
) -> Sent:
    """Send all documents, in order, each body by the next free client.

    Args:
        parcels: numbered consecutively.
        endpoint: of the node or cluster.
        clients: concurrent senders.
        helper: of which official client the bulk helper sends; None for benchctl's own wire.
        on_progress: called with the number of documents acknowledged so far.
        checkpoints: which documents are missing, and how to save progress; None to send all of them without.
        refresh: refreshes the indices, if each build is to be the same: then documents have ids, and segments
            are cut by it alone.

    Raises:
        BenchctlError: If the node refused documents or went away, or documents cannot be read.
    """
    documents = sum(parcel.documents for parcel in parcels)
    missing = [(0, documents)] if checkpoints is None else checkpoints.missing
    cut_documents = max(min(_CUT_DOCUMENTS, documents // _LEAST_CUTS), documents // _MOST_CUTS)
    done = ingest(
        _streams(parcels, missing, numbered=refresh is not None),
        endpoint=endpoint,
        clients=clients,
        helper=helper,
        on_progress=on_progress,
        checkpoints=checkpoints,
        cuts=None if refresh is None else Cuts(refresh, cut_documents, _CUT_BYTES),
    )
    costs = IngestCosts(done.took_s, done.answered_s, client_s=done.client_s)
    return Sent(done.documents, done.body_bytes, done.seconds, done.checkpoint_s, costs=costs)


def _streams(
    parcels: Sequence[Parcel], missing: Sequence[Range], *, numbered: bool = False
) -> Iterator[Stream]:
    """The missing documents, each parcel's for its target."""
    first = 0
    for parcel in parcels:
        for start, stop in within(missing, first, first + parcel.documents):
            number = start if numbered else None
            yield parcel.target, bodies(parcel, start - first, stop - first, number=number)
        first += parcel.documents


def bodies(
    parcel: Parcel, start: int = 0, stop: int | None = None, *, number: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """Documents [start, stop) of a parcel, by default all, as bodies of bulk requests.

    `number` is the first one's, for ids that are the documents' numbers.

    Yields:
        (documents, body).
    """
    per_body = MOST_DOCUMENTS_PER_BODY
    if parcel.bytes_each > 0:
        per_body = max(1, min(per_body, int(MOST_BODY_BYTES / parcel.bytes_each)))
    blocks = parcel.reader(start, stop)
    if parcel.has_actions:
        return frame_bodies(blocks, per_body, framing=frame_lines, lines_each=2)
    if number is not None:
        return _numbered(blocks, per_body, number, "create" if parcel.data_stream else "index")
    return frame_bodies(blocks, per_body, framing=frame_created if parcel.data_stream else None)


def _numbered(
    blocks: Iterator[bytes], per_body: int, number: int, action: Literal["create", "index"]
) -> Iterator[tuple[int, bytes]]:
    for lines in batches(blocks, per_body):
        yield len(lines), frame_numbered(lines, number, action)
        number += len(lines)


@dataclass(frozen=True)
class Keeping:
    """Rules for saving an ingest."""

    # One that is interrupted earlier starts over: Ctrl-C on a small corpus leaves nothing behind.
    after_s: float = 20.0
    # Of bulk requests between two checkpoints: about a minute of sending, which is lost when benchctl or its
    # node is killed. A checkpoint costs a second or two and makes segments smaller.
    every_bytes: int = 4 * 2**30


USUAL = Keeping()


class OutdatedError(Exception):
    """A checkpoint did not match its manifest; it has been discarded."""


class Resumption:
    """The checkpoint of one index, before and while it is built; `before` is earlier progress.

    Raises:
        BenchctlError: If the checkpoint is damaged.
    """

    def __init__(
        self, home: Home, key: IndexKey, keeping: Keeping, *, title: str, observer: Observer
    ) -> None:
        self._partial = PartialIndex.of(home, key.folder_name, key.digest)
        self._key = key
        self._keeping = keeping
        self._title = title
        self._observer = observer
        self._warned = False
        self.before = self._partial.progress() or Progress()

    @property
    def bytes_put_by(self) -> int:
        """Bytes of the index that are on disk already."""
        return self._partial.size_bytes() if self.before.documents else 0

    def take_up(self, data: Path) -> None:
        """Put the checkpoint of earlier attempts into an empty data folder, before its node is started.

        Raises:
            BenchctlError: If the disk cannot be written.
        """
        if self.before.documents:
            data.rmdir()
            self._partial.take_up(data)

    def declared(self, client: SearchClient) -> Declared | None:
        """Check that a node started on a checkpoint has exactly its documents.

        Returns:
            The indices' declared settings; None without a checkpoint.

        Raises:
            OutdatedError: If the index has more or fewer documents.
        """
        if not self.before.documents:
            return None
        target = self._key.places.target
        client.refresh(target)
        held = client.count(target)
        if held != self.before.documents:
            self.discard()
            raise OutdatedError(
                f"the half-built index holds {held:,} documents instead of {self.before.documents:,}: it is "
                "built from its beginning"
            )
        self._observer.note(
            f"{self._title}: going on with {self.before.documents:,} of {self._key.corpus.documents:,} "
            "documents that an earlier preparation had sent"
        )
        return self.before.declared

    def checkpoints(self, client: SearchClient, data: Path, declared: Declared) -> Checkpoints | None:
        """Checkpoints of an ingest into a running node with this data folder.

        None if action lines of the corpus replace or delete documents, so that counting does not tell what
        has arrived, of nodes on other hosts, and of an index that is the same each time, in which they would
        cut segments: such an ingest starts over.
        """
        if (
            self._key.spread
            or self._key.deterministic
            or any(file.has_actions for file in self._key.corpus.files)
        ):
            return None
        now = Progress(declared={name: dict(settings) for name, settings in declared.items()})

        def save(done: Ingested) -> None:
            sent = msgspec.structs.replace(
                now,
                ranges=done.ranges,
                body_bytes=done.body_bytes,
                seconds=done.seconds,
                checkpoint_s=done.checkpoint_s,
            )
            try:
                self._partial.save(client, self._key.places.target, data, self.before, sent)
            except NodeRequestError:
                # The node is gone or going; its senders will report that.
                return
            except BenchctlError as err:
                self._warn(err)

        return Checkpoints(
            save,
            missing=self.before.missing(self._key.corpus.documents),
            every_bytes=self._keeping.every_bytes,
            after_s=max(0.0, self._keeping.after_s - self.before.seconds),
        )

    def total(self, sent: Sent) -> Sent:
        """Return the totals over all attempts."""
        before = self.before
        return Sent(
            before.documents + sent.documents,
            before.body_bytes + sent.body_bytes,
            before.seconds + sent.seconds,
            before.checkpoint_s + sent.checkpoint_s,
            before.goes,
            before.clocks,
            None if before.goes else sent.costs,
        )

    def discard(self) -> None:
        """Remove the checkpoint: the index is finished, or has to start over."""
        self._partial.discard()

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Tell of an interruption or failure inside the block what is saved, if anything is.

        Raises:
            BenchctlError: If the block fails, or is interrupted and something is saved.
        """
        try:
            yield
        except KeyboardInterrupt as err:
            kept = self._kept()
            if not kept:
                raise
            raise BenchctlError(
                f"interrupted; {kept}", hint=self._hint, exit_code=ExitCode.INTERRUPTED
            ) from err
        except BenchctlError as err:
            kept = self._kept()
            if not kept:
                raise
            hint = f"{err.hint}; {self._hint}" if err.hint else self._hint
            raise BenchctlError(f"{err.message}; {kept}", hint=hint, exit_code=err.exit_code) from err

    def _kept(self) -> str:
        progress = self._partial.progress()
        if progress is None:
            return ""
        return (
            f"{progress.documents:,} of {self._key.corpus.documents:,} documents of {self._title}'s index "
            f"are kept in {self._partial.root} ({self._partial.size_bytes() / 1e6:,.0f} MB)"
        )

    @property
    def _hint(self) -> str:
        return (
            f"rerun the same command to resume; to start over: rm -r {shlex.quote(str(self._partial.root))}"
        )

    def _warn(self, err: BenchctlError) -> None:
        if not self._warned:
            self._observer.note(f"{self._title}: an interruption would lose what was sent: {err.message}")
        self._warned = True


# A dying JVM closes its sockets a moment before its process is gone.
NODE_DEATH_S = 1.0


@dataclass(frozen=True)
class Workshop:
    """Inputs of an index build.

    Attributes:
        home: where it is built and kept.
        jdk: runtime of its node.
        heap_mb: heap of its node, MiB.
        parcels: its documents.
        keeping: when an ingest is saved.
        observer: told of progress.
        title: its name in progress messages.
        more: how many builds of the same kind follow.
        beside: whether another index is built at the same time.
        starts: how its node is started.
        spread: which of its nodes are on other hosts.
        archive: of the engine's classes, that its node writes as well; None for none.
        ask: asks its node, once it is filled, and keeps the answers in the index's folder.
    """

    home: Home
    jdk: Jdk
    heap_mb: int
    parcels: Sequence[Parcel]
    keeping: Keeping
    observer: Observer
    title: str
    more: int = 0
    beside: bool = False
    starts: Starts | None = None
    spread: Spread | None = None
    archive: ClassArchive | None = None
    ask: Callable[[SearchClient, Path], None] | None = None


def build_index(shop: Workshop, key: IndexKey) -> PreparedIndex:
    """Build an index, or resume its interrupted preparation, and keep it.

    Raises:
        BenchctlError: If a step fails; only the checkpoint of a long ingest is kept.
    """
    try:
        return _build(shop, key)
    except OutdatedError as err:
        shop.observer.note(f"{shop.title}: {err}")
    except BenchctlError:
        # Where none starts that is to write an archive of its classes, another node may.
        if shop.archive is None or not shop.archive.refusal:
            raise
        shop = replace(shop, archive=None)
    return _build(shop, key)


def _build(shop: Workshop, key: IndexKey) -> PreparedIndex:
    title, more = shop.title, shop.more
    resumption = Resumption(shop.home, key, shop.keeping, title=title, observer=shop.observer)
    put_by = resumption.bytes_put_by
    kept_logs = shop.home.logs / f"index-{key.folder_name}"
    with (
        resumption.reported(),
        building(shop.home, key, free=lambda folder: free_bytes(folder) + put_by, more=more) as root,
        logs_kept_of_failure(root / "boot", kept_logs),
        reaching(shop.spread, shop.home) as there,
    ):
        resumption.take_up(root / "data")
        workspace = Workspace(root, there)
        if there is not None:
            needed = round(key.corpus.documents * bytes_per_document(key.corpus, more))
            there.on_all("require", needed, f"prepare an index of {key.corpus.documents:,} documents")
        facts = _fill(shop, key, workspace, resumption)
        shutil.rmtree(root / "boot", ignore_errors=True)
        if there is None or shop.spread is None:
            prepared = keep(shop.home, key.folder_name, root, facts)
        else:
            facts = msgspec.structs.replace(facts, files=workspace.files())
            there.on_all("keep", key.folder_name, facts, of_nodes=True)
            prepared = keep(shop.home, key.folder_name, root, facts, shop.spread.own)
    resumption.discard()
    shop.observer.note(_summary(title, facts))
    return prepared


def _fill(shop: Workshop, key: IndexKey, workspace: Workspace, resumption: Resumption) -> IndexFacts:
    title, root, there = shop.title, workspace.root, workspace.there
    starts = shop.starts or starts_of(shop.home, key.installation)
    nodes = f"{len(key.nodes)} nodes" if len(key.nodes) > 1 else "a node"
    shop.observer.stage(f"{title}: starting {nodes} to build the index")
    with boot(
        key.installation,
        shop.jdk,
        data=root / "data",
        folder=root / "boot",
        owner=shop.home.node_owner,
        heap_mb=shop.heap_mb,
        settings=_NO_CUTS_BY_MEMORY if key.deterministic else {},
        starts=starts,
        archive=shop.archive,
        nodes=key.nodes,
        listen="" if shop.spread is None else shop.spread.hosts.nodes_at,
        elsewhere={}
        if there is None
        else there.grounds(key.installation, starts, root / "boot", building=True),
    ) as cluster:
        client = cluster.client
        declared = resumption.declared(client)
        if declared is None:
            if shop.archive is not None:
                exercise(client)
            declared = create(client, key)
            client.health(key.places.target, SETTLE_TIMEOUT_S, len(cluster.nodes))
        shop.observer.stage(f"{title}: ingesting {key.corpus.documents:,} documents")
        checkpoints = resumption.checkpoints(client, root / "data", declared)
        before = resumption.before.documents
        try:
            begin = cluster.readings()
            sent = send_parcels(
                shop.parcels,
                endpoint=cluster.endpoint,
                clients=key.clients,
                helper=key.installation.engine if key.ingest_client == "official" else None,
                on_progress=lambda new: shop.observer.progress(
                    "documents", before + new, key.corpus.documents
                ),
                checkpoints=checkpoints,
                refresh=(lambda: client.refresh(key.places.target)) if key.deterministic else None,
            )
            end = cluster.readings()
        except BenchctlError:
            # The process tells more than the connection about why it is gone.
            cluster.check_alive(within_s=NODE_DEATH_S)
            raise
        kinds = {node.pid: node.thread_kinds() for node in cluster.nodes}
        sent = with_cpu(sent, begin, end, kinds)
        shop.observer.stage(f"{title}: refresh, force-merge, flush")
        facts = finish(client, key, declared, resumption.total(sent))
        shop.observer.stage(f"{title}: measuring the size of every field")
        try:
            # Only this node is asked: no fork uses it.
            facts = msgspec.structs.replace(facts, fields=client.field_bytes(key.places.target))
        except NodeRequestError as err:
            facts = msgspec.structs.replace(facts, fields_unknown=err.reason)
        if shop.ask is not None:
            shop.observer.stage(f"{title}: collecting results to compare")
            try:
                shop.ask(client, root)
            except NodeRequestError:
                # What is missing is asked on a copy of the index later.
                cluster.check_alive(within_s=NODE_DEATH_S)
        shop.observer.stage(f"{title}: stopping the node")
        # All is on disk. Several nodes would take turns at leaving, and those left would move shards.
        cluster.stop(at_once=len(cluster.nodes) > 1)
    if key.deterministic:
        with disk_errors(f"read the index in {root / 'data'}"):
            facts = msgspec.structs.replace(facts, content=content_digest(root / "data"))
    report = msgspec.structs.replace(facts.ingest, beside=shop.beside)
    return msgspec.structs.replace(facts, cluster_uuid=cluster.uuid, ingest=report)


def with_cpu(sent: Sent, begin: Readings, end: Readings, kinds: Mapping[int, Mapping[int, str]]) -> Sent:
    """With the CPU time of all nodes between two readings, if each could be read; `kinds` are by process."""
    if sent.costs is None or not all(kinds.values()) or not (kinds.keys() <= begin.keys() & end.keys()):
        return sent
    used_ns: Counter[str] = Counter()
    for pid, threads in kinds.items():
        used_ns.update(cpu_by_kind(begin[pid], end[pid], threads))
    cpu_s = {kind: used / 1e9 for kind, used in used_ns.items()}
    return replace(sent, costs=msgspec.structs.replace(sent.costs, cpu_s=cpu_s))


def _summary(title: str, facts: IndexFacts) -> str:
    report = facts.ingest
    seconds = max(report.ingest_s, 1e-9)
    resumed = f", interrupted {report.resumed} x" if report.resumed else ""
    put_by = f"put by in {report.checkpoint_s:.1f} s, " if report.checkpoint_s else ""
    return (
        f"{title}: {report.documents:,} documents in {report.ingest_s:.1f} s{resumed} "
        f"({report.documents / seconds:,.0f} docs/s, "
        f"{report.body_bytes / seconds / 1e6:.0f} MB/s; "
        f"engine: indexing {report.engine_indexing_s:.1f} s, refresh {report.engine_refresh_s:.1f} s, "
        f"merge {report.engine_merge_s:.1f} s, flush {report.engine_flush_s:.1f} s), "
        f"{put_by}force-merged to {len(facts.segments)} in {report.force_merge_s:.1f} s"
    )
