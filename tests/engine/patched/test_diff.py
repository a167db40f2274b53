"""Lucene with a diff: what is read of it, applied and refused; a script is the compiler."""

import zipfile
from pathlib import Path

import pytest

from benchctl.engine.lucene_diff import BuiltDiff, build_diff, library_of
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.errors import BenchctlError, UsageError
from benchctl.git import git
from benchctl.home import Home
from engine.archive_server import Reply, Server
from engine.patched.test_build import ECJ, java, packed

HEADER = b"\xca\xfe\xba\xbe\x00\x00\x00\x37"
READER, QUERY = "org/apache/lucene/index/Reader", "org/apache/lucene/queries/Query"
# A class file without anything: what is checked is which bytes end up where.
EMPTY = HEADER + b"\x00\x03\x01\x00\x01A\x07\x00\x01" + b"\x00\x00\x00\x02" + b"\x00\x00" * 5
SOURCES = {READER: "class Reader {\n  int one;\n  int two;\n}\n", QUERY: "class Query {\n  int one;\n}\n"}

# Makes a class file for every source that it gets.
COMPILES = """#!/bin/sh
while [ "$1" != "-d" ]; do shift; done
out="$2"; shift 2
for source; do
  name="${source#*/sources/}"
  mkdir -p "$out/$(dirname "$name")"
  printf 'OCTAL' > "$out/${name%.java}.class"
done
""".replace("OCTAL", "".join(f"\\{byte:03o}" for byte in EMPTY))


