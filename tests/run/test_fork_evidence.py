"""Evidence of a node start: collectors called in their order, and what they leave kept."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import click
import pytest
import zstandard

from benchctl.errors import BenchctlError
from benchctl.evidence.collectors import COLLECTORS, Scene
from benchctl.evidence.commands import explain_group
from benchctl.run import fork
from benchctl.run.fork import collecting, keep_evidence
from benchctl.spec import EvidenceKind

LONG = b"[1ns][7] a line\n" * 100_000


@dataclass
class Recorder:
    """Notes how it is called, and breaks where it is told to."""

    scene: Scene
    kind: EvidenceKind = "jit"
    calls: list[str] = field(default_factory=list)
    breaks: bool = False

    def end(self) -> None:
        (self.scene.folder / f"{self.kind}.log").write_bytes(LONG if self.kind == "jit" else b"short")
        self.calls.append("end")
        if self.breaks:
            raise BenchctlError(f"{self.kind} broke at its end")


Recorders = list[Recorder]


@pytest.fixture
def recorders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorders:
    scene = Scene(tmp_path / "boot-0" / "evidence", tmp_path)
    scene.folder.mkdir(parents=True)
    made = [Recorder(scene), Recorder(scene, "gc")]
    monkeypatch.setattr(fork, "hook", lambda _: SimpleNamespace(collectors=lambda *_: made))
    return made


def collect(recorders: Recorders, kept: Path, during: Callable[[], None] = lambda: None) -> None:
    with collecting(("jit", "gc"), recorders[0].scene, kept) as found:
        assert found == recorders
        during()


def test_collectors_end_in_their_order(recorders: Recorders, tmp_path: Path):
    collect(recorders, tmp_path / "kept")
    assert [one.calls for one in recorders] == [["end"]] * 2


def test_what_they_leave_is_moved_and_long_logs_are_packed(recorders: Recorders, tmp_path: Path):
    kept = tmp_path / "kept" / "boot-0"
    kept.mkdir(parents=True)
    (kept / "old").touch()
    collect(recorders, kept)
    assert sorted(path.name for path in kept.iterdir()) == ["gc.log", "jit.log.zst"]
    with (kept / "jit.log.zst").open("rb") as file:
        assert zstandard.ZstdDecompressor().stream_reader(file).read() == LONG
    packed = zstandard.get_frame_parameters((kept / "jit.log.zst").read_bytes())
    assert (packed.content_size, packed.has_checksum) == (len(LONG), True)
    assert not recorders[0].scene.folder.exists()


def fail() -> None:
    raise BenchctlError("the node died")


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("during", "raised"), [(fail, BenchctlError), (interrupt, KeyboardInterrupt)])
def test_evidence_of_what_failed_is_kept_and_the_failure_is_what_is_told(
    recorders: Recorders, tmp_path: Path, during: Callable[[], None], raised: type[BaseException]
):
    recorders[0].breaks = True
    with pytest.raises(raised) as caught:
        collect(recorders, tmp_path / "kept", during)
    assert "broke" not in str(caught.value)
    assert [one.calls for one in recorders] == [["end"]] * 2
    assert (tmp_path / "kept" / "gc.log").exists()


def test_a_collector_that_fails_stops_no_other(recorders: Recorders, tmp_path: Path):
    recorders[0].breaks = True
    with pytest.raises(BenchctlError, match="jit broke at its end"):
        collect(recorders, tmp_path / "kept")
    assert recorders[1].calls[-1] == "end"
    assert (tmp_path / "kept" / "jit.log.zst").exists()


def test_every_kind_has_its_collector_and_a_command_that_shows_it():
    kinds: tuple[EvidenceKind, ...] = get_args(EvidenceKind)
    assert tuple(COLLECTORS) == (*explain_group.list_commands(click.Context(explain_group)),) == kinds


def test_a_link_that_a_node_left_is_not_followed(tmp_path: Path):
    secret = tmp_path / "secret.log"
    secret.write_bytes(LONG)
    folder = tmp_path / "evidence"
    folder.mkdir()
    (folder / "jit.log").symlink_to(secret)
    keep_evidence(folder, tmp_path / "kept")
    assert (tmp_path / "kept" / "jit.log").is_symlink()
    assert secret.read_bytes() == LONG
