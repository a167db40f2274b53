"""What must be there before the first fork: engines, a Java runtime, the corpus, indices, answers."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchctl.corpus.bulk import frame_bodies
from benchctl.corpus.files import Corpus, ensure_corpus, open_documents
from benchctl.engine.answers import AnswerBook, ask, compare_answers
from benchctl.engine.archive import disk_errors
from benchctl.engine.index import (
    IndexKey,
    PreparedIndex,
    Sent,
    building,
    copy_index,
    fill,
    find_prepared,
    keep,
)
from benchctl.engine.install import Installation, install
from benchctl.engine.jdk import Jdk, provide_jdk
from benchctl.engine.node import Node, boot
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.load.ingest import ingest
from benchctl.results.model import AnswerCheck, Plan, VariantSpec
from benchctl.run.host import free_bytes
from benchctl.run.leftovers import logs_kept_of_failure
from benchctl.run.observer import Observer
from benchctl.run.plan import operations_used
from benchctl.track.model import Operation, Track

DOCUMENTS_PER_BODY = 2000
# A dying JVM closes its sockets a moment before its process is gone.
NODE_DEATH_S = 1.0


@dataclass(frozen=True)
class Subject:
    """A variant with everything that it needs to boot."""

    spec: VariantSpec
    installation: Installation
    jdk: Jdk
    index: PreparedIndex


def prepare_corpus(home: Home, documents: int, seed: int, observer: Observer) -> Corpus:
    """Generate the corpus, or find it."""
    written = 0

    def progress(new: int) -> None:
        nonlocal written
        written += new
        observer.progress("documents", written, documents)

    observer.stage(f"corpus of {documents:,} documents")
    return ensure_corpus(home, documents, seed=seed, progress=progress)


def prepare_subjects(
    plan: Plan, track: Track, corpus: Corpus, home: Home, observer: Observer
) -> list[Subject]:
    """Install every variant's engine and runtime and build its index where that has not been done before.

    Raises:
        BenchctlError: a step failed; what was half done is gone.
    """
    subjects = []
    for spec in plan.variants:
        observer.stage(f"{spec.name}: engine and Java runtime")
        installation = install(home, spec, observer.progress)
        jdk = provide_jdk(home, spec.jdk)
        key = IndexKey(installation, plan.corpus, track, plan.segments, plan.ingest_clients)
        index = find_prepared(home, key) or _build(plan, key, jdk, corpus, home, observer)
        subjects.append(Subject(spec, installation, jdk, index))
    return subjects


def _build(
    plan: Plan, key: IndexKey, jdk: Jdk, corpus: Corpus, home: Home, observer: Observer
) -> PreparedIndex:
    engine = f"{key.installation.engine} {key.installation.version}"
    kept = home.logs / f"index-{key.folder_name}"
    with building(home, key, free_bytes=free_bytes) as root, logs_kept_of_failure(root / "boot", kept):
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
            facts = fill(node, key, lambda node, name: _send(node, name, corpus, key.clients, observer))
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


def base_url(node: Node) -> str:
    """Where the measured client finds a node."""
    return f"http://127.0.0.1:{node.http_port}"


def _send(node: Node, name: str, corpus: Corpus, clients: int, observer: Observer) -> Sent:
    try:
        done = ingest(
            frame_bodies(open_documents(corpus), DOCUMENTS_PER_BODY),
            base_url=base_url(node),
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
    subjects: Iterable[Subject], plan: Plan, track: Track, home: Home, observer: Observer
) -> AnswerCheck:
    """Ask every operation once, on node starts that are never measured, and compare what the engines say.

    An index is frozen, so its answers are kept beside it and not asked again.
    """
    operations = operations_used(plan, track)
    books = {}
    for subject in subjects:
        book = AnswerBook(subject.index.root / "answers.json")
        missing = book.missing(operations)
        if missing:
            observer.stage(f"{subject.spec.name}: asking {len(missing)} operations, unmeasured")
            _ask_all(subject, missing, book, plan, track, home)
        books[subject.spec.name] = book
    return compare_answers(operations, books, plan.variants[0].name)


def _ask_all(
    subject: Subject, operations: Iterable[Operation], book: AnswerBook, plan: Plan, track: Track, home: Home
) -> None:
    with (
        scratch_copy(subject, home, "answers") as root,
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


@contextmanager
def scratch_copy(subject: Subject, home: Home, purpose: str) -> Iterator[Path]:
    """A scratch folder with a private copy of the subject's index in `data`; gone afterwards."""
    root = home.scratch / f"{purpose}-{subject.spec.name}"
    shutil.rmtree(root, ignore_errors=True)
    try:
        with disk_errors(f"create {root}"):
            root.mkdir(parents=True)
            open_folder(root)
        copy_index(subject.index, root / "data", home.node_owner)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


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
