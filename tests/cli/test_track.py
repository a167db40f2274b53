"""`benchctl track`: what a track holds and does, and exit code 2 for one that is wrong."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from benchctl.cli.listing import list_group
from benchctl.cli.run import run_command
from benchctl.cli.track import track_group
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.track.pollution import POLLUTED
from foreign_tracks import BOOKS, write_files
from plugins import executed, write_track


def invoke(command: click.Command, *arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False)


def call(*arguments: str | Path) -> Result:
    return invoke(track_group, *arguments)


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return write_files(tmp_path / "books", BOOKS)


def test_validate_says_what_a_track_holds_and_needs(books: Path):
    lines = [line.rstrip() for line in call("validate", books).output.splitlines()]
    assert lines[0] == "track books: Books and who lent them"
    assert "index loans: 2 shards" in lines
    assert "corpus books: 2 files, 1,010 documents" in lines
    assert "operations: 3 search, 1 bulk" in lines
    types = "3 search, 1 delete-index, 1 create-index, 1 bulk"
    assert f"challenge lend-and-search (default): {types}" in lines
    assert "needs its Python plug-in (not in the directory of the track) for:" in lines
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
    challenge = '{"name": "a", "schedule": [{"operation": "refresh"}]}'
    text = f'{{"description": "de\\u001b]0;title\\u0007sc", "challenges": [{challenge}]}}'
    output = call("validate", write_files(tmp_path, {"track.json": text})).output
    assert "de\ufffd]0;title\ufffdsc" in output
    assert not {"\x1b", "\x07", "\x9b"} & set(output)


def test_validate_lists_every_fault_and_what_can_be_run(tmp_path: Path):
    main = """{
      "operations": [
        {"name": "s", "operation-type": "search"}, {"name": "t", "operation-type": "search", "bdy": 1}
      ],
      "challenges": [
        {"name": "sound", "schedule": [{"operation": "s"}]},
        {"name": "lazy", "default": true, "schedule": [{"operation": "s", "clients": 0, "iterations": 0}]},
        {"name": "empty", "schedule": []}
      ]
    }"""
    folder = write_files(tmp_path / "small", {"track.json": main})
    code, output = mistaken(folder)
    assert code == ExitCode.USAGE
    mistakes = [line for line in output.splitlines() if line.startswith("mistake: ")]
    assert [line.split(": ")[2] for line in mistakes] == [
        "$.operations[1]",
        "$.challenges[1].schedule[0].clients",
        "$.challenges[1].schedule[0].iterations",
        "$.challenges[2].schedule",
    ]
    assert all(f"{folder / 'track.json'}, line " in line for line in mistakes)
    assert output.count("challenges that cannot be run: lazy") == 2


def mistaken(folder: Path) -> tuple[int, str]:
    done = CliRunner().invoke(track_group, ["validate", str(folder)])
    assert isinstance(done.exception, UsageError)
    return done.exception.exit_code, done.output


def test_validate_finds_all_mistakes_of_a_track_of_which_nothing_can_be_used(tmp_path: Path):
    main = """{
      "indices": [{"name": "A b", "body": "no.json"}, {"name": "b", "body": "bad.json"}],
      "templates": [{"name": "t", "template": "no.json", "index-pattern": "x"}],
      "corpora": [{"name": "c", "documents": [
        {"source-file": "a", "document-count": -1, "target-index": "b"}, {"source-file": "b"}
      ]}],
      "challenges": [{"name": "a", "schedule": [
        {"operation": "serch", "clients": 0, "iteratons": 5}, {"operation": {"operation-type": "bulk"}}
      ]}]
    }"""
    folder = write_files(tmp_path, {"track.json": main, "bad.json": '{"settings": {"number_of_shards": -1}}'})
    _, output = mistaken(folder)
    mistakes = [line for line in output.splitlines() if line.startswith("mistake: ")]
    assert [line.split(": ")[2] for line in mistakes] == [
        "$.indices[0].name",
        "$.settings",
        "$.templates[0].template",
        "$.corpora[0].documents[0].document-count",
        "$.corpora[0].documents[1]",
        "$.challenges[0].schedule[0]",
        "$.challenges[0].schedule[0].operation",
        "$.challenges[0].schedule[0].clients",
        "$.challenges[0].schedule[1].operation",
    ]


def test_validate_finds_what_a_run_would_refuse_before_a_node_starts(tmp_path: Path):
    step = {"operation": {"operation-type": "bulk", "bulk-size": 10, "corpora": "other"}}
    main = {
        "indices": [{"name": "a"}],
        "corpora": [{"name": "c", "documents": [{"source-file": "d.json", "document-count": 2}]}],
        "challenges": [
            {"name": "none", "schedule": [{"operation": "create-index"}, step]},
            {"name": "search", "default": True, "schedule": [{"operation": "search"}]},
        ],
    }
    folder = write_files(tmp_path, {"track.json": json.dumps(main), "d.json": "{}\n{}\n"})
    code, output = mistaken(folder)
    assert code == ExitCode.USAGE
    (mistake,) = [line for line in output.splitlines() if line.startswith("mistake: ")]
    assert str(folder / "track.json") in mistake
    assert "corpora other" in mistake
    options = ("--challenge", "none", "--variant", "es", "--dry-run", "--runs", str(tmp_path / "runs"))
    with pytest.raises(UsageError, match="corpora other"):
        invoke(run_command, "--track", folder, *options)


def test_show_takes_the_derived_warm_up_and_shipped_challenges(books: Path):
    for challenge in (POLLUTED, "range-only"):
        path = books if challenge == POLLUTED else "big5"
        assert f", challenge {challenge}\n" in call("show", path, "--challenge", challenge).output
    with pytest.raises(UsageError, match="nothing"):
        call("show", books, "--challenge", "nothing")


# `benchctl track new` before it reaches any cluster.


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nothing listens: a port that is taken, and not served."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_new_track_needs_a_free_directory_and_a_cluster_that_may_be_asked(
    tmp_path: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
):
    def failure(url: str, *more: str, output: str = "t") -> BenchctlError:
        with pytest.raises(BenchctlError) as caught:
            call("new", tmp_path / output, "--from-index", url, "things", *more)
        return caught.value

    there = failure(nobody, output=".")
    assert (there.exit_code, "already exists" in there.message) == (2, True)
    assert "refuses the connection" in failure(nobody).message
    assert not (tmp_path / "t").exists()
    assert "hunter2" not in str(failure("https://me:hunter2@search-1:9200"))
    monkeypatch.setenv("BENCHCTL_SOURCE_API_KEY", "aWQ6a2V5")
    assert "refusing to send credentials" in failure("http://search-1:9200").message
    file = write_files(tmp_path, {"t.yml": "prod: {url: 'https://search-1:9200', ca: no.pem}"}) / "t.yml"
    assert "prod: ca: cannot read" in failure("prod", "--targets", str(file)).message


# `benchctl track new` of a log, which needs no cluster.


@pytest.fixture
def query_log(tmp_path: Path) -> Path:
    lines = [
        {"timestamp": 1000 * number, "index": f"logs-{number % 3}", "took_ms": 2, "body": body}
        for number, body in enumerate([{"query": {"term": {"kind": "secret"}}}, {"size": 5}] * 150)
    ]
    lines.append({"timestamp": 5, "path": "/logs-1/_count", "body": {}})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    return write_files(tmp_path, {"log.json": text}) / "log.json"


def test_a_log_becomes_a_track_and_what_it_holds_is_printed(query_log: Path, tmp_path: Path):
    made = call("new", tmp_path / "made", "--track", "big5", "--queries", query_log, "--index", "logs-[01]")
    rows = [line.split() for line in made.output.splitlines()]
    assert ["term:kind", "100", "50.0%", "50.0%", "2.0"] in rows
    assert "200 searches in 298 s" in made.output
    assert "searches of logs-0, logs-1 are sent to big5" in made.output
    assert "left out: 100 x a search of another index" in made.output
    assert "left out: 1 x a request to /_count" in made.output
    shown = call("show", tmp_path / "made", "--param", "speed=2").output
    assert "as logged, x 2" in shown
    assert call("validate", tmp_path / "made").exit_code == 0


def test_an_anonymized_log_says_what_can_still_be_read(query_log: Path, tmp_path: Path):
    made = call("new", tmp_path / "made", "--track", "big5", "--queries", query_log, "--anonymize")
    assert "what can still be read" in made.output
    assert "secret" not in (tmp_path / "made" / "queries.json").read_text(encoding="utf-8")
    # What was written is a log itself.
    again = call(
        "new", tmp_path / "again", "--track", "big5", "--queries", tmp_path / "made" / "queries.json"
    )
    assert "300 searches in 299 s" in again.output


@pytest.mark.parametrize(
    "words",
    [
        ("{new}",),
        ("{new}", "--track", "big5", "--from-index", "http://x:1", "y"),
        ("--track", "big5"),
        ("{new}", "--track", "big5", "--queries", "{new}"),
        ("{new}", "--track", "big5", "--docs", "5"),
        ("{new}", "--track", "big5", "--anonymize"),
        ("{new}", "--track", "big5", "--queries", "{log}", "--index", "nothing"),
    ],
)
def test_a_new_track_that_cannot_be_is_a_mistake(query_log: Path, tmp_path: Path, words: tuple[str, ...]):
    with pytest.raises(UsageError):
        call("new", *(word.format(new=tmp_path / "t", log=query_log) for word in words))
    assert not (tmp_path / "t").exists()


# Nothing of a plug-in is executed before the user has allowed it, by any command.


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A track with a plug-in."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    return write_track(tmp_path / "books")


def plan(plugged: Path, *options: str) -> None:
    """A run as far as its plan, for which the plug-in is executed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchctl.cli.measuring.check_host", _stop)
        with pytest.raises(BenchctlError, match="planned"):
            invoke(run_command, "--track", plugged, "--challenge", "ask", "--docs", "1000", *options)


