"""The module that plug-ins extend, from its published jars: what is fetched, made and refused."""

import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import equip, with_painless
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


def publish_painless(server: Server, *needs: str, commit: str = COMMIT) -> None:
    class_file = "org/opensearch/painless/PainlessModulePlugin.class"
    jar = packed(commit, class_file, f"{class_file.removesuffix('.class')}$Inner.class")
    publish(server, "lang-painless:2.11.0", jar, *needs)


@pytest.fixture
def repository(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    publish_painless(server)
    publish(
        server, "lang-expression:2.11.0", packed(), "org.antlr:antlr4-runtime:4.11.1", "org.example:asm:9"
    )
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


def added(home: Home, plain: Installation) -> Installation:
    return with_painless(home, plain, lambda *_: None)


def jars(installation: Installation) -> list[str]:
    return sorted(path.name for path in (installation.root / "modules/lang-painless").glob("*.jar"))


def test_a_module_has_its_jars_a_descriptor_and_a_policy(repository: Server, home: Home, plain: Installation):
    publish_painless(repository, "org.example:client:1", "org.example:zstd-jni:1.5.5-5")
    installed = added(home, plain)
    assert installed.modules == ("cache-common", "geo", "lang-painless", "transport-netty4")
    # What lies in `lib` is not loaded again.
    assert jars(installed) == ["client-1.jar", "lang-painless-2.11.0.jar"]
    folder = installed.root / "modules/lang-painless"
    assert (folder / "plugin-descriptor.properties").read_text().splitlines() == [
        "name=lang-painless",
        "description=lang-painless, from its published jar",
        "version=2.11.0",
        "opensearch.version=2.11.0",
        "java.version=11",
        "classname=org.opensearch.painless.PainlessModulePlugin",
        "custom.foldername=",
        "extended.plugins=",
        "has.native.controller=false",
    ]
    policy = (folder / "plugin-security.policy").read_text()
    assert 'permission java.lang.RuntimePermission "createClassLoader";' in policy
    (facts,) = installed.added
    assert (facts.name, [text for text, _ in facts.jars]) == (
        "lang-painless",
        ["org.example:client:1", "org.opensearch.plugin:lang-painless:2.11.0"],
    )
    for path in (folder, *folder.iterdir()):
        assert path.stat().st_mode & 0o004, path
    assert not (plain.root / "modules/lang-painless").exists()
    assert added(home, installed) is installed


def test_what_was_made_once_needs_no_repository(repository: Server, home: Home, plain: Installation):
    first = added(home, plain)
    asked = len(repository.requests)
    assert added(home, plain) == first
    assert len(repository.requests) == asked


@pytest.mark.usefixtures("repository")
def test_what_its_own_pom_does_not_name_comes_with_it(home: Home, plain: Installation):
    assert jars(added(home, plain)) == [
        "antlr4-runtime-4.11.1.jar",
        "lang-painless-2.11.0.jar",
        "opensearch-scripting-painless-spi-2.11.0.jar",
    ]


@pytest.mark.parametrize(
    ("module", "library", "words"),
    [
        (
            packed("d" * 40, "org/opensearch/APlugin.class"),
            packed(),
            "module lang-painless is of build ddddd",
        ),
        (packed("", "org/opensearch/APlugin.class"), packed(""), "of build unknown"),
        (packed(COMMIT, "org/opensearch/APlugin.class", "org/opensearch/BPlugin.class"), packed(), "has 2"),
    ],
)
def test_a_module_that_does_not_fit_is_refused_and_nothing_is_left(
    module: bytes, library: bytes, words: str, repository: Server, home: Home, plain: Installation
):
    publish(repository, "lang-painless:2.11.0", module)
    (plain.root / "lib/opensearch-2.11.0.jar").write_bytes(library)
    with pytest.raises(BenchctlError, match=words):
        added(home, plain)
    assert [path.name for path in home.engines.iterdir()] == ["os"]


@pytest.fixture
def spec(plain: Installation) -> VariantSpec:
    return VariantSpec("mine", "opensearch", "2.11.0", distribution=str(plain.root))


@pytest.mark.usefixtures("repository")
def test_a_plug_in_gets_the_module_that_it_extends(home: Home, spec: VariantSpec, tmp_path: Path):
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
