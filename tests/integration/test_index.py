"""Prepared indices on real nodes: what is kept, what a fork's copy may touch, and what a failure leaves."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from benchctl.corpus.generated import Corpus, open_documents
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import starts_of
from benchctl.engine.node import Node
from benchctl.engine.prepared_index import PreparedIndex, copy_index
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.plan import CorpusSpec, EngineName, Plan, VariantSpec
from benchctl.run import prepare
from benchctl.run.bench import Observer, SharedObserver
from benchctl.run.documents import Parcel, parcels
from benchctl.run.plan import RunSpec, plan_run
from benchctl.run.prepare import check_answers, prepare_corpus, prepare_started
from benchctl.run.session import Start, Subject
from benchctl.track.model import Track
from builders import exact_hits

# Whoever prepares an index here finds the engines as they start quickly.
pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("installations")]

DOCUMENTS = 5_000
HEAP_MB = 512
EMPTY_TRANSLOG_BYTES = 1_000
LEAST_ARCHIVE_BYTES = 20_000_000
VERSIONS: dict[EngineName, str] = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}


def prepare_all(plan: Plan, track: Track, home: Home, sent: Sequence[Parcel] | None = None) -> list[Subject]:
    found = parcels(plan, track, home) if sent is None else sent
    observer = SharedObserver(Observer())
    return prepare_started(plan.variants, plan, track, lambda _: (plan.corpus, found), home, observer)


@pytest.fixture(scope="module")
def corpus(home: Home) -> Corpus:
    return prepare_corpus(home, DOCUMENTS, 1, Observer())


@pytest.fixture(scope="module")
def planned(corpus: Corpus) -> tuple[Plan, Track]:
    options = RunSpec(
        variants=tuple(VariantSpec(engine, engine, version) for engine, version in VERSIONS.items()),
        challenges=("range-only-short",),
        warmup_challenges=(),
        restart="challenge",
        forks=1,
        seed=1,
        heap_mb=HEAP_MB,
        track="big5",
        corpus=CorpusSpec(corpus.seed, corpus.documents, corpus.generator_version, corpus.digest),
        segments=1,
        params={},
    )
    return plan_run(options)


@pytest.fixture(scope="module")
def subjects(
    planned: tuple[Plan, Track], home: Home, jdk: Jdk, installations: dict[EngineName, Installation]
) -> dict[str, Subject]:
    """Both engines with their indices and archives of classes, prepared as with nothing."""
    for installation in installations.values():
        starts_of(home, installation).archive(installation, jdk).path.unlink()
    prepared = prepare_all(*planned, home)
    return {subject.spec.engine: subject for subject in prepared}


@pytest.fixture
def subject(subjects: dict[str, Subject], engine: EngineName) -> Subject:
    """Each engine in turn, with its index."""
    return subjects[engine]


def index_of(subject: Subject) -> PreparedIndex:
    """The index that every subject here has."""
    assert subject.index is not None
    return subject.index


def files(root: Path) -> dict[str, Path]:
    """Every file below a folder by its relative path."""
    return {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}


def contents(root: Path) -> dict[str, str]:
    """The digest of every file below a folder."""
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files(root).items()}


def is_lucene(name: str) -> bool:
    """Whether a path is that of a file in a shard's `index` folder, `indices/UUID/0/index/FILE`."""
    folder = Path(name).parent
    return folder.name == "index" and folder.parent.name.isdigit()


@dataclass(frozen=True)
class Visit:
    """What a fork's node saw of its copy."""

    segments: tuple[object, ...]
    hits: int


def visit(subject: Subject, index_name: str, home: Home, scratch: Path) -> Visit:
    """Boot on a copy as a fork does, search, and stop."""
    copy_index(index_of(subject), scratch / "data")
    with Node(
        subject.installation,
        subject.jdk,
        data=scratch / "data",
        folder=scratch / "boot",
        owner=home.node_owner,
        heap_mb=HEAP_MB,
        expect_index=index_name,
    ) as node:
        found = node.client.search(index_name, {"size": 0, "track_total_hits": True})
        segments = tuple(node.client.segments(index_name))
        node.stop()
    return Visit(segments, found["hits"]["total"]["value"])


