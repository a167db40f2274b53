"""The collectors that have the JVM write a log: their flags, and the log as columns."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from benchctl.engine.node import Node
from benchctl.errors import BenchctlError
from benchctl.evidence.collectors import Collector, GcCollector, JitCollector, Scene
from benchctl.evidence.files import GC_DTYPES, GC_FILE, JIT_DTYPES, JIT_FILE, read_evidence

JIT_LOG = """\
[1500ns][7]   14       3       D::run (40 bytes)
[1600ns][8]   15       3       D::run (40 bytes)
[1700ns][7] cid=  14     level=4 D.run()V trap_bci=8 class_check none pc=0x1 relative_pc=0x2
"""
GC_LOG = """\
[9000000ns][7] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 12M->11M(256M) 4.000ms
[9000000ns][8] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 12M->11M(256M) 4.000ms
[9100000ns][7] Safepoint "G1", Time since last: 1 ns, Reaching safepoint: 20 ns, Total: 4100000 ns
"""


@dataclass
class Process:
    """What a collector reads of a node."""

    pid: int = 7
    started_ns: int = 1000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    (tmp_path / "java").mkdir()
    (tmp_path / "evidence").mkdir()
    return Scene(tmp_path / "evidence", tmp_path / "java", 21)


def run(collector: Collector, log: Path, text: str) -> None:
    node = cast("Node", Process())
    collector.begin(node)
    log.write_text(text, encoding="utf-8")
    collector.measured(node)
    collector.end()


@pytest.mark.parametrize(("major", "deoptimisations"), [(8, False), (17, False), (21, True), (25, True)])
def test_a_runtime_that_does_not_know_the_tag_would_not_start_with_it(
    scene: Scene, major: int, *, deoptimisations: bool
):
    (flag,) = JitCollector(replace(scene, java_major=major)).flags()
    assert ("deoptimization=debug" in flag) == deoptimisations
    assert flag.startswith("-Xlog:jit+compilation=debug")


def test_logs_go_into_the_scene_with_times_that_other_processes_share(scene: Scene):
    for collector in (JitCollector(scene), GcCollector(scene)):
        (flag,) = collector.flags()
        path = scene.folder / f"{collector.kind}.log"
        assert flag.endswith(f":file={path}:timenanos,pid:filecount=0")


def test_compilations_of_the_node_alone_become_columns(scene: Scene):
    run(JitCollector(scene), scene.folder / "jit.log", JIT_LOG)
    found = read_evidence(scene.folder / JIT_FILE, JIT_DTYPES)
    assert found["uptime_ns"].tolist() == [500, 700]
    assert found["what"].tolist() == ["compiled", "deoptimised"]
    assert found["reason"].tolist() == ["", "class_check"]


def test_pauses_and_safepoints_of_the_node_alone_become_columns(scene: Scene):
    run(GcCollector(scene), scene.folder / "gc.log", GC_LOG)
    found = read_evidence(scene.folder / GC_FILE, GC_DTYPES)
    assert found["what"].tolist() == ["pause", "safepoint"]
    assert found["uptime_ns"].tolist() == [4_999_000, 4_999_000]
    assert found["reach_ns"].tolist() == [-1, 20]
    assert found["after_bytes"].tolist() == [11 << 20, -1]


def test_a_number_that_nobody_measured_is_a_damaged_log(scene: Scene):
    damaged = JIT_LOG.replace("cid=  14", "cid=99999999999")
    with pytest.raises(BenchctlError, match="is damaged"):
        run(JitCollector(scene), scene.folder / "jit.log", damaged)


@pytest.mark.parametrize("kind", [JitCollector, GcCollector])
def test_a_node_that_never_was_ready_leaves_its_log_alone(
    scene: Scene, kind: type[JitCollector] | type[GcCollector]
):
    kind(scene).end()
    assert not list(scene.folder.iterdir())


@pytest.mark.parametrize("kind", [JitCollector, GcCollector])
def test_a_log_that_is_not_there_is_an_error(scene: Scene, kind: type[JitCollector] | type[GcCollector]):
    collector = kind(scene)
    collector.begin(cast("Node", Process()))
    with pytest.raises(BenchctlError, match="cannot read"):
        collector.end()
