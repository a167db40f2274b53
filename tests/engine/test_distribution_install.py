"""Installations: made once, complete or absent, and what they say they are."""

import hashlib
import os
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from benchctl.disk import RESERVE_BYTES
from benchctl.engine.distribution import download_archive, install
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, Owner
from benchctl.results.plan import EngineName, VariantSpec
from engine.archive_server import Reply, Server


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "elasticsearch-8.15.0", "elasticsearch", "8.15.0", "9.11.1")


def lay_out(root: Path, engine: str, version: str, lucene: str) -> Path:
    """A distribution's folder, with nothing in its files."""
    jars = [f"{engine}-{version}.jar", f"{engine}-core-{version}.jar", f"lucene-core-{lucene}.jar"]
    names = [f"bin/{engine}", "config/jvm.options", *(f"lib/{jar}" for jar in jars)]
    names += [
        "lib/lucene-analysis-common-1.0.jar",
        "modules/reindex/a.jar",
        "modules/apm/b.jar",
        "modules/readme",
    ]
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "bin" / engine).chmod(0o700)
    return root


def zip_up(root: Path) -> Path:
    path = root.with_name(f"{root.name}.zip")
    with zipfile.ZipFile(path, "w") as packed:
        for file in sorted(root.rglob("*")):
            packed.write(file, file.relative_to(root.parent))
    return path


def given(distribution: Path | str, engine: EngineName = "elasticsearch") -> VariantSpec:
    return VariantSpec(name="mine", engine=engine, version="8.11.0", distribution=str(distribution))


def unpacked(home: Home) -> list[str]:
    return sorted(path.name for path in home.engines.iterdir())


def test_an_archive_is_what_its_libraries_say(dist: Path, home: Home):
    found = install(home, given(zip_up(dist)), ignore)
    assert (found.engine, found.version, found.lucene) == ("elasticsearch", "8.15.0", "9.11.1")
    assert found.modules == ("apm", "reindex")
    assert found.root.is_relative_to(home.engines)
    assert unpacked(home) == [f"elasticsearch-8.15.0-{found.archive_sha256[:12]}"]
    assert stat.S_IMODE((found.root / "bin/elasticsearch").stat().st_mode) == 0o755
    assert stat.S_IMODE((found.root / "lib/elasticsearch-8.15.0.jar").stat().st_mode) == 0o644


def test_a_tar_is_installed_as_a_zip_is(dist: Path, home: Home):
    path = dist.with_name("dist.tar.gz")
    with tarfile.open(path, "w:gz") as packed:
        packed.add(dist, dist.name)
    assert install(home, given(path), ignore).version == "8.15.0"


@pytest.mark.parametrize("checksum", ["sha512", "sha1", "none"])
def test_how_the_archive_was_verified_is_known_each_time(checksum: str, dist: Path, home: Home):
    body = zip_up(dist)
    shutil.copy(body, home.artifacts / "elasticsearch-8.15.0.zip")
    sha256, size = hashlib.sha256(body.read_bytes()).hexdigest(), body.stat().st_size
    record = f'{{"sha256": "{sha256}", "size_bytes": {size}, "verified_by": "{checksum}"}}'
    (home.artifacts / "elasticsearch-8.15.0.zip.json").write_text(record)
    spec = VariantSpec(name="es", engine="elasticsearch", version="8.15.0")
    for _ in range(2):
        assert install(home, spec, ignore).verified_by == checksum
    # The same bytes from the user's own disk are the same installation, but nobody vouches for them.
    own = install(home, given(body), ignore)
    assert own.verified_by == "none"
    assert own.root == install(home, spec, ignore).root


def test_an_installation_is_reused(dist: Path, home: Home):
    archive = zip_up(dist)
    first = install(home, given(archive), ignore)
    (first.root / "trace").touch()
    assert install(home, given(archive), ignore) == first
    assert (first.root / "trace").exists()


@pytest.mark.parametrize("manifest", [None, "", '{"engine": "elasticsearch"}'])
def test_a_half_unpacked_one_is_never_used(manifest: str | None, dist: Path, home: Home):
    archive = zip_up(dist)
    first = install(home, given(archive), ignore)
    (first.root / "lib/elasticsearch-8.15.0.jar").unlink()
    record = first.root.parent / "manifest.json"
    record.unlink() if manifest is None else record.write_text(manifest)
    assert install(home, given(archive), ignore) == first
    assert (first.root / "lib/elasticsearch-8.15.0.jar").exists()


def test_another_archive_of_the_same_version_is_another_installation(dist: Path, home: Home):
    first = install(home, given(zip_up(dist)), ignore)
    (dist / "lib/elasticsearch-8.15.0.jar").write_text("patched")
    second = install(home, given(zip_up(dist)), ignore)
    assert first.root != second.root
    assert len(unpacked(home)) == 2


def test_no_space_leaves_nothing(dist: Path, home: Home):
    with pytest.raises(BenchctlError, match="not enough space"):
        install(home, given(zip_up(dist)), ignore, free=lambda _: RESERVE_BYTES)
    assert unpacked(home) == []


