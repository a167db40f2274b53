import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchctl.engine.client import NodeRequestError, SearchClient, loopback
from benchctl.engine.distribution import Installation, install
from benchctl.engine.jdk import Jdk
from benchctl.engine.node import Node
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.plan import EngineName, VariantSpec
from integration.conftest import Boots, Start
from waiting import DEADLINE_S, eventually

INDEX = "shelf"
BODY = {
    "settings": {"number_of_shards": 1, "number_of_replicas": 0},
    "mappings": {"properties": {"pages": {"type": "long"}}},
}


def fill(node: Node) -> None:
    """Index three documents and make them searchable and durable."""
    node.client.create_index(INDEX, BODY)
    for pages in (100, 200, 300):
        node.client.request("PUT", f"/{INDEX}/_doc/{pages}", body={"pages": pages})
    node.client.refresh(INDEX)
    node.client.force_merge(INDEX, 1)
    node.client.flush(INDEX)


def hits(node: Node) -> int:
    found = node.client.search(INDEX, {"query": {"range": {"pages": {"gte": 200}}}})
    return int(found["hits"]["total"]["value"])


def closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def family(node: Node) -> set[int]:
    """Everything in the node's process group."""
    group = os.getpgid(node.pid)
    return {pid for pid in psutil.pids() if psutil.pid_exists(pid) and group_of(pid) == group}


def group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1


PROGRAM = """
import json, signal, sys
from pathlib import Path
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.node import Node
from benchctl.home import resolve_home
given = json.loads(sys.argv[1])
installation = Installation(**{**given["installation"], "root": Path(given["installation"]["root"])})
jdk = given["jdk"]
jdk = Jdk(**{**jdk, "home": Path(jdk["home"]), "modules": frozenset(jdk["modules"])})
folder, owner = Path(given["folder"]), resolve_home({"BENCHCTL_HOME": given["home"]}).node_owner
with Node(installation, jdk, data=folder / "data", folder=folder / "boot", owner=owner, heap_mb=512) as node:
    print(node.pid, node.http_port, node.manner, flush=True)
    signal.pause()
"""


@contextmanager
def program(argument: str) -> Iterator[subprocess.Popen[str]]:
    """A benchctl that boots a node by the engine's script, tells of it and waits."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, argument], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@dataclass(frozen=True)
class Scripted:
    """A node that was started by the engine's script, and whose benchctl was killed.

    Attributes:
        manner: how it was started.
        told: what it said of itself.
        outlived: what of it outlived its benchctl, in words.
    """

    manner: str
    told: dict[str, Any]
    outlived: str


@pytest.fixture(scope="module")
def scripted(
    home: Home, jdk: Jdk, installations: dict[EngineName, Installation], shared: Path, engine: EngineName
) -> Scripted:
    folder = shared / engine
    folder.mkdir()
    folder.chmod(0o755)
    argument = {
        "installation": asdict(installations[engine]),
        "jdk": {**asdict(jdk), "modules": sorted(jdk.modules)},
        "folder": folder,
        "home": home.root,
    }
    with program(json.dumps(argument, default=str)) as benchctl:
        assert benchctl.stdout is not None
        pid, port, manner = benchctl.stdout.readline().split(maxsplit=2)
        server = int(pid)
        group = os.getpgid(server)
        with SearchClient(engine, loopback(int(port))) as client:
            told = same_anywhere(client, folder)
        benchctl.kill()
        outlived = "" if eventually(lambda: not psutil.pid_exists(server)) else "the server"
        if not eventually(lambda: not any(group_of(pid) == group for pid in psutil.pids())):
            outlived += " its group"
    return Scripted(manner.strip(), told, outlived)


@dataclass(frozen=True)
class Direct:
    """A node that benchctl started itself, and what it said of itself."""

    node: Node
    told: dict[str, Any]


@pytest.fixture(scope="module")
def direct(boots: Boots, shared: Path, scripted: Scripted, engine: EngineName) -> Iterator[Direct]:
    """Where the script's node was, so that what they say differs in nothing else."""
    assert scripted
    with boots(engine, shared / engine) as node:
        yield Direct(node, same_anywhere(node.client, shared / engine))


def same_anywhere(client: SearchClient, root: Path) -> dict[str, Any]:
    """What a node says of its JVM, modules and settings, without what every start has of its own."""
    (told,) = client.request("GET", "/_nodes/_local/jvm,plugins,settings,thread_pool,os")["nodes"].values()
    text = json.dumps({name: told[name] for name in ("jvm", "plugins", "modules", "settings", "thread_pool")})
    known = json.loads(re.sub(rf"{root}/boot(-\d+)?", "BOOT", text))
    for name in ("pid", "start_time", "start_time_in_millis"):
        known["jvm"].pop(name, None)
    return {"arguments": known["jvm"].pop("input_arguments"), "is": known}


