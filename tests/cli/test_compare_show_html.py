"""`show` and `compare` with `--html` and `--format html` on runs made by hand."""

import shlex
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from benchctl.cli import root
from benchctl.cli.streams import WORDS, typed_words
from benchctl.errors import BenchctlError, UsageError
from benchctl.report.html.page import write_html
from benchctl.results.store import RunStore
from drawn import draw_run
from report.html.outline import outline


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    store = RunStore(tmp_path / "runs")
    draw_run(store, "20260101-000000-c-aaaa")
    draw_run(store, "20260102-000000-c-bbbb", forks=3)
    return store.root


def invoke(*arguments: str, runs: Path) -> str:
    done = CliRunner().invoke(root, [*arguments, "--runs", str(runs)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


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
    sides = (
        "20260101:es",
        "20260102:os",
        "--margin",
        "5%",
        "--metric",
        "throughput",
        "--diff",
        "absolute",
        "--force",
    )
    invoke("compare", *sides, "--html", out, runs=runs)
    found = outline((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
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
    done = CliRunner().invoke(root, [*words, "--runs", str(runs), "--html", "x", "--format", "json"])
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
    text = outline((tmp_path / "out" / "index.html").read_text(encoding="utf-8")).all("main")[0].text
    assert "Not drawn: es, fork 0" in text
    assert "and 2 more" in text


def test_one_damaged_file_leaves_the_rest_of_a_page(runs: Path, tmp_path: Path):
    file = min((runs / "20260101-000000-c-aaaa" / "forks").iterdir())
    file.write_bytes(file.read_bytes()[:-20])
    invoke("show", "20260101", "--html", str(tmp_path / "out"), runs=runs)
    found = outline((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
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


def test_files_of_others_are_not_overwritten(tmp_path: Path):
    page = tmp_path / "index.html"
    page.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="was not written by benchctl"):
        write_html(tmp_path, "benchctl")
    assert page.read_text(encoding="utf-8") == "mine"
    with pytest.raises(UsageError, match="requires a directory"):
        write_html(page, "benchctl")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BenchctlError, match=r"cannot write .*: Not a directory"):
        write_html(tmp_path / "file" / "out", "benchctl")
