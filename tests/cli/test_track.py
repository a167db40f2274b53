"""`benchctl track`: what a track holds and does, and exit code 2 for one that is wrong."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchctl.cli.track import track_group
from benchctl.errors import UsageError
from benchctl.track.load import load_challenge, load_track
from benchctl.track.pollution import POLLUTED
from foreign_tracks import BOOKS, write_files


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(track_group, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return write_files(tmp_path / "books", BOOKS)


def test_validate_says_what_a_track_holds_and_needs(books: Path):
    lines = [line.rstrip() for line in call("validate", books).output.splitlines()]
    assert lines[0] == "track books: Books and who lent them"
    assert "index loans: 2 shards" in lines
    assert (
        "corpus books: 2 files, 1,010 documents, at least 4.0 kB compressed, at least 90.0 kB uncompressed"
        in lines
    )
    assert "operations: 3 search, 1 bulk" in lines
    row = next(line for line in lines if "lend-and-search (default)" in line)
    assert "6" in row.split()
    assert "needs its Python plug-in (which is not in the track's directory) for:" in lines
    assert "  task 'by-author': param source 'author-source'" in lines
    assert any(line.startswith("parameters (") and "bulk_size" in line for line in lines)


def test_validate_sets_parameters_from_files_and_options(books: Path, tmp_path: Path):
    path = write_files(tmp_path, {"p.yml": "number_of_shards: 7\nrate: 3\n"}) / "p.yml"
    output = call("validate", books, "--param", f"@{path}", "--param", "rate=4").output
    assert "index books: 7 shards" in output
    shown = call("show", books, "--param", f"@{path}", "--param", "rate=4").output
    assert " 4/s" in shown


def test_a_parameter_that_nothing_uses_is_an_error(books: Path):
    with pytest.raises(UsageError, match="bulk_sise") as caught:
        call("validate", books, "--param", "bulk_sise=3")
    assert "bulk_size" in caught.value.hint
    with pytest.raises(UsageError, match="zzz") as caught:
        call("validate", books, "--param", "zzz=3")
    assert all(name in caught.value.hint for name in ("number_of_shards", "codec", "iterations"))


def test_show_is_the_expanded_schedule(books: Path):
    lines = call("show", books).output.splitlines()
    assert lines[0] == "books, challenge lend-and-search"
    rows = [line.split() for line in lines if line.strip()[:1].isdigit()]
    assert rows == [
        ["1", "delete-index", "delete-index", "1", "-", "1", "x", "-"],
        ["2", "create-index", "create-index", "1", "-", "1", "x", "-"],
        ["3", "index-append", "bulk", "4", "30", "s", "to", "its", "end", "-"],
        ["4", "all", "search", "1", "50", "x", "100", "x", "20/s"],
        ["5", "old", "search", "2", "-", "60", "s", "2/s", "poisson"],
        ["5", "all-beside", "search", "1", "-", "60", "s", "-"],
    ]


def test_show_says_what_ends_a_step_and_whose_iterations_are_meant(tmp_path: Path):
    def step(completed_by: str) -> str:
        main = '{"name": "main", "operation": "refresh", "iterations": 30}'
        beside = '{"name": "beside", "operation": "refresh", "clients": 4, "iterations": 9000}'
        return f'{{"parallel": {{"completed-by": "{completed_by}", "tasks": [{main}, {beside}]}}}}'

    for completed_by, measured in (
        ("main", ["30 x", "4 x 9,000, until main ends"]),
        ("any", ["30 x, until any ends", "4 x 9,000, until any ends"]),
    ):
        folder = write_files(tmp_path, {"track.json": f'{{"schedule": [{step(completed_by)}]}}'})
        rows = [line for line in call("show", folder).output.splitlines() if line.startswith("1 ")]
        assert all(text in row for text, row in zip(measured, rows, strict=True))


def test_show_has_what_the_loader_remarks(tmp_path: Path):
    task = '{"operation": "refresh", "iterations": 5, "time-period": 9, "tags": "a", "tags": "b"}'
    folder = write_files(tmp_path, {"track.json": f'{{"schedule": [{task}]}}'})
    for command in ("show", "validate"):
        notes = [line for line in call(command, folder).output.splitlines() if line.startswith("note: ")]
        assert ["'tags' is duplicated" in notes[0], "the time period counts" in notes[1]] == [True, True]


def test_texts_of_a_track_cannot_command_a_terminal(tmp_path: Path):
    task = '{"name": "ta\\u009b2Jsk", "operation": "refresh"}'
    challenge = f'{{"name": "ch\\u009b2J", "schedule": [{task}]}}'
    text = f'{{"description": "de\\u001b]0;title\\u0007sc", "challenges": [{challenge}]}}'
    folder = write_files(tmp_path, {"track.json": text})
    for command, names in (
        ("validate", ["de\ufffd]0;title\ufffdsc", "ch\ufffd2J"]),
        ("show", ["ta\ufffd2Jsk"]),
    ):
        output = call(command, folder).output
        assert all(name in output for name in names)
        assert not {"\x1b", "\x07", "\x9b"} & set(output)


def test_validate_lists_every_fault_and_what_can_be_run(tmp_path: Path):
    main = """{
      "operations": [
        {"name": "s", "operation-type": "search"}, {"name": "t", "operation-type": "search", "bdy": 1}
      ],
      "challenges": [
        {"name": "sound", "schedule": [{"operation": "s"}]},
        {"name": "lazy", "default": true, "schedule": [{"operation": "s", "clients": 0}]},
        {"name": "empty", "schedule": []}
      ]
    }"""
    folder = write_files(tmp_path / "small", {"track.json": main})
    with pytest.raises(UsageError, match="default challenge 'lazy'") as caught:
        call("validate", folder)
    assert "sound" in caught.value.hint
    sound = main.replace('"default": true, ', "")
    done = call("validate", write_files(tmp_path / "other", {"track.json": sound}))
    assert done.exit_code == 0
    assert [line.partition(": ")[0] for line in done.output.splitlines()[-3:]] == [
        "unusable operation",
        "challenge 'lazy' cannot be run",
        "challenge 'empty' cannot be run",
    ]
    assert "small, challenge sound" in call("show", folder, "--challenge", "sound").output
    with pytest.raises(UsageError, match="clients: must be at least 1"):
        call("show", folder)


def test_pollute_prints_a_challenge_that_loads_as_the_derived_one(tmp_path: Path):
    output = call("pollute", "big5", "--docs", "1m", "--param", "iterations=3").output
    path = write_files(tmp_path, {"challenge.json": output}) / "challenge.json"
    track, _ = load_track("big5", {})
    derived, _ = load_challenge(POLLUTED, track, {"iterations": 3}, 10**6)
    assert load_challenge(str(path), track, {})[0] == derived


def test_pollute_takes_a_path_and_the_documents_of_the_track(books: Path):
    track, _ = load_track(str(books), {})
    assert track.documents == 1010
    assert call("pollute", books).output == call("pollute", books, "--docs", "1010").output
    with pytest.raises(UsageError, match="zzz"):
        call("pollute", books, "--param", "zzz=3")
