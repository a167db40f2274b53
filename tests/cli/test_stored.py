"""Commands that read what is stored."""

import html
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.cli.streams import WORDS, typed_words
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.report.html.page import write_html
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore
from benchctl.track.model import Challenge, Task
from builders import ES, make_fork, make_plan, make_record, make_summary
from drawn import draw_run
from made_builds import builds, built_record
from report.html.outline import outline
from stored import described, stored


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(one) for one in arguments])


def measured(home: Path, name: str, *tasks: Task, tags: tuple[str, ...] = (), ms: float = 10.0) -> None:
    """A run of es with three forks of these tasks."""
    plan = make_plan(variants=(ES,), schedules=(Challenge("c", tasks),), forks=3)
    forks = tuple(
        make_fork(
            "es", block, *(make_summary(task.label, ms + block, task=n) for n, task in enumerate(tasks))
        )
        for block in range(3)
    )
    kept(home, make_record(name, plan=plan, forks=forks, status="complete", tags=tags or (name,)))


def test_runs_with_different_tasks_are_compared_by_those_that_both_have(home: Path):
    same = [Task("range", iterations=3), Task("sort", iterations=3)]
    measured(home, "before", *same, Task("old", iterations=3))
    measured(home, "after", *same, Task("new", iterations=3))
    shown = json.loads(call("compare", "tag:before", "tag:after", "--format", "json").stdout)
    verdicts = {row["label"]: row["comparisons"][0]["verdict"] for row in shown["rows"]}
    assert {"old", "new"} == {label for label, verdict in verdicts.items() if verdict == "n/a"}
    texts = [one["text"] for one in shown["caveats"] if one["code"] == "other-tasks"]
    assert texts == ["only in the run of before:es: old", "only in the run of after:es: new"]
    assert not any(one["code"] == "unlike" for one in shown["caveats"])
    gated = call("compare", "tag:before", "tag:after", "--gate", "--margin", "50%")
    assert isinstance(gated.exception, BenchctlError)
    assert gated.exception.exit_code == ExitCode.INCONCLUSIVE
    assert "Gate: inconclusive" in gated.stdout


def test_what_ran_before_a_task_is_stated_where_it_differs(home: Path):
    tasks = [Task(name, iterations=3) for name in ("range", "old", "sort")]
    measured(home, "before", *tasks)
    measured(home, "after", tasks[0], tasks[2])
    shown = json.loads(call("compare", "tag:before", "tag:after", "--format", "json").stdout)
    notes = {
        row["label"]: [one["text"] for one in row["caveats"] if one["code"] == "other-tasks"]
        for row in shown["rows"]
    }
    assert notes == {
        "range": [],
        "old": [],
        "sort": ["ran after range, old (before:es); after range (after:es)"],
    }


def test_runs_of_other_challenges_are_compared_when_that_is_forced(home: Path):
    stored(home / "runs", "r1")
    plan = make_plan(schedules=(Challenge("d", (Task("range", iterations=3),)),), heap_mb=1024)
    stored(home / "runs", "r2", make_record("r2", plan=plan, status="complete"))
    assert call("compare", "r1:es", "r2:es").exit_code != 0
    forced = call("compare", "r1:es", "r2:es", "--force", "--format", "json")
    assert forced.exit_code == 0, forced.output
    found = json.loads(forced.stdout)
    assert [section["challenge"] for section in found["sections"]] == ["c", "d"]


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("show", "r1"), "range"),
        (("show", "r1", "--html", "{home}/out"), "Report: "),
    ],
)
@pytest.mark.parametrize("gone", [True, False])
def test_samples_that_are_gone_or_another_fork_s_are_named(
    home: Path, words: tuple[str, ...], printed: str, *, gone: bool
):
    forks = described(home / "runs", "r1").folder.path / "forks"
    if gone:
        (forks / "000-es.parquet").unlink()
    else:
        (forks / "000-es.parquet").write_bytes((forks / "001-os.parquet").read_bytes() + b" ")
    done = call(*(word.format(home=home) for word in words))
    assert isinstance(done.exception, BenchctlError)
    assert "runs/r1 are not as they were written: forks/000-es.parquet " in done.exception.message
    assert done.exception.exit_code == 1
    assert printed in done.stdout


