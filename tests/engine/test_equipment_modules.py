"""Modules of OpenSearch from their published jars: what is fetched, made, removed and refused."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import equip, with_modules
from benchctl.engine.modules import MODULES
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.plan import VariantSpec
from engine.archive_server import Reply, Server

COMMIT = "c" * 40
MODULES_BEFORE = ("cache-common", "geo", "transport-netty4")
DESCRIPTOR = (
    "name=transport-netty4\ndescription=own\nversion=2.11.0\nopensearch.version=2.11.0\njava.version=11\n"
    "classname=org.opensearch.transport.Netty4ModulePlugin\ncustom.foldername=\nextended.plugins=\n"
    "has.native.controller=false\n"
)


def packed(commit: str = COMMIT, *entries: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nChange: {commit}\r\n")
        for entry in entries:
            jar.writestr(entry, "class")
    return buffer.getvalue()


def publish(
    server: Server, artifact: str, jar: bytes, *needs: str, group: str = "org.opensearch.plugin"
) -> None:
    """Serve a jar of a version, and a POM with what it needs."""
    artifact, version = artifact.split(":")
    folder = f"/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
    entries = "".join(
        f"<dependency><groupId>{other}</groupId><artifactId>{name}</artifactId><version>{number}</version>"
        "</dependency>"
        for other, name, number in (text.split(":") for text in needs)
    )
    pom = (
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}"
        f"</artifactId><version>{version}</version><dependencies>{entries}</dependencies></project>"
    )
    server.replies |= {f"{folder}.jar": Reply(jar), f"{folder}.pom": Reply(pom.encode())}


def publish_module(server: Server, name: str, *needs: str, commit: str = COMMIT) -> None:
    class_file = f"org/opensearch/{name.replace('-', '')}/{name.title().replace('-', '')}Plugin.class"
    jar = packed(commit, class_file, f"{class_file.removesuffix('.class')}$Inner.class")
    publish(server, f"{MODULES[name].artifact}:2.11.0", jar, *needs)


@pytest.fixture
def repository(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    publish_module(server, "reindex", "org.example:client:1", "org.example:zstd-jni:1.5.5-5")
    publish_module(server, "lang-painless")
    publish_module(server, "lang-expression", "org.antlr:antlr4-runtime:4.11.1", "org.example:asm:9")
    publish_module(server, "analysis-common")
    publish(server, "opensearch-scripting-painless-spi:2.11.0", packed())
    publish(server, "antlr4-runtime:4.11.1", packed(), group="org.antlr")
    for jar in ("client:1", "asm:9", "zstd-jni:1.5.5-5"):
        publish(server, jar, packed(), group="org.example")
    return server


@pytest.fixture
def plain(home: Home) -> Installation:
    root = home.engines / "os" / "distribution"
    files = {
        "bin/opensearch": b"start",
        "config/jvm.options": b"",
        "lib/opensearch-2.11.0.jar": packed(),
        "lib/zstd-jni-1.5.5-5.jar": packed(),
        "lib/lucene-core-9.7.0.jar": packed(),
        "modules/transport-netty4/plugin-descriptor.properties": DESCRIPTOR.encode(),
        "modules/cache-common/plugin-descriptor.properties": DESCRIPTOR.encode(),
        "modules/geo/plugin-descriptor.properties": DESCRIPTOR.encode(),
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return Installation("opensearch", "2.11.0", root, "a" * 64, MODULES_BEFORE, "9.7.0")


def added(home: Home, plain: Installation, *wanted: str) -> Installation:
    return with_modules(home, plain, wanted, lambda *_: None)


def jars(installation: Installation, module: str) -> list[str]:
    return sorted(path.name for path in (installation.root / "modules" / module).glob("*.jar"))


@pytest.mark.usefixtures("repository")
def test_a_module_has_its_jars_a_descriptor_and_a_policy(home: Home, plain: Installation):
    installed = added(home, plain, "reindex")
    assert installed.modules == ("cache-common", "geo", "reindex", "transport-netty4")
    # What lies in `lib` is not loaded again.
    assert jars(installed, "reindex") == ["client-1.jar", "reindex-client-2.11.0.jar"]
    folder = installed.root / "modules/reindex"
    assert (folder / "plugin-descriptor.properties").read_text().splitlines() == [
        "name=reindex",
        "description=reindex, from its published jar",
        "version=2.11.0",
        "opensearch.version=2.11.0",
        "java.version=11",
        "classname=org.opensearch.reindex.ReindexPlugin",
        "custom.foldername=",
        "extended.plugins=",
        "has.native.controller=false",
    ]
    assert 'java.net.SocketPermission "*", "connect";' in (folder / "plugin-security.policy").read_text()
    (facts,) = installed.added
    assert (facts.name, [text for text, _ in facts.jars]) == (
        "reindex",
        ["org.example:client:1", "org.opensearch.plugin:reindex-client:2.11.0"],
    )
    for path in (folder, *folder.iterdir()):
        assert path.stat().st_mode & 0o004, path
    assert not (plain.root / "modules/reindex").exists()


def test_what_was_made_once_needs_no_repository(repository: Server, home: Home, plain: Installation):
    first = added(home, plain, "analysis-common")
    asked = len(repository.requests)
    assert added(home, plain, "analysis-common") == first
    assert len(repository.requests) == asked


@pytest.mark.usefixtures("repository")
def test_what_a_module_extends_comes_with_it(home: Home, plain: Installation):
    installed = added(home, plain, "analysis-common")
    assert [module.name for module in installed.added] == ["lang-painless", "analysis-common"]
    descriptor = (installed.root / "modules/analysis-common/plugin-descriptor.properties").read_text()
    assert "extended.plugins=lang-painless\n" in descriptor
    # Its own POM names neither.
    assert jars(installed, "lang-painless") == [
        "antlr4-runtime-4.11.1.jar",
        "lang-painless-2.11.0.jar",
        "opensearch-scripting-painless-spi-2.11.0.jar",
    ]


@pytest.mark.usefixtures("repository")
def test_full_adds_what_is_published_and_names_the_rest(home: Home, plain: Installation):
    installed = added(home, plain, "full")
    assert installed.modules == (
        "analysis-common", "cache-common", "geo", "lang-expression", "lang-painless", "reindex",
        "transport-netty4",
    )  # fmt: skip
    unpublished = set(MODULES) - set(installed.modules)
    assert {text.split()[1] for text in installed.lacking} == unpublished


def test_core_removes_all_but_old_and_named_modules(repository: Server, home: Home, plain: Installation):
    installed = added(home, plain, "core")
    assert (installed.modules, installed.added) == (("transport-netty4",), ())
    assert installed.removed == ("cache-common", "geo")
    assert sorted(path.name for path in (installed.root / "modules").iterdir()) == ["transport-netty4"]
    assert repository.requests == []
    assert added(home, plain, "core", "geo").removed == ("cache-common",)
    assert added(home, plain, "geo") is plain
    assert added(home, plain, "core", "reindex").modules == ("reindex", "transport-netty4")
    assert (plain.root / "modules/geo").is_dir()


def test_core_keeps_what_plug_ins_of_the_distribution_extend(home: Home, plain: Installation):
    plugin = plain.root / "plugins" / "opensearch-maps"
    plugin.mkdir(parents=True)
    (plugin / "plugin-descriptor.properties").write_text("name=opensearch-maps\nextended.plugins=geo\n")
    core = added(home, plain, "core")
    assert (core.modules, core.removed) == (("geo", "transport-netty4"), ("cache-common",))


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ("percolator", UsageError, "percolator-client 2.11.0 not found"),
        ("mapper-extras", BenchctlError, "module mapper-extras is of build dddddddddddd"),
        ("rank-eval", BenchctlError, "2 classes that could be its plug-in"),
    ],
)
def test_a_module_that_does_not_fit_is_refused_and_nothing_is_left(
    wanted: str, error: type[BenchctlError], words: str, repository: Server, home: Home, plain: Installation
):
    publish_module(repository, "mapper-extras", commit="d" * 40)
    publish(
        repository,
        "rank-eval-client:2.11.0",
        packed(COMMIT, "org/opensearch/APlugin.class", "org/opensearch/BPlugin.class"),
    )
    with pytest.raises(error, match=words):
        added(home, plain, "reindex", wanted)
    assert [path.name for path in home.engines.iterdir()] == ["os"]


def test_a_repository_without_any_module_is_told(
    server: Server, home: Home, plain: Installation, monkeypatch: pytest.MonkeyPatch
):
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=r"no module of opensearch 2\.11\.0 is published"):
        added(home, replace(plain, modules=("transport-netty4",)), "full")


@pytest.fixture
def spec(plain: Installation) -> VariantSpec:
    return VariantSpec("mine", "opensearch", "2.11.0", distribution=str(plain.root))


@pytest.mark.usefixtures("repository")
def test_a_plug_in_gets_the_modules_that_it_extends(home: Home, spec: VariantSpec, tmp_path: Path):
    descriptor = (
        "name=knn\nversion=1\nopensearch.version=2.11.0\nextended.plugins=lang-painless,x;optional=true\n"
    )
    with zipfile.ZipFile(tmp_path / "knn.zip", "w") as plugin:
        plugin.writestr("plugin-descriptor.properties", descriptor)
    wanted = msgspec.structs.replace(spec, plugins=(str(tmp_path / "knn.zip"),))
    installed = equip(home, wanted, lambda *_: None).installation
    assert installed.modules == ("cache-common", "geo", "lang-painless", "transport-netty4")
    assert [one.name for one in installed.plugins] == ["knn"]
    with zipfile.ZipFile(tmp_path / "knn.zip", "w") as plugin:
        plugin.writestr("plugin-descriptor.properties", descriptor.replace("lang-painless", "security"))
    with pytest.raises(UsageError, match=r"extends security, which opensearch 2\.11\.0 lacks"):
        equip(home, wanted, lambda *_: None)


def test_a_module_of_an_unknown_build_is_refused(repository: Server, home: Home, plain: Installation):
    publish_module(repository, "reindex", commit="")
    (plain.root / "lib/opensearch-2.11.0.jar").write_bytes(packed(""))
    with pytest.raises(BenchctlError, match="of build unknown"):
        added(home, plain, "reindex")


@pytest.mark.usefixtures("repository")
def test_a_named_module_that_the_runtime_cannot_carry_is_refused(home: Home, spec: VariantSpec):
    with pytest.raises(UsageError, match=r"module analysis-common is not installed.*'th'") as caught:
        equip(home, msgspec.structs.replace(spec, modules=("analysis-common",)), lambda *_: None)
    assert "jdk:" in caught.value.hint
    installed = equip(home, msgspec.structs.replace(spec, modules=("full",)), lambda *_: None).installation
    assert [module.name for module in installed.added] == ["lang-expression", "lang-painless", "reindex"]
    assert any("analysis-common" in text for text in installed.lacking)
