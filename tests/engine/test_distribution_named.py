"""Distributions of the engines' publisher: found by version and machine, verified, whole or not there."""

import platform
import tarfile
from pathlib import Path

import pytest

from benchctl.engine.distribution import cached_archive, check_distribution, install, installed
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.plan import EngineName, VariantSpec
from engine.archive_server import Reply, Server, sha
from engine.test_distribution_install import lay_out

ES = "/downloads/elasticsearch/elasticsearch-8.15.0-linux-x86_64.tar.gz"
OS = "/mirror/releases/bundle/opensearch/8.15.0/opensearch-8.15.0-linux-x64.tar.gz"
LUCENE = "9.11.1"


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


@pytest.fixture
def site(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The publisher' sites and the Maven repository, on a machine of theirs."""
    monkeypatch.setenv("BENCHCTL_ELASTICSEARCH_DOWNLOADS", server.url)
    monkeypatch.setenv("BENCHCTL_OPENSEARCH_DOWNLOADS", f"{server.url}/mirror/")
    monkeypatch.setenv(REPOSITORY_VARIABLE, server.url)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return server


def spec(
    engine: EngineName = "elasticsearch", name: str = "official", version: str = "8.15.0"
) -> VariantSpec:
    return VariantSpec("mine", engine, version, distribution=name)


def packed(root: Path, engine: EngineName, version: str, java: bytes = b"#!/bin/sh\n") -> bytes:
    """A distribution with a runtime, as its publisher pack it."""
    top = lay_out(root / f"{engine}-{version}", engine, version, LUCENE)
    (top / "jdk/bin").mkdir(parents=True)
    (top / "jdk/bin/java").write_bytes(java)
    (top / "plugins/opensearch-security").mkdir(parents=True)
    with tarfile.open(root / "packed.tar.gz", "w:gz") as archive:
        archive.add(top, top.name)
    return (root / "packed.tar.gz").read_bytes()


def publish(site: Server, path: str, body: bytes, checksum: str | None = None) -> None:
    name = path.rpartition("/")[2]
    site.replies[path] = Reply(body)
    if checksum != "":
        site.replies[f"{path}.sha512"] = Reply(f"{checksum or sha('sha512', body)}  {name}\n".encode())


def left(home: Home) -> list[str]:
    return [path.name for folder in (home.artifacts, home.engines) for path in folder.iterdir()]


MIN = "/mirror/releases/core/opensearch/8.15.0/opensearch-min-8.15.0-linux-arm64.tar.gz"


@pytest.mark.parametrize(
    ("wanted", "machine", "path"),
    [
        (spec(), "x86_64", ES),
        (spec(), "aarch64", ES.replace("x86_64", "aarch64")),
        (spec("opensearch"), "x86_64", OS),
        (spec("opensearch", "min"), "aarch64", MIN),
    ],
)
def test_each_is_where_its_publisher_put_it(
    wanted: VariantSpec, machine: str, path: str, site: Server, home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    publish(site, path, b"")
    check_distribution(home, wanted)
    assert site.requests == [f"HEAD {path}", f"GET {path}.sha512"]


@pytest.mark.parametrize(("engine", "path"), [("elasticsearch", ES), ("opensearch", OS)])
def test_one_is_fetched_and_unpacked_once(
    engine: EngineName, path: str, site: Server, tmp_path: Path, home: Home
):
    publish(site, path, packed(tmp_path, engine, "8.15.0"))
    wanted = spec(engine)
    assert (cached_archive(home, wanted), installed(home, wanted)) == (None, None)
    made = install(home, wanted, ignore)
    assert (made.version, made.verified_by) == ("8.15.0", "sha512")
    assert made.modules == ("apm", "opensearch-security", "reindex")
    assert f"GET {path}" in site.requests
    site.requests.clear()
    assert install(home, wanted, ignore) == installed(home, wanted) == made
    check_distribution(home, wanted)
    assert site.requests == []


@pytest.mark.parametrize("checksum", ["", "0" * 128, "<html>"])
def test_an_archive_that_cannot_be_verified_is_refused(
    checksum: str, site: Server, tmp_path: Path, home: Home
):
    publish(site, ES, packed(tmp_path, "elasticsearch", "8.15.0"), checksum)
    with pytest.raises(BenchctlError, match=r"sha512 is missing|does not match its sha512"):
        install(home, spec(), ignore)
    assert left(home) == []
    is_compared = checksum.isdigit()
    assert (f"GET {ES}" in site.requests) == is_compared
    if not is_compared:
        with pytest.raises(BenchctlError, match="sha512 is missing"):
            check_distribution(home, spec())


@pytest.mark.parametrize("status", [404, 403])
def test_a_version_that_does_not_exist_is_refused(status: int, site: Server, home: Home):
    site.replies[ES] = Reply(status=status)
    for refuse in (lambda: check_distribution(home, spec()), lambda: install(home, spec(), ignore)):
        with pytest.raises(UsageError, match=f"HTTP {status}"):
            refuse()
    assert left(home) == []


def test_a_site_that_fails_or_has_no_such_versions_is_no_missing_version(site: Server, home: Home):
    site.replies[ES] = Reply(status=500)
    with pytest.raises(BenchctlError, match="HTTP 500") as caught:
        check_distribution(home, spec())
    assert not isinstance(caught.value, UsageError)
    with pytest.raises(UsageError, match="HTTP 404") as caught:
        check_distribution(home, spec(version="1.2.3"))
    assert "publisher" in caught.value.hint


def test_an_archive_of_another_version_is_refused(site: Server, tmp_path: Path, home: Home):
    publish(site, ES, packed(tmp_path, "elasticsearch", "8.15.1"))
    with pytest.raises(BenchctlError, match=r"elasticsearch 8\.15\.0, but is 8\.15\.1"):
        install(home, spec(), ignore)


def test_a_machine_that_has_no_archives_is_refused(site: Server, home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(UsageError, match="riscv64"):
        check_distribution(home, spec())
    assert site.requests == []
