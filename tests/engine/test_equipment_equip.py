"""A variant's engine with its plug-ins and jars, from wherever they come."""

import zipfile
from pathlib import Path

import msgspec
import pytest

from benchctl.engine.equipment import equip
from benchctl.home import Home
from benchctl.results.plan import VariantSpec
from engine.archive_server import Reply, Server

LUCENE = "/org/apache/lucene/lucene-core/9.8.0/lucene-core-9.8.0.jar"
ICU = "/org/example/icu/1/icu-1.zip"


def packed(path: Path, **files: str) -> bytes:
    with zipfile.ZipFile(path, "w") as opened:
        for name, text in files.items():
            opened.writestr(name.replace("__", "."), text)
    return path.read_bytes()


@pytest.fixture
def spec(tmp_path: Path) -> VariantSpec:
    root = tmp_path / "es"
    for name in ("elasticsearch-8.11.0", "lucene-core-9.8.0"):
        (root / "lib").mkdir(parents=True, exist_ok=True)
        packed(root / f"lib/{name}.jar", name=name)
    for name in ("bin/elasticsearch", "config/jvm.options", "modules/reindex/a.jar"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return VariantSpec("mine", "elasticsearch", "8.11.0", distribution=str(root))


def test_a_plain_variant_is_its_installation(home: Home, spec: VariantSpec):
    found = equip(home, spec, lambda *_: None)
    assert found.installation is found.builder
    assert str(found.builder.root) == spec.distribution


def test_plug_ins_build_the_index_and_jars_do_not(
    home: Home, spec: VariantSpec, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
):
    descriptor = "name=icu\nversion=1\nelasticsearch.version=8.11.0\n"
    server.replies[ICU] = Reply(packed(tmp_path / "1", **{"plugin-descriptor__properties": descriptor}))
    server.replies[LUCENE] = Reply(packed(tmp_path / "2", other="other"))
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    wanted = msgspec.structs.replace(
        spec, plugins=("org.example:icu:1",), jars=("org.apache.lucene:lucene-core:9.8.0",)
    )
    found = equip(home, wanted, lambda *_: None)
    assert [one.name for one in found.builder.plugins] == ["icu"]
    assert found.builder.jars == ()
    assert found.installation.plugins == found.builder.plugins
    assert [name for name, _ in found.installation.jars] == ["lucene-core-9.8.0.jar"]
    assert found.installation.archive_sha256 == found.builder.archive_sha256
    assert (found.installation.root / "plugins/icu/plugin-descriptor.properties").is_file()
    asked = len(server.requests)
    assert equip(home, wanted, lambda *_: None) == found
    assert len(server.requests) == asked
