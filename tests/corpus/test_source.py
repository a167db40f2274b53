"""Files of documents: every slice of every share, found files, declared sizes, changed files."""

import lzma
import os
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.corpus.big5 import days
from benchctl.corpus.generated import ensure_corpus, open_documents
from benchctl.corpus.indexed import index_file
from benchctl.corpus.source import (
    BLOCKS,
    corpus_digest,
    find_documents,
    local_file,
    open_file,
    shared_out,
    stretches,
)
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.plan import CorpusFile
from benchctl.track.model import Corpus, Documents
from corpus.packed import PACKERS, cut, text
from file_server import FileServer, Served


def numbers(documents: int, held: int, *bounds: int) -> list[int]:
    return [number for start, stop in stretches(documents, held, *bounds) for number in range(start, stop)]


@st.composite
def shares(draw: st.DrawFn) -> tuple[int, int]:
    held = draw(st.integers(0, 30_000))
    return draw(st.integers(0, held)), held


@given(shares(), st.data())
def test_a_share_has_its_size_and_every_slice_of_it_is_a_slice_of_the_whole(
    share: tuple[int, int], data: st.DataObject
):
    documents, held = share
    found = numbers(documents, held)
    assert len(found) == documents
    assert all(one < other for one, other in pairwise(found))
    assert not found or 0 <= found[0] <= found[-1] < held
    start = data.draw(st.integers(0, documents))
    stop = data.draw(st.integers(start, documents))
    assert numbers(documents, held, start, stop) == found[start:stop]


@given(shares(), st.data())
def test_no_part_of_a_file_has_more_than_its_due(share: tuple[int, int], data: st.DataObject):
    documents, held = share
    until = data.draw(st.integers(0, held))
    due = documents * until / held if held else 0
    taken = sum(number < until for number in numbers(documents, held))
    assert abs(taken - due) <= max(documents / BLOCKS, 1)


@pytest.mark.parametrize("wrong", [(6, 5), (3, 5, 0, 4), (3, 5, 2, 1), (3, 5, -1, 2)])
def test_what_is_no_slice_of_a_share_is_refused(wrong: tuple[int, ...]):
    with pytest.raises(ValueError, match="are not a slice"):
        list(stretches(*wrong))


@given(st.lists(st.integers(0, 1000), max_size=8), st.data())
def test_documents_are_shared_over_files_in_proportion(held: list[int], data: st.DataObject):
    documents = data.draw(st.integers(0, sum(held)))
    found = shared_out(documents, held)
    assert sum(found) == documents
    for got, count in zip(found, held, strict=True):
        assert got <= count
        assert abs(got - documents * count / max(sum(held), 1)) < 1


several = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


def lines_of(raw: bytes) -> list[bytes]:
    return [line + b"\n" for line in raw.removesuffix(b"\n").split(b"\n")] if raw else []


def selected(file: CorpusFile, lines: Sequence[bytes]) -> list[bytes]:
    return [line for start, stop in stretches(file.documents, file.held) for line in lines[start:stop]]


def read(file: CorpusFile, *bounds: int, home: Home) -> bytes:
    start, stop = bounds or (0, None)
    return b"".join(open_file(file, home, start=start, stop=stop))


