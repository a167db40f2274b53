"""`benchctl explain RUN profile` on a stored run."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import UsageError
from benchctl.evidence.profile import PROFILE_NAME, Sample, profile_of
from benchctl.evidence.profile_report import profile_tables
from benchctl.results.model import BootRecord
from benchctl.results.reading import UnknownTimesError
from benchctl.results.store import RunFolder
from builders import make_fork, make_plan, make_record
from stored import samples

BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 3, 3, (), "boots/x", origin_ns=0)
S = 10**9
SEARCH = "[benchctl][search][T#1]"
WORKER = "[benchctl][transport_worker][T#1]"


def profiled(runs: Path) -> RunFolder:
    """Elasticsearch scores in 3 of 4 samples, OpenSearch in 1 of 2; neither has a plain fork's profile.

    Measuring lasts from second 1 to second 3; what is sampled in second 0 is warm-up.
    """
    folder = RunFolder(runs / "20260101-a")
    for variant, engine, scores in (("es", "elasticsearch", 3), ("os", "opensearch", 1)):
        stack = (f"org.{engine}.search.SearchService.run:7", "org.apache.lucene.A.score:9")
        sampled = [Sample(0, f"{engine}{WORKER}", ("org.start.C.up",))]
        sampled += [Sample(S + at, f"{engine}{SEARCH}", stack) for at in range(scores)]
        sampled.append(Sample(2 * S, f"{engine}{WORKER}", ("io.netty.B.read",)))
        sampled.append(Sample(2 * S, f"{engine}{WORKER}", ("sun.nio.ch.Net.poll",), native=True))
        target = folder.evidence_folder(variant, 2, 0)
        target.mkdir(parents=True)
        (target / PROFILE_NAME).write_bytes(msgspec.json.encode(profile_of(sampled)))
    evidence = [
        make_fork(
            name, 2, boots=(BOOT,), evidence=("profile",), samples=folder.write_samples([samples(S)], name, 2)
        )
        for name in ("es", "os")
    ]
    plain = [make_fork(name, block, boots=(BOOT,)) for name in ("es", "os") for block in (0, 1)]
    folder.save(make_record("20260101-a", plan=make_plan(), status="complete", forks=(*plain, *evidence)))
    return folder


@pytest.fixture(autouse=True)
def run(home: Path) -> RunFolder:
    return profiled(home / "runs")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, ["explain", "latest", "profile", *map(str, arguments)])


def refused(*arguments: object) -> str:
    done = call(*arguments)
    assert isinstance(done.exception, UsageError), done.output
    return str(done.exception)


def test_what_was_sampled_outside_of_measured_tasks_counts_when_asked_for():
    assert "org.start" not in call("--task", "range").stdout
    done = call("--variant", "es", "--recorded")
    assert "PROFILE SUMMARY from 5 events (total: 6)" in done.stdout
    assert "org.start.C#up()" in done.stdout
    assert "two things about when" in refused("--task", "range", "--recorded")


def test_without_samples_only_all_that_was_recorded_can_be_shown(run: RunFolder):
    for name in ("es", "os"):
        run.sample_file(name, 2).unlink()
    error = call("--variant", "es").exception
    assert isinstance(error, UnknownTimesError)
    assert "--recorded" in error.hint
    assert "from 5 events (total: 6)" in call("--variant", "es", "--recorded").stdout
    first, _ = profile_tables(run, run.load())
    assert first.title.startswith("Profile of es: 5 samples of threads that ran Java, 1 fork, all that was")


def test_lines_callers_threads_and_a_variant_can_be_asked_for():
    done = call("--variant", "es", "--by", "line", "--stack", 2, "--thread", r"\[search\]")
    assert "100.00%            3  org.apache.lucene.A#score():9\n" in done.stdout
    assert "at org.elasticsearch.search.SearchService#run():7" in done.stdout
    assert "opensearch" not in done.stdout
    assert r"profile.threads=\[search\]" in done.stdout


def sampled_anew(run: RunFolder, variant: str, count: int) -> None:
    sampled = [Sample(S + at, f"x{SEARCH}", ("org.apache.lucene.A.score:9",)) for at in range(count)]
    target = run.evidence_folder(variant, 2, 0) / PROFILE_NAME
    target.write_bytes(msgspec.json.encode(profile_of(sampled)))


@pytest.mark.parametrize(("count", "named"), [(99, ["es"]), (100, [])])
def test_a_side_with_too_few_samples_to_rank_methods_says_so_in_every_form(
    run: RunFolder, tmp_path: Path, count: int, named: list[str]
):
    sampled_anew(run, "es", count)
    sampled_anew(run, "os", 100)
    flame = tmp_path / "flame.html"
    assert call("--diff", "es", "os", "--flame", flame).exit_code == 0
    page = CliRunner().invoke(root, ["show", "latest", "--format", "html"]).stdout
    found = [call().stdout, call("--diff", "es", "os").stdout, flame.read_text(encoding="utf-8")]
    found += [call(*more, "--format", "json").stdout for more in ((), ("--diff", "es", "os"))]
    for text in found:
        assert re.findall(r"Too few samples of (\w+) to rank methods: 99, and it takes 100", text) == named
    # In the caption, and in what screen readers call the table.
    assert page.count("Too few samples of es to rank methods") == 2 * len(named)
    assert "Too few samples of os" not in page
    variants = json.loads(found[-1])["variants"]
    assert [one["name"] for one in variants if one["caveat"]] == named


def test_collapsed_stacks_begin_with_the_pool(tmp_path: Path):
    target = tmp_path / "out.collapsed"
    done = call("--variant", "es", "--collapsed", target)
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert target.read_text().splitlines() == [
        "[search];org.elasticsearch.search.SearchService.run;org.apache.lucene.A.score 3",
        "[transport_worker];io.netty.B.read 1",
    ]


def test_flame_graphs_are_of_one_variant_or_of_two(tmp_path: Path):
    one, two = tmp_path / "one.html", tmp_path / "two.html"
    assert call("--variant", "es", "--flame", one).exit_code == 0
    assert call("--diff", "es", "os", "--flame", two).exit_code == 0
    assert '"names":["es"]' in one.read_text()
    assert '"names":["es","os"]' in two.read_text()


def test_files_of_others_are_not_overwritten_and_own_ones_are(tmp_path: Path):
    for option in ("--flame", "--collapsed"):
        target = tmp_path / option
        target.write_text("[settings]\nmine = 1\n")
        assert "was not written by benchctl" in refused("--variant", "es", option, target)
        assert target.read_text() == "[settings]\nmine = 1\n"
        target.write_text("")
        assert call("--variant", "es", option, target).exit_code == 0
        assert call("--variant", "os", option, target).exit_code == 0


def test_what_makes_no_sense_is_refused(run: RunFolder):
    assert "no variant 'ess'" in refused("--variant", "ess")
    assert "remove --variant" in refused("--variant", "es", "--diff", "es", "os")
    assert "two different variants" in refused("--diff", "es", "es")
    assert "--collapsed is for one variant" in refused("--diff", "es", "os", "--collapsed", "x")
    assert "is not a regular expression" in refused("--thread", "[")
    assert "none of the 6 samples of es" in refused("--thread", "merge")
    assert "or give --recorded" in refused("--thread", "merge")
    assert "hint: remove --thread or --mode" in refused("--thread", "merge", "--recorded")
    assert "unknown task 'ranje'" in refused("--task", "ranje")
    (run.evidence_folder("os", 2, 0) / PROFILE_NAME).unlink()
    assert "no profile of os" in refused("--diff", "es", "os")
    (run.evidence_folder("es", 2, 0) / PROFILE_NAME).unlink()
    assert "--evidence profile" in refused()


def test_a_page_has_the_tables_and_stands_a_damaged_profile(run: RunFolder):
    page = CliRunner().invoke(root, ["show", "latest", "--format", "html"]).stdout
    assert "Profile of es: 4 samples" in page
    (run.evidence_folder("es", 2, 0) / PROFILE_NAME).write_text("{")
    page = CliRunner().invoke(root, ["show", "latest", "--format", "html"])
    assert page.exit_code == 0, page.exception
    assert "Profile of" not in page.stdout
    assert "is damaged" in page.stdout


@pytest.mark.parametrize(
    "changed",
    [{"stack": [99, 0, 0, 0, 0]}, {"thread": [-1, 0, 0, 0, 0]}, {"stacks": [[99]]}, {"native": []}],
)
def test_a_profile_that_does_not_hold_together_is_damaged(run: RunFolder, changed: dict[str, object]):
    path = run.evidence_folder("es", 2, 0) / PROFILE_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    assert "is damaged" in str(call().exception)
