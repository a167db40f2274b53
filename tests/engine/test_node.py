from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.install import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.node import Node, boot, diagnose, parse_port
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
    assert "refused" in caught.value.message


@pytest.mark.parametrize(
    ("ports", "port"),
    [("127.0.0.1:39231\n", 39231), ("[::1]:39231\n127.0.0.1:39232\n", 39231), ("127.0.0.1:1", 1)],
)
def test_the_ports_file_is_read(ports: str, port: int):
    assert parse_port(ports) == port


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("Unrecognized VM option 'UseFoo'", "does not take that flag"),
        ("Error: VM option 'PrintInlining' is diagnostic and must be enabled", "UnlockDiagnosticVMOptions"),
        ("java.lang.UnsupportedClassVersionError: org/x has been compiled by a more recent", "another Java"),
        ("java.lang.Error: Enabling a Security Manager is not supported.", "an older Java"),
        ("Error occurred during initialization: Module jdk.incubator.vector not found", "lacks that module"),
        ("OpenJDK: os::commit_memory failed; error='Cannot allocate memory' (errno=12)", "free memory"),
        ("java.lang.IllegalArgumentException: unknown setting [no.such] please check", "that node setting"),
        ("BindHttpException[Failed to bind to 127.0.0.1:9200]", "another process has that port"),
        ("java.lang.IllegalStateException: failed to obtain node locks, tried [/data]", "data folder"),
        ("java.io.IOException: No space left on device", "disk space"),
        ("java.nio.file.AccessDeniedException: /data/nodes", "read and write"),
    ],
)
def test_known_causes_are_found_between_other_lines(line: str, hint: str):
    log = [
        "[INFO ] starting",
        f"  {line}",
        "\tat java.base/java.lang.Thread.run(Thread.java:1583)",
        "goodbye",
    ]
    reason, advice = diagnose(log)
    assert reason == line
    assert hint in advice


def test_an_unknown_cause_shows_the_telling_lines():
    log = ["starting", "[x][ERROR] the moon is full", "\tat org.x.Y(Z.java:1)", "closing", ""]
    assert diagnose(log)[0] == "[x][ERROR] the moon is full"


def test_without_telling_lines_the_last_ones_are_shown():
    assert diagnose(["a", "b", "c", "d", " "])[0] == "b; c; d"


@pytest.mark.parametrize(
    "line",
    [
        "[2026-01-01T00:00:00,000][INFO ][o.e.n.Node] [benchctl] JVM arguments [-XX:+ExitOnOutOfMemoryError]",
        "[2026-01-01T00:00:00,000][WARN ][o.e.b.Check] [benchctl] Cannot allocate memory lock",
        "WARNING: System::setSecurityManager has been called by org.opensearch.bootstrap.OpenSearch",
    ],
)
def test_what_is_normal_explains_nothing(line: str):
    assert diagnose([line])[0] == ""
    assert diagnose([line, "unknown setting [a]"])[0] == "unknown setting [a]"


@given(st.lists(st.text()))
def test_any_log_is_survived_and_shortened(log: list[str]):
    reason, _ = diagnose(log)
    assert len(reason) <= 3 * 300 + 4
