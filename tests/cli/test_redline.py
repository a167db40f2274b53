"""Options of a search."""

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from benchctl.cli import root
from benchctl.cli.options import PercentType
from benchctl.cli.redline import ObjectiveType
from benchctl.cli.watch import fork_result
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
    assert ObjectiveType().convert(text, None, None) == objective


@pytest.mark.parametrize(
    "text",
    [
        "", "p90", "90=50ms", "p90=50", "p90=ms", "p90=50 ms", "p90 =50ms", "P90=50ms", "p90=50MS", "p90=50m",
        "p80=50ms", "p99.90=50ms", "p90=-50ms", "p90=0ms", "p90=0.0000001us", "p90=1e3ms", "p90=\u06650ms",
        "p90=50ms ", "p90=.5ms", "p90=5.ms",
    ],
)  # fmt: skip
def test_other_objectives_are_refused(text: str):
    with pytest.raises(click.BadParameter, match=r"objective|takes no time"):
        ObjectiveType().convert(text, None, None)


@given(st.integers(1, 10**6), st.sampled_from(["us", "ms", "s"]))
def test_whole_times_are_exact(number: int, unit: str):
    limit_ns = number * {"us": 10**3, "ms": 10**6, "s": 10**9}[unit]
    assert ObjectiveType().convert(f"p90={number}{unit}", None, None) == (90.0, limit_ns)


def test_percentages_are_fractions_and_need_their_sign():
    assert PercentType().convert("3%", None, None) == 0.03
    assert PercentType().convert("2.5 %", None, None) == 0.025
    for text in ("3", "0.03", "-3%", "%", "three%", "3%%"):
        with pytest.raises(click.BadParameter, match="write 3%"):
            PercentType().convert(text, None, None)


def test_operation_and_objective_have_no_default():
    for arguments in (["--operation", "range"], ["--slo", "p90=50ms"]):
        done = CliRunner().invoke(root, ["redline", *arguments])
        assert done.exit_code == 2
        assert "Missing option" in done.output


def test_a_fork_says_what_it_found():
    assert fork_result(redline_fork("es", 0, 123.45)) == "red-line of range 123.5/s (1.0 s)"
    bound = redline_fork(
        "es", 1, 123.45, redline_end="driver-limited", redline_text="driver-limited at 127/s"
    )
    assert fork_result(bound) == ("red-line of range at least 123.5/s, driver-limited at 127/s (1.0 s)")
    missed = redline_fork("es", 2, None, redline_text="p90 is 61 ms even at 1.01/s")
    assert fork_result(missed) == "no red-line of range: p90 is 61 ms even at 1.01/s (1.0 s)"
