"""Preparation before the first fork: engines, a Java runtime, the corpus, indices, results of searches."""

import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import psutil

from benchctl.corpus.bulk import frame_bodies, frame_created, frame_lines
from benchctl.corpus.generated import Corpus, ensure_corpus
from benchctl.disk import disk_errors
from benchctl.endpoint import Endpoint
from benchctl.engine.answers import AnswerBook, compare_answers
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import check_asked, equip
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import ClassArchive, Starts, starts_of
from benchctl.engine.node import ARCHIVED, Node, archive_classes, exercise
from benchctl.engine.prepared_index import (
    DamagedIndexError,
    IndexKey,
    PreparedIndex,
    Sent,
    building,
    create,
    find_prepared,
    finish,
    keep,
)
from benchctl.engine.target import explained
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.load.ingest import ingest
from benchctl.report.numbers import counted
from benchctl.results.model import AnswerCheck, EngineFacts, IndexFacts, IngestCosts
from benchctl.results.plan import CorpusSpec, EngineName, Plan, VariantSpec
from benchctl.run.bench import Observer, SharedObserver, side_by_side
from benchctl.run.documents import Parcel
from benchctl.run.session import AnySubject, Start, Subject, TargetSubject
from benchctl.run.work import default_target, operations_used
from benchctl.slices import hook
from benchctl.track.model import GeneratorName, Track
from benchctl.track.operations import Operation

# The rest is for the JVMs themselves and the page cache.
_MOST_OF_MEMORY = 0.75
# JVMs with larger heaps have wider pointers, and share no classes with those that have not.
_MOST_COMPRESSED_MB = 31 * 1024
# Of answer books beside prepared indices: raised when the form of answers changes.
BOOK_VERSION = 6
MOST_DOCUMENTS_PER_BODY = 2000
# Nodes accept 100 MB; bodies of a tenth are as fast, and several are in memory at a time.
MOST_BODY_BYTES = 8_000_000
# A dying JVM closes its sockets a moment before its process is gone.
NODE_DEATH_S = 1.0


def prepare_corpus(
    home: Home, documents: int, seed: int, observer: Observer, generator: GeneratorName = "big5"
) -> Corpus:
    """Generate a corpus, unless it exists."""
    written = 0

    def progress(new: int) -> None:
        nonlocal written
        written += new
        observer.progress("documents", written, documents)

    observer.stage(f"corpus of {documents:,} {generator} documents")
    return ensure_corpus(home, documents, generator=generator, seed=seed, progress=progress)


Corpora = Callable[[int], tuple[CorpusSpec, Sequence[Parcel]]]
"""Returns a corpus of that many documents, made if it is missing, and what is sent of it."""


def prepare_started(
    specs: Sequence[VariantSpec],
    plan: Plan,
    track: Track,
    corpora: Corpora,
    home: Home,
    observer: SharedObserver,
) -> list[Subject]:
    """Prepare variants whose nodes benchctl starts: engines, runtimes, indices, archives of classes.

    What exists is skipped. Downloads run beside each other and beside the generation of the corpus; indices
    are built one after the other, one build number after the other, so that what the host does meanwhile
    meets all variants.

    Raises:
        BenchctlError: If a step fails.
    """
    counts = dict.fromkeys(plan.of(spec).corpus.documents for spec in specs)

    def generate() -> None:
        for count in counts:
            corpora(count)

    def equip_all(alike: Sequence[VariantSpec]) -> None:
        for spec in alike:
            equipment[spec.name] = _equip(spec, plan, home, observer)

    equipment: dict[str, tuple[Subject, Installation]] = {}
    # Variants of one archive download it once.
    by_archive: dict[object, list[VariantSpec]] = {}
    for spec in specs:
        by_archive.setdefault((spec.engine, spec.version, spec.distribution), []).append(spec)
    steps: list[Callable[[], None]] = [
        generate,
        *(partial(equip_all, alike) for alike in by_archive.values()),
    ]
    side_by_side(steps, observer)
    equipped = [equipment[spec.name] for spec in specs]
    builds: list[list[PreparedIndex]] = [[] for _ in specs]
    for number in range(0 if plan.origin == "empty" else plan.index_builds):
        orders: dict[str, tuple[IndexKey, list[Subject]]] = {}
        wanted = []
        for subject, builder in equipped:
            documents = corpora(plan.of(subject.spec).corpus.documents)[0]
            own = msgspec.structs.replace(plan, corpus=documents)
            key = index_keys(builder, subject.spec, own, track)[number]
            orders.setdefault(key.folder_name, (key, []))[1].append(subject)
            wanted.append(key.folder_name)
        made = {
            name: _index(key, alike, plan, track, corpora, home=home, observer=observer)
            for name, (key, alike) in orders.items()
        }
        for indices, name in zip(builds, wanted, strict=True):
            indices.append(made[name])
    return [
        dataclasses.replace(
            subject,
            index=own[0] if own else None,
            more_builds=tuple(own[1:]),
            unarchived=_archived(subject, home, observer),
        )
        for (subject, _), own in zip(equipped, builds, strict=True)
    ]


