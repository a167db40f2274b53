"""What is said about a host, and what of it rules out going on with a run."""

import msgspec
import pytest

from benchctl.run.host import describe_host, probe_host
from benchctl.run.open_run import host_caveats
from benchctl.run.orchestrate import environment_changes


def test_a_host_is_described_alike_every_time():
    first, second = describe_host(), describe_host()
    assert first.fingerprint == second.fingerprint
    assert environment_changes(first, second) == []
    assert first.cpus > 0
    assert first.memory_bytes > 2**28
    assert first.libcurl.startswith("libcurl/")


def test_probes_take_time_and_say_what_else_went_on():
    probe = probe_host()
    assert probe.cpu_ns > 0
    assert probe.memory_ns > 0
    assert probe.load1 >= 0
    assert probe.steal_percent is None or 0 <= probe.steal_percent <= 100


@pytest.mark.parametrize(
    "name", ["hostname", "kernel", "cpu_model", "python", "benchctl", "libcurl", "governor"]
)
def test_what_a_run_may_not_cross_is_named(name: str):
    before = describe_host()
    now = msgspec.structs.replace(before, **{name: "other"})
    (change,) = environment_changes(before, now)
    assert name.replace("_", " ") in change
    assert "is other" in change


def test_load_and_other_java_are_no_reason_to_refuse_but_a_caveat():
    quiet = msgspec.structs.replace(
        describe_host(), load_before=(0.0, 0.0, 0.0), other_java=(), governor=None
    )
    busy = msgspec.structs.replace(
        quiet, load_before=(99.0, 0.0, 0.0), other_java=("pid 7",), governor="powersave"
    )
    assert environment_changes(quiet, msgspec.structs.replace(busy, governor=None)) == []
    assert host_caveats(quiet) == ()
    told = " ".join(host_caveats(busy))
    for part in ("pid 7", "powersave", "99.0"):
        assert part in told
