"""Which documents a run has: generated, the track's files, or a file of the user's own; what is refused."""

import bz2
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.corpus.big5 import GENERATOR_VERSION
from benchctl.corpus.source import corpus_digest
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.results.plan import CorpusFile, CorpusSpec, Plan, TargetSpec
from benchctl.run.bench import Observer
from benchctl.run.documents import (
    FileOptions,
    bring_vectors,
    check_files,
    data_set_files,
    expected_corpus,
    find_corpus,
    is_generated,
    needs_documents,
    parcels,
    sources,
)
from benchctl.track.model import Challenge, Corpus, Documents, Index, IndexBody, Task, Track
from benchctl.track.operations.catalogue import decode_operation
from builders import ES, OS, make_plan

GENERATED = CorpusSpec(seed=3, documents=1_000, generator_version=0, digest="")
OPERATIONS = {
    "ask": decode_operation({"name": "ask", "body": {}}),
    "send": decode_operation({"name": "send", "operation-type": "bulk", "bulk-size": 10}),
}
PLAIN = CorpusFile(path="/f", documents=4, held=8, raw_bytes=80, sha256="s", corpus="c", index="a")


def track(*corpora: Corpus, **changes: Any) -> Track:
    base = Track(
        name="house",
        operations=OPERATIONS,
        digest="t",
        indices=(Index("a", IndexBody()),),
        corpora=corpora,
    )
    return msgspec.structs.replace(base, **changes)


def corpus(name: str = "people", lines: int = 6, **changes: Any) -> Corpus:
    declared = Documents(source_file=f"{name}.json.bz2", document_count=lines, target_index="a")
    return Corpus(name, (msgspec.structs.replace(declared, **changes),))


def challenge(*operations: str) -> Challenge:
    return Challenge("c", tuple(Task(one) for one in operations))


def write(folder: Path, name: str = "people", lines: int = 6) -> Path:
    path = folder / f"{name}.json.bz2"
    path.write_bytes(bz2.compress(b"".join(b'{"n":%d}\n' % number for number in range(lines))))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "track"
    path.mkdir()
    return path


def expected(found: Track, *operations: str, origin: Any = "prepared", **files: Any) -> CorpusSpec:
    return expected_corpus(GENERATED, FileOptions(**files), found, [challenge(*operations)], origin)


def test_a_track_without_corpora_gets_generated_documents():
    assert expected(track(), "ask") == GENERATED
    assert expected(track(), "send", origin="empty") == GENERATED


def test_a_challenge_that_sends_nothing_needs_no_documents():
    assert expected(track(), "ask", origin="empty").documents == 0
    assert expected(track(corpus()), "ask", origin="empty").documents == 0


def test_of_files_the_track_says_how_many_documents_there_are():
    people, fines = corpus(lines=6), corpus("fines", lines=4)
    assert expected(track(people, fines), "ask").documents == 10
    assert expected(track(people, fines), "ask", docs=5).documents == 5
    assert expected(track(people, fines), "ask", docs=50).documents == 10
    assert expected(track(people), "ask").seed == 0
    assert (
        expected(track(people, corpus("calls", lines=3000)), "ask", docs=50, at_most=True).documents == 1006
    )


def test_generated_documents_need_one_place_to_go_to():
    several = track(indices=(Index("a", IndexBody()), Index("b", IndexBody())))
    with pytest.raises(UsageError, match="has 2 indices and names no corpora"):
        expected(several, "ask")
    assert expected(track(indices=(), data_streams=("s",)), "ask") == GENERATED


def test_a_file_of_ones_own_is_for_one_index(tmp_path: Path):
    with pytest.raises(UsageError, match="track 'house' has no index"):
        expected(track(indices=()), "ask", local=Path("x.json"))
    assert expected(track(corpus()), "ask", local=write(tmp_path), docs=3).documents == 3


