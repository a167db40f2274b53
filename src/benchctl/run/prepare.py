"""What must be there before the first fork: engines, a Java runtime, the corpus, indices, answers."""

import shutil
from collections.abc import Iterable, Sequence

from benchctl.corpus.bulk import frame_bodies
from benchctl.corpus.files import Corpus, ensure_corpus, open_documents
from benchctl.corpus.generator import GENERATOR_VERSION
from benchctl.corpus.truth import Slice
from benchctl.engine.agreement import compare_answers
from benchctl.engine.answers import AnswerBook, ask
from benchctl.engine.client import connect
from benchctl.engine.expected import EXPECTED_VERSION, expect_answers
from benchctl.engine.index import IndexKey, PreparedIndex, Sent, building, fill, find_prepared, keep
from benchctl.engine.install import install
from benchctl.engine.jdk import Jdk, provide_jdk
from benchctl.engine.node import Node, boot
from benchctl.engine.refusals import explained
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.ingest import ingest
from benchctl.results.model import AnswerCheck
from benchctl.results.plan import Plan, VariantSpec
from benchctl.run.host import free_bytes
from benchctl.run.leftovers import logs_kept_of_failure
from benchctl.run.observer import Observer
from benchctl.run.plan import operations_used
from benchctl.run.session import AnySubject, Subject, TargetSubject
from benchctl.run.targets import DOCUMENTS_PER_BODY
from benchctl.track.library import track_names
from benchctl.track.model import Track
from benchctl.track.operation import Asking, Operation

# A dying JVM closes its sockets a moment before its process is gone.
NODE_DEATH_S = 1.0


def prepare_corpus(home: Home, documents: int, seed: int, observer: Observer) -> Corpus:
    """Generate the corpus, or find it."""
    written = 0

    def progress(new: int) -> None:
        nonlocal written
        written += new
        observer.progress("documents", written, documents)

    observer.stage(f"corpus of {documents:,} documents")
    return ensure_corpus(home, documents, seed=seed, progress=progress)


def prepare_subject(
    spec: VariantSpec, plan: Plan, track: Track, corpus: Corpus, home: Home, observer: Observer
) -> Subject:
    """Install a variant's engine and runtime, and build its indices where that has not been done before.

    Raises:
        BenchctlError: a step failed; what was half done is gone.
    """
    observer.stage(f"{spec.name}: engine and Java runtime")
    installation = install(home, spec, observer.progress)
    jdk = provide_jdk(home, spec.jdk)
    keys = [
        IndexKey(installation, plan.corpus, track, plan.segments, plan.ingest_clients, build)
        for build in range(plan.index_builds)
    ]
    found = [find_prepared(home, key) for key in keys]
    missing = found.count(None)
    builds = []
    for key, index in zip(keys, found, strict=True):
        missing -= index is None
        builds.append(index or _build(plan, key, jdk, corpus, home, observer, more=missing))
    return Subject(spec, installation, jdk, builds[0], tuple(builds[1:]))


def _build(
    plan: Plan, key: IndexKey, jdk: Jdk, corpus: Corpus, home: Home, observer: Observer, *, more: int
) -> PreparedIndex:
    number = f", build {key.build + 1} of {plan.index_builds}" if plan.index_builds > 1 else ""
    engine = f"{key.installation.engine} {key.installation.version}{number}"
    kept = home.logs / f"index-{key.folder_name}"
    with (
        building(home, key, free_bytes=free_bytes, more=more) as root,
        logs_kept_of_failure(root / "boot", kept),
    ):
        observer.stage(f"{engine}: starting a node to build the index")
        with boot(
            key.installation,
            jdk,
            data=root / "data",
            folder=root / "boot",
            owner=home.node_owner,
            heap_mb=plan.heap_mb,
        ) as node:
            observer.stage(f"{engine}: ingesting {corpus.documents:,} documents")
            facts = fill(node.client, key, lambda name: _send(node, name, corpus, key.clients, observer))
            observer.stage(f"{engine}: stopping the node that built the index")
            node.stop()
        shutil.rmtree(root / "boot", ignore_errors=True)
        prepared = keep(home, key, root, facts)
    report = facts.ingest
    observer.note(
        f"{engine}: {report.documents:,} documents in {report.ingest_s:.1f} s "
        f"({report.documents / report.ingest_s:,.0f} docs/s, "
        f"{report.body_bytes / report.ingest_s / 1e6:.0f} MB/s; "
        f"engine: indexing {report.engine_indexing_s:.1f} s, refresh {report.engine_refresh_s:.1f} s, "
        f"merge {report.engine_merge_s:.1f} s, flush {report.engine_flush_s:.1f} s), "
        f"force-merged to {len(facts.segments)} in {report.force_merge_s:.1f} s"
    )
    return prepared


