"""Prepared indices: keys that find them again, space for them, and copies that never touch the original."""

import dataclasses
import errno
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.disk import RESERVE_BYTES
from benchctl.engine.distribution import Installation, ModuleFacts, PluginFacts
from benchctl.engine.prepared_index import (
    DamagedIndexError,
    IndexKey,
    PreparedIndex,
    building,
    bytes_per_document,
    contents,
    copy_index,
    find_prepared,
    keep,
)
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.model import IndexFacts, IngestReport
from benchctl.results.plan import CorpusFile, CorpusSpec
from benchctl.track.load import load_track
from benchctl.track.model import Index, IndexBody, Template
from builders import CORPUS, ES

FACTS = IndexFacts("k", 1, 1, (), IngestReport(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedIndex:
    root = tmp_path / "prepared"
    for relative in (
        "data/indices/AbC/0/index/_0.cfs",
        "data/indices/AbC/0/index/segments_3",
        "data/indices/AbC/0/index/write.lock",
        "data/indices/AbC/0/translog/translog.ckp",
        "data/indices/AbC/0/_state/state-1.st",
        "data/_state/_1.cfe",
        "data/node.lock",
    ):
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(relative.encode())
    return PreparedIndex(root, FACTS)


@pytest.fixture
def whole(prepared: PreparedIndex) -> PreparedIndex:
    """An index whose files are listed."""
    for path in prepared.data.rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            path.write_bytes(path.read_bytes() * 100_000)
    (prepared.root / "files.json").write_bytes(msgspec.json.encode(contents(prepared.data)))
    return prepared


@pytest.fixture
def kept(whole: PreparedIndex, key: IndexKey, tmp_path: Path) -> tuple[Home, Path]:
    """A home that has the index, and the folder of that."""
    home = Home(tmp_path / "home")
    root = home.indices / key.folder_name
    shutil.copytree(whole.root, root)
    (root / "manifest.json").write_bytes(msgspec.json.encode(whole.facts))
    return home, root


SEGMENT = "indices/AbC/0/index/_0.cfs"


FILES = [SEGMENT, "indices/AbC/0/index/segments_3", "indices/AbC/0/translog/translog.ckp", "_state/_1.cfe"]


@pytest.mark.parametrize("file", FILES)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_of_an_index_is_found(whole: PreparedIndex, file: str, place: float, bit: int):
    assert whole.damage() == ""
    path = whole.data / file
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[int(place * len(content))] ^= 1 << bit
    path.write_bytes(damaged)
    assert whole.damage() == f"{file} has changed"
    path.write_bytes(content)


@pytest.mark.parametrize("file", FILES)
def test_whatever_is_missing_cut_off_or_more_is_named(whole: PreparedIndex, file: str):
    path = whole.data / file
    content = path.read_bytes()
    for cut in (b"", content[:15], content[:-1]):
        path.write_bytes(cut)
        assert whole.damage() == f"{file} has changed"
    path.rename(path.with_name("other"))
    assert whole.damage() == f"{file} is missing, {Path(file).with_name('other')!s} was added"
    shutil.rmtree(whole.data / "indices")
    assert "indices/AbC/0/index/_0.cfs is missing" in whole.damage()
    shutil.rmtree(whole.data)
    assert "it cannot be read: No such file" in whole.damage()


def test_what_a_build_left_is_listed_and_absence_is_noticed_at_once(
    prepared: PreparedIndex, key: IndexKey, tmp_path: Path
):
    home = Home(tmp_path / "home")
    index = keep(home, key.folder_name, prepared.root, FACTS)
    assert index.damage() == ""
    found = find_prepared(home, key.folder_name)
    assert found is not None
    (found.data / "indices/AbC/0/index/segments_3").unlink()
    with pytest.raises(DamagedIndexError, match="segments_3 is missing"):
        find_prepared(home, key.folder_name)


def test_a_damaged_index_is_not_used_and_its_folder_is_named(kept: tuple[Home, Path], key: IndexKey):
    home, root = kept
    found = find_prepared(home, key.folder_name)
    assert found is not None
    assert found.facts.cached
    (root / "data" / SEGMENT).write_bytes(b"flipped")
    with pytest.raises(BenchctlError, match=f"the prepared index {root} is damaged: .*{SEGMENT}") as caught:
        find_prepared(home, key.folder_name)
    assert caught.value.hint == "the next run builds it again"


def flip(path: Path) -> None:
    """Change a bit as a disk does: size and time stay."""
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_bit_that_a_disk_flips_is_found_the_next_day(kept: tuple[Home, Path], key: IndexKey):
    home, root = kept
    found = find_prepared(home, key.folder_name)
    assert found is not None
    flip(root / "data" / SEGMENT)
    assert find_prepared(home, key.folder_name) == found
    marker = root / "found-whole.json"
    day_ago = marker.stat().st_mtime - 86_401
    os.utime(marker, (day_ago, day_ago))
    with pytest.raises(DamagedIndexError, match=SEGMENT):
        find_prepared(home, key.folder_name)
    # From now on nobody takes it for whole.
    with pytest.raises(DamagedIndexError, match=SEGMENT):
        find_prepared(home, key.folder_name)
    flip(root / "data" / SEGMENT)
    assert find_prepared(home, key.folder_name) == found


def test_an_index_that_was_whole_is_read_again_only_when_a_file_of_it_is_another(
    kept: tuple[Home, Path], key: IndexKey, tmp_path: Path
):
    home, root = kept
    segment = root / "data" / SEGMENT
    found = find_prepared(home, key.folder_name)
    assert found is not None
    copy_index(found, tmp_path / "fork")  # links are no change
    stat = segment.stat()
    flip(segment)
    assert find_prepared(home, key.folder_name) == found  # nobody read it
    os.utime(segment, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    with pytest.raises(BenchctlError, match=SEGMENT):
        find_prepared(home, key.folder_name)
    (root / "found-whole.json").write_bytes(b"{")
    with pytest.raises(BenchctlError, match=SEGMENT):
        find_prepared(home, key.folder_name)


def files(root: Path) -> dict[str, Path]:
    return {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}


def test_only_lucene_files_are_linked(prepared: PreparedIndex, tmp_path: Path):
    copy_index(prepared, tmp_path / "copy")
    linked = {name for name, path in files(tmp_path / "copy").items() if path.stat().st_nlink > 1}
    assert linked == {"indices/AbC/0/index/_0.cfs", "indices/AbC/0/index/segments_3"}
    expected = set(files(prepared.data)) - {"node.lock", "indices/AbC/0/index/write.lock"}
    assert set(files(tmp_path / "copy")) == expected


def test_changing_a_copy_leaves_the_original(prepared: PreparedIndex, tmp_path: Path):
    copy_index(prepared, tmp_path / "copy")
    translog = tmp_path / "copy/indices/AbC/0/translog/translog.ckp"
    translog.write_text("rewritten in place", encoding="utf-8")
    (tmp_path / "copy/indices/AbC/0/index/_0.cfs").unlink()
    for name, path in files(prepared.data).items():
        assert path.read_bytes() == f"data/{name}".encode()


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_linking_is_impossible_everything_is_copied(
    prepared: PreparedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    copy_index(prepared, tmp_path / "copy")
    copied = files(tmp_path / "copy")
    assert copied[SEGMENT].read_bytes() == f"data/{SEGMENT}".encode()
    assert all(path.stat().st_nlink == 1 for path in copied.values())


def test_a_link_that_somebody_planted_is_not_followed(prepared: PreparedIndex, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("for root's eyes", encoding="utf-8")
    for link, goal in (("data/_state/file", secret), ("data/folder", tmp_path)):
        (prepared.root / link).symlink_to(goal)
        with pytest.raises(BenchctlError, match="symbolic link"):
            copy_index(prepared, tmp_path / "copy")
        assert not (tmp_path / "copy").exists()
        (prepared.root / link).unlink()


def test_a_full_disk_is_named_and_leaves_nothing(
    prepared: PreparedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_args: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(BenchctlError, match="No space left") as caught:
        copy_index(prepared, tmp_path / "copy")
    assert "free some space" in caught.value.hint
    assert not (tmp_path / "copy").exists()


@pytest.fixture
def key() -> IndexKey:
    distribution = Installation("opensearch", "2.11.0", Path("/os"), "a" * 64, (), "9.7.0", "sha512")
    return IndexKey(distribution, CORPUS, load_track("big5", {})[0], 1, 2)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_the_first_build_is_called_as_if_it_were_the_only_one(key: IndexKey):
    assert key.folder_name == f"opensearch-2.11.0-big5-1000000-{key.digest[:12]}"


def test_index_settings_of_a_variant_go_over_the_tracks_and_make_an_index_of_its_own(key: IndexKey):
    own = msgspec.structs.replace(ES, index_settings={"index.codec": "default", "index.sort.field": "a"})
    other = dataclasses.replace(key, variant=own)
    (before,), (after,) = key.places.indices, other.places.indices
    assert after.body.mappings == before.body.mappings
    names = [name for name in after.body.settings if name.endswith("codec")]
    assert names == ["index.codec"]
    assert after.body.settings["index.codec"] == "default"
    assert after.body.settings["index.sort.field"] == "a"
    assert len(after.body.settings) > 2
    assert other.digest != key.digest
    mapped = dataclasses.replace(key, variant=msgspec.structs.replace(ES, mappings={"message.norms": False}))
    assert mapped.digest != key.digest
    assert dataclasses.replace(key, variant=ES).digest == key.digest


def test_what_makes_other_files_makes_another_index_and_nothing_else_does(key: IndexKey):
    def equipped(**changes: Any) -> IndexKey:
        return dataclasses.replace(key, installation=dataclasses.replace(key.installation, **changes))

    builds = [dataclasses.replace(key, build=number) for number in range(4)]
    others = [
        *builds,
        dataclasses.replace(key, ingest_client="official"),
        dataclasses.replace(key, segments=2),
        dataclasses.replace(key, clients=3),
        dataclasses.replace(key, corpus=msgspec.structs.replace(CORPUS, digest="d")),
        *(equipped(plugins=(PluginFacts("analysis-icu", "1", sha * 64),)) for sha in "ij"),
        *(equipped(added=(ModuleFacts("lang-painless", (("g:a:1", sha * 64),)),)) for sha in "ij"),
    ]
    assert len({one.digest for one in others}) == len({one.folder_name for one in others}) == len(others)
    assert builds[3].folder_name.endswith(f"-{builds[3].digest[:12]}-build-3")
    assert equipped(jars=(("lucene-core-9.7.0.jar", "l" * 64),)).digest == key.digest
    assert dataclasses.replace(key, ingest_client="wire").digest == key.digest


@pytest.mark.parametrize(
    ("more", "free_mb", "said"),
    [
        (0, 899, "to prepare an index of 1,000,000 documents: 923 MiB needed, 921 MiB free"),
        (2, 1499, "to prepare 3 builds of an index of 1,000,000 documents: 1,495 MiB needed, 1,493 MiB free"),
    ],
)
def test_space_for_all_builds_is_looked_for_before_the_first(
    key: IndexKey, home: Home, more: int, free_mb: int, said: str
):
    with (
        pytest.raises(BenchctlError, match=said) as caught,
        building(home, key, free=lambda _: RESERVE_BYTES + free_mb * 10**6, more=more),
    ):
        pass
    assert ("--index-builds" in caught.value.hint) == (more > 0)
    with building(home, key, free=lambda _: RESERVE_BYTES + (free_mb + 1) * 10**6, more=more) as root:
        assert (root / "data").is_dir()
    assert not root.exists()


def test_whatever_is_made_on_the_node_makes_another_key(key: IndexKey):
    template = Template("t", "index", {"index_patterns": ["x"]})
    file = CorpusFile(path="/f", documents=1, held=1, raw_bytes=1, sha256="s", index="more")
    tracks = [
        key.track,
        msgspec.structs.replace(key.track, templates=(template,)),
        msgspec.structs.replace(key.track, data_streams=("logs-x",)),
        msgspec.structs.replace(key.track, indices=(*key.track.indices, Index("more", IndexBody()))),
        msgspec.structs.replace(key.track, indices=(*key.track.indices, Index("others", IndexBody()))),
    ]
    keys = [dataclasses.replace(key, track=track) for track in tracks]
    assert len({one.digest for one in keys}) == len(keys)
    with_file = dataclasses.replace(key, corpus=msgspec.structs.replace(key.corpus, files=(file,)))
    # An index that only documents name is made like one that is declared without a body.
    assert with_file.digest == keys[3].digest


def test_space_for_an_index_follows_the_size_of_its_documents():
    def corpus(raw_bytes: int) -> CorpusSpec:
        file = CorpusFile(path="/f", documents=50, held=100, raw_bytes=raw_bytes, sha256="s", index="i")
        return msgspec.structs.replace(CORPUS, documents=50, files=(file,))

    assert bytes_per_document(CORPUS) == 900
    assert bytes_per_document(CORPUS, more=2) == 1500
    assert bytes_per_document(corpus(5_000)) == 900
    assert bytes_per_document(corpus(100_000)) == 3_000
    assert bytes_per_document(corpus(100_000), more=1) == 4_200
