"""Building a changed Lucene: what is fetched and kept, and what is refused; a script is the compiler."""

import hashlib
import io
import shutil
import zipfile
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.engine.patched_lucene import PatchedJar, build_lucene, java_release
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from engine.archive_server import Reply, Server

ENTRY = "org/apache/lucene/util/bkd/DocIdsWriter"
ECJ = "/org/eclipse/jdt/ecj/3.46.0/ecj-3.46.0.jar"
SOURCES = "/org/apache/lucene/lucene-core/9.8.0/lucene-core-9.8.0-sources.jar"
SOURCE = "package org.apache.lucene.util.bkd;\n\nfinal class DocIdsWriter {\n}\n"
JAVA_11, JAVA_21 = b"\xca\xfe\xba\xbe\x00\x00\x00\x37", b"\xca\xfe\xba\xbe\x00\x00\x00\x41"

# Writes down how it was called, and makes a class file of the source: `-d` and its folder stand before that.
COMPILES = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
for last; do before="$folder"; folder="$current"; current="$last"; done
package="$folder/org/apache/lucene/util/bkd"
mkdir -p "$package"
printf '\\312\\376\\272\\276\\000\\000\\000\\067made of ' | cat - "$current" > "$package/DocIdsWriter.class"
"""
FAILS = """#!/bin/sh
echo '----------' >&2
echo '1. ERROR in DocIdsWriter.java (at line 3)' >&2
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "	line $n" >&2; done
exit 255
"""


def packed(**entries: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        for name, content in entries.items():
            opened.writestr(zipfile.ZipInfo(name, (2023, 9, 21, 0, 0, 0)), content)
    return buffer.getvalue()


@pytest.fixture
def repository(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A repository with a compiler, and sources."""
    monkeypatch.setenv(REPOSITORY_VARIABLE, server.url)
    server.replies[ECJ] = Reply(packed(ecj=b""))
    server.replies[SOURCES] = Reply(packed(**{f"{ENTRY}.java": SOURCE.encode()}))
    return server


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    root = tmp_path / "distribution"
    (root / "lib").mkdir(parents=True)
    content = {
        "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n\n",
        f"{ENTRY}.class": JAVA_11 + b"original",
        "any.class": JAVA_11,
    }
    (root / "lib" / "lucene-core-9.8.0.jar").write_bytes(packed(**content))
    return Installation("elasticsearch", "8.11.0", root, "0" * 64, ("any",), "9.8.0")


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


def make(home: Home, installation: Installation, jdk: Jdk, name: str = "recompiled") -> PatchedJar:
    return build_lucene(home, installation, jdk, name, lambda *_: None)


def kept(home: Home) -> list[str]:
    return sorted(path.name for path in home.artifacts.glob("lucene-core-*"))


@pytest.mark.usefixtures("repository")
def test_the_jar_is_the_originals_with_the_new_class(home: Home, installation: Installation, tmp_path: Path):
    built = make(home, installation, java(tmp_path))
    with zipfile.ZipFile(built.path) as opened:
        assert opened.namelist() == ["META-INF/MANIFEST.MF", f"{ENTRY}.class", "any.class"]
        assert opened.read("META-INF/MANIFEST.MF") == b"Manifest-Version: 1.0\nBenchctl-Patch: recompiled\n\n"
        assert opened.read(f"{ENTRY}.class") == JAVA_11 + b"made of " + SOURCE.encode()
        assert opened.read("any.class") == JAVA_11
    assert built.sha256 == hashlib.sha256(built.path.read_bytes()).hexdigest()
    assert (built.lucene, built.difference) == ("9.8.0", "")
    assert built.path.name.startswith("lucene-core-9.8.0-recompiled-")
    assert built.path.stat().st_mode & 0o777 == 0o644


@pytest.mark.usefixtures("repository")
def test_the_compiler_gets_the_originals_release_and_jar(
    home: Home, installation: Installation, tmp_path: Path
):
    jdk = java(tmp_path)
    make(home, installation, jdk)
    (call,) = calls(jdk)
    assert "-source 11 -target 11" in call
    assert f"-classpath {installation.root}/lib/lucene-core-9.8.0.jar" in call


def test_what_was_built_is_found_without_network_and_compiler(
    repository: Server, home: Home, installation: Installation, tmp_path: Path
):
    jdk = java(tmp_path)
    first = make(home, installation, jdk)
    repository.requests.clear()
    assert make(home, installation, jdk) == first
    assert build_lucene(home, installation, jdk, "recompiled", lambda *_: None).path == first.path
    assert len(calls(jdk)) == 1
    assert repository.requests == []


