"""Half-built indices: what is put by is exactly what was acknowledged, and stays when the next one fails."""

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from benchctl.corpus.bulk import Range
from benchctl.engine.client import EngineClocks, SearchClient
from benchctl.engine.filling import MANIFEST_NAME, PartialIndex, Progress
from benchctl.errors import BenchctlError
from benchctl.home import Home

NOTHING = Progress()


class Node:
    """As much of a node as putting by needs: it counts what is committed, and writes that to its folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.indexed: dict[str, int] = {}
        self._committed: dict[str, int] = {}
        self._asked = 0

    @property
    def client(self) -> SearchClient:
        return cast("SearchClient", self)

    def flush(self, name: str) -> None:
        self._committed[name] = self.indexed[name]
        shard = self.data / f"indices/{name}/0/index"
        shard.mkdir(parents=True, exist_ok=True)
        for old in shard.iterdir():
            old.unlink()
        (shard / f"segments_{self.indexed[name]}").touch()

    def refresh(self, name: str) -> None:
        assert name in self._committed

    def translog_operations(self, name: str) -> int:
        # Only when the first commit is known to be on disk can what was before it go.
        assert name in self._committed
        self._asked += 1
        return self._asked % 2 * 100

    def count(self, name: str) -> int:
        return self._committed[name]

    def write_clocks_of(self, name: str) -> EngineClocks:
        assert name in self._committed
        return EngineClocks(400, 3, 20, 1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def node(home: Home) -> Node:
    node = Node(home.scratch / "data")
    node.data.mkdir()
    return node


@pytest.fixture
def partial(home: Home) -> PartialIndex:
    return PartialIndex.of(home, "os-2.11.0-big5-100", "digest")


def sent(*ranges: Range, **changes: Any) -> Progress:
    return msgspec.structs.replace(Progress(ranges=ranges, body_bytes=1000, seconds=2.0), **changes)


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_what_was_put_by_is_taken_up_as_it_was(node: Node, partial: PartialIndex, tmp_path: Path):
    assert partial.progress() is None
    node.indexed = {"logs": 80}
    saved = partial.save(node.client, "logs", node.data, NOTHING, sent((0, 50), (70, 100)))
    assert partial.progress() == saved
    assert saved.documents == 80
    assert saved.missing(120) == ((50, 70), (100, 120))
    assert saved.goes == 1
    assert saved.clocks == EngineClocks(400, 3, 20, 1)
    node.indexed["logs"] = 81
    node.flush("logs")
    for name in ("first", "again"):
        partial.take_up(tmp_path / name)
        assert files(tmp_path / name) == ["indices/logs/0/index/segments_80"]


def test_a_second_go_adds_to_the_first(node: Node, partial: PartialIndex):
    node.indexed = {"logs": 50}
    first = partial.save(node.client, "logs", node.data, NOTHING, sent((0, 50)))
    node.indexed = {"logs": 70}
    second = partial.save(node.client, "logs", node.data, first, sent((50, 70), checkpoint_s=0.5))
    third = partial.save(node.client, "logs", node.data, first, sent((50, 70), seconds=3.0))
    assert second.ranges == ((0, 70),)
    assert (second.body_bytes, second.seconds, second.checkpoint_s, second.goes) == (2000, 4.0, 0.5, 2)
    assert second.clocks.indexing_ms == 800
    # Checkpoints of the same go replace each other.
    assert (third.seconds, third.goes) == (5.0, 2)
    assert partial.progress() == third
    assert len(list(partial.root.iterdir())) == 2


@pytest.mark.parametrize("held", [49, 51])
def test_documents_that_nobody_knows_of_are_not_put_by(node: Node, partial: PartialIndex, held: int):
    node.indexed = {"logs": 20}
    before = partial.save(node.client, "logs", node.data, NOTHING, sent((0, 20)))
    node.indexed = {"logs": held}
    with pytest.raises(BenchctlError, match=f"{held} documents are in the index, 50 were acknowledged"):
        partial.save(node.client, "logs", node.data, before, sent((20, 50)))
    assert partial.progress() == before


@pytest.mark.parametrize("earlier", [1, 2, 3])
def test_what_cannot_be_put_by_leaves_what_was(
    node: Node, partial: PartialIndex, tmp_path: Path, earlier: int
):
    before = NOTHING
    for number in range(1, earlier + 1):
        node.indexed = {"logs": 20 * number}
        before = partial.save(node.client, "logs", node.data, NOTHING, sent((0, 20 * number)))
    node.indexed = {"logs": 90}
    (node.data / "planted").symlink_to(tmp_path)
    with pytest.raises(BenchctlError, match="cannot put by a half-built index"):
        partial.save(node.client, "logs", node.data, NOTHING, sent((0, 90)))
    assert partial.progress() == before
    partial.take_up(tmp_path / "data")
    assert files(tmp_path / "data") == [f"indices/logs/0/index/segments_{20 * earlier}"]


def test_what_a_killed_benchctl_left_beside_it_goes(node: Node, partial: PartialIndex):
    node.indexed = {"logs": 20}
    first = partial.save(node.client, "logs", node.data, NOTHING, sent((0, 20)))
    for name in ("data-1", "data-2"):
        (partial.root / name / "half").mkdir(parents=True, exist_ok=True)
    node.indexed = {"logs": 30}
    partial.save(node.client, "logs", node.data, first, sent((20, 30)))
    assert files(partial.root) == ["data-2/indices/logs/0/index/segments_30", MANIFEST_NAME]


def test_of_another_index_nothing_is_taken_up(node: Node, partial: PartialIndex, home: Home):
    node.indexed = {"logs": 20}
    partial.save(node.client, "logs", node.data, NOTHING, sent((0, 20)))
    another = PartialIndex.of(home, partial.root.name, "another")
    assert another.progress() is None
    with pytest.raises(BenchctlError, match="no half-built index"):
        another.take_up(home.scratch / "new")


@pytest.mark.parametrize("text", ["", "{}", '{"key": "digest"}'])
def test_a_damaged_manifest_is_an_error_that_names_its_folder(partial: PartialIndex, text: str):
    partial.root.mkdir()
    (partial.root / MANIFEST_NAME).write_text(text, encoding="utf-8")
    with pytest.raises(BenchctlError, match="is damaged") as caught:
        partial.progress()
    assert str(partial.root) in caught.value.hint


def test_what_is_discarded_is_gone(node: Node, partial: PartialIndex):
    partial.discard()
    node.indexed = {"logs": 20}
    partial.save(node.client, "logs", node.data, NOTHING, sent((0, 20)))
    (node.data / "indices/logs/0/index/segments_20").write_bytes(b"12345")
    assert partial.size_bytes() == 5 + (partial.root / MANIFEST_NAME).stat().st_size
    partial.discard()
    assert partial.progress() is None
    assert not partial.root.exists()
