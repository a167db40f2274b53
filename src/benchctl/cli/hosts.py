"""`benchctl hosts`: the hosts of a file, and whether they can be used."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchctl.cli.options import TableFormat, print_table, table_format_option
from benchctl.errors import BenchctlError
from benchctl.hosts.file import Hosts, load_hosts
from benchctl.hosts.remote import VERSIONS, describe, describe_site, lacking, versions
from benchctl.report.table import Column, Table

if TYPE_CHECKING:
    from benchctl.hosts.pool import Link

_NUMBERS = (
    "CPUs", "load", "memory free GiB", "disk free GiB", "round trip ms", "MB/s", "clock offset s", "± s",
)  # fmt: skip
_COLUMNS: tuple[Column | str, ...] = ("host", "carries", "state", *map(Column, _NUMBERS), "other versions")
_READY = "ready"
_NS_PER_MS = 1e6
_CLOCK_DIGITS = 6
_NS_PER_S = 1e9
_BYTES_PER_MB = 1e6
Row = tuple[object, ...]


@click.group("hosts")
def hosts_group() -> None:
    """Check remote load-generator and node hosts."""


@hosts_group.command("check")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@table_format_option
def check_command(file: Path, output_format: TableFormat) -> None:
    """Check version, clock, latency and load of every host.

    The clock offset is that of the host's monotonic clock, which counts from its own start, and its error
    half of the quickest round trip. Free disk is that of the host's own BENCHCTL_HOME where it carries nodes.
    Other versions are those that differ from this host's. Exit code 1 if a host cannot be used, or somebody
    measures there.
    """
    hosts = load_hosts(file)
    hosts.check_nodes()
    hints: dict[str, None] = {}
    rows = list(_rows(hosts, hints))
    print_table(Table.listed(f"Hosts of {file}", _COLUMNS, rows), output_format)
    unfit = [str(row[0]) for row in rows if row[2] != _READY]
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
        if hosts.remote:
            # Dask takes a second to load, and is there only where hosts are.
            from benchctl.hosts import pool  # noqa: PLC0415 - see above

            session = stack.enter_context(pool.HostSession(hosts, pool.Link, hosts.remote))
            missing, links = session.missing, session.links
        for name, host in hosts.hosts.items():
            known = name, list(host.carries)
            if name in missing:
                hints |= dict.fromkeys(filter(None, [missing[name].hint]))
                yield (*known, missing[name].message, *[None] * (len(_COLUMNS) - 3))
                continue
            facts = describe(Path.cwd()) if host.local else links[name].facts
            disk: int | None = facts.free_disk_bytes
            unfit = ""
            if "nodes" in host.carries:
                where = describe_site(host.address) if host.local else links[name].call("site", host.address)
                lacks = lacking(
                    facts, [one.address for one in hosts.hosts.values() if "nodes" in one.carries]
                )
                unfit = where.unfit or (
                    lacks and f"nodes of one cluster with others would not start: {lacks}"
                )
                disk = where.free_disk_bytes
            others = (f"{one} {facts.versions[one]}" for one in VERSIONS if facts.versions[one] != own[one])
            yield (
                *known,
                unfit or (f"busy: {facts.busy}" if facts.busy else _READY),
                facts.cores,
                round(facts.load, 2),
                round(facts.free_memory_bytes / 2**30, 1),
                None if disk is None else round(disk / 2**30, 1),
                *([None] * 4 if host.local else _distance(links[name])),
                ", ".join(others) or None,
            )


def _distance(link: "Link") -> tuple[float, ...]:
    found = link.distance()
    return (
        round(found.round_trip_ns / _NS_PER_MS, 3),
        round(found.bytes_per_s / _BYTES_PER_MB, 1),
        round(found.clock.offset_ns / _NS_PER_S, _CLOCK_DIGITS),
        round(found.clock.error_ns / _NS_PER_S, _CLOCK_DIGITS),
    )