def test_samples_that_retention_removed_are_not_missed(home: Path):
    run = described(home / "runs", "r1")
    forks = tuple(msgspec.structs.replace(fork, samples=None, files={}) for fork in run.record.forks)
    run.folder.save(msgspec.structs.replace(run.record, forks=forks))
    shutil.rmtree(run.folder.path / "forks")
    for words in (("show", "r1"), ("show", "r1", "--html", home / "out")):
        assert call(*words).exit_code == 0


def kept(home: Path, record: RunRecord) -> str:
    folder = RunStore(home / "runs").create(record.id)
    folder.save(record)
    return record.id


def test_builds_are_shown_and_compared_like_forks(home: Path):
    """`--metric build_rate` was refused, and of a metric that nothing has there was an empty verdict."""
    seconds = {"es": (10.0, 10.1, 9.9), "os": (20.0, 20.5, 19.6)}
    run = kept(home, built_record(**{name: builds(*own) for name, own in seconds.items()}))
    assert "index builds: os 2.11.0 vs es 8.11.0 (baseline), 3 index builds each" in call("show", run).stdout
    compared = call("compare", "es", "os", "--run", run, "--metric", "build_rate", "--format", "json")
    (row,) = json.loads(compared.stdout)["rows"]
    assert (row["level"], row["comparisons"][0]["units_baseline"]) == ("build", 3)
    gated = call("compare", "es", "os", "--run", run, "--metric", "build_rate", "--gate")
    assert isinstance(gated.exception, BenchctlError)
    assert gated.exception.exit_code == ExitCode.INCONCLUSIVE  # three builds are few
    assert "os in index build, docs/s: slower" in gated.stdout
    none = call("show", run, "--metric", "latency")
    assert isinstance(none.exception, UsageError)
    assert "nothing to show: no task has a latency" in str(none.exception)
    some = call("show", run, "--metric", "latency,index_size", "--notes")
    assert "all: no task has a latency" in some.stdout


def test_what_to_run_next_keeps_to_the_folder_of_the_runs(home: Path):
    for runs, more in ((home / "my runs", ["--runs", str(home / "my runs")]), (home / "runs", [])):
        RunStore(runs).create("one").save(make_record("one"))
        shown = call("show", "one", "--runs", runs).stdout.replace("\\\n", "")
        proposal = shlex.split(shown[shown.index("  benchctl resume") : shown.index("Details:")])
        assert proposal == ["benchctl", "resume", "one", *more]
        for form in (("-v",), ("--format", "markdown"), ("--html", str(home / "page"))):
            shown = call("show", "one", "--runs", runs, *form).stdout
            shown = shown if "--html" not in form else (home / "page" / "index.html").read_text("utf-8")
            shown = re.sub(r" *\\\n *", " ", html.unescape(shown))
            command = shown[shown.index("benchctl resume") :].partition("\n")[0]
            assert command.startswith(shlex.join(proposal)), form
            assert "--runs" not in command.removeprefix(shlex.join(proposal))


# Pages.


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    store = RunStore(tmp_path / "runs")
    draw_run(store, "20260101-000000-c-aaaa")
    draw_run(store, "20260102-000000-c-bbbb", forks=3)
    return store.root


def invoke(*arguments: str, runs: Path) -> str:
    done = call(*arguments, "--runs", runs)
    assert done.exit_code == 0, done.output
    return done.stdout


def page_in(folder: Path) -> Any:
    return outline((folder / "index.html").read_text(encoding="utf-8"))


