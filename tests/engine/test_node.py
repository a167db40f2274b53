from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchctl.engine.node import Node, boot, parse_port
from benchctl.engine.provision.install import Installation
from benchctl.engine.provision.jdk import Jdk
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
        return boot(installation, jdk, owner=None, heap_mb=1, **folders, **changes)

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


def test_a_node_that_is_killed_while_starting_is_explained(scripted: Scripted):
    with (
        pytest.raises(BenchctlError, match="killed by signal 9") as caught,
        scripted("echo ahoi; kill -9 $$"),
    ):
        pass
    assert "ahoi" not in caught.value.message
    assert "memory" in caught.value.hint


def test_a_node_that_never_gets_ready_is_given_up_and_ended(scripted: Scripted, tmp_path: Path):
    script = f"echo $$ > {tmp_path}/pid; exec tail -f /dev/null"
    with (
        pytest.raises(BenchctlError, match=r"was not ready after 0\.5 s: it listens nowhere"),
        scripted(script, timeout_s=0.5),
    ):
        pass
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_node_that_listens_but_does_not_answer_is_given_up(scripted: Scripted):
    script = 'echo 127.0.0.1:1 > "${OPENSEARCH_PATH_CONF%config}logs/http.ports"; exec tail -f /dev/null'
    with (
        pytest.raises(BenchctlError, match="never got the shards of index 'shelf' ready") as caught,
        scripted(script, timeout_s=0.5, expect_index="shelf"),
    ):
        pass
    assert "connect" in caught.value.message


@pytest.mark.parametrize(
    ("ports", "port"),
    [("127.0.0.1:39231\n", 39231), ("[::1]:39231\n127.0.0.1:39232\n", 39231), ("127.0.0.1:1", 1)],
)
def test_the_ports_file_is_read(ports: str, port: int):
    assert parse_port(ports) == port