@pytest.mark.full
def test_a_direct_start_is_the_same_node_as_the_scripts(scripted: Scripted, direct: Direct):
    assert scripted.manner == "script"
    assert direct.node.manner == "direct, classes archived"
    arguments = direct.told["arguments"]
    archives = [flag for flag in arguments if flag.startswith("-XX:SharedArchiveFile=")]
    assert len(archives) == 1
    assert [flag for flag in arguments if flag not in archives] == scripted.told["arguments"]
    assert direct.told["is"] == scripted.told["is"]


@pytest.mark.full
def test_no_java_outlives_a_killed_benchctl(scripted: Scripted):
    assert scripted.outlived == ""


@pytest.mark.parametrize(
    ("built_in", "version", "lucene", "module"),
    [
        ("elasticsearch", "8.11.0", "9.8.0", "x-pack-core"),
        ("opensearch", "2.11.0", "9.7.0", "transport-netty4"),
    ],
)
def test_the_built_in_engines_install(
    home: Home,
    installations: dict[EngineName, Installation],
    downloads: dict[EngineName, list[tuple[str, int, int]]],
    *,
    built_in: EngineName,
    version: str,
    lucene: str,
    module: str,
):
    found = installations[built_in]
    assert (found.engine, found.version, found.lucene) == (built_in, version, lucene)
    assert module in found.modules
    assert os.access(found.root / "bin" / built_in, os.X_OK)
    assert downloads[built_in][-1][1] == downloads[built_in][-1][2] > 0
    assert found.verified_by in {"sha512", "sha1"}
    assert install(home, VariantSpec("real", built_in, version), lambda *_: None) == found


def test_a_node_serves_leaves_nothing_finds_its_index_again_and_is_missed_when_killed(
    direct: Direct,
    start: Start,
    home: Home,
    installations: dict[EngineName, Installation],
    engine: EngineName,
    shared: Path,
):
    node = direct.node
    assert node.version == installations[engine].version
    assert len(node.build) == 40
    assert any(flag.endswith("-Xmx512m") for flag in node.command)
    if home.node_owner is not None:
        assert psutil.Process(node.pid).uids().real == home.node_owner.uid
    idle_s = node.wait_idle()
    assert node.client.node_search_count() == 0

    fill(node)
    assert hits(node) == 2
    assert node.client.node_search_count() == 1
    assert node.client.count(INDEX) == 3
    assert [(s.documents, s.lucene) for s in node.client.segments(INDEX)] == [(3, node.lucene)]
    assert node.cpu_seconds() > 0

    with pytest.raises(NodeRequestError, match="no_such_query") as caught:
        node.client.search(INDEX, {"query": {"no_such_query": {}}})
    assert caught.value.status == 400

    processes = family(node)
    assert node.pid in processes
    stop_s = node.stop()
    assert node.stop() == stop_s
    assert not any(psutil.pid_exists(pid) for pid in processes)
    assert closed(node.http_port)
    with start(engine, data=shared / engine / "data", expect_index=INDEX) as again:
        assert hits(again) == 2
        processes = family(again)
        check_reported_when_killed(again, engine)
    assert not any(psutil.pid_exists(pid) for pid in processes)
    sys.stdout.write(f"{engine}: ready {node.start_s:.2f} s, idle {idle_s:.2f} s, stop {stop_s:.2f} s\n")


def check_reported_when_killed(node: Node, engine: EngineName) -> None:
    node.check_alive()
    os.kill(node.pid, signal.SIGKILL)
    assert eventually(lambda: closed(node.http_port))
    with pytest.raises(BenchctlError, match=rf"{engine} .* killed by signal 9 \(SIGKILL\)") as caught:
        node.check_alive(within_s=DEADLINE_S)
    assert "while it was in use (logs in" in caught.value.message
    assert "memory" in caught.value.hint
    with pytest.raises(BenchctlError):
        node.wait_idle()


def test_a_flag_that_the_jvm_does_not_know_is_named(start: Start, engine: EngineName):
    with (
        pytest.raises(BenchctlError, match=r"Unrecognized VM option 'UseNoSuchThing'") as caught,
        start(engine, jvm_flags=("-XX:+UseNoSuchThing",)),
    ):
        pass
    assert caught.value.message.startswith(engine)
    assert "exited with status 1 before it was ready" in caught.value.message
    assert "does not take that flag" in caught.value.hint
