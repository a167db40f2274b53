"""`benchctl compare` from the command line to its exit code, over a store made by hand."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.cli.comparison import Measures
from benchctl.errors import UsageError
from benchctl.results.model import EngineFacts, ForkRecord, InForce, RunRecord
from benchctl.results.plan import StopSpec, TargetSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.stats.summary import summarise
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_fork, make_plan, make_record
from cli.conftest import Benchctl, Ended
from sampled import make_samples
from sweeps import histories_record

OLDER, NEWER = "20260101-080000-c-0001", "20260102-080000-c-0002"
TASK = Task("range", iterations=120)
FORKS = 5


def measured(folder: RunFolder, variant: str, block: int, factor: float) -> ForkRecord:
    """A fork of 120 requests around 10 ms times a factor, with its samples."""
    draw = np.random.default_rng([block, *variant.encode()])
    samples = make_samples(10 * factor * draw.lognormal(0, 0.2, 120) * draw.lognormal(0, 0.02))
    return make_fork(
        variant,
        block,
        summarise(samples, schedule=0, task_index=0, task=TASK),
        samples=folder.write_samples([samples], variant, block),
    )


def save(store: RunStore, run_id: str, factors: dict[str, float], **changes: Any) -> RunRecord:
    folder = store.create(run_id)
    forks = tuple(
        measured(folder, variant, block, factor)
        for variant, factor in factors.items()
        for block in range(FORKS)
    )
    specs = {"es": ES, "os": OS, "slow": msgspec.structs.replace(ES, name="slow", jvm_flags=("-Xint",))}
    plan = make_plan(
        variants=tuple(specs[name] for name in factors), schedules=(Challenge("c", (TASK,)),), forks=FORKS
    )
    made = make_record(
        run_id, status="complete", forks=forks, created=f"{run_id[:4]}-01-0{run_id[7]}T08:00:00Z", plan=plan
    )
    made = msgspec.structs.replace(made, **changes)
    folder.save(made)
    return made


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An older run of es and os, and a newer one of es, os and a slow es."""
    store = RunStore(tmp_path_factory.mktemp("template"))
    save(store, OLDER, {"es": 1.0, "os": 1.0}, tags=("before",))
    save(store, NEWER, {"es": 1.0, "os": 1.0, "slow": 1.5}, tags=("after",))
    return store.root


@pytest.fixture
def store(template: Path, tmp_path: Path) -> RunStore:
    """A copy of these runs to work on."""
    return RunStore(Path(shutil.copytree(template, tmp_path / "runs")))


@pytest.fixture
def compare(store: RunStore, benchctl: Benchctl) -> Benchctl:
    """Run the command, with all that it has to say."""

    def run(*words: str, verbose: bool = True) -> Ended:
        return benchctl("compare", *words, "--runs", store.root, *(["-v"] if verbose else []))

    return run


def titles(text: str) -> list[str]:
    heads = (line for line in text.splitlines() if line.startswith("c: ") and line.endswith("is better)"))
    return [line.split("c: ")[1].split(",")[0] for line in heads]


def test_looks_at_either_side_count(compare: Benchctl, store: RunStore):
    def p_values() -> list[float]:
        rows = json.loads(compare("es", "os", "--format", "json", verbose=False)[1])["rows"]
        return [row["comparisons"][0]["p"] for row in rows]

    once = p_values()
    folder = store.find(NEWER)
    folder.save(msgspec.structs.replace(folder.load(), looks=3))
    assert p_values() == pytest.approx([min(1.0, 3 * p) for p in once])
    plan = msgspec.structs.replace(folder.load().plan, stop=StopSpec(decided=True))
    folder.save(msgspec.structs.replace(folder.load(), plan=plan))
    assert all(many > p for many, p in zip(p_values(), once, strict=True) if p < 0.5)


def test_states_of_several_runs_are_compared_as_those_of_one(compare: Benchctl, store: RunStore):
    def answer(norms: str) -> str:
        for run_id, value in ((OLDER, "true"), (NEWER, norms)):
            folder = store.find(run_id)
            state = InForce({"mapping:message.norms": value}, {"merge policy": "tiered"})
            facts = EngineFacts("es", ES.version, "b", "9.8.0", "a", "21", (), (), in_force=state)
            folder.save(msgspec.structs.replace(folder.load(), engines=(facts,)))
        return " ".join(compare("es", "--run", OLDER, "--run", NEWER, verbose=False)[1].split())

    assert "A/A: after:es is configured as before:es, so only host, day or index build" in answer("true")
    found = answer("false")
    assert "A/A" not in found
    assert "Differ besides what variants specify: mapping:message.norms true / false." in found


