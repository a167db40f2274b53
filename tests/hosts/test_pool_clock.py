"""Clocks of hosts: how wrong they may be over a step, and which of them stepped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError

pytest.importorskip("distributed")

from benchctl.hosts.pool import checked_clock
from benchctl.load.executor import HostClock

SECOND_NS = 1_000_000_000


@given(
    start_ns=st.integers(-(10**15), 10**15),
    drift=st.floats(-400e-6, 400e-6),
    elapsed_s=st.integers(1, 3600),
    errors_ns=st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)),
    wrong=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_a_clock_that_drifts_is_never_further_off_than_said(
    start_ns: int, drift: float, elapsed_s: int, errors_ns: tuple[int, int], wrong: tuple[float, float]
):
    truth_ns = start_ns, start_ns + round(drift * elapsed_s * SECOND_NS)
    found = [
        HostClock("one", at_ns + int(share * error_ns), error_ns)
        for at_ns, share, error_ns in zip(truth_ns, wrong, errors_ns, strict=True)
    ]
    kept = checked_clock(found[0], found[1], elapsed_s * SECOND_NS)
    assert kept.offset_ns == found[0].offset_ns
    assert all(abs(kept.offset_ns - at_ns) <= kept.error_ns for at_ns in truth_ns)


def test_a_clock_that_steps_is_named():
    before, after = HostClock("one", 0, 200_000), HostClock("one", 50_000_000, 300_000)
    with pytest.raises(BenchctlError, match=r"the clock of host one moved by 50\.000 ms .* within 2\.0 s"):
        checked_clock(before, after, 2 * SECOND_NS)
    # In a minute and a half it may have drifted by 45 ms, in two by as much as that.
    with pytest.raises(BenchctlError):
        checked_clock(before, after, 90 * SECOND_NS)
    assert checked_clock(before, after, 120 * SECOND_NS).error_ns == 50_300_000
