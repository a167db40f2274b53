"""Jars in the place of others: what is replaced, what stays, and what cannot be."""

import hashlib
import os
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import Jar, with_jars
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home

LUCENE = {"Specification-Title": "Lucene Search Engine: core"}


def write_jar(path: Path, manifest: dict[str, str] | None = None, *more: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as jar:
        lines = [f"{key}: {value}\r\n" for key, value in (manifest or {}).items()]
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n" + "".join(lines))
        for name in more:
            jar.writestr(name, "")
    return path


@pytest.fixture
def plain(home: Home) -> Installation:
    root = home.engines / "os" / "distribution"
    for name, title in (("core", "core"), ("misc", "misc"), ("queries", "queries")):
        write_jar(
            root / f"lib/lucene-{name}-9.7.0.jar", {"Specification-Title": f"Lucene Search Engine: {title}"}
        )
    write_jar(root / "lib/log4j-1.2-api-2.20.0.jar")
    write_jar(root / "lib/untitled.jar")
    (root / "bin").mkdir()
    (root / "bin/opensearch").write_text("start")
    (root / "bin/opensearch").chmod(0o755)
    (root / "link").symlink_to("bin/opensearch")
    (root / "logs").mkdir()
    return Installation("opensearch", "2.11.0", root, "a" * 64, ("reindex",), "9.7.0")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_one_jar_is_replaced_and_all_else_is_the_same_file(plain: Installation, home: Home, tmp_path: Path):
    before = contents(plain.root)
    own = write_jar(tmp_path / "lucene-core-9.7.1.jar", {"Built-By": "me"})
    found = with_jars(home, plain, [Jar(own, "mine")])
    assert found.jars == (("lucene-core-9.7.0.jar", sha256(own)),)
    assert (found.version, found.archive_sha256, found.lucene) == ("2.11.0", "a" * 64, "9.7.1")
    assert contents(plain.root) == before
    assert contents(found.root) == {**before, "lib/lucene-core-9.7.0.jar": own.read_bytes()}
    assert (found.root / "bin/opensearch").samefile(plain.root / "bin/opensearch")
    assert (found.root / "link").readlink() == Path("bin/opensearch")
    assert not (found.root / "logs").exists()
    for path in (found.root, found.root.parent, *found.root.rglob("*")):
        assert path.stat().st_mode & 0o004, path


def test_the_same_jars_are_put_in_once(plain: Installation, home: Home, tmp_path: Path):
    own = write_jar(tmp_path / "lucene-core.jar", {"Built-By": "me"})
    first = with_jars(home, plain, [Jar(own, "mine")])
    made = first.root.stat().st_ino
    assert with_jars(home, plain, [Jar(own, "mine")]).root.stat().st_ino == made
    write_jar(own, {"Built-By": "you"})
    assert with_jars(home, plain, [Jar(own, "mine")]).root != first.root


class Building(list[Jar]):
    """Jars of which each is built anew as soon as it was looked at."""

    def __iter__(self) -> Iterator[Jar]:
        for jar in super().__iter__():
            yield jar
            write_jar(jar.path, {"Built-By": "you"})


def test_a_jar_that_changes_after_it_was_looked_at_is_not_kept_under_the_digest_of_what_it_was(
    plain: Installation, home: Home, tmp_path: Path
):
    own = write_jar(tmp_path / "lucene-core.jar", {"Built-By": "me"})
    before = sorted(home.engines.iterdir())
    with pytest.raises(BenchctlError, match=r"lucene-core\.jar changed while it was put"):
        with_jars(home, plain, Building([Jar(own, "mine")]))
    assert sorted(home.engines.iterdir()) == before
    assert with_jars(home, plain, [Jar(own, "mine")]).jars == (("lucene-core-9.7.0.jar", sha256(own)),)


def test_a_half_made_installation_is_made_again(plain: Installation, home: Home, tmp_path: Path):
    own = write_jar(tmp_path / "lucene-core.jar", {"Built-By": "me"})
    first = with_jars(home, plain, [Jar(own, "mine")])
    manifest = first.root.parent / "manifest.json"
    for left in (None, manifest.read_text().replace('"parts":"', '"parts":"0')):
        manifest.unlink()
        if left is not None:
            manifest.write_text(left)
        (first.root / "lib/lucene-core-9.7.0.jar").unlink()
        again = with_jars(home, plain, [Jar(own, "mine")])
        assert (again.root / "lib/lucene-core-9.7.0.jar").read_bytes() == own.read_bytes()


@pytest.mark.parametrize(
    ("name", "replaced"),
    [
        ("lucene-core.jar", "lucene-core-9.7.0.jar"),
        ("lucene-core-9.8.0-SNAPSHOT.jar", "lucene-core-9.7.0.jar"),
        ("lucene-core-9.7.0-mine-2.jar", "lucene-core-9.7.0.jar"),
        ("log4j-1.2-api-3.0.jar", "log4j-1.2-api-2.20.0.jar"),
        ("untitled-1.jar", "untitled.jar"),
    ],
)
def test_a_jar_replaces_that_of_its_name(
    plain: Installation, home: Home, tmp_path: Path, name: str, replaced: str
):
    own = write_jar(tmp_path / name)
    assert [file for file, _ in with_jars(home, plain, [Jar(own, name)]).jars] == [replaced]


def test_coordinates_say_which_artifact_it_is(plain: Installation, home: Home, tmp_path: Path):
    own = write_jar(tmp_path / "org.apache.lucene-lucene-misc-9.9.jar", LUCENE)
    found = with_jars(home, plain, [Jar(own, "o:lucene-misc:9.9", "lucene-misc")])
    assert [file for file, _ in found.jars] == ["lucene-misc-9.7.0.jar"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("lucene-cor-9.7.0.jar", "lucene-core-9.7.0.jar"),
        ("mine.jar", "lucene-core-9.7.0.jar, lucene-misc-9.7.0.jar"),
    ],
)
def test_what_replaces_nothing_is_told_with_what_is_near(
    plain: Installation, home: Home, tmp_path: Path, name: str, near: str
):
    own = write_jar(tmp_path / name)
    with pytest.raises(UsageError, match=r"replaces no jar in lib/ of opensearch 2\.11\.0") as caught:
        with_jars(home, plain, [Jar(own, name)])
    assert near in caught.value.hint
    assert [path.name for path in home.engines.iterdir()] == ["os"]


