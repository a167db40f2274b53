"""Distributions of the makers, from a server with the layout of their sites, on the JDK that they bring."""

import hashlib
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.home import Home
from benchctl.results.plan import EngineName
from benchctl.results.store import RunFolder, RunStore
from integration.calls import Benchctl
from loopback import Handler, serving

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

ARCHIVES: Mapping[EngineName, str] = {
    "elasticsearch": "downloads/elasticsearch/elasticsearch-8.11.0-linux-x86_64.tar.gz",
    "opensearch": "releases/core/opensearch/2.11.0/opensearch-min-2.11.0-linux-x64.tar.gz",
}
VARIANTS = ("--variant", "es,distribution:official", "--variant", "os,distribution:min")
SMALL = ("--challenge", "range-only-short", "--warmup", "as-written", "--docs", "2k", "--forks", "1")


@pytest.fixture(scope="module")
def archives(
    jdk: Jdk, installations: dict[EngineName, Installation], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The published zips with a copy of the default runtime, as path -> archive, and checksums."""
    made = {}
    for engine, path in ARCHIVES.items():
        archive = tmp_path_factory.mktemp("site") / "packed.tar.gz"
        top = f"{engine}-{installations[engine].version}"
        with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
            packed.add(installations[engine].root, top)
            packed.add(jdk.home, f"{top}/jdk")
        body = archive.read_bytes()
        made |= {f"/{path}": body, f"/{path}.sha512": hashlib.sha512(body).hexdigest().encode()}
    return made


@pytest.fixture(scope="module")
def site(archives: dict[str, bytes]) -> Iterator[str]:
    class Site(Handler):
        def respond(self) -> None:
            body = archives.get(self.path, b"")
            self.answer(200 if body else 404, b"" if self.command == "HEAD" else body)

    with serving(Site) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def run(benchctl: Benchctl, store: RunStore, site: str) -> RunFolder:
    mirrors = {f"BENCHCTL_{engine.upper()}_DOWNLOADS": site for engine in ARCHIVES}
    done = benchctl("run", *SMALL, "--heap", "512m", *VARIANTS, **mirrors, no_proxy="127.0.0.1")
    assert done.returncode == 0, done.stderr
    return store.find("latest", finished=False)


def test_both_engines_run_on_what_their_archives_bring(run: RunFolder, archives: dict[str, bytes]):
    record = run.load()
    assert record.status == "complete"
    engines = {facts.variant: facts for facts in record.engines}
    for variant, path in zip(("es", "os"), ARCHIVES.values(), strict=True):
        facts = engines[variant]
        assert facts.verified_by == "sha512"
        assert facts.archive_sha256 == hashlib.sha256(archives[f"/{path}"]).hexdigest()
        assert " 21." in facts.jdk


def test_what_was_switched_off_is_recorded_and_shown(run: RunFolder, benchctl: Benchctl):
    switched_off = {facts.variant: facts.switched_off for facts in run.load().engines}
    assert switched_off == {"es": {"xpack.security.enabled": False}, "os": {}}
    shown = benchctl("show", run.path.name, "--host").stdout
    assert "switched off: xpack.security.enabled=false" in shown


def test_the_repeating_command_names_them_again(run: RunFolder, home: Home, benchctl: Benchctl):
    assert home.artifacts.joinpath(Path(ARCHIVES["opensearch"]).name).exists()
    shown = benchctl("show", run.path.name).stdout
    assert all(variant in shown for variant in VARIANTS)