@pytest.fixture
def root(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A distribution with two modules of Lucene, whose sources are published."""
    monkeypatch.setenv(REPOSITORY_VARIABLE, server.url)
    server.replies[ECJ] = Reply(packed(ecj=b""))
    lib = tmp_path / "distribution" / "lib"
    lib.mkdir(parents=True)
    for artifact, entry in (("lucene-core", READER), ("lucene-queries", QUERY)):
        url = f"/org/apache/lucene/{artifact}/9.8.0/{artifact}-9.8.0-sources.jar"
        server.replies[url] = Reply(packed(**{f"{entry}.java": SOURCES[entry].encode()}))
        manifest = b"Manifest-Version: 1.0\n\n"
        content = packed(
            **{"META-INF/MANIFEST.MF": manifest, f"{entry}.class": EMPTY, f"{entry}$Old.class": EMPTY}
        )
        (lib / f"{artifact}-9.8.0.jar").write_bytes(content)
    return lib.parent


def header(old: str, new: str, *more: str) -> str:
    return "\n".join([f"diff --git a/{old} b/{new}", *more, ""])


def change(path: str, old: str, new: str) -> str:
    hunk = f"@@ -1,3 +1,3 @@\n class Reader {{\n-  {old}\n+  {new}\n   int two;\n"
    return header(path, path, f"--- a/{path}", f"+++ b/{path}") + hunk


def added(path: str, line: str = "class Added {}", mode: str = "100644") -> str:
    lines = (f"new file mode {mode}", "--- /dev/null", f"+++ b/{path}", "@@ -0,0 +1 @@", f"+{line}")
    return header(path, path, *lines)


IN_CORE = f"lucene/core/src/java/{READER}.java"
FITS = change(IN_CORE, "int one;", "long one;")
IN_QUERIES = (
    f"diff --git a/{QUERY}.java b/{QUERY}.java\n--- a/{QUERY}.java\n+++ b/{QUERY}.java\n"
    "@@ -1,3 +1,4 @@\n class Query {\n   int one;\n+  int two;\n }\n"
)
ADDED = "org/apache/lucene/index/Added.java"
NEW = added(ADDED)
DELETED = header(
    IN_CORE, IN_CORE, "deleted file mode 100644", f"--- a/{IN_CORE}", "+++ /dev/null",
    "@@ -1,4 +0,0 @@", *(f"-{line}" for line in SOURCES[READER].splitlines()),
)  # fmt: skip
OTHER = IN_CORE.replace("Reader", "Writer")
RENAMED = header(IN_CORE, OTHER, "similarity index 100%", f"rename from {IN_CORE}", f"rename to {OTHER}")
LEFT_OUT = ("lucene/CHANGES.txt", "lucene/core/src/test/org/apache/lucene/index/TestReader.java")


def made(home: Home, root: Path, tmp_path: Path, text: str, *, unchanged: bool = False) -> BuiltDiff:
    diff = tmp_path / "my change.diff"
    diff.write_text(text)
    jdk = java(tmp_path, COMPILES)
    return build_diff(home, library_of(root, "9.8.0"), jdk, diff, lambda *_: None, unchanged=unchanged)


def test_classes_of_several_modules_are_changed_in_their_jars(home: Home, root: Path, tmp_path: Path):
    built = made(home, root, tmp_path, FITS + IN_QUERIES + NEW)
    assert {*built.jars} == {"lucene-core", "lucene-queries"}
    assert built.classes == (ADDED, f"{READER}.java", f"{QUERY}.java")
    assert "+  long one;" in built.difference.splitlines()
    with zipfile.ZipFile(built.jars["lucene-core"]) as opened:
        # What the sources no longer have is gone, too.
        assert opened.namelist() == [
            "META-INF/MANIFEST.MF",
            f"{READER}.class",
            ADDED.replace(".java", ".class"),
        ]
        assert b"Benchctl-Patch: my change" in opened.read("META-INF/MANIFEST.MF")
    assert built.jars["lucene-core"].name.startswith("lucene-core-9.8.0-my-change-")
    assert made(home, root, tmp_path, FITS + IN_QUERIES + NEW).jars == built.jars


def test_the_control_has_the_same_classes_but_for_new_ones(home: Home, root: Path, tmp_path: Path):
    control = made(home, root, tmp_path, FITS + IN_QUERIES + NEW, unchanged=True)
    assert control.classes == (f"{READER}.java", f"{QUERY}.java")
    assert control.difference == ""
    assert {*control.jars.values()}.isdisjoint(
        made(home, root, tmp_path, FITS + IN_QUERIES + NEW).jars.values()
    )


def test_tests_and_texts_are_left_out_and_told(home: Home, root: Path, tmp_path: Path):
    built = made(home, root, tmp_path, FITS + "".join(map(added, LEFT_OUT)))
    assert built.left_out == LEFT_OUT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no diff"),
        ("some words\n", "is no diff"),
        (
            change(IN_CORE, "int three;", "long one;"),
            "not apply to Lucene 9.8.0: patch failed: .*Reader.java:1",
        ),
        (FITS.replace("index/Reader", "index/Missing"), "not apply to Lucene 9.8.0: .*Missing.java: No such"),
        (FITS.replace("lucene/index", "lucene/nowhere"), "Reader.java is of no module of Lucene 9.8.0"),
        (FITS.replace("src/java/", "src/java21/"), "which cannot be built into Lucene's jars"),
        (FITS.replace(IN_CORE, "lucene/core/src/resources/META-INF/services/x"), "cannot be built"),
        (FITS + FITS.replace(IN_CORE, f"{READER}.java"), "changes a class twice"),
        (added("lucene/CHANGES.txt"), "changes no class of Lucene"),
        (DELETED, "deletes Reader.java"),
        (RENAMED, "renames files"),
        (added("org/apache/lucene/../../../../outside.java"), "outside.java"),
        (added("/etc/org/apache/lucene/index/A.java"), "cannot be built"),
        (added(ADDED, "/etc/passwd", "120000"), "cannot build"),
    ],
)
def test_what_cannot_be_applied_is_told_and_nothing_is_left(
    text: str, said: str, home: Home, root: Path, tmp_path: Path
):
    before = {*tmp_path.parent.iterdir()}
    with pytest.raises(BenchctlError, match=said):
        made(home, root, tmp_path, text)
    assert not [path for path in home.artifacts.iterdir() if "my" in path.name or path.name.startswith(".")]
    assert {*tmp_path.parent.iterdir()} == before
    assert not [*tmp_path.rglob("outside.java")]


def test_a_home_within_a_checkout_changes_nothing_there(root: Path, tmp_path: Path):
    checkout = tmp_path / "checkout"
    (checkout / IN_CORE).parent.mkdir(parents=True)
    (checkout / IN_CORE).write_text(SOURCES[READER])
    assert git(["init", "--quiet"], checkout).returncode == 0
    assert made(Home(checkout / "home"), root, tmp_path, FITS).classes == (f"{READER}.java",)
    assert (checkout / IN_CORE).read_text() == SOURCES[READER]


def test_a_diff_that_is_not_there_is_told(home: Home, root: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="there is no diff"):
        build_diff(home, library_of(root, "9.8.0"), java(tmp_path), tmp_path / "no.diff", lambda *_: None)
