"""Microbenchmarks in real JVMs: compiled, run in turns, compared, gone on with; what fails says why."""

import secrets
from pathlib import Path

import pytest

from benchctl.home import Home
from benchctl.results.store import RunStore
from integration.calls import Benchctl

SHIPPED = Path(__file__).parents[2] / "experiments" / "micro"
QUICK = "-wi 1 -i 1 -w 50ms -r 50ms"
SOURCE = (Path(__file__).parent / "Calls.java").read_text(encoding="utf-8")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "Calls.java"
    path.write_text(SOURCE)
    return path


@pytest.mark.full
def test_two_kinds_of_jvm_are_compared_and_their_inlining_is_kept(
    benchctl: Benchctl, store: RunStore, source: Path
):
    words = (
        "--include",
        "called",
        "--param",
        "step=1",
        "--variant",
        "plain",
        "--variant",
        "none=jvm:-XX:-Inline",
    )
    done = benchctl("micro", "run", str(source), *words, "--forks", "3", "--evidence", "inlining")
    assert done.returncode == 0, done.stderr
    folder = store.find("latest", finished=False)
    record = folder.load()
    assert len(record.forks) == 8
    assert [len(record.compared(name)) for name in ("plain", "none")] == [3, 3]
    assert {facts.jdk for facts in record.engines} == {record.engines[0].jdk}
    (summary,) = record.compared("plain")[0].summaries
    assert (summary.label, summary.unit) == ("called:step=1", "ops")
    assert summary.mean_ns is not None
    assert 0.1 < summary.mean_ns < 1000
    fastest = {
        name: min(fork.summaries[0].mean_ns or 0.0 for fork in record.compared(name))
        for name in ("plain", "none")
    }
    assert fastest["none"] > fastest["plain"]  # what is inlined is several times as fast
    shown = benchctl("explain", record.id, "inlining", "--variant", "plain", "--method", "Calls::called")
    assert "Calls::next" in shown.stdout, shown.stdout + shown.stderr
    said = (folder.path / "jmh" / "001-plain-0.txt").read_text()
    assert "Iteration   1" in said
    assert "inline" not in said
    more = benchctl("extend", record.id, "--forks", "1")
    assert more.returncode == 0, more.stderr
    assert len(folder.load().compared("none")) == 4


def test_compiling_writes_nothing_to_the_root_of_the_file_system(benchctl: Benchctl, source: Path):
    package = f"benchctl_{secrets.token_hex(8)}"
    source.write_text(SOURCE.replace("demo", package))
    words = ("--include", "called", "--param", "step=1", "--forks", "1", "--jmh", QUICK)
    done = benchctl("micro", "run", str(source), *words)
    assert done.returncode == 0, done.stderr
    assert not Path("/", package).exists()


@pytest.mark.full
def test_what_jmhs_profilers_say_is_kept(benchctl: Benchctl, store: RunStore, source: Path):
    words = ("--include", "called", "--param", "step=1", "--forks", "1")
    done = benchctl("micro", "run", str(source), *words, "--jmh", "-prof stack -prof gc -i 2")
    assert done.returncode == 0, done.stderr
    said = (store.find("latest", finished=False).path / "jmh" / "000-jvm-0.txt").read_text()
    assert "RUNNABLE" in said
    assert "gc.alloc.rate.norm" in said


@pytest.mark.full
def test_what_breaks_says_why_and_takes_nothing_along(benchctl: Benchctl, store: RunStore, source: Path):
    done = benchctl("micro", "run", str(source), "--param", "step=1", "--forks", "1")
    assert done.returncode == 1
    assert "IllegalStateException: broken on purpose at demo.Calls.breaks(Calls.java:22)" in done.stderr
    called, broken = sorted(
        store.find("latest", finished=False).load().forks[0].summaries, key=lambda one: bool(one.failures)
    )
    assert called.mean_ns is not None
    assert broken.failures == {"failed": 1}
    source.write_text(SOURCE.replace("return value", "retur value"))
    done = benchctl("micro", "run", str(source))
    assert (done.returncode, "Calls.java (at line 19)" in done.stderr) == (1, True), done.stderr
    source.write_text(SOURCE.replace("@Benchmark\n", "\n"))
    done = benchctl("micro", "run", str(source))
    assert done.returncode == 2
    assert "no benchmark" in done.stderr


def figures(benchctl: Benchctl, store: RunStore, *words: str) -> dict[str, dict[str, float]]:
    """Run a shipped benchmark once: variant -> label of the task -> nanoseconds."""
    done = benchctl("micro", "run", *words, "--forks", "1", "--jmh", QUICK)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, float]] = {}
    for fork in store.find("latest", finished=False).load().forks:
        for one in fork.summaries:
            assert not one.failures, one.failure_reasons
            assert one.mean_ns is not None
            found.setdefault(fork.variant, {})[one.label] = one.mean_ns
    return found


@pytest.mark.full
def test_doc_values_are_read_by_two_lucenes_from_an_index_that_the_older_one_wrote(
    benchctl: Benchctl, store: RunStore, home: Home
):
    old = "lucene7=jar:org.apache.lucene:lucene-core:7.7.3,jar:org.apache.lucene:lucene-backward-codecs:7.7.3"
    words = (str(SHIPPED / "DocValues.java"), "--include", "numeric|export", "--param", "documents=100000")
    words += ("--param", "position=1", "--param", "run=1", "--param", "hits=1000")
    found = figures(benchctl, store, *words, "--variant", old, "--variant", "lucene8")
    assert [len(found[name]) for name in ("lucene7", "lucene8")] == [4, 4]
    (kept,) = home.artifacts.glob("micro-DocValues-*-kept")
    codecs = {folder.name: (folder / "segments_1").read_bytes() for folder in kept.iterdir()}
    assert {name: b"Lucene80" in codec for name, codec in codecs.items()} == {
        "7.7.3-100000": False,
        "8.0.0-100000": True,
        "lucene7-100000": False,
    }


@pytest.mark.full
def test_aggregators_are_built_by_three_elasticsearches_and_preallocated_since_the_second(
    benchctl: Benchctl, store: RunStore
):
    words = [str(SHIPPED / "Breaker.java"), "--include", r"Breaker\.termsSum$"]
    words += ["--param", "breaker=real,preallocate"]
    for version in ("7.11.2", "7.12.1", "7.17.9"):
        words += ["--variant", f"es-{version}=jar:org.elasticsearch:elasticsearch:{version}"]
    done = benchctl("micro", "run", *words, "--forks", "1", "--jmh", QUICK)
    assert done.returncode == 1
    record = store.find("latest", finished=False).load()
    failed = {(fork.variant, one.label) for fork in record.forks for one in fork.summaries if one.failures}
    assert failed == {("es-7.11.2", "termsSum:breaker=preallocate")}
    assert "PreallocatedCircuitBreakerService" in done.stderr
    assert {facts.variant: facts.lucene for facts in record.engines} == {
        "es-7.11.2": "8.7.0",
        "es-7.12.1": "8.8.0",
        "es-7.17.9": "8.11.1",
    }
