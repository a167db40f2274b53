"""Lucene with a diff: what is read of it, applied, refused and kept; a script is the compiler."""

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchctl.engine.distribution import read_entry
from benchctl.engine.jdk import Jdk
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.engine.patched_lucene import BuiltDiff, build_diff, library_of, replace_entries
from benchctl.engine.variant import SHIPPED_DIFFS
from benchctl.errors import BenchctlError, UsageError
from benchctl.git import git
from benchctl.home import Home
from engine.archive_server import Reply, Server

ECJ = "/org/eclipse/jdt/ecj/3.46.0/ecj-3.46.0.jar"
JAVA_11 = b"\xca\xfe\xba\xbe\x00\x00\x00\x37"
READER, QUERY = "org/apache/lucene/index/Reader", "org/apache/lucene/queries/Query"
READER_SOURCES = "/org/apache/lucene/lucene-core/9.8.0/lucene-core-9.8.0-sources.jar"
SOURCES = {READER: "class Reader {\n  int one;\n  int two;\n}\n", QUERY: "class Query {\n  int one;\n}\n"}

# Writes down how it was called, and makes a class file for every source that it gets.
COMPILES = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
while [ "$1" != "-d" ]; do shift; done
out="$2"; shift 2
for source; do
  name="${source#*/sources/}"
  mkdir -p "$out/$(dirname "$name")"
  printf 'HEADERmade of ' | cat - "$source" > "$out/${name%.java}.class"
