"""Options of a search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.cli.watch import fork_result
from benchctl.errors import ExitCode, UsageError
from benchctl.redline.commands import parse_objective
from redlines import redline_fork


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("p90=50ms", (90.0, 50_000_000)),
        ("p50=0.5ms", (50.0, 500_000)),
        ("p95=1s", (95.0, 1_000_000_000)),
        ("p99=750us", (99.0, 750_000)),
        ("p99.9=1.5s", (99.9, 1_500_000_000)),
    ],
)
def test_objectives_are_a_percentile_and_a_time(text: str, objective: tuple[float, int]):
    assert parse_objective(text) == objective


@pytest.mark.parametrize(
    "text",
    [
        "", "p90", "90=50ms", "p90=50", "p90=ms", "p90=50 ms", "p90 =50ms", "P90=50ms", "p90=50MS",
        "p80=50ms", "p99.90=50ms", "p90=-50ms", "p90=0ms", "p90=0.0000001us", "p90=1e3ms", "p90=\u06650ms",
        "p90=50ms ", "p90=.5ms", "p90=5.ms",
    ],
)  # fmt: skip
def test_other_objectives_are_refused(text: str):
    with pytest.raises(UsageError, match="is not an objective"):
        parse_objective(text)


@given(st.integers(1, 10**6), st.sampled_from(["us", "ms", "s"]))
def test_whole_times_are_exact(number: int, unit: str):
    limit_ns = number * {"us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    assert parse_objective(f"p90={number}{unit}") == (90.0, limit_ns)


def test_an_objective_is_required(capsys: pytest.CaptureFixture[str]):
    assert guarded(root, ["redline", "--operation", "range"]) == ExitCode.USAGE
    assert "--slo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("--sweep", "--variant a=es,heap:1g"),
        ("--challenge", "--operation"),
        ("--metric", "compared by the rates"),
        ("--budget", "--forks"),
        ("--warmup", "--warm-up"),
        ("--evidence", "benchctl run"),
        ("--max-rte", "did you mean '--max-rate'?"),
        ("--color", "see: benchctl redline --help"),
    ],
)
def test_options_of_a_run_that_a_search_has_not_are_told_what_to_do_instead(
    capsys: pytest.CaptureFixture[str], option: str, instead: str
):
    assert guarded(root, ["redline", "--operation", "range", option, "x"]) == ExitCode.USAGE
    assert instead in capsys.readouterr().err


def test_a_fork_says_what_it_found():
    assert fork_result(redline_fork("es", 0, 123.45)) == "red-line of range 123.5/s (1.0 s)"
    bound = redline_fork(
        "es", 1, 123.45, redline_end="driver-limited", redline_text="driver-limited at 127/s"
    )
    assert fork_result(bound) == ("red-line of range at least 123.5/s, driver-limited at 127/s (1.0 s)")
    missed = redline_fork("es", 2, None, redline_text="p90 is 61 ms even at 1.01/s")
    assert fork_result(missed) == "no red-line of range: p90 is 61 ms even at 1.01/s (1.0 s)"
