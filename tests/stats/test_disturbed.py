from collections.abc import Callable

from benchctl.results.model import ForkRecord, HostProbe
from benchctl.stats.disturbed import disturbances


def probe(cpu_ns: int = 100, memory_ns: int = 100):
    return HostProbe(cpu_ns, memory_ns, None, 0.0, None)


def test_a_slow_host_during_one_fork(fork: Callable[..., ForkRecord]):
    quiet = [fork("es", block, probes=(probe(), probe(cpu_ns=104))) for block in range(4)]
    loud = fork("os", 2, probes=(probe(), probe(memory_ns=130)))
    found = disturbances({"es": quiet, "os": [loud]})
    assert [(one.variant, one.block, one.kernel) for one in found] == [("os", 2, "memory")]
    assert found[0].text == "the host's memory probe ran 30 % slower than usual"


def test_without_probes_nothing_is_known(fork: Callable[..., ForkRecord]):
    assert disturbances({"es": [fork("es", 0)]}) == []
