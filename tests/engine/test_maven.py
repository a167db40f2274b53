"""The Maven repository: downloads, checksums, missing versions, the newest one; served well and badly."""

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from authority import certificate_file, server_context
from benchctl import network
from benchctl.disk import free_bytes
from benchctl.engine import maven
from benchctl.engine.maven import (
    REPOSITORY_VARIABLE,
    Checksum,
    MavenSource,
    engine_coordinates,
    latest_version,
    mirror,
    resolve_poms,
)
from benchctl.errors import BenchctlError, UsageError
from engine.archive_server import Reply, Server, sha, zipped
from file_server import Served, serving_files

VERSION = "8.11.0"


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


def fetch(environ: Mapping[str, str], folder: Path, version: str = VERSION) -> Path:
    source = MavenSource(engine_coordinates("elasticsearch"), environ)
    return source.fetch(version, folder, ignore, free_bytes, pause=lambda _: None)


def get(server: Server, folder: Path, version: str = VERSION) -> tuple[Path, Checksum]:
    """Download and verify a version."""
    fetched = fetch(server.environ, folder, version)
    source = MavenSource(engine_coordinates("elasticsearch"), server.environ)
    return fetched, source.verify(version, fetched)


@pytest.mark.parametrize("kinds", [("sha512", "sha1"), ("sha1",), ()])
def test_the_strongest_served_checksum_is_used(kinds: tuple[str, ...], server: Server, tmp_path: Path):
    body = zipped()
    server.serve("elasticsearch", VERSION, body, **{kind: sha(kind, body) for kind in kinds})
    fetched, verified_by = get(server, tmp_path)
    assert fetched.read_bytes() == body
    assert verified_by == (kinds[0] if kinds else "none")


@pytest.mark.parametrize("kind", ["sha512", "sha1"])
@pytest.mark.parametrize("published", ["0" * 40, ""])
def test_a_wrong_checksum_is_told(kind: str, published: str, server: Server, tmp_path: Path):
    server.serve("elasticsearch", VERSION, zipped(), **{kind: published})
    with pytest.raises(
        BenchctlError, match=rf"elasticsearch.8\.11\.0.* from .* (does not match its {kind}|is empty)"
    ) as caught:
        get(server, tmp_path)
    assert "try again" in caught.value.hint


def test_a_checksum_that_cannot_be_had_just_now_is_not_left_out(server: Server, tmp_path: Path):
    path = server.serve("elasticsearch", VERSION, zipped())
    server.replies[f"{path}.sha512"] = Reply(status=503)
    with pytest.raises(BenchctlError, match=r"refuses elasticsearch-8\.11\.0\.zip\.sha512: HTTP 503"):
        get(server, tmp_path)


@pytest.mark.parametrize("body", [zipped()[:1000], b"<html>welcome</html>"])
def test_without_a_checksum_the_zip_itself_is_checked(body: bytes, server: Server, tmp_path: Path):
    server.serve("elasticsearch", VERSION, body)
    with pytest.raises(BenchctlError, match="is truncated, or no archive"):
        get(server, tmp_path)


def test_without_a_checksum_every_entry_is_checked(server: Server, tmp_path: Path):
    body = bytearray(zipped())
    body[1000] ^= 0xFF
    server.serve("elasticsearch", VERSION, bytes(body))
    with pytest.raises(BenchctlError, match="is damaged at 'elasticsearch/lib/file'"):
        get(server, tmp_path)


def test_a_missing_version_is_told_with_its_neighbours(server: Server, tmp_path: Path):
    listed = ["7.17.28", "8.0.0-alpha1", "8.0.0", "8.10.2", "8.11.0", "8.11.1", "8.11.3", "8.13.0", "8.19.0"]
    server.list_versions("elasticsearch", *listed)
    with pytest.raises(UsageError, match=r"elasticsearch 8\.11\.2 not found") as caught:
        get(server, tmp_path, "8.11.2")
    assert caught.value.hint == "nearest versions: 8.11.0, 8.11.1, 8.11.3, 8.13.0, 8.19.0"