def test_the_same_variant_before_and_after(compare: Benchctl):
    _, output, _ = compare("tag:before:es", "tag:after:es")
    assert f"\nbefore:es: 5 forks of es of run {OLDER}" in output
    assert "Diff %: after:es / before:es - 1" in output
    assert compare("es", "--run", OLDER, "--run", NEWER)[1] == output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--metric", "service_time"], ["p90 service time"]),
        (["--metric", "service_time", "--metric", "throughput"], ["p90 service time", "throughput"]),
        (["--quantile", "0.99"], ["throughput", "p99 service time"]),
        (
            ["--quantile", "0.99", "--quantile", "0.5", "--metric", "service_time"],
            ["p50 service time", "p99 service time"],
        ),
        (["--quantile", "0.925"], ["throughput", "p92.5 service time"]),
    ],
)
def test_metrics_and_quantiles_are_chosen(compare: Benchctl, words: Sequence[str], expected: list[str]):
    status, output, _ = compare("es", "os", *words)
    assert status == 0
    assert titles(output) == expected


def test_quantiles_without_samples_are_refused(compare: Benchctl, store: RunStore):
    (store.find(NEWER).path / "forks" / "002-os.parquet").unlink()
    status, _, error = compare("es", "os", "--quantile", "0.95")
    assert status == 1
    assert f"no p95 of os: in fork 2 of run {NEWER}, forks/002-os.parquet is gone" in error
    assert "0.5, 0.9 and 0.99" in error
    assert compare("es", "os", "--quantile", "0.99")[0] == 0


def test_margins_decide_what_is_equivalent(compare: Benchctl):
    words = ("slow", "es", "--metric", "throughput")
    assert re.search(r"range .* faster", compare(*words)[1])
    _, output, _ = compare(*words, "--margin", "900%")
    assert "equal" in output
    assert "all  differences under 900% do not matter in these verdicts" in output


def test_a_gate_ends_with_3_when_something_is_slower(compare: Benchctl):
    status, output, error = compare("es", "slow", "--gate")
    assert status == 3
    assert error.startswith("benchctl: gate: regression: slow in range, throughput: slower")
    assert error.endswith("; and 1 more\n")
    assert "\nGate: regression\n  slow in range, throughput: slower" in output
    assert max(map(len, output.splitlines())) <= 120
    assert "p (Holm) is adjusted for the" in " ".join(output.split())


def test_a_gate_ends_with_4_when_it_could_not_have_seen_it(compare: Benchctl, store: RunStore):
    folder = store.find(NEWER)
    record = folder.load()
    two = tuple(fork for fork in record.forks if fork.block < 2)
    folder.save(msgspec.structs.replace(record, forks=two))
    status, _, error = compare("es", "slow", "--gate")
    assert (status, error.partition(": slow")[0]) == (4, "benchctl: gate: inconclusive")


def test_a_gate_ends_with_0_when_all_is_well(compare: Benchctl):
    status, output, error = compare("slow", "es", "--gate", "--format", "json")
    assert status == 0
    assert error == "benchctl: gate: pass: no regression in 2 comparisons: 2 faster\n"
    found = json.loads(output)
    assert found["gate"]["outcome"] == "pass"
    assert found["method"] == "holm"


@pytest.mark.parametrize(
    ("at", "status", "comparisons"),
    [
        ((), 3, 4),
        (("--at", "history=fresh"), 0, 2),
        (("--at", "history=polluted"), 3, 2),
        (("--at", "history=scheduled"), 2, 0),
        (("--at", "history=fresh", "--at", "history=polluted"), 2, 0),
    ],
)
def test_a_gate_judges_the_worst_history_or_one(
    compare: Benchctl, store: RunStore, at: tuple[str, ...], status: int, comparisons: int
):
    record = histories_record(
        "20260103-080000-h-0003", {"fresh": 1.0, "polluted": 1.5}, challenges=("range-only-short",)
    )
    store.create(record.id).save(record)
    ended, output, _ = compare("es", "os", "--gate", "--run", record.id, *at, "--format", "json")
    rows = json.loads(output)["rows"] if output else []
    assert (ended, sum(len(row["comparisons"]) for row in rows)) == (status, comparisons)
    # Holm's factor counts what is looked at, and nothing else.
    tested = [(row["comparisons"][0]["p"], row["comparisons"][0]["p_adjusted"]) for row in rows]
    for p, adjusted in sorted(tested)[:1]:
        assert adjusted == pytest.approx(min(1, comparisons * p))


