"""Commands that read what is stored: import, sql, export, schema, list."""

import csv
import io
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.nightly.folder import nights_view
from benchctl.results.model import RunRecord
from benchctl.results.sql import ONE_ROW, view_columns
from benchctl.results.store import RunFolder, RunStore
from benchctl.track.model import Challenge, Task
from builders import make_plan, make_record
from made_builds import builds, built_record
from races import race, run_of_osb, task_of, times, write
from report.html.outline import outline
from stored import ROWS, described, stored


def call(*arguments: object) -> Result:
    return CliRunner().invoke(root, [str(one) for one in arguments])


def races_of_es(folder: Path, forks: int = 3) -> list[Path]:
    return [
        write(folder / f"es-{number}.json", race(number, task_of("range", 10 + number / 10)))
        for number in range(1, forks + 1)
    ]


def readable(home: Path) -> list[tuple[RunFolder, RunRecord]]:
    return list(RunStore(home / "runs").runs(pytest.fail))


def test_imported_files_become_a_run(home: Path):
    done = call("runs", "import", *races_of_es(home), "--variant", "es", "--tag", "before")
    assert done.exit_code == 0, done.output
    ((folder, record),) = readable(home)
    assert folder.path.name.startswith("20260101-030000-rally-big5rangedebug-")
    assert record.id == folder.path.name
    assert f"Run: {folder.path}\nShow: benchctl show {record.id}" in done.stdout
    assert "note: es: the latency that Rally gives for range" in done.stderr
    assert (record.tags, len(record.forks), record.plan.variants[0].version) == (("before",), 3, "8.11.0")


def test_an_imported_run_is_shown_listed_and_asked(home: Path):
    call("runs", "import", *races_of_es(home), "--variant", "es", "--tag", "before")
    assert "Measured by another tool." in " ".join(call("show", "latest").stdout.split())
    shown = call("show", "latest", "-v")
    assert shown.exit_code == 0, shown.output
    assert "measured by Rally 2.9.1" in shown.stdout
    assert "measured by another tool, one race a fork, without samples: es by Rally 2.9.1" in " ".join(
        shown.stdout.split()
    )
    assert "benchctl run" not in shown.stdout
    assert not {"Host", "Indices", "Forks", "Time"} & set(shown.stdout.splitlines())
    (listed,) = json.loads(call("runs", "list", "--format", "json").stdout)
    assert (listed["variants"], listed["documents"], listed["tags"]) == (["es"], None, ["before"])
    asked = call("sql", "select imported, heap_mb, restart, seed from runs", "--format", "csv")
    assert asked.stdout == "imported,heap_mb,restart,seed\nrally,,,\n"


def imported(home: Path, name: str, *tasks: dict[str, Any]) -> None:
    paths = [write(home / f"{name}-{number}.json", race(number, *tasks)) for number in range(1, 4)]
    assert call("runs", "import", *paths, "--variant", f"{name}=es", "--tag", name).exit_code == 0


def test_runs_with_different_tasks_are_compared_by_those_that_both_have(home: Path):
    same = [task_of("range"), task_of("sort", 20, operation="range")]
    imported(home, "before", *same, task_of("old"))
    imported(home, "after", *same, task_of("new"))
    shown = json.loads(call("compare", "tag:before", "tag:after", "--format", "json").stdout)
    verdicts = {row["label"]: row["comparisons"][0]["verdict"] for row in shown["rows"]}
    assert {"old", "new"} == {label for label, verdict in verdicts.items() if verdict == "n/a"}
    texts = [one["text"] for one in shown["caveats"] if one["code"] == "other-tasks"]
    assert texts == ["only in the run of before: old", "only in the run of after: new"]
    assert not any(one["code"] == "unlike" for one in shown["caveats"])
    # Files do not say that tasks of one operation send the same.
    assert shown["curves"] == []
    gated = call("compare", "tag:before", "tag:after", "--gate", "--margin", "50%")
    assert isinstance(gated.exception, BenchctlError)
    assert gated.exception.exit_code == ExitCode.INCONCLUSIVE
    assert "Gate: inconclusive" in gated.stdout


def test_what_ran_before_a_task_is_stated_where_it_differs(home: Path):
    imported(home, "before", task_of("range"), task_of("old"), task_of("sort"))
    imported(home, "after", task_of("range"), task_of("sort"))
    shown = json.loads(call("compare", "tag:before", "tag:after", "--format", "json").stdout)
    notes = {
        row["label"]: [one["text"] for one in row["caveats"] if one["code"] == "other-tasks"]
        for row in shown["rows"]
    }
    assert notes == {"range": [], "old": [], "sort": ["ran after range, old (before); after range (after)"]}


