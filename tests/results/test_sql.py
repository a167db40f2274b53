from pathlib import Path

import duckdb
import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.nightly.folder import SuiteFolder, nights_view
from benchctl.results.sql import VIEWS, StoredRun, answered, export_parquet, view_columns
from stored import ROWS, stored
from three_years import make_store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """Nothing that these tests ask changes it."""
    return stored(tmp_path_factory.mktemp("runs"), "r1")


def answer(query: str, *runs: StoredRun) -> list[tuple[object, ...]]:
    with answered(query, runs) as found:
        return list(found.rows)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM samples", [(4 * ROWS,)]),
        ("from Samples select count(*) where not warmup", [(4 * (ROWS - 1),)]),
        ("WITH t AS (SELECT * FROM tasks) SELECT max(samples) FROM t", [(ROWS - 1,)]),
        (
            "SELECT t.label FROM tasks t JOIN forks f USING (run, variant, block) WHERE f.block = 1",
            [("range",)] * 2,
        ),
    ],
)
def test_queries_are_answered(run: StoredRun, query: str, expected: list[tuple[object, ...]]):
    assert answer(query, run) == expected


def test_what_each_of_several_nodes_cost_is_a_map_of_maps(run: StoredRun):
    forks = list(run.record.forks)
    meters = {"node-1": {"cpu": 1.5, "gc": 0.25}, "node-2": {"cpu": 2.5}}
    (summary,) = forks[-1].summaries
    # Of a node that was not there all the time, nothing is known.
    summary = msgspec.structs.replace(summary, node_meters={**meters, "node-3": {}})
    forks[-1] = msgspec.structs.replace(forks[-1], summaries=(summary,))
    several = StoredRun(run.folder, msgspec.structs.replace(run.record, forks=tuple(forks)))
    query = "SELECT node_meters['node-2']['cpu'], node_meters FROM tasks"
    assert answer(query, several) == [(None, None)] * 3 + [(2.5, meters)]
    assert answer("SELECT DISTINCT node_meters FROM tasks", run) == [(None,)]


@pytest.mark.parametrize(
    "query",
    [
        "COPY samples TO '{here}/out.csv'",
        "COPY (SELECT 1) TO '{samples}'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{samples}' (USE_TMP_FILE false)",
        "ATTACH '{here}/x.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW samples",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
    ],
)
def test_only_one_query_is_taken(run: StoredRun, tmp_path: Path, query: str):
    before = sorted(tmp_path.rglob("*"))
    file = run.folder.path / "forks" / "000-es.parquet"
    content = file.read_bytes()
    with pytest.raises(UsageError, match="one query is wanted"):
        answer(query.format(here=tmp_path, samples=file), run)
    assert sorted(tmp_path.rglob("*")) == before
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('{other}')",
        "SELECT * FROM '{other}'",
        "SELECT * FROM read_parquet('{here}/*/forks/*.parquet')",
        "SELECT * FROM glob('{here}/*')",
        "SELECT count(*) FROM samples, read_csv('{other}')",
    ],
)
def test_no_other_file_can_be_read(run: StoredRun, tmp_path: Path, query: str):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"^DuckDB: Permission Error: ") as caught:
        answer(query.format(other=other, here=tmp_path), run)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM nix", "DuckDB: Catalog Error: Table with name nix does not exist"),
        ("SELECT nix FROM tasks", "DuckDB: Binder Error"),
        ("SELEC", "DuckDB: Parser Error"),
        ("SELECT error('late') FROM samples", "late"),
    ],
)
def test_errors_are_one_line_with_a_way_out(run: StoredRun, query: str, message: str):
    with pytest.raises(UsageError, match=message) as caught:
        answer(query, run)
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2
    assert "benchctl sql --views" in caught.value.hint


def test_samples_are_opened_for_those_only_who_ask_for_them(tmp_path: Path):
    run = stored(tmp_path, "r1")
    (run.folder.path / "forks" / "000-es.parquet").write_bytes(b"no parquet")
    assert answer("SELECT count(*) FROM tasks", run) == [(4,)]
    with pytest.raises(BenchctlError, match=r"000-es\.parquet is damaged: .*too small to be a Parquet file"):
        answer("SELECT count(*) FROM samples", run)