def test_a_file_of_ones_own_that_is_not_there_is_told_before_anything_is_started(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no such file: .*absent\.json"):
        expected(track(), "ask", local=tmp_path / "absent.json")


def test_folders_of_files_are_refused_where_documents_are_generated(tmp_path: Path):
    folders = (Path("/x"),)
    with pytest.raises(UsageError, match="--corpus-dir is about files"):
        expected(track(), "ask", folders=folders)
    assert expected(track(), "ask", local=write(tmp_path), folders=folders).documents == 0


def test_clusters_that_are_full_already_need_no_documents():
    full = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",)))
    filled = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",), fill=True))
    written = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",), writes=True))
    assert [needs_documents(one) for one in ([full], [full, OS], [filled])] == [False, True, True]
    assert needs_documents([written])


Find = Callable[..., CorpusSpec]


@pytest.fixture
def find(home: Home, folder: Path) -> Find:
    def found(of: Track, *operations: str, origin: Any = "prepared", **files: Any) -> CorpusSpec:
        options = FileOptions(**files)
        schedules = (challenge(*operations),)
        spec = expected_corpus(GENERATED, options, of, schedules, origin)
        plan = make_plan(track=str(folder), schedules=schedules, origin=origin, corpus=spec)
        return find_corpus(plan, of, options, home, Observer())

    return found


def test_generated_documents_are_not_looked_for(find: Find):
    assert find(track(), "ask") == GENERATED


def test_files_are_found_beside_the_track_and_where_else_the_user_says(
    find: Find, folder: Path, tmp_path: Path
):
    write(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere, "fines", 4)
    found = find(track(corpus(), corpus("fines", 4)), "ask", folders=(elsewhere,))
    assert [Path(one.path).parent for one in found.files] == [folder, elsewhere]
    assert [(one.corpus, one.index, one.documents) for one in found.files] == [
        ("people", "a", 6),
        ("fines", "a", 4),
    ]
    assert (found.documents, found.seed, found.generator_version) == (10, 0, 0)
    assert found.digest == corpus_digest(found.files)


def test_only_files_that_are_sent_are_looked_for(find: Find, folder: Path):
    write(folder)
    one = decode_operation({"name": "send", "operation-type": "bulk", "bulk-size": 10, "corpora": ["people"]})
    both = track(corpus(), corpus("fines"), operations={**OPERATIONS, "send": one})
    assert [file.corpus for file in find(both, "send", origin="empty").files] == ["people"]
    assert find(both, "ask", origin="empty") == CorpusSpec(0, 0, 0, "")
    with pytest.raises(UsageError, match=r"no fines\.json\.bz2 in"):
        find(both, "ask")


def test_fewer_documents_are_an_even_share_of_each_file(find: Find, folder: Path):
    write(folder)
    write(folder, "fines", 2)
    found = find(track(corpus(), corpus("fines", 2)), "ask", docs=4)
    assert [(one.documents, one.held) for one in found.files] == [(3, 6), (1, 2)]


def test_more_documents_than_there_are_is_an_error_only_where_the_user_asked_for_them(
    find: Find, folder: Path
):
    path = write(folder)
    with pytest.raises(UsageError, match="fewer than the"):
        find(track(corpus()), "ask", docs=7)
    assert find(track(corpus()), "ask", docs=7, at_most=True).documents == 6
    with pytest.raises(UsageError, match="fewer than the"):
        find(track(), "ask", docs=7, local=path)
    assert find(track(), "ask", docs=7, at_most=True, local=path).documents == 6
    assert find(track(), "ask", docs=2, at_most=True, local=path).documents == 2


def test_nothing_is_prepared_from_vectors(find: Find):
    with pytest.raises(UsageError, match="hold no JSON documents"):
        find(track(corpus(source_format="hdf5")), "ask")


@pytest.mark.parametrize("packed", [False, True])
def test_vectors_that_a_task_names_are_brought_into_the_home(
    home: Home,
    folder: Path,
    tmp_path: Path,
    packed: bool,  # noqa: FBT001 - drawn
):
    search = {"name": "near", "operation-type": "vector-search", "field": "v", "k": 2}
    asked = {**search, "data_set_corpus": "sift"}
    # A part of a composite needs its vectors as well.
    both = {"name": "near", "operation-type": "composite", "requests": [asked]}
    near = decode_operation(both if packed else asked)
    suffix = ".hdf5.bz2" if packed else ".hdf5"
    files = [corpus(name, source_format="hdf5", source_file=name + suffix) for name in ("sift", "gist")]
    of = track(*files, operations={"near": near})
    plan = make_plan(track=str(folder), schedules=(challenge("near"),), origin="empty")
    for looking in (False, True):
        with pytest.raises(UsageError, match=r"corpus 'sift': no sift\.hdf5"):
            bring_vectors(plan, of, (), home, Observer(), looking=looking)
    for name in ("sift", "gist"):
        content = name.encode()
        (tmp_path / f"{name}{suffix}").write_bytes(bz2.compress(content) if packed else content)
    bring_vectors(plan, of, (tmp_path,), home, Observer(), looking=True)
    assert not list(home.corpora.glob("*/*"))
    bring_vectors(plan, of, (tmp_path,), home, Observer())
    assert [path.read_bytes() for path in home.corpora.glob("*/*.hdf5")] == [b"sift"]
    assert data_set_files(plan, of, home)["sift", "hdf5"] == home.corpora / "sift" / "sift.hdf5"


@pytest.mark.parametrize(("name", "said"), [("empty", "holds no documents"), ("x" * 300, "no such file")])
def test_a_file_of_nothing_is_told_before_an_empty_index_is_measured(
    find: Find, folder: Path, name: str, said: str
):
    folder.mkdir(exist_ok=True)
    (folder / "empty").touch()
    with pytest.raises(UsageError, match=said):
        find(track(), "ask", local=folder / name)


def test_a_file_of_ones_own_goes_to_the_only_place(find: Find, folder: Path):
    path = write(folder)
    (own,) = find(track(), "ask", local=path).files
    assert (own.index, own.data_stream, own.documents, own.corpus) == ("a", None, 6, "")
    (streamed,) = find(track(indices=(), data_streams=("s",)), "ask", local=path).files
    assert (streamed.index, streamed.data_stream) == (None, "s")
    acts = folder / "acts.json"
    acts.write_bytes(b'{"index":{}}\n{"a":1}\n' * 3)
    (acting,) = find(track(), "ask", local=acts).files
    assert (acting.index, acting.documents, acting.has_actions) == (None, 3, True)


def test_a_file_of_ones_own_fills_several_indices_if_its_action_lines_name_them(find: Find, folder: Path):
    several = track(corpus(), indices=(Index("a", IndexBody()), Index("b", IndexBody())))
    acts = folder / "acts.json"
    acts.write_bytes(b'{"index":{"_index":"b"}}\n{"n":1}\n{"index":{"_index":"a"}}\n{"n":2}\n' * 4)
    (all_of_them,) = find(several, "ask", local=acts).files
    assert (all_of_them.index, all_of_them.documents, all_of_them.has_actions) == (None, 8, True)
    assert find(several, "ask", local=acts, docs=2).documents == 2
    with pytest.raises(UsageError, match=r"has 2 indices, and .* has no action lines") as caught:
        find(several, "ask", local=write(folder))
    assert "name the indices: a, b" in caught.value.hint


def test_a_file_that_changed_since_the_plan_was_made_is_told(find: Find, folder: Path, home: Home):
    path = write(folder)
    plan = make_plan(corpus=find(track(corpus()), "ask"))
    check_files(plan, home)
    write(folder, lines=7)
    with pytest.raises(BenchctlError, match=r"people\.json\.bz2 has changed: it held 6 documents"):
        check_files(plan, home)
    path.unlink()
    with pytest.raises(BenchctlError, match="the documents of this run are gone"):
        check_files(plan, home)


def planned(*files: CorpusFile) -> Plan:
    spec = CorpusSpec(0, sum(one.documents for one in files), 0, "d", files)
    return make_plan(corpus=spec)


def test_parcels_say_where_documents_go(home: Home):
    stream = msgspec.structs.replace(PLAIN, index=None, data_stream="s")
    acting = msgspec.structs.replace(PLAIN, index=None, has_actions=True)
    found = parcels(planned(PLAIN, stream, acting), track(), home)
    assert [one.target for one in found] == ["a", "s", ""]
    assert [(one.documents, one.bytes_each, one.has_actions) for one in found] == [
        (4, 10.0, False),
        (4, 10.0, False),
        (4, 10.0, True),
    ]


def test_generated_documents_are_one_parcel_for_the_only_place(home: Home):
    plan = make_plan(corpus=msgspec.structs.replace(GENERATED, generator_version=GENERATOR_VERSION))
    assert is_generated(plan)
    (index,) = parcels(plan, track(), home)
    (stream,) = parcels(plan, track(indices=(), data_streams=("s",)), home)
    assert [(one.target, one.data_stream, one.documents) for one in (index, stream)] == [
        ("a", None, 1_000),
        ("s", "s", 1_000),
    ]
    nothing = make_plan(corpus=CorpusSpec(0, 0, 0, ""))
    assert not is_generated(nothing)
    assert parcels(nothing, track(), home) == ()


def test_tasks_that_name_the_tracks_only_corpus_mean_the_file_in_its_place(home: Home):
    own = msgspec.structs.replace(PLAIN, corpus="")
    assert [one.corpus for one in sources(planned(own), track(corpus()), home)] == ["people"]
    assert [one.corpus for one in sources(planned(own), track(corpus(), corpus("x")), home)] == [""]
    (source,) = sources(planned(PLAIN), track(corpus()), home)
    assert (source.corpus, source.index, source.document_count) == ("c", "a", 4)
    assert sources(make_plan(), track(), home) == ()


def test_readers_open_any_slice(find: Find, folder: Path, home: Home):
    write(folder)
    (parcel,) = parcels(make_plan(corpus=find(track(corpus()), "ask")), track(), home)
    assert b"".join(parcel.reader()).count(b"\n") == 6
    assert b"".join(parcel.reader(2, 4)) == b'{"n":2}\n{"n":3}\n'
