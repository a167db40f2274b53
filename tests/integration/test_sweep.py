"""Sweeps on real nodes: every point is measured on what it asks for, and compared with its own."""

import subprocess

import pytest

from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore
from benchctl.stats.analyse import analyse_run
from builders import exact_hits
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.nodes, pytest.mark.timeout(600)]

SWEEP = ("--sweep", "docs=2k,4k")
Run = tuple[subprocess.CompletedProcess[str], RunRecord]


@pytest.fixture(scope="module")
def swept(benchctl: Benchctl, store: RunStore, installations: object) -> Run:
    """Both engines, one fork at each number of documents."""
    assert installations
    more = ("--param", "iterations=10", "--forks", "1", "--heap", "512m")
    done = benchctl("run", "--challenge", "range-only-short", *SWEEP, *more)
    return done, store.find("latest", finished=False).load()


def test_every_variant_has_a_fork_of_every_point_in_each_block(swept: Run):
    done, record = swept
    assert done.returncode == 0, done.stderr
    sides = {(fork.variant, fork.block) for fork in record.forks}
    assert sides == {(name, 0) for name in ("es.2k", "es.4k", "os.2k", "os.4k")}
    assert {fork.status for fork in record.forks} == {"done"}
    assert {name: index.documents for name, index in record.indices.items()} == {
        "es.2k": 2000, "es.4k": 4000, "os.2k": 2000, "os.4k": 4000,
    }  # fmt: skip


def test_answers_are_compared_among_those_that_search_the_same_documents(swept: Run):
    answers = swept[1].answers
    assert answers is not None
    assert answers.findings == ()
    hits = exact_hits(answers)["range"]
    assert hits["es.2k"] == hits["os.2k"] < hits["es.4k"] == hits["os.4k"]


def test_points_are_compared_and_drawn(swept: Run, benchctl: Benchctl):
    done, record = swept
    found = analyse_run(record)
    assert {(one.baseline, one.contender) for row in found.rows for one in row.comparisons} == {
        ("es.2k", "os.2k"),
        ("es.4k", "os.4k"),
    }
    assert "by docs" in done.stdout
    assert "range-only-short: range, throughput by docs" in benchctl("show", record.id, "-v").stdout
    assert "sweep-0" in benchctl("show", record.id, "--format", "html").stdout