def test_failed_forks_are_told_and_never_pass_a_gate(compare: Benchctl, store: RunStore):
    folder = store.find(NEWER)
    record = folder.load()
    forks = [
        msgspec.structs.replace(fork, status="failed", reason="the node died")
        if (fork.variant, fork.block) in {("es", 1), ("es", 3)}
        else fork
        for fork in record.forks
    ]
    folder.save(msgspec.structs.replace(record, forks=tuple(forks)))
    status, output, error = compare("slow", "es", "--gate")
    assert "all  2 forks of es failed and are not included" in output
    assert "\nGate: inconclusive\n  2 forks of es failed and are not included\n" in output
    assert (status, error.partition(": 2 forks")[0]) == (4, "benchctl: gate: inconclusive")


def test_one_run_a_side_has_an_effect_and_no_verdict(compare: Benchctl):
    status, output, error = compare("tag:before:es", "tag:after:slow", "--gate", "--format", "json")
    assert status == 4
    assert error.startswith("benchctl: gate: inconclusive: slow in range, throughput: insufficient: ")
    for row in json.loads(output)["rows"]:
        (one,) = row["comparisons"]
        assert (one["replicate"], one["units_baseline"], one["n_baseline"]) == ("run", 1, 5)
        assert (one["verdict"], one["p"], one["low_percent"]) == ("insufficient", None, None)
        assert abs(one["effect_percent"]) > 20
        assert [doubt["code"] for doubt in one["caveats"]] == ["few-units"]


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (1.5, 3)])
def test_five_runs_a_side_are_gated_by_their_runs(
    compare: Benchctl, store: RunStore, factor: float, status: int
):
    for run in range(10):
        level = (1 + run % 5 / 200) * (factor if run > 4 else 1)
        save(store, f"2026010{3 + run % 5}-0{run}0000-c-{run:04}", {"es": level}, tags=(f"t{run // 5}",))
    found, output, error = compare("tag:t0", "tag:t1", "--gate")
    assert (found, error.partition(": ")[2].partition(":")[0]) == (status, "gate")
    assert "5 runs each, 25 forks each" in output
    assert "Welch's t over runs" in " ".join(output.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("es os --at history=fresh", f"--at: run {NEWER} has no challenge at history=fresh"),
        ("es os --margin 3", "--margin: invalid percentage"),
        ("es os --quantile 0.99999999999", "is not between 0.0001 and 0.9999"),
        ("es os --quantile 1e-12", "is not between 0.0001 and 0.9999"),
        ("es os --quantile nan", "is not between 0.0001 and 0.9999"),
        (
            "slow es --metric parallelism,took_sum",
            "no task has any parallelism; no task has any sum of the searches' own times",
        ),
    ],
)
def test_what_nothing_stored_can_tell_is_refused(compare: Benchctl, words: str, said: str):
    status, output, error = compare(*words.split())
    assert (status, output, said in error) == (2, "", True)


def test_control_characters_of_a_record_do_not_reach_a_terminal(compare: Benchctl, store: RunStore):
    folder = store.find(NEWER)
    record = folder.load()
    summaries = [
        msgspec.structs.replace(one, failures={"http_error": 1}, failure_reasons=("\x1b]0;x\x07\x9b31m",))
        for one in record.forks[0].summaries
    ]
    first = msgspec.structs.replace(record.forks[0], summaries=tuple(summaries))
    folder.save(msgspec.structs.replace(record, forks=(first, *record.forks[1:]), caveats=("\x1b[2J",)))
    for output_format in ("text", "markdown"):
        _, output, error = compare("es", "slow", "--gate", "--format", output_format)
        assert not {"\x1b", "\x07", "\x9b"} & {*output, *error}
        assert "\ufffd" in output


def test_what_running_clusters_cannot_tell_is_refused():
    running = msgspec.structs.replace(ES, target=TargetSpec(("http://search-1:9200",)))
    with pytest.raises(UsageError, match="--metric cpu_search: not available for running clusters"):
        Measures(("took", "cpu_search")).chosen(make_plan(variants=(running,)))
    assert Measures(("cpu",)).chosen(make_plan(variants=(running, OS)))


def test_differences_are_in_the_metrics_unit(compare: Benchctl):
    words = ("slow", "es", "--metric", "service_time", "--diff", "absolute")
    found = json.loads(compare(*words, "--format", "json")[1])["rows"][0]["comparisons"][0]
    assert found["compared_as"] == "difference"
    assert found["difference"] == pytest.approx(found["contender_value"] - found["baseline_value"])
    assert found["difference_low"] < found["difference"] < found["difference_high"] < 0
    screen = compare(*words, verbose=False)[1]
    assert "Diff, ms" in screen or "Diff" in screen
    assert "%" not in "".join(line for line in screen.splitlines() if line.startswith("range"))