def test_two_jars_cannot_replace_the_same(plain: Installation, home: Home, tmp_path: Path):
    jars = [Jar(write_jar(tmp_path / name), name) for name in ("lucene-core-1.jar", "lucene-core-2.jar")]
    with pytest.raises(UsageError, match=r"lucene-core-1\.jar and lucene-core-2\.jar would both replace"):
        with_jars(home, plain, jars)


def test_a_jar_that_is_gone_is_told(plain: Installation, home: Home, tmp_path: Path):
    with pytest.raises(BenchctlError, match="cannot read"):
        with_jars(home, plain, [Jar(tmp_path / "lucene-core.jar", "gone")])


def test_a_folder_that_is_built_again_is_taken_as_it_is_now(plain: Installation, home: Home, tmp_path: Path):
    own = replace(plain, root=plain.root.rename(tmp_path / "mine"))
    jars = [Jar(write_jar(tmp_path / "lucene-core.jar"), "mine")]
    before = with_jars(home, own, jars)
    assert with_jars(home, own, jars).root == before.root
    built = own.root / "bin/opensearch"
    built.unlink()
    built.write_text("other")  # as long as before
    after = with_jars(home, own, jars)
    assert (after.root / "bin/opensearch").read_text() == "other"
    assert (before.root / "bin/opensearch").read_text() == "start"


def test_where_linking_is_impossible_everything_is_copied(
    plain: Installation, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, os.strerror(18))

    monkeypatch.setattr(os, "link", refuse)
    found = with_jars(home, plain, [Jar(write_jar(tmp_path / "lucene-core.jar"), "mine")])
    assert (found.root / "bin/opensearch").read_text() == "start"
    assert (found.root / "bin/opensearch").stat().st_mode & 0o777 == 0o755
    assert (found.root / "bin/opensearch").stat().st_nlink == 1


def test_without_jars_nothing_is_made(plain: Installation, home: Home):
    assert with_jars(home, plain, []) is plain
