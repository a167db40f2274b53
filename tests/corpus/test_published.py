"""Published files into benchctl's home: from servers, in parts, from folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.corpus.published import BIG5_SIZES, Fetch, Packing, big5_corpus
from benchctl.disk import RESERVE_BYTES
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.track.model import Corpus, Documents, SourcePart
from file_server import FileServer, Served

BODY = bytes(range(256)) * 40


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


def fetch(home: Home, source: str | None = None, *, free: int = 1 << 40) -> Fetch:
    return Fetch(home, ignore, source, lambda _: free, lambda _: None)


def corpus(**facts: Any) -> Corpus:
    given: Mapping[str, Any] = {
        "source_file": "documents.json.zst", "compressed_bytes": len(BODY), "document_count": 1,
        "target_index": "logs",
    }  # fmt: skip
    return Corpus("logs", (Documents(**{**given, **facts}),))


def get(wanted: Corpus, through: Fetch) -> Path:
    return through.get(wanted, wanted.documents[0])


def test_a_file_comes_from_where_the_track_says_once(files: FileServer, home: Home):
    files.files["/data/documents.json.zst"] = Served(BODY)
    wanted = corpus(base_url=f"{files.url}/data/")
    path = get(wanted, fetch(home))
    assert path == home.corpora / "logs" / "documents.json.zst"
    assert path.read_bytes() == BODY
    assert get(wanted, fetch(home)) == path
    assert len(files.requests) == 1


def test_what_to_do_about_a_refusal_is_said_in_words_of_tracks(files: FileServer, home: Home):
    with pytest.raises(BenchctlError, match="HTTP 404") as caught:
        get(corpus(base_url=files.url), fetch(home))
    assert "--from" in caught.value.hint
    files.files["/documents.json.zst"] = Served(BODY, cuts=[0] * 10)
    with pytest.raises(
        BenchctlError, match="the connection ended before the download was complete"
    ) as caught:
        get(corpus(base_url=files.url), fetch(home))
    assert "continues from there" in caught.value.hint


def test_a_file_may_have_an_address_of_its_own(files: FileServer, home: Home):
    files.files["/elsewhere?key=1"] = Served(BODY)
    assert get(corpus(source_url=f"{files.url}/elsewhere?key=1"), fetch(home)).read_bytes() == BODY


@pytest.mark.parametrize(
    "facts", [{"base_url": "http://[::1/data"}, {"source_url": "http://me:pw@[::1/data"}]
)
def test_an_address_that_is_none_is_told_without_its_credentials(home: Home, facts: dict[str, str]):
    with pytest.raises(UsageError, match=r"'[^@]*' is not a URL of documents"):
        get(corpus(**facts), fetch(home))


def test_a_folder_that_cannot_be_written_to_is_one_line(files: FileServer, home: Home):
    files.files["/data/documents.json.zst"] = Served(BODY)
    (home.corpora / "logs" / ".documents.json.zst.lock").mkdir(parents=True)
    with pytest.raises(BenchctlError, match=r"cannot make .*documents\.json\.zst\.lock: Is a directory"):
        get(corpus(base_url=f"{files.url}/data"), fetch(home))


def test_a_signature_stays_behind_the_names_of_files(files: FileServer, home: Home):
    files.files["/data/documents.json.zst?key=1"] = Served(BODY)
    assert get(corpus(), fetch(home, f"{files.url}/data?key=1")).read_bytes() == BODY


def test_what_the_user_says_goes_before_what_the_track_says(files: FileServer, home: Home):
    files.files["/mine/documents.json.zst"] = Served(BODY)
    wanted = corpus(base_url=f"{files.url}/theirs", source_url=f"{files.url}/theirs/file")
    assert get(wanted, fetch(home, f"{files.url}/mine")).read_bytes() == BODY


def test_parts_are_joined(files: FileServer, home: Home, tmp_path: Path):
    parts = (SourcePart("part0", 1000), SourcePart("part1", len(BODY) - 1000))
    (tmp_path / "here").mkdir()
    for name, body in (("part0", BODY[:1000]), ("part1", BODY[1000:])):
        files.files[f"/data/{name}"] = Served(body)
        (tmp_path / "here" / name).write_bytes(body)
    wanted = corpus(source_file_parts=parts)
    for source in (f"{files.url}/data", str(tmp_path / "here")):
        path = get(wanted, fetch(home, source))
        assert path.read_bytes() == BODY
        path.unlink()


def test_a_folder_may_have_the_joined_file(home: Home, tmp_path: Path):
    (tmp_path / "documents.json.zst").write_bytes(BODY)
    wanted = corpus(source_file_parts=(SourcePart("part0", len(BODY)),))
    assert get(wanted, fetch(home, str(tmp_path))).read_bytes() == BODY


def test_a_folder_without_the_file_or_with_another_one_is_told(home: Home, tmp_path: Path):
    with pytest.raises(UsageError, match=r"no documents\.json\.zst in "):
        get(corpus(), fetch(home, str(tmp_path)))
    (tmp_path / "documents.json.zst").write_bytes(BODY[1:])
    with pytest.raises(
        BenchctlError, match=r"documents\.json\.zst has 10,239 bytes, and 10,240 are expected"
    ):
        get(corpus(), fetch(home, str(tmp_path)))
    assert not (home.corpora / "logs" / "documents.json.zst").exists()
    with pytest.raises(UsageError, match="is neither a directory nor an http"):
        get(corpus(), fetch(home, str(tmp_path / "none")))


def test_a_copy_needs_its_space(home: Home, tmp_path: Path):
    (tmp_path / "documents.json.zst").write_bytes(BODY)
    with pytest.raises(BenchctlError, match=r"not enough space .* to copy"):
        get(corpus(), fetch(home, str(tmp_path), free=RESERVE_BYTES))


def test_a_file_of_another_size_in_the_home_is_told(home: Home):
    path = home.corpora / "logs" / "documents.json.zst"
    path.parent.mkdir(parents=True)
    path.write_bytes(BODY[1:])
    with pytest.raises(BenchctlError, match="has 10,239 bytes, and 10,240 are expected") as caught:
        get(corpus(), fetch(home))
    assert "remove it" in caught.value.hint


def test_without_a_source_the_user_is_told_how(home: Home):
    with pytest.raises(UsageError, match="corpus 'logs' has no download URL") as caught:
        get(corpus(), fetch(home))
    assert "--track" in caught.value.hint
    assert "--from" in caught.value.hint


def test_other_schemes_than_http_are_told(home: Home):
    with pytest.raises(UsageError, match=r"published at 's3://bucket/documents\.json\.zst'"):
        get(corpus(base_url="s3://bucket"), fetch(home))


@pytest.mark.parametrize("name", ["../documents.json", "/documents.json", "a/../../b", "", "a/.hidden"])
def test_a_name_that_leaves_its_folder_is_refused(name: str, home: Home):
    with pytest.raises(UsageError, match="cannot be the name of a file of documents"):
        get(corpus(source_file=name, base_url="http://127.0.0.1:1"), fetch(home))


def test_a_name_may_have_folders(files: FileServer, home: Home):
    files.files["/data/2022/documents%201.json.zst"] = Served(BODY)
    wanted = corpus(source_file="2022/documents 1.json.zst", base_url=f"{files.url}/data")
    assert get(wanted, fetch(home)) == home.corpora / "logs" / "2022" / "documents 1.json.zst"


@pytest.mark.parametrize("size", BIG5_SIZES)
@pytest.mark.parametrize("packing", ["zst", "bz2"])
def test_what_is_known_of_big5s_files_agrees_with_itself(size: int, packing: Packing):
    (documents,) = big5_corpus(size, packing).documents
    assert documents.packed
    assert documents.uncompressed_bytes is not None
    assert documents.document_count is not None
    assert documents.uncompressed_bytes / documents.document_count == pytest.approx(925, abs=1)
    assert documents.uncompressed_bytes / 1e9 == pytest.approx(size, rel=0.08)
    if documents.compressed_bytes is not None:
        assert 13 < documents.uncompressed_bytes / documents.compressed_bytes < 20
        parts = sum(part.size for part in documents.source_file_parts)
        assert parts in {0, documents.compressed_bytes}
    assert msgspec.structs.asdict(documents)["base_url"] is None
