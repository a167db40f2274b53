import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.node import Node, parse_port
from benchctl.errors import BenchctlError

Scripted = Callable[..., AbstractContextManager[Node]]


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    """Boot a distribution whose start script is the given shell text."""

    def start(script: str, **changes: Any) -> AbstractContextManager[Node]:
        root = tmp_path / "distribution"
        for folder in ("bin", "config"):
            (root / folder).mkdir(parents=True)
        (root / "config" / "jvm.options").touch()
        program = root / "bin" / "opensearch"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        installation = Installation("opensearch", "2.11.0", root, "0" * 64, (), "9.7.0")
        jdk = Jdk(tmp_path / "java", "21.0.8", "someone", 21, frozenset())
        folders = {"data": tmp_path / "data", "folder": tmp_path / "boot"}
        return Node(installation, jdk, owner=None, heap_mb=1, **folders, **changes)

    return start


def test_a_node_that_ends_at_once_is_explained(scripted: Scripted, tmp_path: Path):
    script = "echo 'unknown setting [a.b]' >&2; exit 3"
    with pytest.raises(BenchctlError) as caught, scripted(script):
        pass
    assert caught.value.message == (
        "opensearch 2.11.0 exited with status 3 before it was ready: unknown setting [a.b] "
        f"(logs in {tmp_path / 'boot'})"
    )
    assert caught.value.hint


@pytest.mark.parametrize(
    ("before", "after", "reason", "hint"),
    [
        ("oom_kill 2", "oom_kill 3", "memory ran out, and the kernel killed a process for it", "--heap"),
        ("oom_kill 3", "oom_kill 3", "", "neither by benchctl nor for lack of memory"),
        ("nr_free_pages 9", "oom_kill 3", "", "dmesg"),
    ],
)
def test_a_node_that_is_killed_while_starting_is_explained(
    scripted: Scripted, tmp_path: Path, before: str, after: str, reason: str, hint: str
):
    vmstat = tmp_path / "vmstat"
    vmstat.write_text(f"nr_dirty 1\n{before}\npgfault 7\n")
    script = f"echo ahoi; printf 'nr_dirty 1\\n{after}\\n' > {vmstat}; kill -9 $$"
    with (
        pytest.raises(BenchctlError, match="killed by signal 9") as caught,
        scripted(script, vmstat=vmstat),
    ):
        pass
    assert "ahoi" not in caught.value.message
    assert reason in caught.value.message
    assert hint in caught.value.hint


def test_an_exception_that_was_only_compiled_is_no_reason(scripted: Scripted):
    script = """
        echo "      @ 47   java.lang.OutOfMemoryError::<init> (6 bytes)   don't inline Throwable constructors"
        echo 'unknown setting [a.b]' >&2; exit 3"""
    with pytest.raises(BenchctlError) as caught, scripted(script):
        pass
    assert "unknown setting [a.b]" in caught.value.message
    assert "OutOfMemoryError" not in caught.value.message


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A cgroup with 64 MB of memory."""
    older = Path("/sys/fs/cgroup/memory")
    root, limit = (older, "memory.limit_in_bytes") if older.is_dir() else (older.parent, "memory.max")
    group = root / f"benchctl-test-{os.getpid()}"
    with ExitStack() as stack:
        try:
            group.mkdir()
            stack.callback(group.rmdir)
            (group / limit).write_text(str(64 << 20))
        except OSError as err:
            pytest.skip(f"it takes root and a memory controller to make a cgroup: {err.strerror}")
        yield group


def test_a_node_whose_container_runs_out_of_memory_is_explained(scripted: Scripted, small_group: Path):
    script = f"echo $$ > {small_group}/cgroup.procs; exec {sys.executable} -I -c 'bytes(1) * (300 << 20)'"
    with pytest.raises(BenchctlError, match="killed by signal 9") as caught, scripted(script):
        pass
    assert "before it was ready: memory ran out, and the kernel killed a process" in caught.value.message


def test_a_node_that_never_gets_ready_is_given_up_and_ended(scripted: Scripted, tmp_path: Path):
    script = f"echo $$ > {tmp_path}/pid; exec tail -f /dev/null"
    with pytest.raises(BenchctlError, match="was not ready"), scripted(script, timeout_s=0.5):
        pass
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_node_that_others_keep_from_the_cpus_is_late_and_not_broken(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
):
    now = psutil.cpu_times(percpu=True)
    begin = time.monotonic()

    def busy(**_: bool) -> list[Any]:
        return [cpu._replace(user=cpu.user + time.monotonic() - begin) for cpu in now]

    monkeypatch.setattr(psutil, "cpu_times", busy)
    script = "printf 'a\\030warning\\n' >&2; exec tail -f /dev/null"
    with pytest.raises(BenchctlError) as caught, scripted(script, timeout_s=0.2):
        pass
    assert time.monotonic() - begin > 1.5
    assert "other processes" in caught.value.message
    assert "warning" not in caught.value.message
    assert "BENCHCTL_NODE_TIMEOUT" in caught.value.hint


def test_a_node_that_listens_but_does_not_answer_is_given_up(scripted: Scripted):
    script = 'echo 127.0.0.1:1 > "${OPENSEARCH_PATH_CONF%config}logs/http.ports"; exec tail -f /dev/null'
    with (
        pytest.raises(BenchctlError, match="did not start the shards of index 'shelf'") as caught,
        scripted(script, timeout_s=0.5, expect_index="shelf"),
    ):
        pass
    assert "connect" in caught.value.message.lower()


@pytest.mark.parametrize(
    ("ports", "port"),
    [("127.0.0.1:39231\n", 39231), ("[::1]:39231\n127.0.0.1:39232\n", 39231), ("127.0.0.1:1", 1)],
)
def test_the_ports_file_is_read(ports: str, port: int):
    assert parse_port(ports) == port