def _send(node: Node, name: str, corpus: Corpus, clients: int, observer: Observer) -> Sent:
    try:
        done = ingest(
            frame_bodies(open_documents(corpus), DOCUMENTS_PER_BODY),
            endpoint=node.endpoint,
            index_name=name,
            clients=clients,
            on_progress=lambda documents: observer.progress("documents", documents, corpus.documents),
        )
    except BenchctlError:
        # The process knows better than the connection why it is gone.
        node.check_alive(within_s=NODE_DEATH_S)
        raise
    observer.stage("refresh, force-merge, flush")
    return Sent(done.documents, done.body_bytes, done.seconds)


def check_answers(
    subjects: Sequence[AnySubject], plan: Plan, track: Track, home: Home, observer: Observer
) -> AnswerCheck:
    """Ask every search once, on node starts that are never measured, and compare what the engines say.

    A prepared index is frozen, so its answers are kept beside it and not asked again. All of its builds hold
    the same documents: the first one answers for them. A running cluster is asked itself, every time.
    """
    operations = operations_used(plan, track)
    books = {}
    for subject in subjects:
        name = subject.spec.name
        if isinstance(subject, Subject):
            book = AnswerBook(subject.index.root / "answers.json")
        else:
            book = AnswerBook(home.scratch / f"answers-{name}.json")  # never written
        missing = [operation for operation in operations if book.get(operation) is None]
        if missing:
            asked = "1 operation" if len(missing) == 1 else f"{len(missing)} operations"
            observer.stage(f"{name}: asking {asked}, unmeasured")
            if isinstance(subject, Subject):
                _ask_all(subject, missing, book, plan, track, home)
            else:
                _ask_target(subject, missing, book, track)
        books[name] = book
    known = _generators_book(operations, plan, track, home, observer)
    # An index that somebody else filled need not hold the corpus.
    filled = [subject.spec.name for subject in subjects if subject.index_facts.key]
    expected = dict.fromkeys(filled, known) if known is not None else {}
    shards = max((index.body.shards for index in track.indices), default=1)
    return compare_answers(operations, books, plan.variants[0].name, expected, shards)


def _generators_book(
    operations: Sequence[Operation], plan: Plan, track: Track, home: Home, observer: Observer
) -> AnswerBook | None:
    """What the generator knows must be found; None where it does not know what the index holds."""
    corpus = plan.corpus
    ours = corpus.generator_version == GENERATOR_VERSION and plan.track in track_names()
    # Over several shards, the most frequent terms are estimates.
    if not ours or track.shards > 1:
        return None
    book = AnswerBook(home.corpora / f".truth-v{EXPECTED_VERSION}-{corpus.digest[:16]}.json")
    if book.missing(operations):
        observer.stage("what the generator knows of the answers")
        expect_answers(operations, Slice(corpus.seed, corpus.documents, 0, corpus.documents), book)
        book.save()
    return book


def _ask_target(subject: TargetSubject, operations: Iterable[Asking], book: AnswerBook, track: Track) -> None:
    address = subject.address
    with (
        explained(address.name, address.endpoint),
        connect(subject.facts.engine, address.endpoint) as client,
    ):
        for operation in operations:
            book.add(operation, ask(client, operation, track.index_name))


def _ask_all(
    subject: Subject, operations: Iterable[Asking], book: AnswerBook, plan: Plan, track: Track, home: Home
) -> None:
    with (
        subject.workspace(home, "answers") as root,
        logs_kept_of_failure(root / "boot", home.logs / f"answers-{subject.spec.name}"),
        boot(
            subject.installation,
            subject.jdk,
            data=root / "data",
            folder=root / "boot",
            owner=home.node_owner,
            heap_mb=plan.heap_mb,
            expect_index=track.index_name,
        ) as node,
    ):
        found = len(node.client.segments(track.index_name))
        if found != len(subject.index.facts.segments):
            raise BenchctlError(
                f"{subject.spec.name}: a copy of the prepared index has {found} segments, "
                f"{len(subject.index.facts.segments)} were prepared",
                hint=f"delete {subject.index.root}; the next run builds it again",
            )
        for operation in operations:
            book.add(operation, ask(node.client, operation, track.index_name))
        node.stop()
    book.save()


def check_memory(plan: Plan, memory_bytes: int) -> None:
    """A heap that the host does not have ends in swapping, which would be measured.

    Raises:
        BenchctlError: the heap is more than three quarters of memory.
    """
    if plan.heap_mb * 2**20 > 0.75 * memory_bytes:
        raise BenchctlError(
            f"a heap of {plan.heap_mb} MB leaves too little of {memory_bytes / 2**30:.1f} GiB of memory",
            hint="give a smaller --heap",
        )