def test_one_run_is_one_page_with_everything_that_it_needs(runs: Path, tmp_path: Path):
    target = tmp_path / "new" / "folder"
    assert invoke("show", "20260101", "--html", str(target), runs=runs) == f"Report: {target}/index.html\n"
    files = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert files == {"index.html"}
    page = (target / "index.html").read_text(encoding="utf-8")
    titles = [text for _, text in outline(page).headings()]
    assert titles[0] == "c: es and os"
    assert "Service time by request" in titles
    assert "benchctl show 20260101-000000-c-aaaa --html DIR" in page


def test_a_comparison_is_a_page_that_says_where_its_sides_come_from(runs: Path, tmp_path: Path):
    out = str(tmp_path / "out")
    sides = [
        "20260101:es",
        "20260102:os",
        "--margin",
        "5%",
        "--metric",
        "throughput",
        "--diff",
        "absolute",
        "--force",
    ]
    invoke("compare", *sides, "--html", out, runs=runs)
    found = page_in(tmp_path / "out")
    text = found.all("main")[0].text
    assert "3 forks of run 20260102-000000-c-bbbb" in text
    assert f"benchctl {shlex.join(['compare', *sides])} --html {out}" in text
    assert "Service time by request" in [text for _, text in found.headings()]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("prod=https://me:secret@host:9200", "prod=https://host:9200"),
        (
            "a=es,distribution:https://me:secret@h/es.zip?key=1,heap:1g",
            "a=es,distribution:https://h/es.zip,heap:1g",
        ),
        ("--param=a=x@y?z", "--param=a=x@y?z"),
    ],
)
def test_words_are_kept_without_what_may_be_secret_in_addresses(typed: str, kept: str):
    with click.Context(root) as context:
        context.meta[WORDS] = ("run", typed)
        assert typed_words() == ("run", kept)


@pytest.mark.parametrize("words", [["show", "20260101"], ["compare", "es", "os"]])
def test_a_page_is_no_other_format(runs: Path, words: list[str]):
    done = call(*words, "--runs", runs, "--html", "x", "--format", "json")
    assert isinstance(done.exception, UsageError)


@pytest.mark.parametrize("arguments", [["show", "latest"], ["compare", "es", "os"]])
def test_html_on_standard_output_is_one_file_that_links_nothing(runs: Path, arguments: list[str]):
    found = outline(invoke(*arguments, "--format", "html", runs=runs))
    assert [address for address in found.addresses() if not address.startswith("#")] == ["data:,"]
    assert found.all("figure")


def test_runs_without_samples_have_a_page_that_says_so(tmp_path: Path):
    store = RunStore(tmp_path / "runs")
    folder, record = draw_run(store, "20260101-000000-c-aaaa")
    forks = tuple(msgspec.structs.replace(fork, samples=None) for fork in record.forks)
    folder.save(msgspec.structs.replace(record, forks=forks))
    invoke("show", "latest", "--html", str(tmp_path / "out"), runs=store.root)
    text = page_in(tmp_path / "out").all("main")[0].text
    assert "Not drawn: es, fork 0" in text
    assert "and 2 more" in text


def test_one_damaged_file_leaves_the_rest_of_a_page(runs: Path, tmp_path: Path):
    file = min((runs / "20260101-000000-c-aaaa" / "forks").iterdir())
    file.write_bytes(file.read_bytes()[:-20])
    invoke("show", "20260101", "--html", str(tmp_path / "out"), runs=runs)
    found = page_in(tmp_path / "out")
    assert "Not drawn: es, fork 0: its samples cannot be read" in found.all("main")[0].text
    assert "Service time by request" in [text for _, text in found.headings()]


def test_an_earlier_report_is_replaced_and_other_files_stay(tmp_path: Path):
    page = '<meta name="generator" content="benchctl 0">'
    write_html(tmp_path, page)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    write_html(tmp_path, f"{page}new")
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == f"{page}new"
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert not list(tmp_path.rglob("*.partial"))


def test_a_page_of_others_is_not_overwritten(tmp_path: Path):
    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="was not written by benchctl"):
        write_html(tmp_path, "benchctl")
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BenchctlError, match=r"cannot write .*: Not a directory"):
        write_html(tmp_path / "file" / "out", "benchctl")
