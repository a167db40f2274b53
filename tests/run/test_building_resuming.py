"""What is put by of a preparation: when, what the next one makes of it, and what is said about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from benchctl.engine.client import EngineClocks, NodeRequestError, SearchClient
from benchctl.engine.distribution import Installation
from benchctl.engine.filling import MANIFEST_NAME, Sent
from benchctl.engine.prepared_index import IndexKey
from benchctl.engine.usage import Reading
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.load.ingest import Ingested
from benchctl.results.model import IngestCosts
from benchctl.results.plan import CorpusFile, CorpusSpec
from benchctl.run.bench import SilentObserver
from benchctl.run.building import USUAL, Keeping, OutdatedError, Resumption, with_cpu
from benchctl.track.load import load_track
from builders import CORPUS

ALWAYS = Keeping(after_s=0.0, every_bytes=1)


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


class Node:
    """As much of a node as is asked here: it holds as many documents as it is told."""

    def __init__(self) -> None:
        self.documents = 0
        self.failure: BenchctlError | None = None

    @property
    def client(self) -> SearchClient:
        return cast("SearchClient", self)

    def flush(self, name: str) -> None:
        assert name == "big5"
        if self.failure is not None:
            raise self.failure

    def refresh(self, name: str) -> None:
        assert name == "big5"

    def translog_operations(self, name: str) -> int:
        return 0 if name == "big5" else 1

    def count(self, name: str) -> int:
        return self.documents if name == "big5" else -1

    def write_clocks_of(self, name: str) -> EngineClocks:
        assert name == "big5"
        return EngineClocks(indexing_ms=500, refresh_ms=1, merge_ms=2, flush_ms=3)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home")


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def data(home: Home) -> Path:
    folder = home.scratch / "data"
    (folder / "indices/x/0/index").mkdir(parents=True)
    (folder / "indices/x/0/index/segments_1").touch()
    return folder


def key(corpus: CorpusSpec = CORPUS) -> IndexKey:
    distribution = Installation("opensearch", "2.11.0", Path("/os"), "a" * 64, (), "9.7.0", "sha512")
    return IndexKey(distribution, corpus, load_track("big5", {})[0], 1, 2)


@pytest.fixture
def begin(home: Home, notes: Notes) -> Callable[..., Resumption]:
    """A preparation that starts, or starts again."""

    def make(keeping: Keeping = ALWAYS, **changes: Any) -> Resumption:
        return Resumption(home, changes.get("key", key()), keeping, title="os 2.11.0", observer=notes)

    return make


DECLARED: dict[str, dict[str, str | None]] = {"big5": {"index.refresh_interval": None}}


@pytest.fixture
def put_by(begin: Callable[..., Resumption], node: Node, data: Path) -> Callable[[int], None]:
    """Ingest so many documents from the beginning, within 30 s, and put them by."""

    def save(documents: int) -> None:
        node.documents = documents
        checkpoints = begin().checkpoints(node.client, data, DECLARED)
        assert checkpoints is not None
        checkpoints.save(Ingested(documents, 9_000, 30.0, 0.5, ((0, documents),)))

    return save


def test_a_first_go_makes_everything(begin: Callable[..., Resumption], node: Node, data: Path):
    first = begin(USUAL)
    first.take_up(data)
    assert (data / "indices").exists()
    assert first.declared(node.client) is None
    checkpoints = first.checkpoints(node.client, data, DECLARED)
    assert checkpoints is not None
    assert list(checkpoints.missing) == [(0, 1_000_000)]
    assert checkpoints.after_s == USUAL.after_s
    sent = Sent(1_000_000, 9, 8.0, 0.5)
    assert first.total(sent) == sent
    assert first.bytes_put_by == 0


def test_a_second_go_sends_the_rest_and_tells_of_both(
    begin: Callable[..., Resumption],
    put_by: Callable[[int], None],
    node: Node,
    home: Home,
    notes: Notes,
    data: Path,
):
    put_by(600_000)
    second = begin(USUAL)
    new = home.scratch / "new"
    new.mkdir()
    second.take_up(new)
    assert (new / "indices/x/0/index/segments_1").samefile(data / "indices/x/0/index/segments_1")
    assert second.bytes_put_by > 0
    assert second.declared(node.client) == DECLARED
    assert notes.said == [
        "os 2.11.0: going on with 600,000 of 1,000,000 documents that an earlier preparation had sent"
    ]
    checkpoints = second.checkpoints(node.client, new, DECLARED)
    assert checkpoints is not None
    assert list(checkpoints.missing) == [(600_000, 1_000_000)]
    # What took long enough already is worth keeping whatever comes next.
    assert checkpoints.after_s == 0
    whole = second.total(Sent(400_000, 6_000, 20.0, 0.25, costs=IngestCosts(1.0, 2.0)))
    assert whole.costs is None  # of the first go nobody knows them
    assert (whole.documents, whole.body_bytes, whole.seconds, whole.checkpoint_s) == (
        1_000_000,
        15_000,
        50.0,
        0.75,
    )
    assert whole.resumed == 1
    assert whole.clocks.indexing_ms == 500


@pytest.mark.parametrize("held", [599_999, 600_001])
def test_an_index_that_is_not_what_was_put_by_is_built_anew(
    begin: Callable[..., Resumption], put_by: Callable[[int], None], node: Node, held: int
):
    put_by(600_000)
    second = begin()
    node.documents = held
    with pytest.raises(OutdatedError, match=f"holds {held:,} documents instead of 600,000"):
        second.declared(node.client)
    assert begin().before.documents == 0


def test_finished_indices_leave_nothing(
    begin: Callable[..., Resumption], put_by: Callable[[int], None], home: Home
):
    put_by(600_000)
    begin().discard()
    assert list(home.partial.iterdir()) == []


def test_lines_that_say_what_to_do_begin_anew(begin: Callable[..., Resumption], node: Node, data: Path):
    file = CorpusFile(path="/f", documents=5, held=5, raw_bytes=9, sha256="s", has_actions=True)
    corpus = msgspec.structs.replace(CORPUS, documents=5, files=(file,))
    assert begin(key=key(corpus)).checkpoints(node.client, data, {}) is None


def test_what_cannot_be_put_by_is_said_once_and_the_ingest_goes_on(
    begin: Callable[..., Resumption], node: Node, data: Path, notes: Notes
):
    checkpoints = begin().checkpoints(node.client, data, {})
    assert checkpoints is not None
    node.documents = 5
    for _ in range(2):
        checkpoints.save(Ingested(6, 9, 1.0, 0.0, ((0, 6),)))
    (said,) = notes.said
    assert said == (
        "os 2.11.0: an interruption would lose what was sent: 5 documents are in the index, "
        "6 were acknowledged"
    )


def test_a_node_that_is_gone_is_for_its_sender_to_report(
    begin: Callable[..., Resumption], node: Node, data: Path, notes: Notes
):
    checkpoints = begin().checkpoints(node.client, data, {})
    assert checkpoints is not None
    node.failure = NodeRequestError("POST /big5/_flush", 0, "connection refused")
    checkpoints.save(Ingested(6, 9, 1.0, 0.0, ((0, 6),)))
    assert notes.said == []


def test_an_interrupt_tells_what_is_kept_and_how_to_go_on(
    begin: Callable[..., Resumption], put_by: Callable[[int], None], home: Home
):
    first = begin()
    with pytest.raises(KeyboardInterrupt), first.reported():
        raise KeyboardInterrupt
    put_by(600_000)
    with pytest.raises(BenchctlError) as caught, first.reported():
        raise KeyboardInterrupt
    root = home.partial / key().folder_name
    assert caught.value.exit_code == ExitCode.INTERRUPTED
    assert caught.value.message.startswith(
        f"interrupted; 600,000 of 1,000,000 documents of os 2.11.0's index are kept in {root} ("
    )
    assert caught.value.hint == f"rerun the same command to resume; to start over: rm -r '{root}'"


def test_a_failure_keeps_its_message_and_tells_what_is_kept(
    begin: Callable[..., Resumption], put_by: Callable[[int], None]
):
    first = begin()
    failure = BenchctlError("the node is gone", hint="give it memory", exit_code=ExitCode.USAGE)
    with pytest.raises(BenchctlError) as caught, first.reported():
        raise failure
    assert caught.value is failure
    put_by(600_000)
    with (
        pytest.raises(BenchctlError, match="the node is gone; 600,000 of 1,000,") as caught,
        first.reported(),
    ):
        raise failure
    assert caught.value.hint.startswith("give it memory; rerun the same command to resume")
    assert caught.value.exit_code == ExitCode.USAGE


def test_what_is_put_by_and_damaged_is_not_guessed_at(
    begin: Callable[..., Resumption], put_by: Callable[[int], None], home: Home
):
    put_by(600_000)
    (home.partial / key().folder_name / MANIFEST_NAME).write_text("{", encoding="utf-8")
    with pytest.raises(BenchctlError, match="is damaged"):
        begin()


def test_the_cpu_of_an_ingest_is_by_kind_of_thread_where_it_could_be_read():
    sent = Sent(9, 9, 1.0, costs=IngestCosts(1.0, 2.0))
    begin, end = Reading(0, 10**9, {1: 0}, 0, 0), Reading(9, 4 * 10**9, {1: 2 * 10**9}, 0, 0)
    kinds = {7: {1: "write"}}
    costs = with_cpu(sent, {7: begin}, {7: end}, kinds).costs
    assert costs is not None
    assert (costs.cpu_s["write"], costs.cpu_s["other"], sum(costs.cpu_s.values())) == (2.0, 1.0, 3.0)
    costs = with_cpu(sent, {7: begin, 8: begin}, {7: end, 8: end}, kinds | {8: {1: "search"}}).costs
    assert costs is not None
    assert (costs.cpu_s["write"], costs.cpu_s["search"], costs.cpu_s["other"]) == (2.0, 2.0, 2.0)
    assert with_cpu(sent, {}, {7: end}, kinds) == with_cpu(sent, {7: begin}, {7: end}, {7: {}}) == sent
    assert with_cpu(sent, {7: begin}, {7: end}, kinds | {8: {1: "write"}}) == sent
