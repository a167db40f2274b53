"""What the tests on real nodes share: a home, both engines in it, nodes, and the command line."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchctl.engine.distribution import Installation, install
from benchctl.engine.jdk import Jdk, provide_jdk
from benchctl.engine.launch import starts_of
from benchctl.engine.node import Node, archive_classes
from benchctl.home import Home, resolve_home
from benchctl.results.plan import EngineName, VariantSpec
from benchctl.results.store import RunStore
from integration.calls import Benchctl, call

HEAP_MB = 512
# A node's start costs half as much without the optimising compiler, and a little less when classes are not
# verified; no test here is about speed.
QUICK_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:-AlwaysPreTouch",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
VERSIONS: dict[EngineName, str] = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}

Boots = Callable[..., AbstractContextManager[Node]]
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
def downloads() -> dict[EngineName, list[tuple[str, int, int]]]:
    """What was told of the engines' downloads: what, how much of it, of how much."""
    return {engine: [] for engine in VERSIONS}


@pytest.fixture(scope="session")
def installations(
    home: Home, jdk: Jdk, downloads: dict[EngineName, list[tuple[str, int, int]]]
) -> dict[EngineName, Installation]:
    """Both engines at the built-in versions; they are downloaded, and start quickly."""
    found = {
        engine: install(
            home, VariantSpec(engine, engine, version), lambda *told, to=downloads[engine]: to.append(told)
        )
        for engine, version in VERSIONS.items()
    }
    for installation in found.values():
        with (installation.root / "config" / "jvm.options").open("a", encoding="utf-8") as options:
            options.write("\n".join(["", *QUICK_FLAGS, ""]))
        archive_classes(home, installation, jdk, starts_of(home, installation))
    return found


@pytest.fixture(scope="module", params=sorted(VERSIONS))
def engine(request: pytest.FixtureRequest) -> EngineName:
    """Each engine in turn, with all tests of a module that are about it: they can share its node."""
    name: EngineName = request.param
    return name


@pytest.fixture
def scratch(home: Home) -> Iterator[Path]:
    """A folder for the nodes of one test."""
    with _nodes_folder(home) as root:
        yield root


@pytest.fixture(scope="module")
def shared(home: Home) -> Iterator[Path]:
    """A folder for the nodes that tests of a module share."""
    with _nodes_folder(home) as root:
        yield root


@contextmanager
def _nodes_folder(home: Home) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="nodes-", dir=home.scratch) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def boots(home: Home, jdk: Jdk, installations: dict[EngineName, Installation]) -> Boots:
    """Boot a node of an engine in a folder: `with boots("opensearch", folder) as node`."""
    numbers = itertools.count()

    def begin(engine: EngineName, root: Path, **changes: Any) -> AbstractContextManager[Node]:
        root.mkdir(exist_ok=True)
        root.chmod(0o755)
        defaults = {
            "data": root / "data",
            "folder": root / f"boot-{next(numbers)}",
            "owner": home.node_owner,
            "heap_mb": HEAP_MB,
            "starts": starts_of(home, installations[engine]),
        }
        return Node(**{"installation": installations[engine], "jdk": jdk, **defaults, **changes})

    return begin


@pytest.fixture
def start(boots: Boots, scratch: Path) -> Start:
    """Boot a node of an engine: `with start("opensearch") as node`; its data outlives it within the test."""
    return lambda engine, **changes: boots(engine, scratch, **changes)


@pytest.fixture(scope="session")
def environ(home: Home, installations: dict[EngineName, Installation]) -> dict[str, str]:
    assert installations
    return {**os.environ, "BENCHCTL_HOME": str(home.root), "COLUMNS": "120"}


@pytest.fixture(scope="session")
def benchctl(environ: dict[str, str]) -> Benchctl:
    return lambda *arguments, **changes: call(arguments, environ | changes)


@pytest.fixture(scope="session")
def store(home: Home) -> RunStore:
    return RunStore(home.runs)