def _equip(spec: VariantSpec, plan: Plan, home: Home, observer: Observer) -> tuple[Subject, Installation]:
    """Install a variant's engine and runtime; the other installation fills its indices."""
    observer.stage(f"{spec.name}: engine and Java runtime")
    equipment = equip(home, spec, observer.progress)
    installation, jdk = equipment.installation, equipment.jdk
    for lacking in installation.lacking:
        observer.note(f"{spec.name}: {lacking}")
    if plan.evidence_kinds:
        hook("collectors").check_runtime(plan.evidence_kinds, jdk.home)
    starts = starts_of(home, installation) if spec.start == "direct" else None
    return Subject(spec, installation, jdk, None, starts=starts), equipment.builder


def _index(
    key: IndexKey,
    subjects: Sequence[Subject],
    plan: Plan,
    track: Track,
    corpora: Corpora,
    *,
    home: Home,
    observer: Observer,
) -> PreparedIndex:
    """Return the index that some variants share, built unless it exists."""
    # Builds that are replicates are built alike: nothing else is done on the first one's node.
    plain = [subject for subject in subjects if plan.index_builds == 1 and _is_plain(subject, key)]
    subject = (*plain, *subjects)[0]
    observer.stage(f"{subject.spec.name}: prepared index")
    index = _prepared(home, key, observer)
    if index is not None:
        return index

    def ask(client: SearchClient, root: Path) -> None:
        """Ask the node that filled an index, and keep the answers with it."""
        own = msgspec.structs.replace(plan, corpus=key.corpus)
        book = AnswerBook(root / _book_name(subject))
        book.fill(client, operations_used(own, track, subject.spec), default_target(own, track))

    later = (dataclasses.replace(key, build=build) for build in range(key.build + 1, plan.index_builds))
    several = f", build {key.build + 1} of {plan.index_builds}" if plan.index_builds > 1 else ""
    heap_mb = building_heap_mb(plan)
    shop = Workshop(
        home,
        subject.jdk,
        heap_mb,
        corpora(key.corpus.documents)[1],
        observer,
        title=f"{key.installation.engine} {key.installation.version}{several}",
        more=sum(not (home.indices / key.folder_name).exists() for key in later),
    )
    if plain:
        shop = dataclasses.replace(shop, ask=ask, starts=subject.starts)
        if subject.starts is not None and heap_mb < _MOST_COMPRESSED_MB:
            archive = subject.starts.archive(key.installation, subject.jdk)
            shop = dataclasses.replace(shop, archive=archive if archive.refusal is None else None)
    return build_index(shop, key)


def _is_plain(subject: Subject, key: IndexKey) -> bool:
    """Return whether a variant's measured nodes are set up as the one that fills its index."""
    spec = subject.spec
    changed = spec.jvm_flags or spec.settings or spec.environment
    return not changed and subject.installation == key.installation


def _archived(subject: Subject, home: Home, observer: Observer) -> str:
    """Make the archive of classes, unless it exists, or return why there is none."""
    name, starts = subject.spec.name, subject.starts
    if starts is None:
        return ""
    if starts.archive(subject.installation, subject.jdk).refusal is None:
        observer.stage(f"{name}: making a class-data archive, once")
    unarchived = archive_classes(home, subject.installation, subject.jdk, starts)
    for reason in set(starts.refused.values()):
        observer.note(f"{name}: nodes are started by the engine's script: {reason}")
    return unarchived


