"""Profiles of real nodes, through the command line."""

import json
import subprocess
from pathlib import Path

import pytest

from benchctl.results.store import RunFolder, RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def profiled(benchctl: Benchctl, store: RunStore) -> RunFolder:
    """Elasticsearch alone, one fork, and that profiled."""
    done = benchctl(
        *("run", "--variant", "es", "--challenge", "range-only-short", "--param", "iterations=500"),
        *("--forks", "1", "--evidence", "profile", "--evidence-forks", "all"),
        *("--docs", "20k", "--heap", "512m"),
    )
    assert done.returncode == 0, done.stderr
    return store.find("latest")


def profile(benchctl: Benchctl, run: RunFolder, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = benchctl("profile", str(run.path), *arguments)
    assert done.returncode == 0, done.stderr
    return done


def test_the_hottest_frames_of_searches_are_those_of_lucene_and_the_engine(
    benchctl: Benchctl, profiled: RunFolder
):
    text = profile(benchctl, profiled, "--inclusive", "--top", "500").stdout
    assert "PROFILE SUMMARY from " in text
    assert "org.apache.lucene." in text
    assert "org.elasticsearch.search." in text
    assert "not understood" not in text


def test_samples_of_the_measured_task_are_some_but_not_all(benchctl: Benchctl, profiled: RunFolder):
    samples = [
        json.loads(profile(benchctl, profiled, "--format", "json", *arguments).stdout)["variants"][0][
            "samples"
        ]
        for arguments in ((), ("--task", "range"), ("--task", "range", "--thread", r"\[search"))
    ]
    assert samples[0] >= samples[1] >= samples[2] > 0


def test_a_flame_graph_can_be_written(benchctl: Benchctl, profiled: RunFolder, tmp_path: Path):
    page = tmp_path / "flame.html"
    profile(benchctl, profiled, "--flame", str(page))
    assert "org.apache.lucene." in page.read_text(encoding="utf-8")
