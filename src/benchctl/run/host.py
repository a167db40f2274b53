"""The host of a run: what it is, how fast it was at the time, and which CPUs are whose."""

import hashlib
import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pycurl

import benchctl
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import Environment, HostProbe
from benchctl.results.plan import PinSpec, Plan, cpu_list, parse_cpus

_CPU_KERNEL_ROUNDS = 1_300_000
_MEMORY_KERNEL_BYTES = 64 * 1024 * 1024
_MEMORY_KERNEL_ROUNDS = 32


def describe_host() -> Environment:
    """Describe the host, as far as it matters to readers of the results."""
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
    """Time a CPU-bound and a memory-bound kernel, about 100 ms each."""
    buffer = np.ones(_MEMORY_KERNEL_BYTES, np.uint8)
    return HostProbe(_clocked(_cpu_kernel), _clocked(lambda: _memory_kernel(buffer)))


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


AUTO = "auto"
_TOPOLOGY = Path("/sys/devices/system/cpu")
_THREADS = Path("/proc/self/task")
_EXAMPLE = "for example --pin node=0-2,driver=3, or --pin alone, which chooses"
_BETWEEN_ROLES = re.compile(r",(?=[a-z]+=)")


def allowed_cpus() -> tuple[int, ...]:
    """The CPUs that this process may use, possibly not all of the host's."""
    return tuple(sorted(os.sched_getaffinity(0)))


def cores_of(cpus: Iterable[int], topology: Path = _TOPOLOGY) -> tuple[tuple[int, ...], ...]:
    """Group CPUs by core, in order; one each where the kernel does not report cores.

    `topology` is the kernel's folder of CPUs.
    """
    wanted = set(cpus)
    cores = {tuple(sorted(wanted & set(_siblings(cpu, topology)))) for cpu in wanted}
    return tuple(sorted(cores))


def _siblings(cpu: int, topology: Path) -> tuple[int, ...]:
    try:
        return (cpu, *parse_cpus((topology / f"cpu{cpu}/topology/thread_siblings_list").read_text()))
    except (OSError, ValueError):
        return (cpu,)


def pin_of(text: str, *, workers: int, allowed: Sequence[int], cores: Sequence[Sequence[int]]) -> PinSpec:
    """Resolve `--pin` on this host.

    Args:
        text: `auto`, or `node=CPUS,driver=CPUS`.
        workers: processes of the driver's clients.
        allowed: CPUs that benchctl may use.
        cores: the same, by core.

    Raises:
        UsageError: If the specification is invalid, or these CPUs are not available.
    """
    if len(allowed) < 2:  # noqa: PLR2004 - one each
        raise UsageError(
            f"--pin needs at least 2 CPUs: this process may use only CPU {cpu_list(allowed)}",
            hint="leave --pin out, or let benchctl have more CPUs (taskset, cpuset)",
        )
    pin = _choose(workers, allowed, cores) if text == AUTO else _parse(text)
    check_available(pin, allowed)
    return pin


def _choose(workers: int, allowed: Sequence[int], cores: Sequence[Sequence[int]]) -> PinSpec:
    """Choose the last cores for the driver, one per process, but at most half; a single core is split."""
    units = cores if len(cores) > 1 else [(cpu,) for cpu in allowed]
    wanted = min(workers, len(allowed) // 2)
    driver: set[int] = set()
    for unit in reversed(units[1:]):
        if len(driver) >= wanted:
            break
        driver.update(unit)
    return PinSpec(node=tuple(cpu for cpu in allowed if cpu not in driver), driver=tuple(sorted(driver)))


def _parse(text: str) -> PinSpec:
    found: dict[str, tuple[int, ...]] = {}
    for part in _BETWEEN_ROLES.split(text):
        role, equals, cpus = part.partition("=")
        if role not in {"node", "driver"} or not equals or role in found:
            raise UsageError(f"--pin {text}: expected node=CPUS,driver=CPUS", hint=_EXAMPLE)
        try:
            found[role] = parse_cpus(cpus)
        except ValueError as err:
            raise UsageError(f"--pin {text}: {err}", hint=_EXAMPLE) from err
    if len(found) < 2:  # noqa: PLR2004 - one each
        raise UsageError(f"--pin {text}: node and driver need CPUs, both of them", hint=_EXAMPLE)
    both = set(found["node"]) & set(found["driver"])
    if both:
        raise UsageError(
            f"--pin {text}: CPU {cpu_list(both)} is given to node and driver",
            hint="the two need separate CPUs",
        )
    return PinSpec(node=found["node"], driver=found["driver"])


def check_available(pin: PinSpec, allowed: Sequence[int]) -> None:
    """Check that these CPUs are available.

    Raises:
        UsageError: If some CPUs are not available.
    """
    missing = {*pin.node, *pin.driver} - set(allowed)
    if missing:
        raise UsageError(
            f"--pin: CPU {cpu_list(missing)} cannot be had: this process may use {cpu_list(allowed)}",
            hint="name others, or let benchctl have more CPUs (taskset, cpuset)",
        )


def pin_caveats(plan: Plan, cores: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Caveats of a pinned run on a host with these cores."""
    if plan.pin is None:
        return ()
    found = []
    if len(plan.pin.node) == 1:
        found.append(
            f"nodes were pinned to CPU {plan.pin.node[0]}: the JVM saw 1 CPU, GC and JIT threads share it "
            "with searches"
        )
    shared = [core for core in cores if set(core) & set(plan.pin.node) and set(core) & set(plan.pin.driver)]
    if shared:
        listed = " and ".join(cpu_list(core) for core in shared)
        found.append(
            f"nodes and driver share a core: CPUs {listed} are its hardware threads, and slow each other"
        )
    return tuple(found)


@contextmanager
def pinned(pin: PinSpec | None) -> Iterator[None]:
    """Restrict this process, all its threads and children to the driver's CPUs within the block.

    None changes nothing.

    Raises:
        BenchctlError: If the kernel refuses.
    """
    if pin is None:
        yield
        return
    usual = os.sched_getaffinity(0)
    before = {thread: os.sched_getaffinity(thread) for thread in _threads()}
    try:
        for thread in before:
            _move(thread, pin.driver)
        yield
    finally:
        # Threads created within the block inherited its CPUs, and may outlive it.
        for thread in _threads():
            _move(thread, before.get(thread, usual))


@contextmanager
def thread_on(cpus: Sequence[int] | None) -> Iterator[None]:
    """Restrict only the calling thread to these CPUs within the block; None for no change.

    Raises:
        BenchctlError: If the kernel refuses.
    """
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    _move(0, cpus)
    try:
        yield
    finally:
        _move(0, before)


def _threads() -> list[int]:
    return [int(path.name) for path in _THREADS.iterdir()]


def _move(thread: int, cpus: Iterable[int]) -> None:
    try:
        os.sched_setaffinity(thread, cpus)
    except ProcessLookupError:
        return  # threads come and go
    except OSError as err:
        raise BenchctlError(
            f"benchctl cannot run on CPU {cpu_list(cpus)}: {err.strerror}",
            hint="give other CPUs to --pin, or remove it",
        ) from err