done
""".replace("HEADER", "".join(f"\\{byte:03o}" for byte in JAVA_11))
FAILS = """#!/bin/sh
echo '----------' >&2
for last; do :; done
echo "1. ERROR in $last (at line 3)" >&2
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "	line $n" >&2; done
exit 255
"""


def packed(**entries: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for name, content in entries.items():
            opened.writestr(zipfile.ZipInfo(name, (2023, 9, 21, 0, 0, 0)), content)
    return buffer.getvalue()


def java(folder: Path, script: str = COMPILES, major: int = 21) -> Jdk:
    """A runtime whose `java` is a script."""
    path = folder / "java" / "bin" / "java"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return Jdk(folder / "java", f"{major}.0.1", "any", major, frozenset())


def calls(jdk: Jdk) -> list[str]:
    path = jdk.home / "bin" / "calls"
    return path.read_text().splitlines() if path.exists() else []


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
            **{"META-INF/MANIFEST.MF": manifest, f"{entry}.class": JAVA_11, f"{entry}$Old.class": JAVA_11}
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


def made(
    home: Home, root: Path, tmp_path: Path, text: str, *, jdk: Jdk | None = None, unchanged: bool = False
) -> BuiltDiff:
    diff = tmp_path / "my change.diff"
    diff.write_text(text)
    jdk = jdk or java(tmp_path)
    return build_diff(home, library_of(root, "9.8.0"), jdk, diff, lambda *_: None, unchanged=unchanged)


def kept(home: Home) -> list[str]:
    return sorted(
        path.name for path in home.artifacts.iterdir() if "my-change" in path.name or "my change" in path.name
    )


def test_classes_of_several_modules_are_changed_in_their_jars(home: Home, root: Path, tmp_path: Path):
    jdk = java(tmp_path)
    built = made(home, root, tmp_path, FITS + IN_QUERIES + NEW, jdk=jdk)
    assert {*built.jars} == {"lucene-core", "lucene-queries"}
    assert built.classes == (ADDED, f"{READER}.java", f"{QUERY}.java")
    assert built.text == FITS + IN_QUERIES + NEW
    with zipfile.ZipFile(built.jars["lucene-core"]) as opened:
        # What the sources no longer have is gone, too.
        assert opened.namelist() == [
            "META-INF/MANIFEST.MF",
            f"{READER}.class",
            ADDED.replace(".java", ".class"),
        ]
        assert opened.read("META-INF/MANIFEST.MF") == b"Manifest-Version: 1.0\nBenchctl-Patch: my-change\n\n"
        changed = SOURCES[READER].replace("int one", "long one").encode()
        assert opened.read(f"{READER}.class") == JAVA_11 + b"made of " + changed
    assert built.jars["lucene-core"].name.startswith("lucene-core-9.8.0-my-change-")
    assert {jar.stat().st_mode & 0o777 for jar in built.jars.values()} == {0o644}
    (call,) = calls(jdk)
    assert "-source 11 -target 11" in call
    assert f"-classpath {root}/lib/lucene-core-9.8.0.jar:{root}/lib/lucene-queries-9.8.0.jar" in call


def test_what_was_built_is_found_without_network_and_compiler(
    server: Server, home: Home, root: Path, tmp_path: Path
):
    jdk = java(tmp_path)
    first = made(home, root, tmp_path, FITS, jdk=jdk)
    server.requests.clear()
    assert made(home, root, tmp_path, FITS, jdk=jdk) == first
    assert (len(calls(jdk)), server.requests) == (1, [])


def test_another_jar_of_the_same_version_is_changed_again(home: Home, root: Path, tmp_path: Path):
    first = made(home, root, tmp_path, FITS).jars["lucene-core"]
    with zipfile.ZipFile(root / "lib" / "lucene-core-9.8.0.jar", "a") as opened:
        opened.writestr("more.class", b"of the vendor")
    second = made(home, root, tmp_path, FITS).jars["lucene-core"]
    assert (first != second, read_entry(second, "more.class")) == (True, b"of the vendor")
    assert first.exists()


def test_another_compiler_makes_another_jar(server: Server, home: Home, root: Path, tmp_path: Path):
    first = made(home, root, tmp_path, FITS)
    for path in home.artifacts.glob("org.eclipse.jdt-ecj-*"):
        path.unlink()
    server.replies[ECJ] = Reply(packed(ecj=b"newer"))
    assert made(home, root, tmp_path, FITS).jars != first.jars


def test_what_does_not_compile_is_reported_with_the_compilers_first_lines(
    home: Home, root: Path, tmp_path: Path
):
    with pytest.raises(BenchctlError) as caught:
        made(home, root, tmp_path, FITS, jdk=java(tmp_path, FAILS))
    lines = caught.value.message.splitlines()
    assert lines[0].startswith("my change.diff ")
    assert lines[1] == f"1. ERROR in {READER}.java (at line 3)"
    assert (len(lines), kept(home)) == (13, [])


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda server: server.replies.update({f"{READER_SOURCES}.sha1": Reply(b"0" * 40)}), "its sha1"),
        (lambda server: server.replies.pop(READER_SOURCES), r"lucene-core sources 9\.8\.0"),
        (lambda server: server.replies.pop(ECJ), r"ecj 3\.46\.0"),
    ],
)
def test_sources_and_a_compiler_that_cannot_be_fetched_are_reported(
    break_it: Callable[[Server], object], said: str, server: Server, home: Home, root: Path, tmp_path: Path
):
    break_it(server)
    with pytest.raises(BenchctlError, match=said):
        made(home, root, tmp_path, FITS)
    assert kept(home) == []


def test_an_old_java_cannot_run_the_compiler(home: Home, root: Path, tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"Java 17 or newer, and .* is Java 11"):
        made(home, root, tmp_path, FITS, jdk=java(tmp_path, major=11))


def test_a_shipped_diff_changes_one_class_by_its_path_in_the_sources(tmp_path: Path):
    assert [*SHIPPED_DIFFS] == ["bulk-visit"]
    done = git(["apply", "--numstat", str(SHIPPED_DIFFS["bulk-visit"])], tmp_path, alone=True)
    assert done.stdout.split()[2:] == [b"org/apache/lucene/util/bkd/DocIdsWriter.java"]


def test_the_control_has_the_same_classes_but_for_new_ones(home: Home, root: Path, tmp_path: Path):
    control = made(home, root, tmp_path, FITS + IN_QUERIES + NEW, unchanged=True)
    assert control.classes == (f"{READER}.java", f"{QUERY}.java")
    assert {*control.jars.values()}.isdisjoint(
        made(home, root, tmp_path, FITS + IN_QUERIES + NEW).jars.values()
    )


def test_tests_and_texts_are_left_out_and_reported(home: Home, root: Path, tmp_path: Path):
    built = made(home, root, tmp_path, FITS + "".join(map(added, LEFT_OUT)))
    assert built.left_out == LEFT_OUT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a diff"),
        ("some words\n", "is not a diff"),
        (
            change(IN_CORE, "int three;", "long one;"),
            "not apply to Lucene 9.8.0: patch failed: .*Reader.java:1",
        ),
        (FITS.replace("index/Reader", "index/Missing"), "not apply to Lucene 9.8.0: .*Missing.java: No such"),
        (FITS.replace("lucene/index", "lucene/nowhere"), "Reader.java is of no module of Lucene 9.8.0"),
        (FITS.replace("src/java/", "src/java21/"), "which cannot be built into Lucene's jars"),
        (FITS.replace(IN_CORE, "lucene/core/src/resources/META-INF/services/x"), "cannot be built"),
        (FITS + FITS.replace(IN_CORE, f"{READER}.java"), "changes a class more than once"),
        (added("lucene/CHANGES.txt"), "changes no class of Lucene"),
        (DELETED, "deletes Reader.java"),
        (RENAMED, "renames files"),
        (added("org/apache/lucene/../../../../outside.java"), "outside.java"),
        (added("/etc/org/apache/lucene/index/A.java"), "cannot be built"),
        (added(ADDED, "/etc/passwd", "120000"), "cannot build"),
    ],
)
def test_what_cannot_be_applied_is_refused_and_nothing_is_left(
    text: str, said: str, home: Home, root: Path, tmp_path: Path
):
    before = {*tmp_path.parent.iterdir()}
    with pytest.raises(BenchctlError, match=said):
        made(home, root, tmp_path, text)
    assert kept(home) == []
    assert {*tmp_path.parent.iterdir()} == before
    assert not [*tmp_path.rglob("outside.java")]


def test_a_home_within_a_checkout_changes_nothing_there(root: Path, tmp_path: Path):
    checkout = tmp_path / "checkout"
    (checkout / IN_CORE).parent.mkdir(parents=True)
    (checkout / IN_CORE).write_text(SOURCES[READER])
    assert git(["init", "--quiet"], checkout).returncode == 0
    assert made(Home(checkout / "home"), root, tmp_path, FITS).classes == (f"{READER}.java",)
    assert (checkout / IN_CORE).read_text() == SOURCES[READER]


def test_a_missing_diff_is_refused(home: Home, root: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="no such diff"):
        build_diff(home, library_of(root, "9.8.0"), java(tmp_path), tmp_path / "no.diff", lambda *_: None)


MANIFEST_PATH = "META-INF/MANIFEST.MF"
MANIFEST = (
    b"Manifest-Version: 1.0\r\nImplementation-Version: 9.8.0 d914 -\r\n  2023\r\nMulti-Release: true\r\n\r\n"
)
ENTRIES: Mapping[str, bytes] = {
    "META-INF/": b"",
    MANIFEST_PATH: MANIFEST,
    "module-info.class": b"module",
    "any/Reader.class": b"old",
    "any/Other.class": b"other" * 500,
    "META-INF/versions/21/any/Other.class": b"newer",
}
CLASSES = {"any/Reader.class": b"new", "any/Reader$Block.class": b"block", "any/Reader$A.class": b"a"}
MARKER = "Benchctl-Patch: bulk-visit"


def jar(folder: Path, entries: Mapping[str, bytes] = ENTRIES) -> Path:
    path = folder / "original.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name, (2023, 9, 21, 21, 58, 0))
            entry.external_attr = 0o640 << 16
            packed.writestr(entry, content)
    return path


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


def test_classes_are_replaced_and_added_and_all_else_stays(tmp_path: Path):
    replace_entries(jar(tmp_path), tmp_path / "new.jar", CLASSES, MARKER)
    found = contents(tmp_path / "new.jar")
    assert list(found) == [*ENTRIES, "any/Reader$A.class", "any/Reader$Block.class"]
    changed = {MANIFEST_PATH, *CLASSES}
    assert {name: found[name] for name in ENTRIES if name not in changed} == {
        name: content for name, content in ENTRIES.items() if name not in changed
    }
    assert {name: found[name] for name in CLASSES} == CLASSES


def test_an_empty_file_replaces_another(tmp_path: Path):
    replace_entries(jar(tmp_path), tmp_path / "new.jar", {"any/Reader.class": b""}, MARKER)
    assert contents(tmp_path / "new.jar")["any/Reader.class"] == b""


def test_the_bytes_repeat(tmp_path: Path):
    for name in ("one.jar", "two.jar"):
        replace_entries(jar(tmp_path), tmp_path / name, CLASSES, MARKER)
    assert (tmp_path / "one.jar").read_bytes() == (tmp_path / "two.jar").read_bytes()


def test_entries_keep_their_age_and_mode_and_new_ones_have_those_of_the_manifest(tmp_path: Path):
    replace_entries(jar(tmp_path), tmp_path / "new.jar", CLASSES, MARKER)
    with zipfile.ZipFile(tmp_path / "new.jar") as opened:
        assert {entry.date_time for entry in opened.infolist()} == {(2023, 9, 21, 21, 58, 0)}
        assert {entry.external_attr for entry in opened.infolist()} == {0o640 << 16}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("more", [b"", b"Title: x -END  yENDENDName: any/ENDSealed: trueEND"])
def test_the_marker_is_a_line_of_the_main_section(end: bytes, more: bytes, tmp_path: Path):
    first, more = b"Manifest-Version: 1.0" + end, more.replace(b"END", end)
    replace_entries(jar(tmp_path, {MANIFEST_PATH: first + more}), tmp_path / "new.jar", {}, MARKER)
    assert read_entry(tmp_path / "new.jar", MANIFEST_PATH) == first + MARKER.encode() + b"\n" + more


@pytest.mark.parametrize("manifest", [b"", b"\n", b"Title: x\n\n"])
def test_what_is_no_manifest_is_refused(manifest: bytes, tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"manifest of .*original\.jar"):
        replace_entries(jar(tmp_path, {MANIFEST_PATH: manifest}), tmp_path / "new.jar", {}, MARKER)


def test_a_class_that_newer_javas_have_another_of_is_refused(tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"META-INF/versions/21/any/Other\.class, which newer Java"):
        replace_entries(jar(tmp_path), tmp_path / "new.jar", {"any/Other.class": b""}, MARKER)


def test_what_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"original\.jar has no any/Missing\.class"):
        read_entry(jar(tmp_path), "any/Missing.class")
    (tmp_path / "text.jar").write_text("text")
    with pytest.raises(BenchctlError, match=r"text\.jar is damaged, or no jar"):
        read_entry(tmp_path / "text.jar", "any")


def test_a_file_of_it_that_cannot_be_unpacked_is_told(tmp_path: Path):
    path = jar(tmp_path)
    whole = path.read_bytes()
    packed = whole.index(b"any/Other.class") + len("any/Other.class")
    path.write_bytes(whole[:packed] + b"\xff" * 8 + whole[packed + 8 :])
    with pytest.raises(BenchctlError, match="is damaged, or no jar"):
        read_entry(path, "any/Other.class")
    assert read_entry(path, "any/Reader.class") == b"old"
