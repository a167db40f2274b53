"""Lucene with a change that benchctl compiles, in a node: it is loaded, and answers as it did."""

import hashlib
from pathlib import Path

import pytest

from benchctl.engine.patched.jar import read_entry
from benchctl.engine.provision.install import Installation
from benchctl.results.plan import EngineName
from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(300)]

# The archive of classes that tests start with knows where they were.
PATCHED = "es-patched=es,jar:patched:bulk-visit,jvm:-Xlog:class+load,jvm:-Xshare:off"


def test_a_node_with_it_answers_the_whole_of_big5_alike(benchctl: Benchctl, store: RunStore):
    # As many documents as it takes for leaves whose ids don't fit into 16 bits.
    size = ("--test-mode", "--docs", "100k", "--heap", "512m")
    done = benchctl("run", "--challenge", "big5", *size, "--variant", "es", "--variant", PATCHED)
    assert done.returncode == 0, done.stderr
    run = store.find("latest")
    answers = run.load().answers
    assert answers is not None
    assert len(answers.operations) == 37
    assert {one.kind for one in answers.findings} <= {"unsupported"}
    # An operation that needs a module which the core build lacks has no hits on either.
    assert all(len(set(hits.values())) <= 1 for hits in answers.exact_hits.values())
    books = [run.read_answers(variant) for variant in ("es", "es-patched")]
    assert books[0].answers == books[1].answers

    (boot,) = run.path.glob("boots/000-es-patched/boot-0")
    log = "\n".join(path.read_text(errors="replace") for path in boot.rglob("*") if path.is_file())
    loaded = [line for line in log.splitlines() if "bkd.DocIdsWriter$Block " in line]
    assert len(loaded) == 1
    assert "lucene-core-9.8.0.jar" in loaded[0]


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
