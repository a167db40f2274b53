"""`ab` and `bisect` on the command line: what is wrong is told before anything is built or started."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import BenchctlError, ExitCode
from benchctl.results.model import RunRecord
from benchctl.results.plan import VariantSpec
from benchctl.search.conduct import Job
from golden import Cases
from scripted_history import Step, git, write_history

BUILD = ("--build", "echo built >> $LOG; false", "--artifact", "out/*.zip")
CHALLENGE = ("--challenge", "range-only-short", "--docs", "10k")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr("benchctl.home._check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(home))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    write_history(tmp_path / "source", [Step("First"), Step("Second"), Step("Third")], "pass")
    monkeypatch.chdir(tmp_path / "source")
    return tmp_path / "source"


def called(*words: str) -> Result:
    return CliRunner().invoke(root, [*words])


def error(*words: str) -> BenchctlError:
    done = called(*words)
    assert isinstance(done.exception, BenchctlError), done.exception
    return done.exception


AB = ("ab", "--source", ".", "--base", "HEAD~1", "--head", "HEAD", *CHALLENGE)
BISECT = ("bisect", "--source", ".", "--good", "HEAD~2", "--bad", "HEAD", *CHALLENGE)


def test_what_is_wrong_is_told_before_anything_is_built(cases: Cases, source: Path, tmp_path: Path):
    def tell(words: str) -> str:
        return re.sub(r"\b[0-9a-f]{10}\b", "COMMIT", str(error(*json.loads(words))))

    cases("commits", tell, source)
    assert not (tmp_path / "log").exists()
    assert git(source, "status", "--short") == ""


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("words", [AB, (*AB, "--variant", "mine=os", "--jdk", "mine=17"), BISECT])
def test_a_commit_that_does_not_build_ends_them(tmp_path: Path, words: tuple[str, ...]):
    found = error(*words, *BUILD, "--quiet")
    assert "does not build: echo built >> $LOG; false exited with status 1" in found.message
    assert found.exit_code == ExitCode.FAILED
    assert (tmp_path / "log").read_text() == "built\n"


@pytest.fixture
def asked(source: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[VariantSpec, ...]]:
    """The variants of the first question that would be put to nodes."""
    assert source
    found: list[tuple[VariantSpec, ...]] = []

    class Refusing:
        def measure(self, job: Job) -> tuple[RunRecord, ...]:
            found.append(job.plans[0].variants)
            raise BenchctlError("there are no nodes here")

    monkeypatch.setattr("benchctl.search.commands.Nodes", lambda *_: Refusing())
    return found


def test_points_may_be_versions(asked: list[tuple[VariantSpec, ...]]):
    error("bisect", "--versions", "es@8.9.0, es@8.10.0,es@8.11.0", *CHALLENGE, "--quiet")
    assert [[(one.engine, one.version) for one in pair] for pair in asked] == [
        [("elasticsearch", "8.9.0"), ("elasticsearch", "8.11.0")]
    ]


def test_options_belong_to_the_version_before_them(asked: list[tuple[VariantSpec, ...]]):
    text = "es@8.11.0,slow=es@8.11.0,jvm:-Xint,setting:a.b=1"
    error("bisect", "--versions", text, *CHALLENGE, "--quiet")
    ((_, slow),) = asked
    assert (slow.name, slow.jvm_flags, slow.settings) == ("slow", ("-Xint",), {"a.b": "1"})


def test_points_may_be_jars(asked: list[tuple[VariantSpec, ...]], tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Lucene core.jar").write_text(name)
    first, last = (str(tmp_path / name / "Lucene core.jar") for name in ("a", "b"))
    same = error("bisect", "--jars", f"{first},{first}", "--variant", "es", *CHALLENGE)
    assert "are the same jar" in same.message
    jars = (first, "org.apache.lucene:lucene-core:9.8.0", last)
    error("bisect", "--jars", ",".join(jars), "--variant", "es", *CHALLENGE, "--quiet")
    assert [[(one.name, one.jars) for one in pair] for pair in asked] == [
        [("1-lucene-core", (first,)), ("3-lucene-core", (last,))]
    ]


def test_points_are_commits_with_what_they_build(asked: list[tuple[VariantSpec, ...]], source: Path):
    recipe = ("--build", "mkdir out && cp number out/engine.zip", "--artifact", "out/*.zip")
    error(*BISECT, *recipe, "--quiet")
    error(*BISECT, *recipe, "--quiet", "--bad", "HEAD~1")
    shas = git(source, "log", "--reverse", "--format=%H").split()
    assert [[one.name for one in pair] for pair in asked] == [
        [shas[0][:10], shas[2][:10]],
        [shas[0][:10], shas[1][:10]],
    ]
    assert [Path(one.distribution or "").read_text() for one in asked[0]] == ["0\n", "2\n"]
