"""A diff of Lucene's sources in a real node: built with its control, loaded, and answering alike."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation, fetch_published
from benchctl.engine.maven import Coordinates
from benchctl.engine.patched_lucene import difference, read_entry
from benchctl.home import Home
from benchctl.results.plan import EngineName
from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

IDS = "org/apache/lucene/util/bkd/DocIdsWriter.java"
TERMS = "org/apache/lucene/queries/CommonTermsQuery.java"
BYTES = "org/apache/lucene/util/BytesRef.java"
ADDED = "org/apache/lucene/util/bkd/ReadCount.java"


def source(home: Home, artifact: str, entry: str) -> str:
    coordinates = Coordinates("org.apache.lucene", artifact, classifier="sources")
    return read_entry(fetch_published(home, coordinates, "9.8.0", lambda *_: None).path, entry).decode()


def changed(home: Home, artifact: str, entry: str, old: str, new: str) -> str:
    """As git writes it in a checkout of Lucene."""
    text = source(home, artifact, entry)
    assert old in text
    path = f"lucene/{artifact.removeprefix('lucene-')}/src/java/{entry}"
    return difference(text, text.replace(old, new), path)


@pytest.fixture
def diff(home: Home, installations: dict[EngineName, Installation], tmp_path: Path) -> Path:
    """Two changed classes of two modules, and a new one."""
    assert installations
    count = "package org.apache.lucene.util.bkd;\n\nfinal class ReadCount {\n  static long all;\n}\n"
    parts = [
        changed(home, "lucene-core", IDS, "    int i;\n", "    ReadCount.all += count;\n    int i;\n"),
        changed(
            home,
            "lucene-queries",
            TERMS,
            "  @Override\n  public int hashCode",
            "  public void none() {}\n\n  @Override\n  public int hashCode",
        ),
        f"--- /dev/null\n+++ b/{ADDED}\n@@ -0,0 +1,5 @@\n"
        + "".join(f"+{line}\n" for line in count.splitlines()),
    ]
    path = tmp_path / "count.diff"
    path.write_text("".join(parts), encoding="utf-8")
    return path


def test_a_diff_and_its_control_answer_as_the_stock_engine_does(
    benchctl: Benchctl, store: RunStore, diff: Path
):
    built = benchctl("lucene", "patch", "--diff", str(diff), "--engine", "es@8.11.0", "--quiet")
    assert (built.returncode, built.stderr) == (0, "")
    assert "+    ReadCount.all += count;" in built.stdout
    assert (
        "count.diff: CommonTermsQuery, DocIdsWriter, ReadCount, in lucene-core, lucene-queries"
        in built.stdout
    )
    jars = [Path(line.split()[2]) for line in built.stdout.splitlines() if line.startswith("sha256 ")]
    with zipfile.ZipFile(jars[0]) as opened:
        assert ADDED.replace(".java", ".class") in opened.namelist()

    # The command that it ends with, made quick.
    words = built.stdout.splitlines()[-1].partition(": benchctl run ")[2].split()
    measured = benchctl(
        "run", *words, "--docs", "20k", "--heap", "512m", "--forks", "1", "--test-mode", "--wait",
        "--challenge", "big5rangedebug",
    )  # fmt: skip
    assert measured.returncode == 0, measured.stderr
    record = store.find("latest").load()
    assert record.answers is not None
    assert record.answers.operations
    assert not record.answers.findings
    assert {*next(iter(record.answers.exact_hits.values()))} == {"es@8.11.0", "control", "patched"}
    replaced = {facts.variant: dict(facts.jars) for facts in record.engines}
    own = {hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars}
    assert own == {*replaced["patched"].values()}
    assert {*replaced["control"]} == {"lucene-core-9.8.0.jar", "lucene-queries-9.8.0.jar"}
    assert own.isdisjoint(replaced["control"].values())


def test_what_would_break_the_engine_is_told_before_a_node_starts(
    benchctl: Benchctl,
    home: Home,
    store: RunStore,
    installations: dict[EngineName, Installation],
    tmp_path: Path,
):
    assert installations
    path = tmp_path / "breaks.diff"
    path.write_text(changed(home, "lucene-core", BYTES, "utf8ToString", "asString"), encoding="utf-8")
    before = [*store.root.iterdir()] if store.root.exists() else []
    done = benchctl(
        "run",
        "--challenge",
        "big5rangedebug",
        "--variant",
        f"mine=es,jar:patched:{path}",
        "--docs",
        "20k",
        "--heap",
        "512m",
        "--wait",
        "--quiet",
    )
    assert done.returncode == 1
    assert "breaks what other classes use: " in done.stderr
    assert " uses BytesRef.utf8ToString()" in done.stderr
    assert ([*store.root.iterdir()] if store.root.exists() else []) == before