@pytest.mark.parametrize("packing", PACKERS)
@given(data=st.data())
@several
def test_every_slice_of_every_share_is_that_of_the_whole(packing: str, tmp_path: Path, data: st.DataObject):
    words = st.binary(min_size=1, max_size=300).filter(lambda word: b"\n" not in word)
    raw = b"\n".join(b"{" + word + b"}" for word in data.draw(st.lists(words, min_size=1, max_size=40)))
    raw += data.draw(st.sampled_from([b"", b"\n"]))
    lines = lines_of(raw)
    parts = cut(raw, data.draw(st.lists(st.integers(0, 10_000), max_size=3)))
    docs = data.draw(st.none() | st.integers(0, len(lines)))
    with tempfile.TemporaryDirectory(dir=tmp_path) as name:
        path, home = Path(name) / "documents", Home(Path(name) / "home")
        path.write_bytes(PACKERS[packing](*parts))
        index_file(path, home, block_bytes=data.draw(st.integers(1, 2000)))
        file = local_file(path, index="logs", home=home, docs=docs)
        assert (file.held, file.raw_bytes) == (len(lines), len(raw))
        wanted = selected(file, lines)
        start = data.draw(st.integers(0, len(wanted)))
        stop = data.draw(st.integers(start, len(wanted)))
        assert read(file, home=home) == b"".join(wanted)
        assert read(file, start, stop, home=home) == b"".join(wanted[start:stop])


@pytest.mark.parametrize("packing", ["plain", "bz2"])
def test_reading_begins_near_the_place(packing: str, tmp_path: Path):
    raw = text(1_000_000) * 6
    lines = lines_of(raw)
    path = tmp_path / "documents"
    path.write_bytes(PACKERS[packing](raw))
    home = Home(tmp_path / "home")
    index_file(path, home, block_bytes=1_000_000)
    file = local_file(path, index="logs", home=home)
    for start in (0, 1, len(lines) // 2, len(lines) - 3):
        assert read(file, start, start + 3, home=home) == b"".join(lines[start : start + 3])
    # What is far before the place is not even looked at.
    source = path if packing == "plain" else next((home.corpora / ".files").glob("*.zst"))
    with source.open("r+b") as damaged:
        damaged.seek(source.stat().st_size // 4)
        damaged.write(b"\0" * 1000)
    take_for_unchanged(path, home)
    assert read(file, len(lines) - 3, len(lines), home=home) == b"".join(lines[-3:])
    if packing != "plain":
        with pytest.raises(BenchctlError, match="cannot read the documents"):
            read(file, home=home)


def take_for_unchanged(path: Path, home: Home) -> None:
    """Make what is known of a file fit it as it is now."""
    (kept,) = (home.corpora / ".files").glob("*.json")
    info = path.stat()
    facts = {"modified-ns": info.st_mtime_ns, "status-ns": info.st_ctime_ns}
    kept.write_bytes(msgspec.json.encode({**msgspec.json.decode(kept.read_bytes()), **facts}))


def test_a_change_that_leaves_size_and_time_as_they_were_is_seen(tmp_path: Path):
    path, home = tmp_path / "documents", Home(tmp_path / "home")
    path.write_bytes(b'{"a":1}\n')
    info = path.stat()
    before = local_file(path, index="logs", home=home)
    path.write_bytes(b'{"a":2}\n')
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert local_file(path, index="logs", home=home).sha256 != before.sha256
    with pytest.raises(BenchctlError, match="was changed since the run was planned"):
        read(before, home=home)


@pytest.mark.parametrize("packing", PACKERS)
def test_a_byte_order_mark_before_the_first_document_is_passed_over(packing: str, tmp_path: Path):
    path, home = tmp_path / "documents", Home(tmp_path / "home")
    lines = [b'{"a":1}\r\n', b'{"a":"\xef\xbb\xbf"}\r\n', b'{"a":3}']
    path.write_bytes(PACKERS[packing](b"\xef\xbb\xbf" + b"".join(lines)))
    file = local_file(path, index="logs", home=home)
    assert (file.held, file.raw_bytes) == (3, 3 + sum(map(len, lines)))
    assert read(file, home=home) == b"".join(lines) + b"\n"
    assert read(file, 1, 2, home=home) == lines[1]


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf[1]\n",
        '{"a":1}\n'.encode("utf-16"),
        b'[{"a":1},\n{"a":2}]\n',
        lzma.compress(b'{"a":1}\n'),
    ],
)
def test_what_is_no_file_of_documents_is_told_by_its_first_line(tmp_path: Path, raw: bytes):
    path, home = tmp_path / "documents", Home(tmp_path / "home")
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=r"the first line of .*documents is not a JSON object"):
        local_file(path, index="logs", home=home)