def test_next_to_a_version_of_the_future_are_the_newest(server: Server, tmp_path: Path):
    listed = ["8.0.0", "8.1.1", "8.17.4", "8.18.0", "8.19.0", "8.19.1", "8.19.2"]
    server.list_versions("elasticsearch", *listed)
    with pytest.raises(UsageError) as caught:
        get(server, tmp_path, "99.1.0")
    assert caught.value.hint == "nearest versions: 8.17.4, 8.18.0, 8.19.0, 8.19.1, 8.19.2"


def test_next_to_a_version_beyond_the_listing_is_what_is_served_there(server: Server, tmp_path: Path):
    server.list_versions("elasticsearch", "8.19.4", "8.19.21")
    for version in ("9.0.0", "9.2.0", "9.2.2", "9.4.3"):
        server.serve("elasticsearch", version, b"")
    with pytest.raises(UsageError) as caught:
        get(server, tmp_path, "9.99.0")
    assert caught.value.hint == "nearest versions: 8.19.21, 9.0.0, 9.2.0, 9.2.2, 9.4.3"


def test_a_missing_version_without_any_listing_is_told(server: Server, tmp_path: Path):
    with pytest.raises(UsageError, match=r"elasticsearch 8\.11\.0 not found") as caught:
        get(server, tmp_path)
    assert REPOSITORY_VARIABLE in caught.value.hint


def test_a_refusing_repository_is_not_a_missing_version(server: Server, tmp_path: Path):
    path = server.serve("elasticsearch", VERSION, b"")
    server.replies[path] = Reply(status=503)
    with pytest.raises(BenchctlError, match=r"elasticsearch-8\.11\.0\.zip: HTTP 503"):
        get(server, tmp_path)


def test_no_network_is_told(tmp_path: Path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        environ = {REPOSITORY_VARIABLE: f"http://127.0.0.1:{unused.getsockname()[1]}"}
        with pytest.raises(BenchctlError, match="no connection") as caught:
            fetch(environ, tmp_path)
        with pytest.raises(BenchctlError, match="no connection"):
            latest_version("elasticsearch", environ=environ)
    assert REPOSITORY_VARIABLE in caught.value.hint


def test_certificates_are_those_of_the_system_or_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    body = zipped()
    path = "/org/elasticsearch/distribution/integ-test-zip/elasticsearch/8.11.0/elasticsearch-8.11.0.zip"
    with serving_files(server_context()) as shielded:
        shielded.files[path] = Served(body)
        environ = {REPOSITORY_VARIABLE: shielded.url}
        with pytest.raises(BenchctlError, match="certificate of its host is not trusted") as caught:
            fetch(environ, tmp_path)
        assert "REQUESTS_CA_BUNDLE" in caught.value.hint
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate_file(tmp_path)))
        assert fetch(environ, tmp_path).read_bytes() == body


def test_a_repository_that_is_no_url_is_told(tmp_path: Path):
    with pytest.raises(BenchctlError, match="not an http or https address"):
        fetch({REPOSITORY_VARIABLE: "nonsense"}, tmp_path)


