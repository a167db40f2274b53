"""A jar of Lucene with a change that benchctl compiles: it visits leaves at once; no node is started."""

import subprocess
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.patched_lucene import build_lucene, fetch_compiler
from benchctl.home import Home
from benchctl.results.plan import EngineName

pytestmark = pytest.mark.full

READER = "org.apache.lucene.util.bkd.ReadBlocks"
RANGES, BITS, BITS_16, BITS_24, BITS_32 = -2, -1, 16, 24, 32
ALL = [RANGES, BITS, BITS_16, BITS_24, BITS_32]


@pytest.fixture(scope="module")
def reader(
    home: Home,
    jdk: Jdk,
    engine: EngineName,
    installations: dict[EngineName, Installation],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Where the program that reads leaves is, compiled with an engine's own Lucene."""
    (lucene,) = (installations[engine].root / "lib").glob("lucene-core-*.jar")
    folder = tmp_path_factory.mktemp("reader")
    source = Path(__file__).with_name("ReadBlocks.java")
    compiler = fetch_compiler(home, jdk, lambda *_: None)
    compiler.compile([source], [lucene], 11, folder, name=source.name)
    return folder


@pytest.mark.parametrize(("name", "at_once"), [("bulk-visit", ALL), ("recompiled", [RANGES, BITS])])
def test_visitors_get_every_leaf_as_it_was_written(
    name: str,
    at_once: list[int],
    *,
    home: Home,
    jdk: Jdk,
    engine: EngineName,
    installations: dict[EngineName, Installation],
    reader: Path,
):
    jar = build_lucene(home, installations[engine], jdk, name, lambda *_: None).path
    command = [str(jdk.home / "bin" / "java"), "-ea", "-cp", f"{reader}:{jar}", READER]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == (f"visited at once: {at_once}, of: {ALL}\n", "")