@pytest.mark.parametrize(
    ("first", "said", "has_actions"),
    [
        (b'{"index":{}}', False, False),
        (b'{"index":{}}', None, True),
        (b'{"create":{"_id":"1","version":3}}', None, True),
        (b'{"update":{"routing":"a"}}', None, True),
        (b'{"index":1}', None, False),
        (b'{"index":{},"a":1}', None, False),
    ],
)
def test_a_first_line_says_whether_there_are_actions(
    tmp_path: Path, first: bytes, *, said: bool | None, has_actions: bool
):
    path, home = tmp_path / "documents", Home(tmp_path / "home")
    path.write_bytes(first + b'\n{"a":1}\n')
    file = local_file(path, index="logs", home=home, has_actions=said)
    assert (file.held, file.has_actions) == (2 - has_actions, has_actions)


@pytest.mark.parametrize(("raw", "line"), [(b"{}\r\n\r\n{}\r\n", 2), (b"\r\n{}", 1), (b"{}\n{}\n\n", 3)])
def test_an_empty_line_is_told_whatever_ends_it(tmp_path: Path, raw: bytes, line: int):
    path, home = tmp_path / "documents", Home(tmp_path / "home")
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=f"line {line} of .*documents is empty"):
        local_file(path, index="logs", home=home)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", ".", "x" * 300, ""])
def test_a_track_names_no_file_outside_of_the_folders(tmp_path: Path, name: str):
    (tmp_path / "secret").write_bytes(b'{"a":1}\n')
    wanted = Corpus("c", (Documents(source_file=name, document_count=1, target_index="logs"),))
    with pytest.raises(UsageError, match="cannot be the name of a file of documents"):
        find_documents([wanted], folders=[tmp_path / "track"], home=Home(tmp_path / "home"))


