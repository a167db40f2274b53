"""Published files into benchctl's home: from servers, whole and in parts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchctl.corpus.source import Fetch
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.track.model import Corpus, Documents, SourcePart
from file_server import FileServer, Served

BODY = bytes(range(256)) * 40


def ignore(what: str, done: int, total: int) -> None:
    """Take no notice of progress."""


def fetch(home: Home, source: str | None = None) -> Fetch:
    return Fetch(home, ignore, source, pause=lambda _: None)


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
    assert "continues where this one ended" in caught.value.hint


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


def test_parts_are_joined(files: FileServer, home: Home):
    parts = (SourcePart("part0", 1000), SourcePart("part1", len(BODY) - 1000))
    for name, body in (("part0", BODY[:1000]), ("part1", BODY[1000:])):
        files.files[f"/data/{name}"] = Served(body)
    assert get(corpus(source_file_parts=parts), fetch(home, f"{files.url}/data")).read_bytes() == BODY


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
