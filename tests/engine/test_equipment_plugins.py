"""Plug-ins: where they go, and which are refused."""

import zipfile
from pathlib import Path

import pytest

from benchctl.engine.distribution import Archive, Installation, PluginFacts, local_archive
from benchctl.engine.equipment import with_plugins
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home

ICU = "name=analysis-icu\nversion=2.11.0.0\nopensearch.version=2.11.0\n"


def plugin(path: Path, descriptor: str | None = ICU, **files: str) -> Archive:
    with zipfile.ZipFile(path, "w") as packed:
        if descriptor is not None:
            packed.writestr("plugin-descriptor.properties", descriptor)
        packed.writestr("icu.jar", "code")
        for name, text in files.items():
            packed.writestr(name.replace("__", "/"), text)
    return local_archive(path)


@pytest.fixture
def plain(home: Home) -> Installation:
    root = home.engines / "os" / "distribution"
    for name in ("bin/opensearch", "config/opensearch.yml", "lib/a.jar", "modules/reindex/b.jar"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return Installation("opensearch", "2.11.0", root, "a" * 64, ("reindex",), "9.7.0")


def test_a_plug_in_lies_where_the_engines_own_installer_puts_it(
    plain: Installation, home: Home, tmp_path: Path
):
    archive = plugin(tmp_path / "icu.zip", config__icu_yml="c", bin__tool="b")
    found = with_plugins(home, plain, [("icu", archive)])
    assert found.plugins == (PluginFacts("analysis-icu", "2.11.0.0", archive.sha256),)
    files = {str(one.relative_to(found.root)) for one in found.root.rglob("*") if one.is_file()}
    own = {str(one.relative_to(plain.root)) for one in plain.root.rglob("*") if one.is_file()}
    assert files - own == {
        "plugins/analysis-icu/plugin-descriptor.properties",
        "plugins/analysis-icu/icu.jar",
        "config/analysis-icu/icu_yml",
        "bin/analysis-icu/tool",
    }
    assert own <= files
    assert not (plain.root / "plugins").exists()
    assert [*home.scratch.iterdir()] == []
    for path in (found.root, *found.root.rglob("*")):
        assert path.stat().st_mode & 0o004, path


def test_the_configuration_of_a_plug_in_leaves_the_originals_as_it_is(
    plain: Installation, home: Home, tmp_path: Path
):
    own = plain.root / "config/analysis-icu/icu_yml"
    own.parent.mkdir()
    own.write_text("left behind")
    found = with_plugins(home, plain, [("icu", plugin(tmp_path / "icu.zip", config__icu_yml="c"))])
    assert (found.root / "config/analysis-icu/icu_yml").read_text() == "c"
    assert own.read_text() == "left behind"


def test_the_same_plug_ins_are_installed_once(plain: Installation, home: Home, tmp_path: Path):
    archive = plugin(tmp_path / "icu.zip")
    roots = {with_plugins(home, plain, [("icu", archive)]).root for _ in range(2)}
    assert len(roots) == 1
    assert with_plugins(home, plain, []) is plain


@pytest.mark.parametrize(
    ("descriptor", "said"),
    [
        (None, "it has no plugin-descriptor.properties"),
        (ICU.replace("2.11.0\n", "2.12.0\n"), "was made for opensearch 2.12.0, not for opensearch 2.11.0"),
        (
            ICU.replace("opensearch.version", "elasticsearch.version"),
            "was made for elasticsearch 2.11.0, not for opensearch 2.11.0",
        ),
        ("name=x\nversion=1\n", "was made for an engine that it does not name"),
        (ICU.replace("analysis-icu", "../x"), "has no usable name"),
        (ICU.replace("analysis-icu", "reindex"), "is plug-in reindex, which opensearch 2.11.0 has already"),
    ],
)
def test_what_does_not_go_with_the_engine_is_refused(
    plain: Installation, home: Home, tmp_path: Path, descriptor: str | None, said: str
):
    with pytest.raises(UsageError, match=said):
        with_plugins(home, plain, [("icu", plugin(tmp_path / "icu.zip", descriptor))])
    assert [path.name for path in home.engines.iterdir()] == ["os"]
    assert [*home.scratch.iterdir()] == []


def test_a_range_of_versions_is_left_to_the_node(plain: Installation, home: Home, tmp_path: Path):
    descriptor = 'name = icu\n# a comment\nversion: 3\ndependencies={ opensearch: "~2.11.0" }\n'
    found = with_plugins(home, plain, [("icu", plugin(tmp_path / "icu.zip", descriptor))])
    assert [(one.name, one.version) for one in found.plugins] == [("icu", "3")]


def test_one_plug_in_is_not_installed_twice(plain: Installation, home: Home, tmp_path: Path):
    archive = plugin(tmp_path / "icu.zip")
    with pytest.raises(UsageError, match="plug-in analysis-icu is a duplicate"):
        with_plugins(home, plain, [("one", archive), ("other", archive)])


def test_nothing_is_written_outside(plain: Installation, home: Home, tmp_path: Path):
    archive = plugin(tmp_path / "icu.zip", **{"..__..__evil": "x"})
    with pytest.raises(BenchctlError, match="not safe to unpack"):
        with_plugins(home, plain, [("icu", archive)])
