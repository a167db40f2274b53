"""The collector of HotSpot's log."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from benchctl.engine.node import Node
from benchctl.errors import BenchctlError
from benchctl.evidence.collectors import Collector, InliningCollector, Scene
from jvm_logs import INLINED_VISIT, INTS, head, plain


@dataclass
class Output:
    """Of a node that is not there, its output alone."""

    stdout: Path


def collector(folder: Path) -> Collector:
    return InliningCollector(Scene(folder / "evidence", folder / "java"))


def test_the_log_goes_to_a_file_in_the_scene(tmp_path: Path):
    flags = collector(tmp_path).flags()
    assert flags[0] == "-XX:+UnlockDiagnosticVMOptions"
    assert {"-XX:+PrintInlining", "-XX:+PrintCompilation", "-XX:+LogVMOutput"} < set(flags)
    assert flags[-1] == f"-XX:LogFile={tmp_path}/evidence/jvm.log"
    # It would silence what the start scripts of both engines read.
    assert "-XX:-DisplayVMOutput" not in flags


def run(folder: Path, *, kept: bool) -> bytes:
    stdout = folder / "stdout.log"
    stdout.write_bytes(
        plain(
            "[INFO] starting",
            head(1, 5, 4, INTS),
            *INLINED_VISIT,
            "[INFO] started",
            "   inline",
            "match (50 bytes)   callee is too large",
        )
    )
    (folder / "evidence").mkdir()
    if kept:
        (folder / "evidence" / "jvm.log").touch()
    collecting = collector(folder)
    collecting.begin(cast("Node", Output(stdout)))
    collecting.measured(cast("Node", Output(stdout)))
    collecting.end()
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["stdout.log"]
    return stdout.read_bytes()


def test_the_nodes_output_keeps_the_engines_lines(tmp_path: Path):
    assert run(tmp_path, kept=True) == b"[INFO] starting\n[INFO] started\n"


def test_nothing_is_written_through_a_link_that_a_node_left(tmp_path: Path):
    (tmp_path / ".stdout.log.partial").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BenchctlError, match="take the JVM's lines out"):
        run(tmp_path, kept=True)
    assert not (tmp_path / "elsewhere").exists()


def test_nothing_is_taken_out_of_the_output_when_there_is_no_log(tmp_path: Path):
    assert run(tmp_path, kept=False).count(b"\n") == 9


def test_a_node_that_never_was_up_leaves_nothing_to_do(tmp_path: Path):
    collector(tmp_path).end()
