"""The collector with stand-ins for `jcmd` and `jfr`: what it orders, and what it makes of the answers."""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from benchctl.engine.node import Node
from benchctl.errors import BenchctlError
from benchctl.evidence.collectors import (
    RECORDING_NAME,
    SETTINGS,
    SETTINGS_NAME,
    ProfileCollector,
    Scene,
    check_runtime,
)
from benchctl.evidence.profile import PROFILE_NAME, read_profile

# It records its orders beside itself; what it answers stands in a file there as well.
JCMD = """#!/bin/sh
tools=$(dirname "$0")
echo "$@" >> "$tools/orders"
case "$2" in
  JFR.start) cat "$tools/start" ;;
  JFR.stop) cat "$tools/stop"; file=${4#filename=}; echo jfr > "$file" ;;
esac
"""
JFR = """#!/bin/sh
tools=$(dirname "$0")
if [ -f "$tools/broken" ]; then echo "cannot parse chunk" >&2; exit 1; fi
cat "$tools/text"
"""
TEXT = """\
jdk.JVMInformation {{
  startTime = {time}
}}

jdk.ExecutionSample {{
  startTime = {time}
  sampledThread = "es[benchctl][search][T#1]" (javaThreadId = 25)
  state = "STATE_RUNNABLE"
  stackTrace = [
    org.apache.lucene.search.Weight.score(int) line: 135
    java.lang.Thread.run()
  ]
}}
"""


@dataclass
class FakeNode:
    """What the collector asks of a node."""

    pid: int
    started_ns: int


def node() -> Node:
    """Started 7 s ago."""
    return cast("Node", FakeNode(4711, time.monotonic_ns() - 7 * 10**9))


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "java" / "bin"
    folder.mkdir(parents=True)
    for name, script in (("jcmd", JCMD), ("jfr", JFR)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    (folder / "start").write_text("4711:\nStarted recording 1.\n")
    (folder / "stop").write_text('4711:\nStopped recording "benchctl", 1 kB written to:\n')
    # In the zone that is UTC, at this moment.
    now = time.strftime("%H:%M:%S.000 (%Y-%m-%d)", time.gmtime())
    (folder / "text").write_text(TEXT.format(time=now))
    return folder


@pytest.fixture
def scene(tools: Path, tmp_path: Path) -> Scene:
    folder = tmp_path / "evidence"
    folder.mkdir()
    return Scene(folder, tools.parent, tuple(os.sched_getaffinity(0)))


def test_the_node_can_read_the_settings_whatever_the_umask(scene: Scene):
    previous = os.umask(0o077)
    try:
        ProfileCollector(scene).begin(node())
    finally:
        os.umask(previous)
    assert (scene.folder / SETTINGS_NAME).stat().st_mode & 0o777 == 0o644


def test_only_the_measured_window_is_recorded_and_kept(scene: Scene, tools: Path):
    collector = ProfileCollector(scene)
    # Without -Xshare:off, nodes whose classes are archived crash now and then.
    assert {"-XX:+DebugNonSafepoints", "-Xshare:off"} <= set(collector.flags())
    collector.begin(node())
    collector.measured(node())
    collector.end()
    start, stop = (tools / "orders").read_text().splitlines()
    assert start.startswith("4711 JFR.start name=benchctl settings=")
    assert "maxsize=0" in start
    assert stop == f"4711 JFR.stop name=benchctl filename={scene.folder / RECORDING_NAME}"
    assert {path.name for path in scene.folder.iterdir()} == {RECORDING_NAME, SETTINGS_NAME, PROFILE_NAME}
    kept = read_profile(scene.folder)
    assert kept is not None
    stack = ("[search]", "java.lang.Thread.run", "org.apache.lucene.search.Weight.score:135")
    assert kept.within([(4 * 10**9, 10 * 10**9)]) == {stack: 1}


def test_nothing_but_samples_is_recorded():
    assert SETTINGS.count("<event ") == 2
    assert '<event name="jdk.ExecutionSample"><setting name="enabled">true' in SETTINGS
    assert ">10 ms<" in SETTINGS


@pytest.mark.parametrize("tool", ["jcmd", "jfr"])
def test_a_runtime_without_the_tools_is_refused(tools: Path, tool: str):
    check_runtime(("profile",), tools.parent)
    (tools / tool).unlink()
    check_runtime(("inlining",), tools.parent)
    with pytest.raises(BenchctlError, match=f"profiles need {tool}, and .* has none"):
        check_runtime(("inlining", "profile"), tools.parent)


def test_a_refusal_is_seen_although_the_tool_ends_well(scene: Scene, tools: Path):
    (tools / "start").write_text("4711:\nCould not start recording: no space.\n\n")
    with pytest.raises(BenchctlError, match=r"JFR\.start: Could not start recording: no space\."):
        ProfileCollector(scene).begin(node())


def test_a_tool_that_cannot_be_executed_is_told(scene: Scene, tools: Path):
    collector = ProfileCollector(scene)
    (tools / "jcmd").chmod(0o644)
    with pytest.raises(BenchctlError, match=r"cannot profile the node: JFR\.start"):
        collector.begin(node())


def test_what_lies_in_the_folder_already_is_not_written_through(scene: Scene, tmp_path: Path):
    (scene.folder / SETTINGS_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BenchctlError, match="File exists"):
        ProfileCollector(scene).begin(node())
    assert not (tmp_path / "elsewhere").exists()


def test_a_node_that_never_got_to_be_measured_leaves_nothing_to_read(scene: Scene):
    ProfileCollector(scene).end()
    assert list(scene.folder.iterdir()) == []


def test_a_lost_recording_is_told(scene: Scene):
    collector = ProfileCollector(scene)
    collector.begin(node())
    with pytest.raises(BenchctlError, match="left no recording"):
        collector.end()


def test_a_broken_recording_is_told_in_the_words_of_the_tool(scene: Scene, tools: Path):
    collector = ProfileCollector(scene)
    collector.begin(node())
    collector.measured(node())
    (tools / "broken").touch()
    with pytest.raises(BenchctlError, match="cannot parse chunk"):
        collector.end()
    shutil.rmtree(tools)
    with pytest.raises(BenchctlError, match="No such file"):
        collector.end()