def test_a_silent_server_is_told(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for module in (maven, network):
        monkeypatch.setattr(module, "TIMEOUT_S", 1)
    path = server.serve("elasticsearch", VERSION, b"")
    server.replies[path] = Reply(stall=True)
    with pytest.raises(BenchctlError, match="no response within 1 s"):
        get(server, tmp_path)


def test_the_newest_version_is_found_beyond_the_listing(server: Server):
    server.list_versions("elasticsearch", "8.18.0", "9.0.0-beta1", "8.19.4", "8.19.2")
    for version in ("9.0.0", "9.2.0", "9.2.2", "8.20.0"):
        server.serve("elasticsearch", version, b"")
    assert latest_version("elasticsearch", environ=server.environ) == "9.2.2"
    # As where a mirror keeps what was asked for: later patches only, and not of every minor.
    server.serve("elasticsearch", "9.4.3", b"")
    assert latest_version("elasticsearch", environ=server.environ) == "9.4.3"
    server.serve("elasticsearch", "10.1.1", b"")
    assert latest_version("elasticsearch", environ=server.environ) == "10.1.1"


def test_the_newest_listed_version_stands_when_nothing_follows(server: Server):
    server.list_versions("opensearch", "2.9.0", "2.11.0", "2.10.0")
    assert latest_version("opensearch", environ=server.environ) == "2.11.0"


def test_a_repository_without_a_listing_is_told(server: Server):
    with pytest.raises(UsageError, match="has no release of opensearch"):
        latest_version("opensearch", environ=server.environ)


def _pom(server: Server, name: str, version: str, *needs: str) -> None:
    """A jar and its POM; `needs` as `artifact:version[:scope]`, `?` behind the version if optional."""
    entries = ""
    for need in needs:
        artifact, wanted, scope = (*need.split(":"), "compile")[:3]
        entries += (
            f"<dependency><groupId>g</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{wanted.rstrip('?')}</version><scope>{scope}</scope>"
            f"<optional>{str(wanted.endswith('?')).lower()}</optional></dependency>"
        )
    text = (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>g</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"<dependencies>{entries}</dependencies></project>"
    )
    path = f"/g/{name}/{version}/{name}-{version}"
    server.replies |= {f"{path}.pom": Reply(text.encode()), f"{path}.jar": Reply(b"jar")}


def test_jars_come_with_what_their_poms_need_at_run_time_and_the_nearest_version_wins(server: Server):
    _pom(server, "root", "1", "near:1", "tested:1:test", "optional:1?", "given:1:provided", "run:1:runtime")
    _pom(server, "near", "1", "far:1")
    _pom(server, "run", "1", "far:2", "deep:1")
    for name, version in (("far", "1"), ("far", "2"), ("far", "3"), ("deep", "1")):
        _pom(server, name, version)
    found = resolve_poms(("g:root:1",), environ=server.environ)
    assert found[0] == "g:root:1"
    assert sorted(found[1:]) == ["g:deep:1", "g:far:1", "g:near:1", "g:run:1"]
    # What is named is nearest of all.
    found = resolve_poms(("g:root:1", "g:far:3"), environ=server.environ)
    assert sorted(found) == ["g:deep:1", "g:far:3", "g:near:1", "g:root:1", "g:run:1"]


def test_what_is_not_in_the_repository_is_told_by_name(server: Server):
    _pom(server, "root", "1", "gone:1")
    with pytest.raises(UsageError, match="root 2 not found"):
        resolve_poms(("g:root:2",), environ=server.environ)
    with pytest.raises(BenchctlError, match=r"gone-1\.pom: HTTP 404"):
        resolve_poms(("g:root:1",), environ=server.environ)


@pytest.mark.parametrize("need", ["../../x:1", "x:../../1", "x:[1,2)"])
def test_coordinates_in_a_pom_lead_nowhere_else(server: Server, need: str):
    _pom(server, "root", "1", need)
    with pytest.raises(BenchctlError, match="invalid Maven coordinates"):
        resolve_poms(("g:root:1",), environ=server.environ)


@pytest.mark.parametrize("text", ["<html>", "", "<project><dependencies>"])
def test_a_damaged_pom_is_told(server: Server, text: str):
    _pom(server, "root", "1")
    server.replies["/g/root/1/root-1.pom"] = Reply(text.encode())
    with pytest.raises(BenchctlError, match="cannot read the POMs that root needs") as raised:
        resolve_poms(("g:root:1",), environ=server.environ)
    assert raised.value.hint


@pytest.mark.parametrize(
    "url", ["http://[secret/maven", "https://example.org/maven?token=secret", "https://example.org/#secret"]
)
def test_a_mirror_that_no_path_can_be_added_to_is_refused_without_a_word_of_it(url: str):
    with pytest.raises(UsageError, match=r"^BENCHCTL_MIRROR: ") as raised:
        mirror("BENCHCTL_MIRROR", {"BENCHCTL_MIRROR": url})
    assert "secret" not in f"{raised.value} {raised.value.hint}"


def test_a_mirror_is_its_url_without_a_slash():
    assert (
        mirror("M", {"M": "https://joe:secret@example.org/maven/"}) == "https://joe:secret@example.org/maven"
    )
    assert mirror("M", {}) == ""