def test_a_tenth_of_big5_has_a_tenth_of_every_day(tmp_path: Path):
    documents = 100_000
    corpus = ensure_corpus(Home(tmp_path / "other"), documents)
    path = tmp_path / "documents.json"
    path.write_bytes(b"".join(open_documents(corpus)))
    home = Home(tmp_path / "home")
    file = local_file(path, index="big5", home=home, docs=documents // 10)
    dates = [line[15:25].decode() for line in lines_of(read(file, home=home))]
    assert len(dates) == documents // 10
    for day in days(documents):
        assert dates.count(day.date.isoformat()) == pytest.approx(day.documents / 10, rel=0.01, abs=5)
    matched = sum(date < "2023-01-03" for date in dates) / len(dates)
    assert matched == pytest.approx(2 / 7.25, abs=0.005)


def test_a_file_is_read_in_full_only_once(tmp_path: Path):
    path = tmp_path / "documents.json"
    path.write_bytes(b'{"a":1}\n' * 10)
    home = Home(tmp_path / "home")
    told: list[int] = []
    first = local_file(path, index="logs", home=home, progress=told.append)
    assert sum(told) == 10
    assert local_file(path, index="logs", home=home, progress=told.append) == first
    assert sum(told) == 10
    path.write_bytes(b'{"a":2}\n' * 12)
    assert local_file(path, index="logs", home=home, progress=told.append).held == 12
    assert sum(told) == 22


def test_a_damaged_index_is_made_anew(tmp_path: Path):
    path = tmp_path / "documents.json"
    path.write_bytes(b'{"a":1}\n' * 10)
    home = Home(tmp_path / "home")
    first = local_file(path, index="logs", home=home)
    for kept in (home.corpora / ".files").glob("*.json"):
        kept.write_bytes(kept.read_bytes()[:50])
    assert local_file(path, index="logs", home=home) == first


def test_action_lines_stay_with_their_documents(tmp_path: Path):
    path = tmp_path / "bulk.json"
    path.write_bytes(b"".join(b'{"index":{"_id":%d}}\n{"a":%d}\n' % (n, n) for n in range(50)))
    home = Home(tmp_path / "home")
    file = local_file(path, index="unused", home=home, docs=5, has_actions=True)
    assert (file.held, file.index) == (50, None)
    pairs = [line for line in read(file, home=home).split(b"\n") if line]
    assert len(pairs) == 10
    for action, document in zip(pairs[::2], pairs[1::2], strict=True):
        assert msgspec.json.decode(action)["index"]["_id"] == msgspec.json.decode(document)["a"]


def test_what_is_no_file_of_documents_is_told(tmp_path: Path):
    home = Home(tmp_path / "home")
    path = tmp_path / "documents.json"
    with pytest.raises(UsageError, match="no such file:"):
        local_file(path, index="logs", home=home)
    path.write_bytes(b'{"index":{}}\n{"a":1}\n{"index":{}}\n')
    with pytest.raises(UsageError, match="the last action line is without a document"):
        local_file(path, index="logs", home=home, has_actions=True)
    path.write_bytes(b'{"a":1}\n')
    with pytest.raises(UsageError, match=r"holds 1 documents, fewer than the 2"):
        local_file(path, index="logs", home=home, docs=2)


def test_the_digest_is_of_the_selection_and_not_of_the_place(tmp_path: Path):
    home = Home(tmp_path / "home")
    for name in ("one", "other"):
        (tmp_path / name).write_bytes(b'{"a":1}\n' * 10)
    one, other = (local_file(tmp_path / name, index="logs", home=home) for name in ("one", "other"))
    assert corpus_digest([one]) == corpus_digest([other])
    changes: list[dict[str, Any]] = [
        {"documents": 9}, {"held": 11}, {"sha256": "0"}, {"index": "x"}, {"data_stream": "x"},
        {"type": "x"}, {"has_actions": True},
    ]  # fmt: skip
    changed = [corpus_digest([msgspec.structs.replace(one, **change)]) for change in changes]
    assert len({corpus_digest([one]), corpus_digest([one, other]), *changed}) == len(changes) + 2


def declared(name: str = "documents.json.bz2", **facts: Any) -> Corpus:
    documents = Documents(**{"source_file": name, "document_count": 10, "target_index": "logs", **facts})
    return Corpus("logs", (documents,))


BODY = b'{"a":1}\n' * 10


@pytest.mark.parametrize("name", ["documents.json.bz2", "documents.json", "documents.json.zst"])
def test_a_declared_file_is_found_under_its_name_or_packed_otherwise(name: str, tmp_path: Path):
    home = Home(tmp_path / "home")
    packing = {"bz2": "bz2", "json": "plain", "zst": "zst"}[name.rpartition(".")[2]]
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / name).write_bytes(PACKERS[packing](BODY))
    (file,) = find_documents([declared(target_type="doc")], folders=[tmp_path / "none", folder], home=home)
    assert file == CorpusFile(
        path=str(folder / name), documents=10, held=10, raw_bytes=len(BODY), sha256=file.sha256,
        corpus="logs", index="logs", type="doc",
    )  # fmt: skip


def test_a_file_that_is_nowhere_is_told_with_where_it_was_looked_for(tmp_path: Path):
    home = Home(tmp_path / "home")
    with pytest.raises(UsageError, match=r"no documents\.json\.bz2 in ") as caught:
        find_documents([declared()], folders=[tmp_path / "track", tmp_path / "other"], home=home)
    for place in (tmp_path / "track", tmp_path / "other", home.corpora / "logs"):
        assert str(place) in caught.value.message
    assert "--corpus-dir" in caught.value.hint
    assert "benchctl corpus fetch logs" in caught.value.hint


