"""`benchctl list` with tracks of one's own: of several indices, of data streams, of neither."""

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchctl.cli.listing import list_group
from benchctl.cli.listing import places as places_of
from benchctl.errors import UsageError
from benchctl.results.metrics import METRIC_KINDS
from benchctl.stats.metrics import kept_metric_of, metric_names
from benchctl.track.load import load_track
from foreign_tracks import BOOKS, write_files


def listed(*arguments: str) -> list[dict[str, str]]:
    done = CliRunner().invoke(list_group, [*arguments, "--format", "csv"], catch_exceptions=False)
    return list(csv.DictReader(io.StringIO(done.output)))


@pytest.fixture
def books(tmp_path: Path) -> str:
    return str(write_files(tmp_path / "books", BOOKS))


def test_every_metric_says_what_a_target_tells():
    rows = {row["metric"]: row for row in listed("metrics")}
    assert rows.keys() == {one.name for one in METRIC_KINDS}
    assert all(row["meaning"] and row["unit"] and row["level"] for row in rows.values())
    assert (rows["throughput"]["better"], float(rows["throughput"]["margin"])) == ("higher", 0.03)
    assert {rows[name]["target"] for name in ("cpu", "gc", "merge")} == {"no"}
    given = {name for name, row in rows.items() if row["target"] == "yes"}
    assert given >= {"throughput", "service_time", "latency", "took", "engine_time"}


def test_a_metric_is_taken_where_the_list_says_so():
    rows = {row["metric"]: row["used by"].split(";") for row in listed("metrics")}
    assert set(rows["service_time"]) == {"run", "compare", "experiment"}
    assert rows["redline"] == ["redline"]
    for name, places in rows.items():
        if "run" in places:
            assert metric_names(name) == (name,)
        else:
            with pytest.raises(UsageError):
                metric_names(name)
        if "experiment" in places:
            assert kept_metric_of(name)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('{"indices": [{"name": "a"}, {"name": "b"}]}', ["a", "b"]),
        ('{"data-streams": [{"name": "c"}]}', ["c"]),
        ("{}", []),
    ],
)
def test_documents_go_to_any_number_of_places(tmp_path: Path, text: str, places: list[str]):
    write_files(tmp_path, {"track.json": text})
    assert places_of(load_track(str(tmp_path), {})[0]) == places


@pytest.mark.parametrize("width", [100, 200])
def test_a_table_in_a_pipe_is_as_wide_as_columns_say(monkeypatch: pytest.MonkeyPatch, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    for what in ("challenges", "tracks", "operations", "variants"):
        text = CliRunner().invoke(list_group, [what], catch_exceptions=False).output
        assert max(map(len, text.splitlines())) <= width, what


def test_challenges_of_a_track_say_how_often_and_how_long(books: str):
    rows = {row["challenge"]: row["schedule"] for row in listed("challenges", "--track", books)}
    assert rows["lend-and-search"].split(";") == [
        "delete-index",
        "create-index",
        "index-append",
        "all x100",
        "old 60 s",
        "all-beside 60 s",
    ]
    assert "range-only" not in rows


def test_variants_of_a_file_are_listed_with_what_they_add(tmp_path: Path):
    file = tmp_path / "v.yml"
    file.write_text("noinline: {extends: os@2.19.0, jvm: [-XX:-Inline]}\n", encoding="utf-8")
    assert [row["variant"] for row in listed("variants")] == ["es", "os"]
    assert listed("variants", "--variants", str(file))[-1] == {
        "variant": "noinline",
        "engine": "opensearch",
        "version": "2.19.0",
        "with": "JVM flags -XX:-Inline",
    }