def started_alike(subjects: Sequence[Subject], observer: Observer) -> list[Subject]:
    """Return subjects whose nodes all start with an archive of classes, or none: loading differs by it."""
    lacking = {subject.spec.name: subject.unarchived for subject in subjects if subject.unarchived}
    if not lacking:
        return list(subjects)
    for name, reason in lacking.items():
        observer.note(f"{name}: class-data archive skipped: {reason}")
    if others := [
        subject.spec.name for subject in subjects if subject.starts is not None and not subject.unarchived
    ]:
        observer.note(
            f"{', '.join(others)}: started without their class-data archives, too, to be comparable"
        )
    return [subject.without_archive() for subject in subjects]


def started_as_before(
    engines: Sequence[EngineFacts], subjects: Sequence[AnySubject], observer: Observer
) -> list[AnySubject]:
    """Return subjects of a run that goes on, without an archive of classes if its first forks had none."""
    manners = {facts.start for facts in engines}
    if "direct" not in manners or ARCHIVED in manners:
        return list(subjects)
    observer.note("nodes start without class-data archives, as in the run's first forks")
    return [subject.without_archive() if isinstance(subject, Subject) else subject for subject in subjects]


def _prepared(home: Home, key: IndexKey, observer: Observer) -> PreparedIndex | None:
    """The prepared index of a key; None if it is missing or damaged."""
    try:
        return find_prepared(home, key.folder_name)
    except DamagedIndexError as err:
        observer.note(f"{err.message}; it is built again")
        return None


def index_keys(builder: Installation, spec: VariantSpec, plan: Plan, track: Track) -> list[IndexKey]:
    """Return the keys of all builds of a variant's prepared index; the plan's documents must be known."""
    first = IndexKey(
        builder,
        plan.corpus,
        track,
        plan.segments,
        plan.ingest_clients,
        ingest_client=plan.ingest_client,
        variant=spec,
    )
    return [dataclasses.replace(first, build=build) for build in range(plan.index_builds)]


def check_answers(
    subjects: Sequence[AnySubject],
    plan: Plan,
    track: Track,
    home: Home,
    observer: Observer,
) -> AnswerCheck:
    """Compare the engines' answers to every search; what was not asked yet is, on unmeasured node starts.

    A prepared index is frozen, so its answers are kept beside it. All of its
    builds hold the same documents: the first one answers for them. A running cluster is asked every time.
    """
    operations = operations_used(plan, track)
    own = {
        subject.spec.name: {one.name: one for one in operations_used(plan, track, subject.spec)}
        for subject in subjects
    }
    books = {}
    for subject in subjects:
        name = subject.spec.name
        books[name] = book = _book(subject)
        missing = book.missing(own[name].values())
        if missing:
            observer.stage(f"{name}: checking results of {counted(len(missing), 'operation')}")
            if isinstance(subject, Subject):
                _ask_all(subject, missing, book, plan, track, home)
            elif isinstance(subject, TargetSubject):
                address = subject.address
                with (
                    explained(address.name, address.endpoint),
                    SearchClient(subject.facts.engine, address.endpoint) as client,
                ):
                    book.fill(client, missing, default_target(plan, track))
    checks = []
    for count in dict.fromkeys(plan.of(subject.spec).corpus.documents for subject in subjects):
        group = [subject.spec.name for subject in subjects if plan.of(subject.spec).corpus.documents == count]
        checks.append(compare_answers(operations, {name: books[name] for name in group}, group[0], own))
    check = AnswerCheck(
        tuple(operation.name for operation in operations),
        {
            operation.name: {
                # Another build of an index has other ids, and a log many requests.
                name: msgspec.structs.replace(
                    answer, ids=answer.ids if plan.index_builds == 1 else "", parts=()
                )
                for each in checks
                for name, answer in each.answers[operation.name].items()
            }
            for operation in operations
        },
        tuple(finding for each in checks for finding in each.findings),
    )
    if nothing := check.without_hits:
        observer.note(f"results: no document matches {', '.join(nothing)}")
    left_out = plan.polluting & check.refused
    for finding in check.findings:
        if finding.operation not in left_out:
            observer.note(
                f"results: {finding.operation} on {finding.variant} is {finding.kind}: {finding.detail}"
            )
    if left_out:
        observer.note(
            "skipped in the polluting warm-up of all variants, because an engine rejects it: "
            f"{', '.join(sorted(left_out))}"
        )
    return check


def _book(subject: AnySubject) -> AnswerBook:
    """A variant's earlier answers, if they are still valid: for the same index, on a JVM set up alike."""
    if not isinstance(subject, Subject) or subject.index is None:
        return AnswerBook()
    return AnswerBook(subject.index.root / _book_name(subject))


