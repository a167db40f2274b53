"""Options of a search."""

import json

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.cli.watch import fork_result
from benchctl.errors import ExitCode
from benchctl.redline.commands import ReadType
from benchctl.redline.conduct import parse_clients, parse_objective
from golden import Cases
from redlines import redline_fork

OBJECTIVE = ReadType("objective", parse_objective)
CLIENTS = ReadType("clients", parse_clients)


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
    assert OBJECTIVE.convert(text, None, None) == objective


@pytest.mark.parametrize(
    "text",
    [
        "", "p90", "90=50ms", "p90=50", "p90=ms", "p90=50 ms", "p90 =50ms", "P90=50ms", "p90=50MS",
        "p80=50ms", "p99.90=50ms", "p90=-50ms", "p90=0ms", "p90=0.0000001us", "p90=1e3ms", "p90=\u06650ms",
        "p90=50ms ", "p90=.5ms", "p90=5.ms",
    ],
)  # fmt: skip
def test_other_objectives_are_refused(text: str):
    with pytest.raises(click.BadParameter, match=r"objective|takes no time"):
        OBJECTIVE.convert(text, None, None)


@given(st.integers(1, 10**6), st.sampled_from(["us", "ms", "s"]))
def test_whole_times_are_exact(number: int, unit: str):
    limit_ns = number * {"us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    assert OBJECTIVE.convert(f"p90={number}{unit}", None, None) == (90.0, limit_ns)


def test_options_that_mean_nothing_or_are_missing_are_refused(cases: Cases):
    cases(
        "options",
        lambda words: root.main(["redline", "--slo", "p90=50ms", *json.loads(words)], standalone_mode=False),
    )


def test_an_objective_is_required(capsys: pytest.CaptureFixture[str]):
    assert guarded(root, ["redline", "--operation", "range"]) == ExitCode.USAGE
    assert "--slo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("--sweep", "--variant a=es,heap:1g"),
        ("--metric", "compared by the loads"),
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


@pytest.mark.parametrize(
    ("text", "clients"), [("16", (None, 16)), ("1..64", (1, 64)), ("8..8", (8, 8)), ("0", (None, 0))]
)
def test_clients_are_a_number_or_a_range(text: str, clients: tuple[int | None, int]):
    assert CLIENTS.convert(text, None, None) == clients


@given(st.text(alphabet="0123456789.- x\u0661", max_size=8))
def test_whatever_is_written_for_clients_is_read_exactly_or_refused(text: str):
    try:
        least, most = CLIENTS.convert(text, None, None)
    except click.BadParameter:
        assert not text.isascii() or not text.isdecimal() or len(text) > 6
        return
    assert "..".join(one.lstrip("0") or "0" for one in text.split("..")) == (
        f"{most}" if least is None else f"{least}..{most}"
    )


def test_a_fork_says_what_it_found():
    assert fork_result(redline_fork("es", 0, 123.45)) == "red-line of range 123.5/s (1.0 s)"
    bound = redline_fork(
        "es", 1, 123.45, redline_end="driver-limited", redline_text="driver-limited at 127/s"
    )
    assert fork_result(bound) == ("red-line of range at least 123.5/s, driver-limited at 127/s (1.0 s)")
    factor = redline_fork("es", 0, 1.2345, redline_unit="x")
    assert fork_result(factor) == "red-line of all rates 1.234x (1.0 s)"
    clients = redline_fork("es", 0, 12.0, redline_unit="clients")
    assert fork_result(clients) == "red-line of range 12 clients (1.0 s)"
    missed = redline_fork("es", 2, None, redline_text="p90 is 61 ms even at 1.01/s")
    assert fork_result(missed) == "no red-line of range: p90 is 61 ms even at 1.01/s (1.0 s)"
