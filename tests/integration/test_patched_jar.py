"""A jar of Lucene with a change that benchctl compiles: it visits leaves at once; no node is started."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from benchctl.engine.patched import build
from benchctl.engine.patched.compiler import fetch_compiler
from benchctl.engine.patched.jar import read_entry
from benchctl.engine.provision.install import Installation
from benchctl.engine.provision.jdk import Jdk
from benchctl.home import Home
from benchctl.results.plan import EngineName
from integration.calls import Benchctl

pytestmark = pytest.mark.nodes

READER = "org.apache.lucene.util.bkd.ReadBlocks"
RANGES, BITS, BITS_16, BITS_24, BITS_32 = -2, -1, 16, 24, 32
ALL = [RANGES, BITS, BITS_16, BITS_24, BITS_32]


@pytest.mark.parametrize(("name", "at_once"), [("bulk-visit", ALL), ("recompiled", [RANGES, BITS])])
def test_visitors_get_every_leaf_as_it_was_written(
    name: str,
    at_once: list[int],
    *,
    home: Home,
    jdk: Jdk,
    engine: EngineName,
    installations: dict[EngineName, Installation],
    tmp_path: Path,
):
    jar = build(home, installations[engine], jdk, name, lambda *_: None).path
    source = Path(__file__).with_name("ReadBlocks.java")
    fetch_compiler(home, jdk, lambda *_: None).compile(source, jar, 11, tmp_path)
    command = [str(jdk.home / "bin" / "java"), "-ea", "-cp", f"{tmp_path}:{jar}", READER]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == (f"visited at once: {at_once}, of: {ALL}\n", "")


def test_the_command_says_what_was_changed_and_gives_the_jar(
    benchctl: Benchctl, installations: dict[EngineName, Installation], tmp_path: Path
):
    assert installations
    jar = tmp_path / "lucene.jar"
    done = benchctl("lucene", "patch", "--variant", "os", "--output", str(jar), "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    *difference, about, digest, path = done.stdout.splitlines()
    assert difference[0] == "--- a/org/apache/lucene/util/bkd/DocIdsWriter.java"
    assert "+    visitor.visit(block.of(scratch, count));" in difference
    assert about.startswith("Lucene 9.7.0: bulk-visit: ")
    assert digest == f"sha256 {hashlib.sha256(jar.read_bytes()).hexdigest()}"
    assert path == str(jar)
    assert b"Benchctl-Patch: bulk-visit\n" in read_entry(jar, "META-INF/MANIFEST.MF").replace(b"\r", b"")