def test_an_interrupted_unpack_leaves_nothing(dist: Path, home: Home):
    archive = zip_up(dist)

    def interrupt(_: Path) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(home, given(archive), ignore, free=interrupt)
    assert unpacked(home) == []
    assert install(home, given(archive), ignore).version == "8.15.0"


@pytest.mark.parametrize("as_archive", ["folder", "archive"])
@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("bin/elasticsearch", "is not a distribution of elasticsearch: it has no bin/elasticsearch"),
        ("lib/elasticsearch-8.15.0.jar", "one lib/elasticsearch-VERSION.jar, but has none"),
        ("lib/lucene-core-9.11.1.jar", "one lib/lucene-core-VERSION.jar, but has none"),
        ("modules", "has nothing in modules"),
    ],
)
def test_an_incomplete_distribution_is_told(harm: str, said: str, as_archive: str, dist: Path, home: Home):
    if (dist / harm).is_dir():
        shutil.rmtree(dist / harm)
    else:
        (dist / harm).unlink()
    with pytest.raises(UsageError, match=said) as caught:
        install(home, given(zip_up(dist) if as_archive == "archive" else dist), ignore)
    assert caught.value.hint
    assert unpacked(home) == []


def test_two_lucenes_are_told(dist: Path, home: Home):
    (dist / "lib/lucene-core-9.12.0.jar").touch()
    with pytest.raises(UsageError, match=r"lucene-core-VERSION\.jar, but has 2 of them"):
        install(home, given(dist), ignore)


def test_the_other_engine_is_told(dist: Path, home: Home):
    with pytest.raises(UsageError, match="not a distribution of opensearch: it is elasticsearch"):
        install(home, given(zip_up(dist), "opensearch"), ignore)
    assert unpacked(home) == []


def test_a_fetched_archive_of_another_version_is_told(dist: Path, home: Home):
    body = zip_up(dist)
    shutil.copy(body, home.artifacts / "elasticsearch-8.11.0.zip")
    sha256 = hashlib.sha256(body.read_bytes()).hexdigest()
    record = f'{{"sha256": "{sha256}", "size_bytes": {body.stat().st_size}, "verified_by": "none"}}'
    (home.artifacts / "elasticsearch-8.11.0.zip.json").write_text(record)
    spec = VariantSpec(name="es", engine="elasticsearch", version="8.11.0")
    with pytest.raises(BenchctlError, match=r"should be elasticsearch 8\.11\.0, but is 8\.15\.0"):
        install(home, spec, ignore)


def test_a_folder_is_used_where_it_is(dist: Path, home: Home):
    before = sorted(dist.rglob("*"))
    found = install(home, given(dist), ignore)
    assert found.root == dist
    assert (found.version, found.lucene, found.modules) == ("8.15.0", "9.11.1", ("apm", "reindex"))
    assert found.verified_by == "none"
    assert sorted(dist.rglob("*")) == before
    assert unpacked(home) == []


def test_a_folders_digest_follows_its_files_but_no_nodes_traces(dist: Path, home: Home):
    first = install(home, given(dist), ignore).archive_sha256
    for trace in ("data/nodes/0", "logs/node.log"):
        (dist / trace).parent.mkdir(parents=True)
        (dist / trace).write_text("trace")
    assert install(home, given(dist), ignore).archive_sha256 == first
    (dist / "lib/lucene-core-9.11.1.jar").write_text("patched")
    second = install(home, given(dist), ignore).archive_sha256
    (dist / "modules/data").mkdir()
    (dist / "modules/data/a.jar").touch()
    assert len({first, second, install(home, given(dist), ignore).archive_sha256}) == 3


def test_a_distribution_that_cannot_be_looked_at_is_told(dist: Path, home: Home, nobody: Owner):
    dist.parent.chmod(0o700)
    os.seteuid(nobody.uid)
    try:
        with pytest.raises(BenchctlError, match=r"cannot look for the distribution .*: Permission denied"):
            install(home, given(dist), ignore)
    finally:
        os.seteuid(0)


def test_a_missing_distribution_is_told(tmp_path: Path, home: Home):
    with pytest.raises(UsageError, match=r"variant 'mine': no such distribution: .*absent"):
        install(home, given(tmp_path / "absent"), ignore)


@pytest.mark.parametrize("harmed", [40, -40, -1])
def test_a_cached_archive_that_was_damaged_is_fetched_anew_before_it_is_unpacked(
    dist: Path, server: Server, home: Home, harmed: int
):
    url = f"{server.url}/some/dist.zip"
    server.replies["/some/dist.zip"] = Reply(zip_up(dist).read_bytes())
    cached = download_archive(home, url, ignore).path
    content = bytearray(cached.read_bytes())
    content[harmed] ^= 1
    cached.write_bytes(content)
    server.requests.clear()
    found = install(home, given(url), ignore)
    assert "GET /some/dist.zip" in server.requests
    assert found.archive_sha256 == hashlib.sha256(cached.read_bytes()).hexdigest()
    assert install(home, given(url), ignore) == found
