"""`benchctl hosts`: the hosts of a file, and whether load can come from them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchctl.cli.tables import TableFormat, print_listing, table_format_option
from benchctl.errors import BenchctlError
from benchctl.hosts.file import Hosts, load_hosts
from benchctl.hosts.remote import VERSIONS, describe
from benchctl.report.listing import Listing

if TYPE_CHECKING:
    from benchctl.hosts.pool import Link

_COLUMNS = (
    "host", "carries", "state", "CPUs", "load", "memory free GiB", "disk free GiB", "round trip ms", "MB/s",
    "clock offset s", "clock error ms", "measuring there", *VERSIONS,
)  # fmt: skip
_NUMERIC = frozenset(range(3, 11))
_READY = "ready"
_NS_PER_MS = 1e6
_NS_PER_S = 1e9
_BYTES_PER_MB = 1e6
Row = tuple[object, ...]


@click.group("hosts")
def hosts_group() -> None:
    """Hosts that load comes from."""


@hosts_group.command("check")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@table_format_option
def check_command(file: Path, output_format: TableFormat) -> None:
    """Ask every host of FILE what it is, how far away, and whether it is free.

    The clock offset is that of the host's monotonic clock, which counts from its own start, and its error
    half of the quickest round trip. Exit code 1 if a host cannot be used, or somebody measures there.
    """
    hosts = load_hosts(file)
    hosts.check_nodes()
    rows = list(_rows(hosts))
    print_listing(Listing(_COLUMNS, rows, _NUMERIC, title=f"Hosts of {file}"), output_format)
    unfit = [str(row[0]) for row in rows if row[2] != _READY]
    if unfit:
        raise BenchctlError(
            f"{', '.join(unfit)} cannot be used now",
            hint="the table says why; started on a host: dask worker SCHEDULER --name HOST --no-nanny "
            "--nthreads 1, with its three --tls options",
        )


def _rows(hosts: Hosts) -> Iterator[Row]:
    with ExitStack() as stack:
        missing: Mapping[str, str] = {}
        links: Mapping[str, Link] = {}
        if hosts.remote:
            # Dask takes a second to load, and is there only where hosts are.
            from benchctl.hosts.pool import HostSession  # noqa: PLC0415 - see above

            session = stack.enter_context(HostSession(hosts))
            missing, links = session.missing, session.links
        for name, host in hosts.hosts.items():
            known = name, list(host.carries)
            if name in missing:
                yield (*known, missing[name], *[None] * (len(_COLUMNS) - 3))
                continue
            facts = describe(Path.cwd()) if host.local else links[name].facts
            yield (
                *known,
                "busy" if facts.busy else _READY,
                facts.cores,
                round(facts.load, 2),
                round(facts.free_memory_bytes / 2**30, 1),
                round(facts.free_disk_bytes / 2**30, 1),
                *([None] * 4 if host.local else _distance(links[name])),
                facts.busy or None,
                *(facts.versions[name] for name in VERSIONS),
            )


def _distance(link: "Link") -> tuple[float, ...]:
    found = link.distance()
    return (
        round(found.round_trip_ns / _NS_PER_MS, 3),
        round(found.bytes_per_s / _BYTES_PER_MB, 1),
        found.clock.offset_ns / _NS_PER_S,
        round(found.clock.error_ns / _NS_PER_MS, 3),
    )
