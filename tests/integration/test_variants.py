"""Variants that are more than an engine and its version, on real nodes: each part of them gets there."""

import json
import zipfile
from pathlib import Path

import msgspec
import pytest

from benchctl.engine.distribution import Installation
from benchctl.errors import ExitCode
from benchctl.home import Home
from benchctl.results.plan import EngineName
from benchctl.results.store import RunFolder, RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

VARIANTS = """
es-same:
  extends: es
  jvm: [-Xss2m]
  jars: [lucene-core-9.8.0.jar]
es-other:
  extends: es
  heap: 384m
  environment: {MALLOC_ARENA_MAX: 2}
  settings: {indices.queries.cache.size: 5%}
  index-settings: {codec: default, sort.field: "@timestamp"}
  jars: [org.apache.lucene:lucene-core:9.8.0]
  warmups: [range-only-short]
os-17:
  extends: os
  jdk: 17
  plugins: [org.opensearch.plugin:opensearch-job-scheduler:2.11.0.0]
"""


@pytest.fixture(scope="module")
def file(installations: dict[EngineName, Installation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Variants, and beside them a byte-identical copy of Lucene."""
    folder = tmp_path_factory.mktemp("variants")
    lucene = installations["elasticsearch"].root / "lib/lucene-core-9.8.0.jar"
    (folder / "lucene-core-9.8.0.jar").write_bytes(lucene.read_bytes())
    (folder / "variants.yml").write_text(VARIANTS, encoding="utf-8")
    return folder / "variants.yml"


@pytest.fixture(scope="module")
def run(benchctl: Benchctl, store: RunStore, file: Path) -> RunFolder:
    picked = [word for name in ("es", "es-same", "es-other", "os-17") for word in ("--variant", name)]
    size = ("--warmup", "as-written", "--docs", "2k", "--heap", "512m", "--forks", "1")
    done = benchctl("run", "--challenge", "range-only-short", *size, "--variants", str(file), *picked)
    assert done.returncode == 0, done.stderr
    return store.find("latest", finished=False)


def test_what_variants_resolved_to_is_recorded(run: RunFolder):
    record = run.load()
    assert record.status == "complete"
    facts = {one.variant: one for one in record.engines}
    plain, same, other, old = (facts[name] for name in ("es", "es-same", "es-other", "os-17"))
    assert plain.jars == {}
    assert same.jars == other.jars
    assert list(same.jars) == ["lucene-core-9.8.0.jar"]
    assert "-Xmx384m" in other.jvm_flags
    assert "-Xmx512m" in same.jvm_flags
    assert old.plugins == {"opensearch-job-scheduler": "2.11.0.0"}
    assert " 17." in old.jdk


def test_only_what_changes_an_index_makes_another(run: RunFolder):
    keys = {name: facts.key for name, facts in run.load().indices.items()}
    assert keys["es"] == keys["es-same"]
    assert keys["es"] != keys["es-other"]


def test_a_replaced_jar_is_asked_for_its_own_answers(run: RunFolder, home: Home):
    record = run.load()
    assert record.answers is not None
    assert record.answers.findings == ()
    books = {path.name for path in home.indices.glob("elasticsearch-*/answers-*.json")}
    assert len(books) >= 3


def test_warm_ups_of_a_variant_run_on_it_alone_and_are_counted(run: RunFolder):
    boots = {fork.variant: fork.boots[0] for fork in run.load().forks}
    assert boots["es-other"].searches_sent == 2 * boots["es"].searches_sent
    assert all(boot.searches_counted == boot.searches_sent for boot in boots.values())


def test_reports_say_how_variants_differ(run: RunFolder, benchctl: Benchctl):
    text = " ".join(benchctl("show", run.path.name, "-v").stdout.split())
    for said in (
        "JVM flags none (es, es-other, os-17) / -Xss2m (es-same)",
        "heap 512 MiB (es, es-same, os-17) / 384 MiB (es-other)",
        "environment MALLOC_ARENA_MAX none (es, es-same, os-17) / 2 (es-other)",
        "plug-in opensearch-job-scheduler none (es, es-same, es-other) / 2.11.0.0 (os-17)",
    ):
        assert said in text.partition("Differences specified by variants: ")[2]
    found = json.loads(benchctl("show", run.path.name, "--format", "json").stdout)
    kinds = {one["what"]: one["kinds"] for one in found["differences"]}
    assert kinds["jar lucene-core-9.8.0.jar"] == {"es-same": "asked", "es-other": "asked"}
    assert kinds["JDK"] == {"os-17": "asked"}
    assert kinds["index:codec"] == kinds["index:sort.field"] == {"es-other": "asked"}


def test_a_jar_that_changed_cannot_be_gone_on_with(run: RunFolder, benchctl: Benchctl, file: Path):
    record = run.load()
    lacking = tuple(fork for fork in record.forks if fork.variant != "es")
    run.save(msgspec.structs.replace(record, forks=lacking, status="interrupted"))
    with zipfile.ZipFile(file.parent / "lucene-core-9.8.0.jar", "a") as jar:
        jar.writestr("another", "")
    done = benchctl("resume", run.path.name)
    assert done.returncode == ExitCode.FAILED
    assert "lucene-core-9.8.0.jar" in done.stderr
