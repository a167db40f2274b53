"""The host of a run: what it is, and how fast it was at the time."""

import hashlib
import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pycurl

import benchctl
from benchctl.results.model import Environment, HostProbe

_CPU_KERNEL_ROUNDS = 1_300_000
_MEMORY_KERNEL_BYTES = 64 * 1024 * 1024
_MEMORY_KERNEL_ROUNDS = 32


def describe_host() -> Environment:
    """Everything about the host that a reader of the results may want to know."""
    names = [line for line in (_read("/proc/cpuinfo") or "").splitlines() if line.startswith("model name")]
    cpu = names[0].partition(":")[2].strip() if names else platform.processor() or "unknown"
    try:
        distribution = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        distribution = "unknown"
    processes = psutil.process_iter(["pid", "name"])
    cpus = os.cpu_count() or 1
    memory = psutil.virtual_memory().total
    virtualization = _virtualization()
    # What comparable runs must share; memory in GiB, because kernels reserve varying amounts.
    same = (socket.gethostname(), cpu, cpus, round(memory / 2**30), platform.machine(), virtualization)
    return Environment(
        fingerprint=hashlib.sha256(repr(same).encode()).hexdigest()[:16],
        hostname=socket.gethostname(),
        kernel=f"{platform.release()} {platform.machine()}",
        distribution=distribution,
        cpu_model=cpu,
        cpus=cpus,
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_bytes=memory,
        virtualization=virtualization,
        python=platform.python_version(),
        benchctl=benchctl.__version__,
        benchctl_commit=_commit(),
        libcurl=f"libcurl/{pycurl.version_info()[1]}",
        load_before=os.getloadavg(),
        # Java processes share caches, memory and cores with the nodes.
        other_java=tuple(f"pid {one.info['pid']}" for one in processes if one.info["name"] == "java"),
    )


def probe_host() -> HostProbe:
    """Time a CPU-bound and a memory-bound kernel, about 100 ms each, and other activity."""
    buffer = np.ones(_MEMORY_KERNEL_BYTES, np.uint8)
    before = psutil.cpu_times()
    cpu_ns = _clocked(_cpu_kernel)
    memory_ns = _clocked(lambda: _memory_kernel(buffer))
    after = psutil.cpu_times()
    total = sum(after) - sum(before)
    stolen = getattr(after, "steal", None)
    frequency = psutil.cpu_freq()
    return HostProbe(
        cpu_ns=cpu_ns,
        memory_ns=memory_ns,
        steal_percent=None if stolen is None or total <= 0 else 100.0 * (stolen - before.steal) / total,
        load1=os.getloadavg()[0],
        frequency_mhz=frequency.current if frequency else None,
    )


def _clocked(kernel: Callable[[], object]) -> int:
    start = time.monotonic_ns()
    kernel()
    return time.monotonic_ns() - start


def _cpu_kernel() -> int:
    """A dependent chain of integer operations in the interpreter: no memory, no vector units."""
    value = 1
    for _ in range(_CPU_KERNEL_ROUNDS):
        value = (value * 5 + 1) & 0xFFFF_FFFF
    return value


def _memory_kernel(buffer: npt.NDArray[np.uint8]) -> None:
    """Stream through a buffer that is larger than the caches; its pages were touched before."""
    for _ in range(_MEMORY_KERNEL_ROUNDS):
        buffer += 1


def _virtualization() -> str | None:
    product = _read("/sys/class/dmi/id/product_name")
    flags = next(
        (line for line in (_read("/proc/cpuinfo") or "").splitlines() if line.startswith("flags")), ""
    )
    if "hypervisor" in flags.split():
        return product or "hypervisor"
    return None


def _commit() -> str | None:
    """The checkout that benchctl runs from; None when it is installed from a wheel."""
    here = Path(benchctl.__file__).resolve().parent
    if not (here.parents[1] / ".git").exists():
        return None
    git = shutil.which("git")
    if git is None:
        return None
    try:
        describe = subprocess.run(
            [git, "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return describe.stdout.strip() or None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
