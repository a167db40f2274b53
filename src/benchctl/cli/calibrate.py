"""`benchctl calibrate`: what the driver itself costs on this machine."""

import threading
from typing import Literal

import click
import msgspec

from benchctl.cli.watch import watching
from benchctl.report.driver import calibration_lines
from benchctl.run.calibrate import calibrate
from benchctl.run.lock import host_lock


@click.command("calibrate")
@click.option("--wait", is_flag=True, help="Wait while another benchctl is measuring on this host.")
@click.option("--quiet", is_flag=True, help="Print the result only.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the result is printed.",
)
def calibrate_command(output_format: Literal["text", "json"], *, wait: bool, quiet: bool) -> None:
    """Measure benchctl's own driver against a built-in server, in about three seconds.

    No figure of a run on this machine can be better than what this prints. `benchctl run --calibrate` does
    the same before a run and keeps it with the run.
    """
    with (
        watching(quiet=quiet) as observer,
        host_lock(wait=wait, on_wait=lambda holder: observer.note(f"waiting for another benchctl: {holder}")),
    ):
        found = calibrate(observer, threading.Event())
    if output_format == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        click.echo("\n".join(calibration_lines(found)))