def _book_name(subject: Subject) -> str:
    spec, installation = subject.spec, subject.installation
    # Of an index of another engine, each of those that read it has answers of its own; a replaced jar has to
    # prove that it answers the same.
    parts = (
        BOOK_VERSION,
        f"{subject.jdk.vendor} {subject.jdk.version}",
        f"{installation.engine} {installation.version}",
        installation.jars,
        spec.jvm_flags,
        spec.settings,
        spec.environment,
    )
    digest = hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:12]
    return f"answers-{digest}.json"


def _ask_all(
    subject: Subject, operations: Iterable[Operation], book: AnswerBook, plan: Plan, track: Track, home: Home
) -> None:
    if subject.index is None:
        raise BenchctlError(f"{subject.spec.name} has no prepared index to query")
    target = default_target(plan, track)
    with (
        subject.workspace(home, "answers") as workspace,
        logs_kept_of_failure(workspace / "boot", home.logs / f"answers-{subject.spec.name}"),
        # Set up as when measured: a flag or a setting may change the answers.
        subject.start(Start(workspace, workspace / "boot", home, plan.heap_mb, target)) as node,
    ):
        found = len(node.client.segments(target))
        if found != len(subject.index.facts.segments):
            raise BenchctlError(
                f"{subject.spec.name}: a copy of the prepared index has {found} segments, "
                f"{len(subject.index.facts.segments)} were prepared",
                hint=f"delete {subject.index.root}; the next run builds it again",
            )
        book.fill(node.client, operations, target)
        # As in forks: its index is a disposable copy.
        node.stop(at_once=not subject.spec.jvm_flags)


def building_heap_mb(plan: Plan) -> int:
    """Heap of nodes that fill indices, MiB: the plan's, but at most the largest measured one."""
    return min(
        plan.heap_mb, max(spec.heap_mb or plan.heap_mb for spec in plan.variants if spec.target is None)
    )


def check_host(plan: Plan, home: Home) -> None:
    """Check what a plan needs of this host, without downloading or starting anything.

    Raises:
        UsageError: If a heap is too large, the home's path breaks command lines, or there is no such version,
            distribution or Java home.
        BenchctlError: If the Maven repository cannot be reached.
    """
    if plan.micro is None:
        check_memory(plan, psutil.virtual_memory().total)
        for spec in plan.variants:
            if spec.target is None:
                check_asked(home, spec)


def check_memory(plan: Plan, memory_bytes: int) -> None:
    """Refuse a heap that would make the host swap, which would be measured.

    Raises:
        UsageError: If a variant's is more than three quarters of memory.
    """
    heaps = [spec.heap_mb or plan.heap_mb for spec in plan.variants if spec.target is None]
    heap_mb, most_mb = max(heaps, default=0), int(_MOST_OF_MEMORY * memory_bytes / 2**20)
    if heap_mb > most_mb:
        raise UsageError(
            f"a heap of {heap_mb} MB leaves too little of {memory_bytes / 2**30:.1f} GiB of memory",
            hint=f"give at most --heap {most_mb}m, or heap:{most_mb}m to the variant",
        )


# The node that fills an index, and what nodes leave.


def keep_folder(folder: Path, target: Path, what: str) -> None:
    """Move a folder to where it stays, replacing the target; that may be on another file system.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    with disk_errors(f"keep {what} in {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.move(folder, target)
        except shutil.Error as err:
            raise OSError(None, f"not all of {folder} can be copied: {str(err)[:300]}") from err


def keep_logs(folder: Path, target: Path) -> None:
    """Move the folder of a node start (log, GC log, settings), if there is one; replaces the target.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    if folder.is_dir():
        keep_folder(folder, target, "the node's logs")


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
        message, hint = (text.replace(str(folder), str(target)) for text in (err.message, err.hint))
        raise BenchctlError(message, hint=hint, exit_code=err.exit_code) from err


