"""What a person is told while a run goes on."""

import io

import msgspec
import pytest
from rich.console import Console

from benchctl.cli.watch import Watcher, fork_result, step_progress, watching
from benchctl.report.numbers import duration
from benchctl.results.figures import Quantiles, TaskSummary
from builders import make_fork

FORK = make_fork(
    "es",
    2,
    TaskSummary(0, 0, "range", "range", 10, service_time=Quantiles(1e6, 2.5e6, 3e6)),
    TaskSummary(0, 1, "terms", "terms", unsupported="no such thing"),
    TaskSummary(0, 2, "dead", "dead"),
    wall_s=8.04,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3599.6, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_are_for_people(seconds: float, text: str):
    assert duration(seconds) == text


def test_a_step_says_how_far_how_fast_and_how_long():
    assert step_progress("documents", 2000, 8000, 1000, 2.0) == "2,000 documents, 25%, 500/s, about 12 s left"
    assert step_progress("documents", 8000, 8000, 8000, 2.0) == "8,000 documents, 100%, 4,000/s"
    assert step_progress("requests", 5, 0, 0, 0.0) == "5 requests"
    size = step_progress("bytes of a.zip", 12_340_000, 40_000_000, 5_000_000, 2.0)
    assert size == "12.3 of 40.0 MB of a.zip, 31%, 2.5 MB/s, about 11 s left"
    assert step_progress("bytes of a.zip", 12_340_000, 0, 0, 0.0) == "12.3 MB of a.zip"
    assert step_progress("requests", 1, 10, 1, 0.0) == "1 request, 10%"


def test_a_fork_says_what_it_measured():
    assert fork_result(FORK) == (
        "p90 range 2.50 ms, terms unsupported, dead no response (8.0 s, including 0.0 s startup)"
    )
    failed = msgspec.structs.replace(FORK, status="failed", reason="the node died")
    assert fork_result(failed) == "FAILED: the node died"
    # Not more than fits a line or two.
    seven = [msgspec.structs.replace(FORK.summaries[0], label=f"t{number}") for number in range(7)]
    assert fork_result(msgspec.structs.replace(FORK, summaries=tuple(seven))).startswith(
        "p90 t0 2.50 ms, t1 2.50 ms, t2 2.50 ms, t3 2.50 ms, t4 2.50 ms, 2 more tasks ("
    )


def test_operations_of_a_node_have_percentiles_and_those_of_jmh_a_mean():
    made = TaskSummary(
        0, 0, "make", "make", 1, unit="ops", mean_ns=2e6, service_time=Quantiles(2e6, 2e6, 2e6)
    )
    node = make_fork("es", 0, made, wall_s=1.0)
    assert fork_result(msgspec.structs.replace(node, samples="forks/x.parquet")).startswith(
        "p90 make 2.00 ms"
    )
    assert fork_result(msgspec.structs.replace(node, samples=None)) == "make 2e+06 ns (1.0 s)"


def test_what_is_left_is_said_before_what_to_do_about_a_failure(capsys: pytest.CaptureFixture[str]):
    failed = msgspec.structs.replace(FORK, status="failed", reason="the node died\n  raise the heap")
    with watching(quiet=False) as observer:
        observer.fork_started("es", 1, 2, 60.0)
        observer.fork_done(failed, 60.0)
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert first.endswith("] fork 1/2, es: FAILED: the node died, about 1 min 00 s left")
    assert second == "  raise the heap"


def test_time_left_after_a_fork_is_not_that_of_before_it(capsys: pytest.CaptureFixture[str]):
    with watching(quiet=False) as observer:
        for number, left_s in ((1, 300.0), (2, None)):
            observer.fork_started("es", number, None, 0.0)
            observer.fork_done(FORK, left_s)
    said = [line.partition(" startup)")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["", ", about 5 min 00 s left", ""]


def test_plain_output_is_one_line_a_fork_on_standard_error(capsys: pytest.CaptureFixture[str]):
    with watching(quiet=False) as observer:
        observer.stage("preparing")
        for number, left_s in ((1, 7340.0), (2, 3650.0)):
            observer.fork_started("es", number, 2, left_s)
            observer.stage("range")
            observer.progress("requests", 0, 10)
            observer.fork_done(FORK, left_s)
    shown = capsys.readouterr()
    assert shown.out == ""
    said = [line.partition("] ")[2] for line in shown.err.splitlines()]
    assert said == [
        "preparing",
        "measuring 2 forks, about 2 h 02 min",
        f"fork 1/2, es: {fork_result(FORK)}, about 2 h 02 min left",
        f"fork 2/2, es: {fork_result(FORK)}",
    ]


def test_forks_at_the_same_time_have_a_line_each_and_the_last_says_what_is_left(
    capsys: pytest.CaptureFixture[str],
):
    with watching(quiet=False) as observer:
        for number, name in ((3, "os"), (4, "es")):
            observer.fork_started(name, number, 8, 90.0)
        observer.stage("range")
        for name in ("os", "es"):
            observer.fork_done(msgspec.structs.replace(FORK, variant=name), 80.0)
    said = [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "measuring 6 forks, about 1 min 30 s",
        f"fork 3/8, os: {fork_result(FORK)}",
        f"fork 4/8, es: {fork_result(FORK)}, about 1 min 20 s left",
    ]


def test_only_a_long_fork_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("benchctl.cli.watch.PLAIN_EVERY_S", -1.0)
    observer = Watcher()
    observer.fork_started("es", 1, 2, None)
    observer.stage("range-at-50")
    observer.progress("requests", 5, 10)
    assert "requests" not in capsys.readouterr().err
    monkeypatch.setattr("benchctl.cli.watch.PLAIN_FORK_EVERY_S", -1.0)
    observer.progress("requests", 0, 10)
    assert not capsys.readouterr().err
    observer.progress("requests", 5, 10)
    assert "fork 1/2, es, range-at-50: 5 requests, 50%" in capsys.readouterr().err


def test_the_live_line_is_what_goes_on_with_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchctl.cli.watch.LIVE_EVERY_S", -1.0)
    status = Console(file=io.StringIO()).status("")
    observer = Watcher(status)

    def text() -> str:
        return str(status.renderable.text)

    observer.stage("corpus")
    observer.progress("documents", 50, 100)
    assert text() == "corpus: 50 documents, 50%"
    observer.fork_started("os", 3, 10, 7340.0)
    observer.stage("range")
    observer.progress("requests", 30, 100)
    assert text() == "fork 3/10, os, range: 30 requests, 30%, about 2 h 02 min left"
    observer.fork_done(msgspec.structs.replace(FORK, variant="os"), None)
    # What takes longer than expected is not about to be over.
    for left_s in (None, -1.0):
        observer.fork_started("os", 4, 10, left_s)
        observer.stage("range")
        assert text() == "fork 4/10, os, range"


def test_names_and_reasons_cannot_command_a_terminal(capsys: pytest.CaptureFixture[str]):
    Watcher().note("range\x1b[2J is slow")
    live = Watcher(Console(stderr=True).status(""))
    live.note("terms\x1b[2J is slow")
    said = capsys.readouterr().err
    assert "range\N{REPLACEMENT CHARACTER}[2J is slow" in said
    assert "terms\N{REPLACEMENT CHARACTER}[2J is slow" in said
    assert "\x1b[2J" not in said