def test_a_file_that_is_nowhere_is_fetched_and_kept(files: FileServer, tmp_path: Path):
    home = Home(tmp_path / "home")
    files.files["/corpora/documents.json.bz2"] = Served(PACKERS["bz2"](BODY))
    corpus = declared(base_url=f"{files.url}/corpora")
    (file,) = find_documents([corpus], folders=[], home=home)
    assert Path(file.path) == home.corpora / "logs" / "documents.json.bz2"
    assert read(file, home=home) == BODY
    find_documents([corpus], folders=[], home=home)
    assert len(files.requests) == 1


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"compressed_bytes": 7}, r"documents\.json\.bz2 has \d+ bytes, but the track declares 7"),
        ({"uncompressed_bytes": 7}, r"has 80 bytes uncompressed, but the track declares 7"),
        ({"document_count": 7}, r"has 10 documents, but the track declares 7"),
    ],
)
def test_a_file_that_differs_from_what_the_track_says_is_told(
    facts: dict[str, int], message: str, tmp_path: Path
):
    home = Home(tmp_path / "home")
    (tmp_path / "documents.json.bz2").write_bytes(PACKERS["bz2"](BODY))
    with pytest.raises(UsageError, match=message):
        find_documents([declared(**facts)], folders=[tmp_path], home=home)


def test_the_compressed_size_is_not_asked_of_a_file_packed_otherwise(tmp_path: Path):
    (tmp_path / "documents.json.zst").write_bytes(PACKERS["zst"](BODY))
    found = find_documents([declared(compressed_bytes=7)], folders=[tmp_path], home=Home(tmp_path / "home"))
    assert [file.held for file in found] == [10]


def test_documents_are_shared_over_the_files_in_proportion(tmp_path: Path):
    home = Home(tmp_path / "home")
    for name, lines in (("one", 100), ("other", 300)):
        (tmp_path / name).write_bytes(b"".join(b'{"%d":0}\n' % line for line in range(lines)))
    corpora = [declared("one", document_count=100), declared("other", document_count=300)]
    found = find_documents(corpora, folders=[tmp_path], home=home, docs=40)
    assert [(file.documents, file.held) for file in found] == [(10, 100), (30, 300)]
    with pytest.raises(UsageError, match="the corpora hold 400 documents, fewer than the 401"):
        find_documents(corpora, folders=[tmp_path], home=home, docs=401)


def test_when_looking_files_are_as_the_track_declares_them(tmp_path: Path):
    (tmp_path / "documents.json.bz2").write_bytes(b"not read")
    home = Home(tmp_path / "home")
    corpora = [declared(), declared("other.json", base_url="http://me:pw@x.invalid/logs", document_count=30)]
    found = find_documents(corpora, folders=[tmp_path], home=home, docs=20, looking=True)
    assert [(file.path, file.documents, file.held, file.sha256) for file in found] == [
        (str(tmp_path / "documents.json.bz2"), 5, 10, ""), ("http://x.invalid/logs/other.json", 15, 30, ""),
    ]  # fmt: skip


def numbered(count: int) -> bytes:
    return b"".join(b'{"n":%d}\n' % number for number in range(count))


def trial(folder: Path, *corpora: Corpus, notes: list[str] | None = None, **options: Any) -> list[CorpusFile]:
    note = (notes if notes is not None else []).append
    home = Home(folder / "home")
    return [*find_documents(corpora, folders=[folder], home=home, trial=True, note=note, **options)]


def found_of(files: Sequence[CorpusFile]) -> list[tuple[str, int, int]]:
    return [(Path(file.path).name, file.documents, file.held) for file in files]


def test_a_trial_reads_the_first_thousand_documents_that_a_track_has_beside_the_whole(tmp_path: Path):
    (tmp_path / "calls.json").write_bytes(numbered(3000))
    (tmp_path / "calls-1k.json").write_bytes(numbered(1001))
    (file,) = trial(tmp_path, declared("calls.json", document_count=3000, uncompressed_bytes=7))
    assert found_of([file]) == [("calls-1k.json", 1000, 1000)]
    assert read(file, home=Home(tmp_path / "home")) == numbered(1000)


