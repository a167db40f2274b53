"""`benchctl track new`: an index of a live cluster becomes a track of one's own."""

import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import click

from benchctl.cli.options import DocumentsType
from benchctl.cli.streams import complain, note, say
from benchctl.cli.targets import certificates, endpoint_of
from benchctl.endpoint import OptionNames, read_hosts
from benchctl.engine.client import connect
from benchctl.engine.refusals import explained
from benchctl.engine.target import Address, identify
from benchctl.results.plan import TargetSpec
from benchctl.run.capture import Captured, capture, check_free

_NAME = "source"  # of the cluster: its credentials are in BENCHCTL_SOURCE_USER and so on
_EVERY_S = 5.0
_OPTIONS = OptionNames(ca="--ca PATH", auth="--auth FILE", insecure="--insecure")


@click.command("new")
@click.option(
    "--from-index",
    "origin",
    nargs=2,
    required=True,
    metavar="URL INDEX",
    help="Address of a cluster, and an index of it.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="Folder of the track, which must not be there yet  [default: the index's name]",
)
@click.option(
    "--docs", type=DocumentsType(), default=None, help="Documents, drawn at random  [default: all]."
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="Of the draw.")
@click.option(
    "--auth", "auth_file", type=click.Path(path_type=Path), default=None, metavar="FILE",
    help="YAML of user and password, api-key, or bearer, that only you can read.",
)  # fmt: skip
@click.option(
    "--ca", default=None, metavar="PATH", help="Certificates to trust, PEM  [default: the system's]."
)
@click.option(
    "--insecure", is_flag=True, help="Do not check the certificate; send it credentials without TLS."
)
def new_command(
    origin: tuple[str, str],
    output: Path | None,
    docs: int | None,
    seed: int,
    auth_file: Path | None,
    ca: str | None,
    *,
    insecure: bool,
) -> None:
    """Make a track of an index: mappings and settings, a sample of the documents, and searches that suit it.

    Nothing on the cluster is changed. Credentials are in BENCHCTL_SOURCE_USER and _PASSWORD, or in
    BENCHCTL_SOURCE_API_KEY or _BEARER.
    """
    url, index = origin
    folder = output or Path(index)
    check_free(folder)
    target = TargetSpec(
        hosts=read_hosts(url, _OPTIONS),
        ca=None if ca is None else certificates(ca, "--ca"),
        verify=not insecure,
        auth_file=None if auth_file is None else str(auth_file.expanduser().absolute()),
    )
    address = Address(_NAME, endpoint_of(_NAME, target, os.environ, _OPTIONS))
    facts = identify(address)
    with explained(_NAME, address.endpoint), connect(facts.engine, address.endpoint) as client:
        made = capture(client, facts, index, folder, docs=docs, seed=seed, progress=_progress())
    _conclude(made)


def _progress() -> Callable[[int], None]:
    """Tells now and then how many documents there are."""
    done, told = 0, time.monotonic()

    def count(more: int) -> None:
        nonlocal done, told
        done += more
        if time.monotonic() - told >= _EVERY_S:
            told = time.monotonic()
            complain(f"{done:,} documents")

    return count


def _conclude(made: Captured) -> None:
    say(
        f"{made.folder}: {made.documents:,} of {made.held:,} documents, "
        f"{made.uncompressed_bytes:,} bytes ({made.compressed_bytes:,} packed); "
        f"searches: {', '.join(made.operations)}"
    )
    for setting in made.left_out:
        note(f"the setting {setting} is left out: it belongs to the cluster")
    folder = shlex.quote(str(made.folder))
    say(f"Look at it: benchctl track show {folder}")
    say(f"Run it: benchctl run --track-path {folder}")