def test_runs_of_other_challenges_are_compared_when_that_is_forced(home: Path):
    stored(home / "runs", "r1")
    plan = make_plan(schedules=(Challenge("d", (Task("range", iterations=3),)),), heap_mb=1024)
    stored(home / "runs", "r2", make_record("r2", plan=plan, status="complete"))
    assert call("compare", "r1:es", "r2:es").exit_code != 0
    forced = call("compare", "r1:es", "r2:es", "--force", "--format", "json")
    assert forced.exit_code == 0, forced.output
    found = json.loads(forced.stdout)
    assert [section["challenge"] for section in found["sections"]] == ["c", "d"]


def test_jmhs_own_table_of_an_imported_run_outlives_its_file(home: Path):
    entry = {
        "benchmark": "a.B.sum",
        "mode": "avgt",
        "threads": 1,
        "primaryMetric": {"scoreUnit": "ns/op", "rawData": [[1.0, 2.0], [3.0, 4.0]]},
    }
    path = write(home / "jmh.json", [entry])
    assert call("runs", "import", path, "--variant", "v").exit_code == 0
    path.unlink()
    (row,) = json.loads(call("micro", "table", "latest", "--format", "json").stdout)
    assert (row["variant"], row["benchmark"], row["score"]) == ("v", "sum", 2.5)
    write(home / "other.json", [{**entry, "primaryMetric": {"scoreUnit": "ns/op", "rawData": [[9.0]]}}])
    call("runs", "import", home / "other.json", "--variant", "w")
    compared = call("compare", "v", "w", "--format", "json")
    assert compared.exit_code == 0, compared.output
    texts = [one["text"] for one in json.loads(compared.stdout)["caveats"]]
    assert not any("race" in text or "throughput" in text for text in texts)


def test_runs_are_compared_and_their_pages_grouped_by_the_values_of_a_key(home: Path):
    for number, tags in enumerate(("env:old,disk:ssd", "env:new", "env:old"), 1):
        path = write(home / f"{number}.json", race(number, task_of("range", 10 * number)))
        assert call("runs", "import", path, "--variant", "es", "--tag", tags).exit_code == 0
    found = json.loads(call("compare", "--by", "env", "--format", "json").stdout)
    assert found["variants"] == ["env:old:es", "env:new:es"]
    assert [side["value"] for side in found["rows"][0]["figures"]] == pytest.approx([33.67, 50.5], rel=1e-3)
    assert json.loads(call("compare", "es", "--by", "env", "--format", "json").stdout) == found
    for arguments, said in (
        (("compare", "es", "os", "--by", "env"), "--by cannot be used"),
        (("compare", "--by", "disk"), "all runs that have it have disk:ssd"),
        (("compare", "--by", "cpu"), "no run has a tag of that key"),
    ):
        refused = call(*arguments)
        assert isinstance(refused.exception, UsageError)
        assert said in str(refused.exception)
    compared = call("compare", "--by", "env", "--html", home / "comparison")
    assert compared.exit_code == 0, compared.output
    twice = call("runs", "import", home / "1.json", "--variant", "es", "--tag", "env:a", "--tag", "env:b")
    assert twice.exit_code == ExitCode.USAGE
    assert "duplicate key 'env'" in twice.output


def test_races_of_two_tools_need_force(home: Path):
    call("runs", "import", *races_of_es(home), "--variant", "es")
    write(home / "os.json", run_of_osb(1, task_of("range", 12)))
    call("runs", "import", home / "os.json", "--variant", "os")
    refused = call("compare", "es", "os")
    assert "measured by different tools (Rally 2.9.1, OpenSearch Benchmark 2.0.0)" in str(refused.exception)
    forced = call("compare", "es", "os", "--force", "-v")
    assert forced.exit_code == 0, forced.output
    assert "1 run of os (es 3, os 1): host, day" in " ".join(forced.stdout.split())
    gated = call("compare", "es", "os", "--force", "--gate")  # on one screen, too
    assert gated.exception is not None
    assert str(gated.exception) == "gate: inconclusive, of incomparable results (--force)"
    assert "Gate: inconclusive, of incomparable results (--force)\n" in gated.stdout
    assert "Incomparable results (--force): os: measured by different tools" in " ".join(gated.stdout.split())


