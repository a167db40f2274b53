"""`benchctl runs export`: runs for other tools, as Parquet or in a store of Rally's records."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from benchctl.cli.options import complete_runs, given_options, grouped, open_store, runs_option
from benchctl.cli.sql import stored_runs
from benchctl.cli.streams import note, say
from benchctl.cli.targets import AUTH_FILE_HELP, certificates, endpoint_at, read_secret_file
from benchctl.disk import read_file, replacing
from benchctl.endpoint import OptionNames, read_hosts
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import resolve_home
from benchctl.report.numbers import counted
from benchctl.results.races import Layout
from benchctl.results.sql import StoredRun, export_parquet
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.export import STORE_NAME, export

_OPTIONS = OptionNames(ca="--ca PATH", auth="--auth FILE", insecure="--insecure")


@dataclass(frozen=True)
class StoreOptions:
    """Options of a store."""

    url: str | None
    streams: bool
    samples: bool
    environment: str
    auth_file: Path | None
    ca: str | None
    insecure: bool


store_options = grouped(
    "to",
    StoreOptions,
    click.option("--to", "url", metavar="URL", help="Send records to this Elasticsearch or OpenSearch."),
    click.option("--samples", is_flag=True, help="Send every request, in addition to the values of tasks."),
    click.option("--streams", is_flag=True, help="Write Rally's data streams instead of an index a month."),
    click.option(
        "--environment", default="benchctl", show_default=True, metavar="NAME", help="The records' field."
    ),
    click.option(
        "--auth",
        "auth_file",
        type=click.Path(path_type=Path),
        default=None,
        metavar="FILE",
        help=AUTH_FILE_HELP,
    ),
    click.option(
        "--ca", default=None, metavar="PATH", help="Certificates to trust, PEM.  [default: the system's]"
    ),
    click.option(
        "--insecure", is_flag=True, help="Do not check the certificate; send it credentials without TLS."
    ),
)


@click.command("export")
@click.argument("runs", nargs=-1, metavar="RUN...", shell_complete=complete_runs)
@store_options
@click.option(
    "--parquet",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory for runs.parquet, builds.parquet, forks.parquet, tasks.parquet and samples.parquet.",
)
@runs_option
def export_command(
    runs: tuple[str, ...],
    to: StoreOptions,
    folder: Path | None,
    runs_folder: Path | None,
) -> None:
    """Export runs to a metrics store or Parquet.

    Exports are idempotent: existing records are not duplicated, and records that failed are sent with the
    next export. Credentials of the store are in BENCHCTL_STORE_USER and _PASSWORD, in BENCHCTL_STORE_API_KEY
    or _BEARER, or for AWS in _ACCESS_KEY, _SECRET_KEY and _REGION. Parquet has the columns that
    `benchctl sql --views` describes.
    """
    given = given_options(click.get_current_context())
    idle = [spelt for name, spelt in given.items() if name in StoreOptions.__dataclass_fields__]
    if idle and to.url is None:
        raise UsageError(f"{', '.join(idle)} requires --to")
    if not runs or not (to.url or folder):
        raise UsageError("export requires a RUN and --to or --parquet")
    store = open_store(resolve_home(), runs_folder)
    stored = stored_runs(store, runs)
    if folder is not None:
        for path, rows in export_parquet(stored, folder).items():
            say(f"{path}: {counted(rows, 'row')}")
    if to.url is not None:
        _send(to, to.url, stored, store)


_WAITING = "export-waiting.json"


class _Order(msgspec.Struct, frozen=True, rename="kebab"):
    """Part of a run to send, and its destination; without credentials."""

    to: tuple[str, ...]
    layout: Layout
    samples: bool


def _send(to: StoreOptions, url: str, stored: list[StoredRun], store: RunStore) -> None:
    """Send runs, each marked before, so that the next export sends what failed or was interrupted."""
    endpoint = endpoint_at(
        STORE_NAME,
        read_hosts(url, _OPTIONS),
        os.environ,
        secrets={} if to.auth_file is None else read_secret_file(to.auth_file.expanduser()),
        where=str(to.auth_file),
        ca=None if to.ca is None else certificates(Path(to.ca), "--ca"),
        verify=not to.insecure,
        options=_OPTIONS,
    )
    order = _Order(endpoint.hosts, Layout(to.streams, to.environment), to.samples)
    wanted = {run.folder.path.resolve(): run for run in [*_earlier(store, order), *stored]}
    for run in stored:
        _mark(run.folder, {*_orders(run.folder), order})
    for run, done in zip(
        wanted.values(), export(wanted.values(), endpoint, order.layout, samples=order.samples), strict=True
    ):
        _mark(run.folder, _orders(run.folder) - {order})
        for text in done.notes:
            note(text)
        what = f"{counted(done.sent, 'race')} sent ({counted(done.records, 'record')})"
        say(f"{run.record.id}: {what}, {done.there:,} there already")


def _earlier(store: RunStore, order: _Order) -> Iterator[StoredRun]:
    for folder in store.folders():
        if order in _orders(folder):
            try:
                yield StoredRun(folder, folder.load())
            except BenchctlError as err:
                note(err.message)


def _orders(folder: RunFolder) -> set[_Order]:
    try:
        return set(msgspec.json.decode(read_file(folder.path / _WAITING), type=list[_Order]))
    except (OSError, msgspec.MsgspecError):
        return set()


def _mark(folder: RunFolder, orders: Iterable[_Order]) -> None:
    """Keep the orders that wait; a disk that cannot be written keeps none."""
    path = folder.path / _WAITING
    left = list(orders)
    with contextlib.suppress(OSError):
        if left:
            with replacing(path) as partial:
                partial.write_bytes(msgspec.json.encode(left))
        else:
            path.unlink(missing_ok=True)
