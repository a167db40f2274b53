"""What the tests on real nodes share: a home, both engines in it, nodes, and the command line."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from benchctl.engine.node import Node, boot
from benchctl.engine.provision.install import Installation, install
from benchctl.engine.provision.jdk import Jdk, provide_jdk
from benchctl.engine.settings import hand_over
from benchctl.home import Home, resolve_home
from benchctl.results.plan import EngineName, VariantSpec
from benchctl.results.store import RunStore
from benchctl.run.lock import SHARE_VARIABLE
from integration.calls import Benchctl

HEAP_MB = 512
# A node's start costs half as much without the optimising compiler, a third less again with the engine's
# classes in an archive that is mapped, and a little less when the others are not verified; no test here is
# about speed.
QUICK_START = "-XX:TieredStopAtLevel=1"
UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
QUICK_FLAGS = (QUICK_START, "-XX:-AlwaysPreTouch", "-XX:-UsePerfData", *UNVERIFIED)
CLASSES_FROM = "-XX:SharedArchiveFile="
CLASSES_TO = "-XX:ArchiveClassesAtExit="
# The flags that an engine's start script gives to the short-lived JVMs before the node's own.
LAUNCHER_FLAGS: dict[EngineName, tuple[str, str, str]] = {
    "elasticsearch": ("bin/elasticsearch-cli", "-XX:+UseSerialGC", f"-XX:+UseSerialGC {QUICK_START}"),
    "opensearch": ("bin/opensearch-env", "-Xshare:auto", QUICK_START),
}
VERSIONS: dict[EngineName, str] = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}

Start = Callable[..., AbstractContextManager[Node]]


@pytest.fixture(scope="session")
def home() -> Iterator[Home]:
    """A home of its own where the nodes' user can enter: pytest's folders are private."""
    root = Path(tempfile.mkdtemp(prefix="benchctl-test-", dir="/var/tmp"))
    root.chmod(0o755)
    yield resolve_home({"BENCHCTL_HOME": str(root)})
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def jdk(home: Home) -> Jdk:
    """The bundled runtime."""
    return provide_jdk(home, None)


@pytest.fixture(scope="session")
def installations(home: Home, jdk: Jdk) -> dict[EngineName, Installation]:
    """Both engines at the built-in versions; they are downloaded, and start quickly."""
    found = {
        engine: install(home, VariantSpec(engine, engine, version), lambda *_: None)
        for engine, version in VERSIONS.items()
    }
    for installation in found.values():
        start_quickly(installation, jdk, home)
    return found


def start_quickly(installation: Installation, jdk: Jdk, home: Home) -> None:
    """Let nodes, and the launcher of Elasticsearch, which lasts, start with archives of their classes.

    On a busy machine a JVM may be killed, its time to stop being over, before it has written one: then what
    would have read it starts slowly.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"classes-{installation.engine}-", dir=home.root))
    folder.chmod(0o755)
    hand_over(folder, home.node_owner)
    name, flags, quick_flags = LAUNCHER_FLAGS[installation.engine]
    script, launcher, nodes = installation.root / name, folder / "launcher.jsa", folder / "node.jsa"
    text = script.read_text(encoding="utf-8")
    assert flags in text
    # That of OpenSearch ends before its node starts: there is little to gain.
    lasting = installation.engine == "elasticsearch"
    archiving = f"{quick_flags} {CLASSES_TO}{launcher}" if lasting else quick_flags
    script.write_text(text.replace(flags, archiving), encoding="utf-8")
    archive_classes(installation, jdk, home, folder, nodes)
    if lasting:
        mapped = f"{quick_flags} {CLASSES_FROM}{launcher}" if launcher.exists() else quick_flags
        script.write_text(text.replace(flags, mapped), encoding="utf-8")
    with (installation.root / "config" / "jvm.options").open("a", encoding="utf-8") as options:
        options.write(
            "\n".join(["", *QUICK_FLAGS, *([f"{CLASSES_FROM}{nodes}"] if nodes.exists() else []), ""])
        )


def archive_classes(installation: Installation, jdk: Jdk, home: Home, folder: Path, classes: Path) -> None:
    """Let a node write down, as it ends, the classes of starting, indexing and searching."""
    with boot(
        installation,
        jdk,
        data=folder / "data",
        folder=folder / "boot",
        owner=home.node_owner,
        heap_mb=HEAP_MB,
        jvm_flags=(QUICK_START, f"{CLASSES_TO}{classes}"),
    ) as node:
        lines = [line for number in range(50) for line in ({"index": {}}, {"n": number, "k": f"k{number}"})]
        node.client.request("POST", "/any/_bulk", body="".join(f"{json.dumps(line)}\n" for line in lines))
        node.client.refresh("any")
        aggregations = {"n": {"sum": {"field": "n"}}}
        node.client.search("any", {"query": {"range": {"n": {"gte": 3}}}, "aggs": aggregations})
        node.client.force_merge("any", 1)
        node.client.flush("any")
        node.stop()


@pytest.fixture(params=sorted(VERSIONS))
def engine(request: pytest.FixtureRequest) -> EngineName:
    """Each engine in turn."""
    name: EngineName = request.param
    return name


@pytest.fixture
def scratch(home: Home) -> Iterator[Path]:
    """A folder for the nodes of one test."""
    root = Path(tempfile.mkdtemp(prefix="nodes-", dir=home.scratch))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def start(home: Home, jdk: Jdk, installations: dict[EngineName, Installation], scratch: Path) -> Start:
    """Boot a node of an engine: `with start("opensearch") as node`; its data outlives it within the test."""
    numbers = itertools.count()

    def begin(engine: EngineName, **changes: Any) -> AbstractContextManager[Node]:
        defaults = {
            "data": scratch / "data",
            "folder": scratch / f"boot-{next(numbers)}",
            "owner": home.node_owner,
            "heap_mb": HEAP_MB,
        }
        return boot(installations[engine], jdk, **{**defaults, **changes})

    return begin


@pytest.fixture(scope="session")
def environ(home: Home, installations: dict[EngineName, Installation]) -> dict[str, str]:
    assert installations
    # Processes that share the tests measure at the same time; none of them looks at how fast anything is.
    return {**os.environ, "BENCHCTL_HOME": str(home.root), SHARE_VARIABLE: "1", "COLUMNS": "120"}


@pytest.fixture(scope="session")
def benchctl(environ: dict[str, str]) -> Benchctl:
    def call(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "benchctl", *arguments]
        return subprocess.run(
            command, env=environ | changes, capture_output=True, text=True, check=False, timeout=500
        )

    return call


@pytest.fixture(scope="session")
def store(home: Home) -> RunStore:
    return RunStore(home.runs)