def test_a_throttled_race_gets_a_verdict_on_latency_only(home: Path):
    for name, ms in (("es", 14), ("new", 28)):
        latency = times(p50=ms, p90=ms * 1.2, p99=ms * 1.5, top=ms * 2)
        files = [
            write(home / f"{name}{n}.json", race(n, task_of("range", 10 + n / 10, latency=latency)))
            for n in range(1, 4)
        ]
        call("runs", "import", *files, "--variant", f"{name}=es" if name != "es" else name)
    done = json.loads(call("compare", "es", "new", "--format", "json").stdout)
    verdicts = {row["metric"]: row["comparisons"][0]["verdict"] for row in done["rows"]}
    assert set(verdicts) == {"throughput", "service_time_p90", "latency_p90"}
    assert verdicts["throughput"] == "n/a"
    assert [one["imported"]["tool"] for one in done["sources"]] == ["rally", "rally"]


def test_files_that_contradict_the_variant_are_refused(home: Path):
    refused = call("runs", "import", *races_of_es(home, 1), "--variant", "es@8.12.0")
    assert isinstance(refused.exception, UsageError)
    assert "measured version 8.11.0, not 8.12.0" in refused.exception.message
    assert readable(home) == []


def test_a_version_of_the_other_engine_is_refused(home: Path):
    write(home / "os.json", run_of_osb(1, cluster={"distribution-version": "2.11.0"}))
    refused = call("runs", "import", home / "os.json", "--variant", "es")
    assert isinstance(refused.exception, UsageError)
    assert "measured version 2.11.0, which is OpenSearch's" in refused.exception.message
    assert readable(home) == []


def test_what_was_measured_must_be_said_and_a_hint_says_how(home: Path):
    refused = call("runs", "import", *races_of_es(home, 1))
    assert isinstance(refused.exception, UsageError)
    assert "--variant es" in refused.exception.hint


def test_a_version_may_be_told_where_no_file_does(home: Path):
    silent = write(home / "a.json", race(1, cluster={}))
    call("runs", "import", silent, "--variant", "es@8.1.0")
    call("runs", "import", silent, "--variant", "es")
    versions = [record.plan.variants[0].version for _, record in readable(home)]
    assert sorted(versions) == ["8.1.0", "unknown"]


def test_sql_sees_all_runs_or_those_named(home: Path):
    for name in ("r1", "r2"):
        stored(home / "runs", name)
    query = "select run, count(*) as n from samples group by all order by all"
    assert call("sql", query, "--format", "csv").stdout == f"run,n\nr1,{4 * ROWS}\nr2,{4 * ROWS}\n"
    assert call("sql", query, "--run", "r2", "--format", "csv").stdout == f"run,n\nr2,{4 * ROWS}\n"
    assert call("sql", query).stdout.splitlines() == ["run   n", "───────", "r1   16", "r2   16"]


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("show", "r1"), "range"),
        (("show", "r1", "--html", "{home}/out"), "Report: "),
        (("sql", "select count(*) from samples"), ""),
        (("runs", "export", "r1", "--parquet", "{home}/out"), ""),
    ],
)
@pytest.mark.parametrize("gone", [True, False])
def test_samples_that_are_gone_or_another_fork_s_are_named(
    home: Path, words: tuple[str, ...], printed: str, *, gone: bool
):
    forks = described(home / "runs", "r1").folder.path / "forks"
    if gone:
        (forks / "000-es.parquet").unlink()
    else:
        (forks / "000-es.parquet").write_bytes((forks / "001-os.parquet").read_bytes() + b" ")
    done = call(*(word.format(home=home) for word in words))
    assert isinstance(done.exception, BenchctlError)
    assert "runs/r1 are not as they were written: forks/000-es.parquet " in done.exception.message
    assert done.exception.exit_code == 1
    assert printed in done.stdout
    assert call("sql", "select count(*) from tasks").exit_code == 0


def test_samples_that_retention_removed_are_not_missed(home: Path):
    run = described(home / "runs", "r1")
    forks = tuple(msgspec.structs.replace(fork, samples=None, files={}) for fork in run.record.forks)
    run.folder.save(msgspec.structs.replace(run.record, forks=forks))
    shutil.rmtree(run.folder.path / "forks")
    for words in (("show", "r1"), ("show", "r1", "--html", home / "out"), ("sql", "select 1 from samples")):
        assert call(*words).exit_code == 0


def test_sql_describes_its_views():
    text = call("sql", "--views").stdout
    rows = list(csv.DictReader(io.StringIO(call("sql", "--views", "--format", "csv").stdout)))
    assert [(row["view"], row["column"]) for row in rows] == [
        *((view, column) for view in ONE_ROW for column, *_ in view_columns(view)),
        *(("nights", column) for column, *_ in view_columns(nights_view(list))),
    ]
    for row in rows:
        assert row["column"] in text
        assert row["meaning"] in text