@pytest.mark.usefixtures("repository")
def test_another_jar_of_the_same_version_is_changed_anew(
    home: Home, installation: Installation, tmp_path: Path
):
    first = make(home, installation, java(tmp_path))
    original = installation.root / "lib" / "lucene-core-9.8.0.jar"
    with zipfile.ZipFile(original, "a") as opened:
        opened.writestr("more.class", b"of the vendor")
    second = make(home, installation, java(tmp_path))
    assert first.path != second.path
    with zipfile.ZipFile(second.path) as opened:
        assert opened.read("more.class") == b"of the vendor"
    assert first.path.exists()


def test_another_compiler_makes_another_jar(
    repository: Server, home: Home, installation: Installation, tmp_path: Path
):
    first = make(home, installation, java(tmp_path))
    for path in home.artifacts.glob("org.eclipse.jdt-ecj-*"):
        path.unlink()
    repository.replies[ECJ] = Reply(packed(ecj=b"newer"))
    assert make(home, installation, java(tmp_path)).path != first.path


@pytest.mark.usefixtures("repository")
def test_what_does_not_compile_is_told_with_the_compilers_first_lines(
    home: Home, installation: Installation, tmp_path: Path
):
    with pytest.raises(BenchctlError) as caught:
        make(home, installation, java(tmp_path, FAILS))
    lines = caught.value.message.splitlines()
    assert lines[0] == "DocIdsWriter.java does not compile (ecj 3.46.0):"
    assert lines[1] == "1. ERROR in DocIdsWriter.java (at line 3)"
    assert len(lines) == 13
    assert [name for name in kept(home) if "recompiled" in name] == []
    assert [path for path in home.artifacts.iterdir() if path.name.startswith(".")] == []


@pytest.mark.usefixtures("repository")
def test_a_class_for_another_java_is_refused(home: Home, installation: Installation, tmp_path: Path):
    jdk = java(tmp_path, COMPILES.replace("\\067", "\\101"))
    with pytest.raises(BenchctlError, match=r"DocIdsWriter\.class for Java 21, and Lucene's is for 11"):
        make(home, installation, jdk)
    assert [name for name in kept(home) if "recompiled" in name] == []


@pytest.mark.usefixtures("repository")
def test_a_change_does_not_go_into_another_source(home: Home, installation: Installation, tmp_path: Path):
    jdk = java(tmp_path)
    with pytest.raises(
        BenchctlError, match=r"does not fit DocIdsWriter\.java of Lucene 9\.8\.0, which has no"
    ):
        make(home, installation, jdk, "bulk-visit")
    assert calls(jdk) == []


def test_sources_that_are_damaged_are_refused(
    repository: Server, home: Home, installation: Installation, tmp_path: Path
):
    repository.replies[f"{SOURCES}.sha1"] = Reply(b"0" * 40)
    with pytest.raises(BenchctlError, match=r"lucene-core sources 9\.8\.0 from .* does not match its sha1"):
        make(home, installation, java(tmp_path))
    assert kept(home) == []


def test_a_version_without_sources_is_told(
    repository: Server, home: Home, installation: Installation, tmp_path: Path
):
    del repository.replies[SOURCES]
    with pytest.raises(BenchctlError, match=r"has no lucene-core sources 9\.8\.0"):
        make(home, installation, java(tmp_path))


def test_without_a_network_one_message_says_so(
    home: Home, installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(REPOSITORY_VARIABLE, "http://127.0.0.1:9")
    with pytest.raises(BenchctlError, match=r"cannot download lucene-core sources from .*: no connection"):
        make(home, installation, java(tmp_path))


@pytest.mark.usefixtures("repository")
def test_an_old_java_cannot_run_the_compiler(home: Home, installation: Installation, tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"ecj 3\.46\.0 needs Java 17 or newer, and .* is Java 11"):
        make(home, installation, java(tmp_path, major=11))


def test_an_unknown_change_is_refused_before_anything_is_fetched(
    repository: Server, home: Home, installation: Installation, tmp_path: Path
):
    with pytest.raises(UsageError, match="there is no patch 'faster' of Lucene"):
        make(home, installation, java(tmp_path), "faster")
    assert repository.requests == []


@pytest.mark.usefixtures("repository")
def test_a_distribution_without_its_jar_is_told(home: Home, installation: Installation, tmp_path: Path):
    shutil.rmtree(installation.root / "lib")
    with pytest.raises(BenchctlError, match=r"cannot read .*lucene-core-9\.8\.0\.jar: No such file"):
        make(home, installation, java(tmp_path))


def test_the_release_is_read_from_the_class_file():
    assert (java_release(JAVA_11, "x"), java_release(JAVA_21 + b"more", "x")) == (11, 21)
    for wrong in (b"", JAVA_11[:7], b"\xca\xfe\xba\xbf\x00\x00\x00\x37"):
        with pytest.raises(BenchctlError, match="x is not a class file"):
            java_release(wrong, "x")