@pytest.mark.parametrize("count", [3000, None])
def test_a_trial_without_such_a_file_takes_a_share_of_the_whole(count: int | None, tmp_path: Path):
    (tmp_path / "calls.json").write_bytes(numbered(3000))
    found = trial(tmp_path, declared("calls.json.bz2", document_count=count))
    assert found_of(found) == [("calls.json", 1000, 3000)]


def test_a_trial_leaves_small_sets_whole_whatever_is_beside_them(tmp_path: Path):
    (tmp_path / "regions.json").write_bytes(numbered(12))
    (tmp_path / "regions-1k.json").write_bytes(numbered(5))
    (tmp_path / "calls-1k.json.bz2").write_bytes(PACKERS["bz2"](numbered(1000)))
    regions = declared("regions.json", document_count=12)
    found = trial(tmp_path, regions, declared("calls.json.bz2", document_count=10**9))
    assert found_of(found) == [("regions.json", 12, 12), ("calls-1k.json.bz2", 1000, 1000)]


def test_a_trial_fetches_the_first_thousand_documents_only(files: FileServer, tmp_path: Path):
    files.files["/calls-1k.json.bz2"] = Served(PACKERS["bz2"](numbered(1000)))
    files.files["/calls.json.bz2"] = Served(PACKERS["bz2"](numbered(3000)))
    notes: list[str] = []
    corpus = declared("calls.json.bz2", document_count=3000, compressed_bytes=7, base_url=files.url)
    assert found_of(trial(tmp_path, corpus, notes=notes)) == [("calls-1k.json.bz2", 1000, 1000)]
    assert ([path for path, _ in files.requests], notes) == (["/calls-1k.json.bz2"], [])


@pytest.mark.parametrize("status", [403, 404])
def test_a_trial_fetches_the_whole_where_there_is_no_such_file_and_notes_it(
    status: int, files: FileServer, tmp_path: Path
):
    files.files["/calls-1k.json"] = Served(b"", statuses=[status])
    files.files["/calls.json"] = Served(numbered(3000))
    notes: list[str] = []
    corpus = declared("calls.json", document_count=3000, base_url=files.url)
    assert found_of(trial(tmp_path, corpus, notes=notes)) == [("calls.json", 1000, 3000)]
    (note,) = notes
    assert f"calls-1k.json: HTTP {status}" in note


def test_a_look_at_a_trial_shows_what_would_be_fetched(tmp_path: Path):
    corpus = declared("calls.json.bz2", document_count=3000, base_url="http://x.invalid/logs")
    (file,) = trial(tmp_path, corpus, looking=True)
    assert (file.path, file.documents, file.held) == ("http://x.invalid/logs/calls-1k.json.bz2", 1000, 1000)
    elsewhere = declared("calls.json", document_count=3000, source_url="http://x.invalid/logs/calls.json")
    (file,) = trial(tmp_path, elsewhere, looking=True)
    assert (file.path, file.documents) == ("http://x.invalid/logs/calls.json", 1000)


def test_vectors_and_streams_without_an_end_are_no_files_of_documents(tmp_path: Path):
    corpora = [
        declared("vectors.hdf5", source_format="hdf5"),
        msgspec.structs.replace(declared(), streaming_ingestion="kafka"),
    ]
    assert find_documents(corpora, folders=[], home=Home(tmp_path)) == ()


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", ".."])
def test_a_corpus_whose_name_is_no_folder_is_told(name: str, tmp_path: Path):
    corpus = msgspec.structs.replace(declared(), name=name)
    with pytest.raises(UsageError, match="cannot be kept in a directory of its name"):
        find_documents([corpus], folders=[], home=Home(tmp_path))
