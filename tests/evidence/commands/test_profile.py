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
from benchctl.results.model import BootRecord
from benchctl.results.store import RunFolder
from builders import make_fork, make_plan, make_record
from stored import samples

BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 3, 3, (), "boots/x", origin_ns=0)
S = 10**9
SEARCH = "[search]"
WORKER = "[transport_worker]"


def profiled(runs: Path) -> RunFolder:
    """Elasticsearch scores in 3 of 4 samples, OpenSearch in 1 of 2; neither has a plain fork's profile.

    Measuring lasts from second 1 to second 3; what is sampled in second 0 is warm-up.
    """
    folder = RunFolder(runs / "20260101-a")
    for variant, engine, scores in (("es", "elasticsearch", 3), ("os", "opensearch", 1)):
        stack = (f"org.{engine}.search.SearchService.run:7", "org.apache.lucene.A.score:9")
        sampled = [Sample(0, (WORKER, "org.start.C.up"))]
        sampled += [Sample(S + at, (SEARCH, *stack)) for at in range(scores)]
        sampled.append(Sample(2 * S, (WORKER, "io.netty.B.read")))
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


def text(*arguments: object) -> str:
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_what_was_sampled_outside_of_measured_tasks_does_not_count():
    for task in ((), ("--task", "range")):
        assert "Profile of es, 4 samples of threads that ran Java in 1 fork" in text(*task)
        assert "org.start" not in text(*task)


def test_without_the_times_of_tasks_there_is_no_profile(run: RunFolder):
    for name in ("es", "os"):
        (run.path / "forks" / f"002-{name}.parquet").unlink()
    assert "only they record when tasks ran" in str(call("--variant", "es").exception)


def test_lines_callers_and_a_variant_can_be_asked_for():
    shown = text("--variant", "es", "--by", "line", "--stack", 2)
    assert "org.apache.lucene.A.score:9 75.00 3 at org.elasticsearch.search.SearchService.run:7" in shown
    assert "opensearch" not in shown


def sampled_anew(run: RunFolder, variant: str, count: int) -> None:
    sampled = [Sample(S + at, (SEARCH, "org.apache.lucene.A.score:9")) for at in range(count)]
    target = run.evidence_folder(variant, 2, 0) / PROFILE_NAME
    target.write_bytes(msgspec.json.encode(profile_of(sampled)))


@pytest.mark.parametrize(("count", "named"), [(99, ["es"]), (100, [])])
def test_a_side_with_too_few_samples_to_rank_methods_says_so_in_every_form(
    run: RunFolder, count: int, named: list[str]
):
    sampled_anew(run, "es", count)
    sampled_anew(run, "os", 100)
    page = CliRunner().invoke(root, ["show", "latest", "--format", "html"]).stdout
    both = ("--diff", "es", "os")
    ways = ((), both, (*both, "--format", "html"), ("--format", "json"), (*both, "--format", "json"))
    found = [" ".join(call(*way).stdout.split()) for way in ways]
    for text in found:
        assert re.findall(r"Too few samples of (\w+) to rank methods: 99 of 100 required", text) == named
    # In the caption, and in what screen readers call the table.
    assert page.count("Too few samples of es to rank methods") == 2 * len(named)
    assert "Too few samples of os" not in page
    variants = json.loads(found[-1])["variants"]
    assert [one["name"] for one in variants if one["caveat"]] == named


def test_flame_graphs_are_of_one_variant_or_of_two():
    assert '"names":["es"]' in text("--variant", "es", "--format", "html")
    assert '"names":["es","os"]' in text("--diff", "es", "os", "--format", "html")
    assert "profiles of es, os" in refused("--format", "html")


def test_what_makes_no_sense_is_refused(run: RunFolder):
    assert "no variant 'ess'" in refused("--variant", "ess")
    assert "two different variants" in refused("--variant", "es", "--diff", "es", "os")
    assert "two different variants" in refused("--diff", "es", "es")
    assert "unknown task 'ranje'" in refused("--task", "ranje")
    path = run.evidence_folder("os", 2, 0) / PROFILE_NAME
    path.write_bytes(msgspec.json.encode(profile_of([])))
    assert "the profile of os has no sample" in refused()
    path.unlink()
    assert "no profile of os" in refused("--diff", "es", "os")
    (run.evidence_folder("es", 2, 0) / PROFILE_NAME).unlink()
    assert "--evidence profile" in refused()


def test_a_page_has_the_tables_and_stands_a_damaged_profile(run: RunFolder):
    page = CliRunner().invoke(root, ["show", "latest", "--format", "html"]).stdout
    assert "Profile of es, 4 samples" in page
    (run.evidence_folder("es", 2, 0) / PROFILE_NAME).write_text("{")
    page = CliRunner().invoke(root, ["show", "latest", "--format", "html"])
    assert page.exit_code == 0, page.exception
    assert "Profile of" not in page.stdout
    assert "is damaged" in page.stdout


@pytest.mark.parametrize(
    "changed",
    [{"stack": [99, 0, 0, 0, 0]}, {"stack": [-1, 0, 0, 0, 0]}, {"stacks": [[99]]}, {"stack": []}],
)
def test_a_profile_that_does_not_hold_together_is_damaged(run: RunFolder, changed: dict[str, object]):
    path = run.evidence_folder("es", 2, 0) / PROFILE_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    assert "is damaged" in str(call().exception)