def test_export_says_what_it_wrote(home: Path):
    stored(home / "runs", "r1")
    done = call("runs", "export", "r1", "--parquet", home / "out")
    assert done.exit_code == 0, done.output
    assert f"{home}/out/samples.parquet: {4 * ROWS} rows" in done.stdout


@pytest.mark.parametrize(
    "words", ["runs list", *(f"list {what}" for what in ("challenges", "tracks", "operations", "variants"))]
)
@pytest.mark.parametrize("output_format", ["text", "markdown", "csv", "json", "html"])
def test_lists_have_every_format(words: str, output_format: str):
    done = call(*words.split(), "--format", output_format)
    assert done.exit_code == 0, done.output
    if output_format == "json":
        assert isinstance(json.loads(done.stdout), list)
    if output_format == "csv":
        assert len({len(row) for row in csv.reader(io.StringIO(done.stdout))}) == 1
    if output_format == "html":
        page = outline(done.stdout)
        assert [address for address in page.addresses() if not address.startswith("#")] == ["data:,"]
        assert (len(page.all("table")), page.all("script")) == (1, [])


def test_an_answer_is_a_page_whatever_is_in_it(home: Path):
    stored(home / "runs", "r1")
    hostile = "</td><script>alert(1)</script><img src=x onerror=y>&amp;{{ 7 * 7 }}"
    query = f"""select null as "Notes", '{hostile}' as "Verdict<b>", 1 as "<script>", '12' as Notes"""
    page = outline(call("sql", query, "--format", "html").stdout)
    assert (page.all("script"), page.all("img"), page.all("b")) == ([], [], [])
    assert page.all("td")[0].text == hostile
    assert [cell.text for cell in page.all("thead")[0:1]] == ["NotesVerdict<b><script>Notes"]
    assert page.all("a") == []


def test_a_run_with_a_bad_date_hides_no_other(home: Path):
    bad = make_record("r1", plan=make_plan(), created="some day\x1b[2J")
    stored(home / "runs", "r1", bad)
    stored(home / "runs", "r2")
    done = call("sql", "select run, created is null as undated from runs", "--format", "csv")
    assert done.stdout == "run,undated\nr1,True\nr2,False\n"
    assert f"note: {home}/runs/r1/run.json: 'some day" in done.stderr
    assert "is not a time, and is left out" in done.stderr
    assert "\x1b" not in done.stderr


def kept(home: Path, record: RunRecord) -> str:
    folder = RunStore(home / "runs").create(record.id)
    folder.save(record)
    return record.id


def test_builds_are_shown_compared_and_asked_like_forks(home: Path):
    """`--metric build_rate` was refused, and of a metric that nothing has there was an empty verdict."""
    seconds = {"es": (10.0, 10.1, 9.9), "os": (20.0, 20.5, 19.6)}
    run = kept(home, built_record(**{name: builds(*own) for name, own in seconds.items()}))
    assert "index builds: os 2.11.0 vs es 8.11.0 (baseline), 3 index builds each" in call("show", run).stdout
    compared = call("compare", "es", "os", "--run", run, "--metric", "build_rate", "--format", "json")
    (row,) = json.loads(compared.stdout)["rows"]
    assert (row["level"], row["comparisons"][0]["units_baseline"]) == ("build", 3)
    gated = call("compare", "es", "os", "--run", run, "--metric", "build_rate", "--gate")
    assert isinstance(gated.exception, BenchctlError)
    assert gated.exception.exit_code == ExitCode.INCONCLUSIVE  # three builds are few
    assert "os in index build, docs/s: slower" in gated.stdout
    asked = "select variant, max(build_rate), any_value(version) from builds group by all order by all"
    assert [
        line.split(",")[1:] for line in call("sql", asked, "--format", "csv").stdout.splitlines()[1:]
    ] == [
        [str(1_000 / min(own)), version]
        for own, version in zip(seconds.values(), ("8.11.0", "2.11.0"), strict=True)
    ]
    none = call("show", run, "--metric", "latency")
    assert isinstance(none.exception, UsageError)
    assert "nothing to show: no task has a latency" in str(none.exception)
    some = call("show", run, "--metric", "latency,index_size", "--notes")
    assert "all: no task has a latency" in some.stdout


def test_what_to_run_next_keeps_to_the_folder_of_the_runs(home: Path):
    for runs, more in ((home / "my runs", ["--runs", str(home / "my runs")]), (home / "runs", [])):
        RunStore(runs).create("one").save(make_record("one"))
        shown = call("show", "one", "--runs", runs).stdout.replace("\\\n", "")
        proposal = shlex.split(shown[shown.index("  benchctl resume") : shown.index("Details:")])
        assert proposal == ["benchctl", "resume", "one", *more]