def test_a_prepared_index_is_one_segment_with_an_empty_translog(subject: Subject):
    facts = index_of(subject).facts
    assert facts.documents == DOCUMENTS
    assert [segment.documents for segment in facts.segments] == [DOCUMENTS]
    assert facts.store_bytes == facts.segments[0].size_bytes
    kept = files(index_of(subject).data)
    translogs = {name: path.stat().st_size for name, path in kept.items() if name.endswith(".tlog")}
    assert translogs
    assert max(translogs.values()) < EMPTY_TRANSLOG_BYTES
    assert len([name for name in kept if is_lucene(name) and Path(name).name.startswith("segments_")]) == 1


def test_the_node_that_filled_an_index_archived_its_classes_and_was_asked(
    subject: Subject, planned: tuple[Plan, Track], home: Home, monkeypatch: pytest.MonkeyPatch
):
    assert subject.starts is not None
    assert subject.starts.archive(subject.installation, subject.jdk).path.stat().st_size > LEAST_ARCHIVE_BYTES
    assert not subject.unarchived
    monkeypatch.setattr(prepare, "_ask_all", lambda *_: pytest.fail("it is asked again"))
    answered = check_answers([subject], *planned, home, Observer())
    assert exact_hits(answered)["range"][subject.spec.name] > 0
    # Of exercises for the archive, nothing is kept.
    assert (
        len({file.parts[1] for file in map(Path, files(index_of(subject).data)) if is_lucene(str(file))}) == 1
    )


def test_a_prepared_index_is_found_again(subject: Subject, planned: tuple[Plan, Track], home: Home):
    again = prepare_all(*planned, home)
    (found,) = [one for one in again if one.spec.engine == subject.spec.engine]
    assert found.index_facts == msgspec.structs.replace(index_of(subject).facts, cached=True)


def test_a_fork_sees_the_same_segments_and_changes_nothing(
    subject: Subject, planned: tuple[Plan, Track], home: Home, scratch: Path
):
    index = index_of(subject)
    before = contents(index.root)
    seen = visit(subject, planned[1].indices[0].name, home, scratch)
    assert seen == Visit(index.facts.segments, DOCUMENTS)
    assert contents(index.root) == before


@pytest.mark.full
def test_a_node_that_cannot_read_its_data_says_so(subject: Subject, home: Home):
    with subject.workspace(home, "damaged") as work:
        state = next((work / "data").rglob("_state/segments_*"))
        content = bytearray(state.read_bytes())
        content[len(content) // 2] ^= 1
        state.write_bytes(content)
        start = subject.start(Start(work, work / "boot", home, HEAP_MB, None))
        with pytest.raises(BenchctlError, match="CorruptIndexException") as caught, start:
            pytest.fail("it started")
    assert "the prepared index is intact, but this copy of it was damaged" in caught.value.message
    assert "port" not in caught.value.hint


def test_only_lucene_files_are_linked(subject: Subject, scratch: Path):
    copy_index(index_of(subject), scratch / "data")
    originals, copies = files(index_of(subject).data), files(scratch / "data")
    assert {name for name in originals if not name.endswith(".lock")} == set(copies)
    linked = {name for name, path in copies.items() if path.samefile(originals[name])}
    assert linked == {name for name in copies if is_lucene(name)}
    assert linked


def cut_short(corpus: Corpus, folder: Path) -> Corpus:
    """A copy of a corpus that ends in the middle of its last file."""
    shutil.copytree(corpus.root, folder)
    last = folder / corpus.parts[-1].name
    os.truncate(last, last.stat().st_size // 2)
    return msgspec.structs.replace(corpus, folder=str(folder))


@pytest.mark.full
@pytest.mark.parametrize("engine", ["opensearch"], indirect=True)
def test_a_build_whose_sender_fails_half_way_leaves_nothing(
    subject: Subject, planned: tuple[Plan, Track], corpus: Corpus, home: Home, scratch: Path
):
    plan, track = planned
    spec = msgspec.structs.replace(plan.corpus, digest="that of no prepared index")
    plan = msgspec.structs.replace(plan, variants=(subject.spec,), corpus=spec)
    broken = cut_short(corpus, scratch / "corpus")

    def read(start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        return open_documents(broken, start=start, stop=stop)

    sent = (Parcel(read, DOCUMENTS, 0.0, track.indices[0].name),)
    before = sorted(home.indices.iterdir()), sorted(home.scratch.iterdir())
    with pytest.raises(BenchctlError, match="is damaged"):
        prepare_all(plan, track, home, sent)
    assert (sorted(home.indices.iterdir()), sorted(home.scratch.iterdir())) == before