def send_parcels(
    parcels: Sequence[Parcel],
    *,
    endpoint: Endpoint,
    clients: int,
    helper: EngineName | None = None,
    on_progress: Callable[[int], None],
) -> Sent:
    """Send all documents, in order, each body by the next free client.

    `helper` is the engine whose official client sends them, None for benchctl's own wire; `on_progress` is
    called with the number of documents acknowledged so far.

    Raises:
        BenchctlError: If the node refused documents or went away, or documents cannot be read.
    """
    done = ingest(
        ((parcel.target, bodies(parcel)) for parcel in parcels),
        endpoint=endpoint,
        clients=clients,
        helper=helper,
        on_progress=on_progress,
    )
    costs = IngestCosts(done.took_s, done.answered_s, client_s=done.client_s)
    return Sent(done.documents, done.body_bytes, done.seconds, costs)


def bodies(parcel: Parcel) -> Iterator[tuple[int, bytes]]:
    """Yield (documents, body of a bulk request) until all of a parcel's are in one."""
    per_body = MOST_DOCUMENTS_PER_BODY
    if parcel.bytes_each > 0:
        per_body = max(1, min(per_body, int(MOST_BODY_BYTES / parcel.bytes_each)))
    blocks = parcel.reader()
    if parcel.has_actions:
        return frame_bodies(blocks, per_body, framing=frame_lines, lines_each=2)
    return frame_bodies(blocks, per_body, framing=frame_created if parcel.data_stream else None)


@dataclass(frozen=True)
class Workshop:
    """Inputs of an index build."""

    home: Home  # where it is built and kept
    jdk: Jdk
    heap_mb: int
    parcels: Sequence[Parcel]
    observer: Observer
    title: str  # for readers
    more: int = 0  # how many builds of the same kind follow
    starts: Starts | None = None  # how its node is started
    archive: ClassArchive | None = None  # of the engine's classes, that its node writes as well
    ask: Callable[[SearchClient, Path], None] | None = None  # keeps its node's answers in the index's folder


def build_index(shop: Workshop, key: IndexKey) -> PreparedIndex:
    """Build an index, and keep it.

    Raises:
        BenchctlError: If a step fails; nothing of it is kept.
    """
    kept_logs = shop.home.logs / f"index-{key.folder_name}"
    try:
        with (
            building(shop.home, key, more=shop.more) as root,
            logs_kept_of_failure(root / "boot", kept_logs),
        ):
            facts = _fill(shop, key, root)
            shutil.rmtree(root / "boot", ignore_errors=True)
            prepared = keep(shop.home, key.folder_name, root, facts)
    except BenchctlError:
        # Where none starts that is to write an archive of its classes, another node may.
        if shop.archive is None or not shop.archive.refusal:
            raise
        return build_index(dataclasses.replace(shop, archive=None), key)
    report = facts.ingest
    shop.observer.note(
        f"{shop.title}: {report.documents:,} documents in {report.ingest_s:.1f} s "
        f"({report.documents / max(report.ingest_s, 1e-9):,.0f} docs/s), "
        f"force-merged to {counted(len(facts.segments), 'segment')} in {report.force_merge_s:.1f} s"
    )
    return prepared


def _fill(shop: Workshop, key: IndexKey, root: Path) -> IndexFacts:
    title = shop.title
    shop.observer.stage(f"{title}: starting a node to build the index")
    with Node(
        key.installation,
        shop.jdk,
        data=root / "data",
        folder=root / "boot",
        owner=shop.home.node_owner,
        heap_mb=shop.heap_mb,
        starts=shop.starts or starts_of(shop.home, key.installation),
        archive=shop.archive,
    ) as node:
        client = node.client
        if shop.archive is not None:
            exercise(client)
        declared = create(client, key)
        node.wait_shards(key.places.target)
        shop.observer.stage(f"{title}: ingesting {key.corpus.documents:,} documents")
        try:
            sent = send_parcels(
                shop.parcels,
                endpoint=node.endpoint,
                clients=key.clients,
                helper=key.installation.engine if key.ingest_client == "official" else None,
                on_progress=lambda sent: shop.observer.progress("documents", sent, key.corpus.documents),
            )
        except BenchctlError:
            # The process tells more than the connection about why it is gone.
            node.check_alive(within_s=NODE_DEATH_S)
            raise
        shop.observer.stage(f"{title}: refresh, force-merge, flush")
        facts = finish(client, key, declared, sent)
        if shop.ask is not None:
            shop.observer.stage(f"{title}: collecting results to compare")
            try:
                shop.ask(client, root)
            except NodeRequestError:
                # What is missing is asked on a copy of the index later.
                node.check_alive(within_s=NODE_DEATH_S)
        shop.observer.stage(f"{title}: stopping the node")
        node.stop()
    return facts