def test_times_with_a_zone_are_text_and_need_no_further_package(run: StoredRun):
    query = """SELECT TIMESTAMPTZ '2026-01-02 03:04:05+00' AS "a ""b", 7 AS n, [now()] AS n -- and that is all
        ;"""
    with answered(query, [run]) as found:
        assert found.columns[:2] == ('a "b', "n")
        assert found.numeric == frozenset({1})
        ((when, number, several),) = found.rows
    assert isinstance(when, str)
    assert when.startswith("2026-01-0")
    assert number == 7
    assert isinstance(several, str)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> SuiteFolder:
    return make_store(tmp_path_factory.mktemp("nightly") / "it's", nights=3, tasks=2, variants=2, forks=2)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM nights", [(3 * 2 * 2 * 2 * 2,)]),
        (
            "from NIGHTS select suite, night, count(*) where metric = 'throughput' group by all order by all",
            [("it's", number, 8) for number in (1, 2, 3)],
        ),
        ("SELECT count(*) FROM nights n JOIN runs r USING (run)", [(0,)]),
    ],
)
def test_the_nights_of_suites_can_be_asked(
    run: StoredRun, suite: SuiteFolder, query: str, expected: list[tuple[object, ...]]
):
    with answered(query, [run], [nights_view(lambda: [suite])]) as found:
        assert list(found.rows) == expected


def test_figures_are_opened_for_those_only_who_ask_for_nights(tmp_path: Path):
    suite = make_store(tmp_path / "big5", nights=1, tasks=1, variants=1, forks=1)
    suite.figure_files()[0].write_bytes(b"rubbish")
    with answered("SELECT count(*) FROM runs", [], [nights_view(lambda: [suite])]) as found:
        assert list(found.rows) == [(0,)]
    damaged = pytest.raises(BenchctlError, match=r"figures\.parquet is damaged: ")
    with damaged, answered("SELECT * FROM nights", [], [nights_view(lambda: [suite])]):
        pass


def test_every_view_becomes_a_file_with_its_columns(tmp_path: Path):
    runs = [stored(tmp_path / "runs", name) for name in ("r1", "r2")]
    found = export_parquet(runs, tmp_path / "out")
    assert found == {
        tmp_path / "out" / "runs.parquet": 2,
        tmp_path / "out" / "builds.parquet": 0,
        tmp_path / "out" / "forks.parquet": 8,
        tmp_path / "out" / "tasks.parquet": 8,
        tmp_path / "out" / "samples.parquet": 8 * ROWS,
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in found)
    for view in VIEWS:
        described = duckdb.execute(f"DESCRIBE FROM '{tmp_path}/out/{view}.parquet'").fetchall()
        assert [(name, kind) for name, kind, *_ in described] == [one[:2] for one in view_columns(view)]


def test_nothing_is_replaced_before_all_is_there(tmp_path: Path):
    run = stored(tmp_path / "runs", "r1")
    export_parquet([run], tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    (run.folder.path / "forks" / "000-es.parquet").write_bytes(b"no parquet")
    with pytest.raises(BenchctlError, match=r"000-es\.parquet is damaged: "):
        export_parquet([run], tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("content", [b"mine", b"", b"PAR1", b"\xff\xff\xff\x7fPAR1"])
def test_files_of_others_are_not_overwritten(tmp_path: Path, content: bytes):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tasks.parquet").write_bytes(content)
    with pytest.raises(UsageError, match=r"tasks\.parquet"):
        export_parquet([stored(tmp_path / "runs", "r1")], tmp_path / "out")
    assert [path.read_bytes() for path in (tmp_path / "out").iterdir()] == [content]


def test_parquet_of_others_and_samples_of_a_fork_are_not_overwritten(tmp_path: Path):
    run = stored(tmp_path / "runs", "r1")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "samples.parquet"
    for make in (
        lambda: duckdb.execute(f"COPY (SELECT 1 AS one) TO '{target}' (FORMAT parquet)"),
        lambda: target.write_bytes((run.folder.path / "forks" / "000-es.parquet").read_bytes()),
    ):
        make()
        before = target.read_bytes()
        with pytest.raises(UsageError, match="was not written by benchctl"):
            export_parquet([run], tmp_path / "out")
        assert target.read_bytes() == before


def test_an_earlier_export_is_replaced(tmp_path: Path):
    export_parquet([stored(tmp_path / "runs", "r1")], tmp_path / "out")
    found = export_parquet([stored(tmp_path / "runs", name) for name in ("r2", "r3")], tmp_path / "out")
    assert found[tmp_path / "out" / "runs.parquet"] == 2
    assert duckdb.execute(f"FROM '{tmp_path}/out/runs.parquet' SELECT run").fetchall() == [("r2",), ("r3",)]
