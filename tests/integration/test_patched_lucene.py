"""Lucene with a diff in real nodes: built with its control, loaded, with the same results; or refused."""

import difflib
import subprocess
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation, fetch_published, read_entry
from benchctl.engine.jdk import Jdk
from benchctl.engine.maven import Coordinates
from benchctl.engine.patched_lucene import build_diff, fetch_compiler, library_of
from benchctl.engine.variant import SHIPPED_DIFFS
from benchctl.home import Home
from benchctl.results.plan import EngineName
from benchctl.results.store import RunStore
from builders import exact_hits
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

IDS = "org/apache/lucene/util/bkd/DocIdsWriter.java"
TERMS = "org/apache/lucene/queries/CommonTermsQuery.java"
BYTES = "org/apache/lucene/util/BytesRef.java"
ADDED = "org/apache/lucene/util/bkd/ReadCount.java"
READER = "org.apache.lucene.util.bkd.ReadBlocks"
RANGES, BITS, BITS_16, BITS_24, BITS_32 = -2, -1, 16, 24, 32
ALL = [RANGES, BITS, BITS_16, BITS_24, BITS_32]


def source(home: Home, artifact: str, entry: str) -> str:
    coordinates = Coordinates("org.apache.lucene", artifact, classifier="sources")
    return read_entry(fetch_published(home, coordinates, "9.8.0", lambda *_: None).path, entry).decode()


def changed(home: Home, artifact: str, entry: str, old: str, new: str) -> str:
    """As git writes it in a checkout of Lucene."""
    text = source(home, artifact, entry)
    assert old in text
    path = f"lucene/{artifact.removeprefix('lucene-')}/src/java/{entry}"
    lines = (version.splitlines(keepends=True) for version in (text, text.replace(old, new)))
    return "".join(difflib.unified_diff(*lines, f"a/{path}", f"b/{path}"))


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


def test_a_diff_and_its_control_return_what_the_stock_engine_does(
    benchctl: Benchctl, store: RunStore, diff: Path
):
    measured = benchctl(
        "run", "--variant", "es", "--variant", f"patched=es,jar:patched:{diff}",
        "--variant", f"control=es,jar:patched:recompiled:{diff}", "--docs", "20k", "--heap", "512m",
        "--forks", "1", "--test-mode", "--challenge", "big5rangedebug",
    )  # fmt: skip
    assert measured.returncode == 0, measured.stderr
    record = store.find("latest").load()
    assert record.answers is not None
    assert record.answers.operations
    assert not record.answers.findings
    assert {*next(iter(exact_hits(record.answers).values()))} == {"es", "control", "patched"}
    replaced = {facts.variant: dict(facts.jars) for facts in record.engines}
    names = {"lucene-core-9.8.0.jar", "lucene-queries-9.8.0.jar"}
    assert {*replaced["control"]} == {*replaced["patched"]} == names
    assert {*replaced["patched"].values()}.isdisjoint(replaced["control"].values())


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


@pytest.mark.parametrize(("unchanged", "at_once"), [(False, ALL), (True, [RANGES, BITS])])
def test_visitors_get_every_leaf_as_it_was_written(
    *,
    unchanged: bool,
    at_once: list[int],
    home: Home,
    jdk: Jdk,
    engine: EngineName,
    installations: dict[EngineName, Installation],
    reader: Path,
):
    installation = installations[engine]
    library = library_of(installation.root, installation.lucene)
    diff = SHIPPED_DIFFS["bulk-visit"]
    jars = build_diff(home, library, jdk, diff, lambda *_: None, unchanged=unchanged).jars
    command = [str(jdk.home / "bin" / "java"), "-ea", "-cp", f"{reader}:{jars['lucene-core']}", READER]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == (f"visited at once: {at_once}, of: {ALL}\n", "")


def test_a_member_that_no_longer_exists_is_reported_by_the_nodes_start(
    benchctl: Benchctl, home: Home, installations: dict[EngineName, Installation], tmp_path: Path
):
    assert installations
    path = tmp_path / "breaks.diff"
    path.write_text(changed(home, "lucene-core", BYTES, "utf8ToString", "asString"), encoding="utf-8")
    done = benchctl(
        "run", "--challenge", "big5rangedebug", "--variant", f"mine=es,jar:patched:{path}",
        "--docs", "20k", "--heap", "512m", "--quiet",
    )  # fmt: skip
    assert done.returncode == 1
    assert (
        "NoSuchMethodError: 'java.lang.String org.apache.lucene.util.BytesRef.utf8ToString()'" in done.stderr
    )