def _stop(*_: object) -> None:
    raise BenchctlError("planned")


def test_commands_that_only_read_a_track_execute_nothing_of_it(plugged: Path):
    validated = call("validate", plugged)
    assert "not executed here" in validated.output
    assert "books/track.py" in validated.output
    assert "not executed here" in call("show", plugged).output
    invoke(list_group, "operations", "--track", plugged)
    assert not executed(plugged)


def test_a_run_without_consent_says_what_is_missing_and_what_would_be_executed(plugged: Path):
    with pytest.raises(UsageError) as caught:
        invoke(run_command, "--track", plugged, "--challenge", "ask")
    assert caught.value.message == (
        "challenge 'ask' of track 'books' needs a Python plug-in, in track.py: task 'authors': param source "
        "'author-source'; task 'count': operation type 'count-books'; task 'count': scheduler 'lazily'"
    )
    assert "it would execute 1 file in" in caught.value.hint
    assert "--trust" in caught.value.hint
    assert f"benchctl track trust {plugged}" in caught.value.hint
    assert not executed(plugged)


def test_a_run_with_trust_executes_it(plugged: Path):
    plan(plugged, "--trust")
    assert executed(plugged)


def test_consent_is_remembered_until_the_plug_in_changes(plugged: Path):
    said = call("trust", plugged).output
    assert said.startswith("trusted ")
    assert not executed(plugged)
    assert "(trusted)" in call("validate", plugged).output
    assert not executed(plugged)
    plan(plugged)
    assert executed(plugged)
    (plugged / "executed").unlink()
    (plugged / "new.py").touch()
    with pytest.raises(UsageError, match="needs a Python plug-in"):
        invoke(run_command, "--track", plugged, "--challenge", "ask")
    assert not executed(plugged)


@pytest.mark.parametrize("command", ["trust", "untrust"])
def test_there_is_nothing_to_trust_without_a_plug_in(plugged: Path, command: str):
    (plugged / "track.py").unlink()
    with pytest.raises(UsageError, match="has no Python plug-in"):
        call(command, plugged)


def test_a_challenge_that_needs_none_of_it_runs_without_consent(plugged: Path):
    text = (plugged / "track.json").read_text(encoding="utf-8")
    plain = text.replace('"param-source": "author-source", "authors": ["a", "b"]', '"body": {}')
    plain = plain.replace('"count-books"', '"refresh"').replace(', "schedule": "lazily"', "")
    (plugged / "track.json").write_text(plain, encoding="utf-8")
    plan(plugged)
    assert not executed(plugged)
