"""Jars with other classes: what is replaced, what stays, and that the bytes repeat."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchctl.engine.patched_lucene import marked, read_entry, replace_entries
from benchctl.errors import BenchctlError

MANIFEST = (
    b"Manifest-Version: 1.0\r\nImplementation-Version: 9.8.0 d914 -\r\n  2023\r\nMulti-Release: true\r\n\r\n"
)
ENTRIES: Mapping[str, bytes] = {
    "META-INF/": b"",
    "META-INF/MANIFEST.MF": MANIFEST,
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
    changed = {"META-INF/MANIFEST.MF", *CLASSES}
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
@pytest.mark.parametrize("rest", [b"", b"END", b"ENDName: any/\nSealed: trueEND"])
def test_the_marker_is_the_last_line_of_the_first_section(end: bytes, rest: bytes):
    first = b"Manifest-Version: 1.0ENDTitle: x -END  yEND".replace(b"END", end)
    rest = rest.replace(b"END", end)
    assert marked(first + rest, MARKER, "x") == first + MARKER.encode() + end + rest


@pytest.mark.parametrize("manifest", [b"", b"\n", b"Title: x\n\n"])
def test_what_is_no_manifest_is_refused(manifest: bytes):
    with pytest.raises(BenchctlError, match="the manifest of x is none"):
        marked(manifest, MARKER, "x")


def test_a_class_that_newer_javas_have_another_of_is_refused(tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"META-INF/versions/21/any/Other\.class, which newer Javas use"):
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
