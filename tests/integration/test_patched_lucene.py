"""Lucene with a change that benchctl compiles, by the command line; test_big5 has it in a node."""

import hashlib
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.patched_lucene import read_entry
from benchctl.results.plan import EngineName
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


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
