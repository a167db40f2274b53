"""The host of a run: what it is, which CPUs are whose, and what others used of them."""

import hashlib
import os
import platform
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
import pycurl

import benchctl
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import Environment, OtherLoad
from benchctl.results.plan import PinSpec, Plan, cpu_list, parse_cpus


def describe_host() -> Environment:
    """Describe the host, as far as it matters to readers of the results."""
    lines = [line.partition(":")[::2] for line in (_read("/proc/cpuinfo") or "").splitlines()]
    told = {name.strip(): value.strip() for name, value in lines}
    cpu = told.get("model name") or platform.processor() or "unknown"
    virtual = "hypervisor" in told.get("flags", "").split()
    virtualization = (_read("/sys/class/dmi/id/product_name") or "hypervisor") if virtual else None
    try:
        distribution = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        distribution = "unknown"
    processes = psutil.process_iter(["pid", "name"])
    cpus = os.cpu_count() or 1
    memory = psutil.virtual_memory().total
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
        other_java=tuple(
            f"pid {process.info['pid']}" for process in processes if process.info["name"] == "java"
        ),
    )


def _commit() -> str | None:
    """The checkout that benchctl runs from; None when it is installed from a wheel."""
    here = Path(benchctl.__file__).resolve().parent
    if not (here.parents[1] / ".git").exists():
        return None
    command = [
        shutil.which("git") or "git",
        "-C",
        str(here),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


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
    """Resolve `--pin`, `auto` or `node=CPUS,driver=CPUS`, where clients work in so many processes.

    `allowed` are the CPUs that benchctl may use, and `cores` the same by core.

    Raises:
        UsageError: If the specification is invalid, or these CPUs are not available.
    """
    if len(allowed) < 2:  # noqa: PLR2004 - one each
        raise UsageError(
            f"--pin needs at least 2 CPUs: this process may use only CPU {cpu_list(allowed)}",
            hint="remove --pin, or allow benchctl more CPUs (taskset, cpuset)",
        )
    return _choose(workers, allowed, cores) if text == AUTO else _parse(text, allowed)


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


def _parse(text: str, allowed: Sequence[int]) -> PinSpec:
    parts = _BETWEEN_ROLES.split(text)
    roles = dict(part.partition("=")[::2] for part in parts)
    if sorted(part.partition("=")[0] for part in parts) != ["driver", "node"]:
        raise UsageError(f"--pin {text}: expected node=CPUS,driver=CPUS", hint=_EXAMPLE)
    try:
        pin = PinSpec(node=parse_cpus(roles["node"]), driver=parse_cpus(roles["driver"]))
    except ValueError as err:
        raise UsageError(f"--pin {text}: {err}", hint=_EXAMPLE) from err
    if both := {*pin.node} & {*pin.driver}:
        raise UsageError(
            f"--pin {text}: CPU {cpu_list(both)} is given to node and driver",
            hint="the two need separate CPUs",
        )
    if missing := {*pin.node, *pin.driver} - {*allowed}:
        raise UsageError(
            f"--pin: CPU {cpu_list(missing)} is not available: this process may use {cpu_list(allowed)}",
            hint="name others, or allow benchctl more CPUs (taskset, cpuset)",
        )
    return pin


def pin_caveats(plan: Plan, cores: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Caveats of a pinned run on a host with these cores."""
    if plan.pin is None:
        return ()
    caveats = []
    if len(plan.pin.node) == 1:
        caveats.append(
            f"nodes were pinned to CPU {plan.pin.node[0]}: the JVM saw 1 CPU, GC and JIT threads share it "
            "with searches"
        )
    shared = [core for core in cores if set(core) & set(plan.pin.node) and set(core) & set(plan.pin.driver)]
    if shared:
        listed = " and ".join(cpu_list(core) for core in shared)
        caveats.append(
            f"nodes and driver share a core: CPUs {listed} are its hardware threads, and slow each other"
        )
    return tuple(caveats)


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


# CPU that processes other than benchctl's and its nodes' use on this host: two looks, and the difference.

_MOST_NAMED = 3
_LONGEST_NAME = 32
# The kernel samples the host's clocks, and counts those of processes: the two differ by so much.
_UNLIKE = 0.1


class Seen(NamedTuple):
    """A process."""

    parent: int
    started_s: float  # with the id it tells a process from a later one
    name: str
    own_s: float  # CPU seconds so far
    with_children_s: float  # the same, with its children that ended and were waited for


class Look(NamedTuple):
    """The clocks of a host and of its processes."""

    at_s: float  # monotonic
    cpus: int
    total_s: float  # of all CPUs, idle or not
    busy_s: float  # of all processes
    processes: Mapping[int, Seen]  # by id


def look() -> Look:
    """Read the clocks; a process that ends meanwhile, or that is hidden, is left out."""
    times = psutil.cpu_times()
    processes = {}
    for process in psutil.process_iter(["ppid", "name", "create_time", "cpu_times"], ad_value=None):
        info = process.info
        if info["cpu_times"] is None:
            continue
        own_s = info["cpu_times"].user + info["cpu_times"].system
        children_s = info["cpu_times"].children_user + info["cpu_times"].children_system
        processes[process.pid] = Seen(
            info["ppid"] or 0,
            info["create_time"],
            (info["name"] or "")[:_LONGEST_NAME],
            own_s,
            own_s + children_s,
        )
    return Look(
        time.monotonic(),
        os.cpu_count() or 1,
        # The time of guests is in that of users.
        sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0),
        times.user + times.nice + times.system,
        processes,
    )


def used_by_others(before: Look, after: Look, own: int) -> OtherLoad | None:
    """Return what others used between two looks.

    Descendants of process `own` are its nodes and helpers; the time of those that ended is with who waited
    for them.

    Returns:
        None where the host's clocks are not to be seen: they stand still, or lag behind our own.
    """
    wall_s = after.at_s - before.at_s
    total_s, busy_s = after.total_s - before.total_s, after.busy_s - before.busy_s
    ours = [_family(seen.processes, own) for seen in (before, after)]
    first_s, last_s = (
        sum(seen.processes[pid].with_children_s for pid in pids)
        for seen, pids in zip((before, after), ours, strict=True)
    )
    own_s = last_s - first_s
    possible_s = wall_s * after.cpus
    if total_s < (1 - _UNLIKE) * possible_s or own_s > busy_s + _UNLIKE * possible_s:
        return None
    used, pids_of = dict[str, float](), dict[str, list[int]]()
    for pid, seen in after.processes.items():
        earlier = before.processes.get(pid)
        same = earlier is not None and earlier.started_s == seen.started_s
        if pid not in ours[1]:
            spent_s = seen.own_s - (earlier.own_s if earlier is not None and same else 0.0)
            used[seen.name] = used.get(seen.name, 0.0) + spent_s / wall_s
            pids_of.setdefault(seen.name, []).append(pid)
    largest = sorted(used, key=used.__getitem__, reverse=True)[:_MOST_NAMED]
    labels = {name: f"{name} pid {pids[0]}" if len(pids) == 1 else name for name, pids in pids_of.items()}
    # Of this process without its children; nothing where it is hidden.
    alone_s = [seen.processes[own].own_s if own in seen.processes else 0.0 for seen in (before, after)]
    return OtherLoad(
        after.cpus,
        max(busy_s - own_s, 0.0) / wall_s,
        {labels[name]: used[name] for name in largest if used[name] > 0},
        max(own_s - alone_s[1] + alone_s[0], 0.0) / wall_s,
    )


def _family(processes: Mapping[int, Seen], own: int) -> set[int]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for pid, seen in processes.items():
        children.setdefault(seen.parent, []).append(pid)
    family, ahead = set[int](), [own]
    while ahead:
        pid = ahead.pop()
        if pid in processes and pid not in family:
            family.add(pid)
            ahead += children.get(pid, ())
    return family
