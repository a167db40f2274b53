"""A log of searches becomes a track: its log by shape and time, and challenges that send it."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.corpus.queries import query_log
from benchctl.corpus.shapes import Anonymizer
from benchctl.errors import UsageError
from benchctl.run import queries as queries_module
from benchctl.run.bench import Observer
from benchctl.run.capture import of_track, write_track
from benchctl.run.queries import OTHERS, QUERIES_FILE, WHOLE, Digest, of_log
from benchctl.track.library import find_track
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Track
from benchctl.track.operations.search import LoggedSearch

AT = 1_780_000_000_000


def line(at_ms: int, body: Any, took_ms: float | None = 1.0, index: str = "logs-1") -> dict[str, Any]:
    return {"timestamp": AT + at_ms, "index": index, "body": body} | ({"took_ms": took_ms} if took_ms else {})


def term(value: Any, field: str = "kind") -> dict[str, Any]:
    return {"query": {"term": {field: value}}}


def made(tmp_path: Path, lines: list[dict[str, Any]], **options: Any) -> tuple[Track, Digest, Path]:
    log, folder, digest = tmp_path / "log.json", tmp_path / "made", Digest()
    log.write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")
    big5 = of_track(load_track("big5", {})[0], find_track("big5").parent)
    write_track(folder, big5, of_log(log, digest, Observer(), **options))
    return load_track(str(folder), {})[0], digest, folder


def test_the_log_is_kept_in_order_of_time_by_shape(tmp_path: Path):
    lines = [line(900, term(3)), line(0, term("a")), line(500, {"query": {"match_all": {}}}, took_ms=9)]
    track, digest, folder = made(tmp_path, lines)
    assert [(one.name, one.count, one.took_ms) for one in digest.shapes] == [
        ("match_all", 1, 9.0),
        ("term:kind", 2, 2.0),
    ]
    log = query_log(folder / QUERIES_FILE)
    assert [log.sent(place, "big5").body for place in range(3)] == [
        json.dumps(body, separators=(",", ":")).encode()
        for body in (term("a"), {"query": {"match_all": {}}}, term(3))
    ]
    assert (log.since_ns(log.places("term:kind")) / 1e6).tolist() == [0, 900]
    assert (digest.searches, digest.seconds, digest.timed) == (3, 0.9, True)
    # The documents are those of the other track.
    source = load_track("big5", {})[0]
    assert track.indices == source.indices
    assert (track.corpora, track.generator) == (source.corpora, source.generator)


def test_its_challenges_send_the_log_as_asked(tmp_path: Path):
    lines = [line(1000 * number, term(number), took_ms=1) for number in range(8)]
    lines += [line(50, {"query": {"match_all": {}}}, took_ms=99)]
    track, digest, _ = made(tmp_path, lines)
    assert track.default_name == "replay"
    challenge, _ = load_challenge(
        "replay", load_track(str(tmp_path / "made"), {"speed": 2, "seconds": 3})[0], {}
    )
    assert [task.label for task in challenge.schedule] == [WHOLE, "match_all", "term:kind"]
    for task in challenge.schedule:
        assert (task.schedule, task.log_speed, task.throttled) == ("logged", 2.0, True)
        assert task.mixed == (task.label != WHOLE)
        assert task.clients == digest.clients == 8
        # A quarter of three seconds is not measured.
        assert (task.warmup_time_period, task.time_period) == (0.75, 2.25)
    # Without a length it is the whole log, at twice the speed in half the time.
    fast = load_track(str(tmp_path / "made"), {"speed": 2})[0].challenges["replay"].schedule[1]
    assert (fast.warmup_time_period, fast.time_period) == (0.875, 2.625)
    mix = track.challenges["mix"]
    assert [(task.warmup_iterations, task.iterations) for task in mix.schedule] == [
        (None, 1),
        (56, 222),
        (444, 1778),
    ]
    by_shape = track.challenges["by-shape"]
    # One shape alone takes more than nine tenths of the time.
    assert [task.label for task in by_shape.schedule] == ["match_all"]
    operation = track.operations["term:kind"]
    assert isinstance(operation, LoggedSearch)
    assert operation.meta["searches"] == 8
    assert operation.meta["example"] == term(0)


def test_without_times_shapes_are_by_their_number(tmp_path: Path):
    _, digest, _ = made(tmp_path, [line(n, term(n, f"f{n // 2}"), took_ms=None) for n in range(5)])
    assert [one.name for one in digest.shapes] == ["term:f0", "term:f1", "term:f2"]
    assert not digest.timed


def test_the_busiest_window_of_a_long_log_is_replayed(tmp_path: Path):
    quiet = [line(1000 * second, term(second)) for second in range(0, 1000, 10)]
    busy = [line(1000 * 600 + 10 * number, term(number)) for number in range(500)]
    _, digest, _ = made(tmp_path, quiet + busy)
    assert digest.window_s == 120
    assert digest.start_s <= 600
    assert digest.start_s + digest.window_s >= 605
    assert digest.seconds == 990


def test_shapes_of_least_time_are_one_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queries_module, "MOST_SHAPES", 2)
    lines = [line(n, term(n, f"f{n}"), took_ms=10 - n) for n in range(5)]
    track, digest, folder = made(tmp_path, lines)
    assert [(one.name, one.count) for one in digest.shapes] == [("term:f0", 1), ("term:f1", 1), (OTHERS, 3)]
    assert query_log(folder / QUERIES_FILE).places(OTHERS).tolist() == [2, 3, 4]
    assert OTHERS in track.operations


def test_like_names_are_told_apart(tmp_path: Path):
    bodies = [term(1), {"size": 5, **term(1)}]
    _, digest, _ = made(tmp_path, [line(place, body) for place, body in enumerate(bodies)])
    assert [one.name for one in digest.shapes] == ["term:kind", "term:kind 2"]


def test_what_looks_like_a_template_stays_what_it_is(tmp_path: Path):
    body = {"query": {"match": {"message": ["{{ a }} {% b ${c}", "\ue0001 + 1\ue000"]}}}
    track, _, folder = made(tmp_path, [line(0, body)])
    assert track.operations["match:message"].meta["example"] == body
    assert json.loads(query_log(folder / QUERIES_FILE).sent(0, "x").body) == body


def test_an_anonymized_track_has_none_of_the_words(tmp_path: Path):
    lines = [line(0, term("secretword")), line(5000, term("secretword"))]
    lines[0] |= {"params": "routing=secretword&request_cache=false"}
    _, digest, folder = made(tmp_path, lines, anonymizer=Anonymizer())
    texts = [path.read_text(encoding="utf-8") for path in folder.iterdir()]
    assert not any("secretword" in text or str(AT)[:6] in text for text in texts)
    assert digest.dropped_params == {"routing"}
    log = query_log(folder / QUERIES_FILE)
    assert log.sent(0, "x").body == log.sent(1, "x").body
    assert log.sent(0, "x").path.endswith("?request_cache=false")
    assert digest.seconds == 5


def test_searches_of_indices_that_a_track_of_several_lacks_are_left_out(tmp_path: Path):
    source = tmp_path / "source"
    source.mkdir()
    track = {"indices": [{"name": "logs-1"}, {"name": "logs-2"}], "operations": [], "challenges": []}
    (source / "track.json").write_text(json.dumps(track), encoding="utf-8")
    log, digest = tmp_path / "log.json", Digest()
    logged = [line(0, term(1)), line(1, term(1), index="logs-*"), line(2, term(1), index="other")]
    log.write_text("".join(f"{json.dumps(one)}\n" for one in logged), encoding="utf-8")
    part = of_log(log, digest, Observer())
    write_track(tmp_path / "made", of_track(load_track(str(source), {})[0], source), part)
    found = query_log(tmp_path / "made" / QUERIES_FILE)
    assert [found.sent(place, "x").path for place in range(2)] == [
        "/logs-1/_search",
        "/logs-1,logs-2/_search",
    ]
    assert sum(digest.left_out.values()) == 1
    log.write_text(f"{json.dumps(logged[2])}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no search is of an index of the track"):
        write_track(tmp_path / "none", of_track(load_track(str(source), {})[0], source), part)
    assert not (tmp_path / "none").exists()
