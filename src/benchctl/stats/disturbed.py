"""Forks during which the host was another one than usual, by the probes around them."""

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from benchctl.results.model import ForkRecord, HostProbe

TOLERANCE_PERCENT = 5.0


class Disturbance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fork whose host probe is off.

    Attributes:
        variant: whose fork.
        block: which of its forks.
        kernel: `cpu` or `memory`, whichever is further off.
        off_percent: how much slower (positive) or faster it ran than the median of all probes.
    """

    variant: str
    block: int
    kernel: str
    off_percent: float

    @property
    def text(self) -> str:
        """In words."""
        way = "slower" if self.off_percent > 0 else "faster"
        return f"the host's {self.kernel} probe ran {abs(self.off_percent):.0f} % {way} than usual"


def disturbances(forks: Mapping[str, Sequence[ForkRecord]]) -> list[Disturbance]:
    """Find forks with a probe, before or after, more than 5 % off the median of all probes.

    Args:
        forks: variant -> its forks.
    """
    probes = [probe for group in forks.values() for fork in group for probe in fork.probes]
    if not probes:
        return []
    cpu = median(probe.cpu_ns for probe in probes)
    memory = median(probe.memory_ns for probe in probes)
    found = []
    for variant, group in forks.items():
        for fork in group:
            worst = _worst(fork.probes, cpu, memory)
            if worst is not None and abs(worst[1]) > TOLERANCE_PERCENT:
                found.append(Disturbance(variant, fork.block, *worst))
    return found


def _worst(probes: Sequence[HostProbe], cpu_ns: float, memory_ns: float) -> tuple[str, float] | None:
    """(kernel, percent off) of the most deviating probe of a fork."""
    off = [("cpu", 100 * (probe.cpu_ns / cpu_ns - 1)) for probe in probes if cpu_ns > 0]
    off += [("memory", 100 * (probe.memory_ns / memory_ns - 1)) for probe in probes if memory_ns > 0]
    return max(off, key=lambda pair: abs(pair[1]), default=None)
