"""`benchctl runs export`: runs for other tools, as Parquet or in a store of Rally's records."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from benchctl.cli.options import complete_runs, given_options, grouped, open_store, runs_option
from benchctl.cli.sql import stored_runs
from benchctl.cli.streams import note, say
from benchctl.cli.targets import AddressOptions, address_options
from benchctl.disk import read_file, replacing
from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import resolve_home
from benchctl.report.numbers import counted
from benchctl.results.races import Layout
from benchctl.results.sql import StoredRun, export_parquet
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.export import STORE_NAME, export


@dataclass(frozen=True)
class StoreOptions:
    """Options of a store."""

    url: str | None
    streams: bool
    samples: bool
    environment: str


store_options = grouped(
    "to",
    StoreOptions,
    click.option("--to", "url", metavar="URL", help="Send records to this Elasticsearch or OpenSearch."),
    click.option("--samples", is_flag=True, help="Send every request, in addition to the values of tasks."),
    click.option("--streams", is_flag=True, help="Write Rally's data streams instead of an index a month."),
    click.option(
        "--environment", default="benchctl", show_default=True, metavar="NAME", help="The records' field."
    ),
)


@click.command("export")
@click.argument("runs", nargs=-1, metavar="RUN...", shell_complete=complete_runs)
@store_options
@address_options
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
    address: AddressOptions,
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
    idle = [spelt for name, spelt in given.items() if name in vars(to) | vars(address)]
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
        _send(to, address.endpoint(STORE_NAME, to.url), stored, store)


_WAITING = "export-waiting.json"


class _Order(msgspec.Struct, frozen=True, rename="kebab"):
    """Part of a run to send, and its destination; without credentials."""

    to: tuple[str, ...]
    layout: Layout
    samples: bool


def _send(to: StoreOptions, endpoint: Endpoint, stored: list[StoredRun], store: RunStore) -> None:
    """Send runs, each marked before, so that the next export sends what failed or was interrupted."""
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
