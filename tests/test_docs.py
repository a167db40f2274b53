"""README and site: what is not marked as not run is run, and the site builds."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

import benchctl.home as boundary_home
from benchctl.cli import root
from benchctl.results.store import RunFolder
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from command_lines import BLOCK, PAGES, TOP, blocks, commands, shell_blocks, steps
from reference_pages import reference
from stored import ROWS, samples

MARK = re.compile(r"tests|not run: \w.*")
"""`tests` is what .ci/run looks for."""
OPTION = re.compile(r"--?[a-z][a-z0-9-]*")
FOREIGN = {"--repetitions", "--calibration-table", "--strict"}  # of pytest and mkdocs


def all_options(command: click.Command = root) -> set[str]:
    context = click.Context(command)
    found = {"-h"} | {
        name for param in command.get_params(context) for name in (*param.opts, *param.secondary_opts)
    }
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found |= all_options(inner)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_in_the_text_exist(page: Path):
    known = all_options() | FOREIGN
    for span in re.findall(r"`(--[^`\n]+)`", BLOCK.sub("", page.read_text())):
        assert {*filter(OPTION.fullmatch, span.split())} <= known, span


@pytest.mark.parametrize(
    "page",
    [
        TOP / "CONTRIBUTING.md",
        *(TOP / "docs" / "pages" / name for name in ("architecture.md", "extending.md")),
    ],
)
def test_places_in_the_code_exist(page: Path):
    spans = set(re.findall(r"`([\w.*]+/[\w./*]*)`", page.read_text()))
    assert spans
    missing = {one for one in spans if not any((*TOP.glob(one), *(TOP / "src" / "benchctl").glob(one)))}
    assert missing == set()


def test_marks_of_blocks_are_known():
    assert {block.mark for block in shell_blocks() if block.mark and not MARK.fullmatch(block.mark)} == set()
    assert [block.page for block in blocks() if block.mark == "tests"] == ["README.md"]


def test_pages_are_short():
    assert len((TOP / "README.md").read_text().splitlines()) <= 80
    written = [page for page in PAGES if not page.read_text().startswith("<!-- Made by ")]
    assert {page.name for page in written if len(page.read_text().split()) > 1_500} == set()


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, TOP / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(TOP)))
def test_links_lead_to_files_of_the_checkout(page: Path):
    links = re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text()))
    for link in links:
        path, _, anchor = link.partition("#")
        if not re.match(r"[a-z]+:", link):
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_committed_pages_of_the_reference_are_up_to_date():
    """To write them again: python docs/reference.py."""
    expected = reference().committed_pages()
    assert len(expected) == len(reference().COMMITTED)
    assert {file.name: file.read_text() for file in expected} == {
        file.name: content for file, content in expected.items()
    }, "write them again: python docs/reference.py"


def keep_run(folder: RunFolder, tag: str, factor: float) -> None:
    """Six forks of both engines; OpenSearch's take longer."""
    plan = make_plan(forks=6, schedules=(Challenge("big5rangedebug", (Task("range", iterations=3),)),))
    forks = []
    for block in range(plan.forks):
        for variant, mean_ms in (("es", 1.0), ("os", 1.5)):
            value = factor * mean_ms * (1 + block / 100)
            kept = folder.write_samples([samples(round(value * 10**6))], variant, block)
            meters = dict.fromkeys(("cpu_search", "cpu", "gc"), value)
            summary = msgspec.structs.replace(make_summary("range", value, samples=3), meters=meters)
            forks.append(make_fork(variant, block, summary, samples=kept))
    folder.save(make_record(folder.path.name, plan=plan, status="complete", tags=(tag,), forks=tuple(forks)))


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and a home with two runs."""
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    # It is part of a crontab line, and these have a greatest length.
    monkeypatch.setenv("PATH", os.defpath)
    for number, tag in enumerate(("before-upgrade", "after-upgrade")):
        keep_run(
            RunFolder(tmp_path / "home" / "runs" / f"2026010{number + 1}-000000-big5rangedebug-000{number}"),
            tag,
            1 + number / 1000,
        )
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("page", sorted({block.page for block in shell_blocks() if not block.mark}))
def test_commands_that_are_not_marked_run(workplace: Path, page: str):
    for block in blocks():
        if block.page != page:
            continue
        if block.title is not None:
            file = workplace / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.body)
        elif block.language in ("sh", "console") and block.mark is None:
            for words in commands(block):
                assert words[0] == "benchctl", f"{words[0]} is not run here: mark its block as not run"
                done = CliRunner().invoke(root, words[1:])
                assert done.exit_code == 0, f"{shlex.join(words)}: {done.exception}\n{done.output}"


def test_the_workflow_fails_as_benchctl_does_and_comments_in_any_case(tmp_path: Path):
    """Its steps as a build server runs them, with programs that note how they were called."""
    for name, end in (("benchctl", 'test "$1" = run || exit 3'), ("gh", "exit 0")):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "$0" "$@" >> {tmp_path}/called\necho slower\n{end}\n')
        program.chmod(0o755)
    summary = tmp_path / "summary"
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(summary),
        "NUMBER": "7",
    }
    (block,) = (one for one in blocks() if steps(one))
    _build, measure, comment = (step for step in steps(block) if "run" in step)
    codes = [
        subprocess.run(["/bin/bash", "-e", "-c", step["run"]], env=environ, check=False).returncode
        for step in (measure, comment)
    ]
    assert codes == [3, 0]
    assert comment["if"] == "always()"
    assert summary.read_text() == "slower\n"
    called = (tmp_path / "called").read_text().splitlines()
    assert called[0].startswith(f"{tmp_path}/benchctl run --challenge range-only-short ")
    assert f"head=os,distribution:{tmp_path}/head.tar.gz" in called[0]
    assert called[1] == f"{tmp_path}/benchctl compare latest --gate --format markdown"
    assert called[2:] == [f"{tmp_path}/gh pr comment 7 --body-file {tmp_path}/comment.md --edit-last"]


def test_the_site_builds_without_warnings_and_loads_nothing_from_elsewhere(tmp_path: Path):
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "-f",
            TOP / "docs" / "mkdocs.yml",
            "-d",
            tmp_path,
        ],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    pages = {page.relative_to(tmp_path).as_posix(): page.read_text() for page in tmp_path.rglob("*.html")}
    loaded = r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?:https?:)?//[^>]*>"
    assert [found for text in pages.values() for found in re.findall(loaded, text)] == []
    assert "--until-decided" in pages["reference/commands/run.html"]
    assert "benchctl nightly init" in pages["reference/commands/nightly.html"]
    assert "schema_version" in pages["reference/schemas/analysis.html"]
    assert "cpu_search" in pages["reference/metrics.html"]


def test_queries_of_samples_run(workplace: Path):
    (block,) = (block for block in blocks() if block.title == "queries.py")
    runs = workplace.parent / "home" / "runs"
    done = subprocess.run(
        [sys.executable, "-c", block.body], cwd=runs, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("000-es.parquet") > 0
    rows = (runs / "samples.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * 2 * 6 * ROWS
