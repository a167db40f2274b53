"""`benchctl calibrate`: what the driver itself costs on this machine."""

import threading
from typing import Literal

import click

from benchctl.cli.measuring import measuring, measuring_options
from benchctl.cli.options import printed_as
from benchctl.cli.streams import emit, say
from benchctl.report.calibration import calibration_lines
from benchctl.report.numbers import json_text
from benchctl.run.calibrate import calibrate


@click.command("calibrate")
@measuring_options
@printed_as("text", "json")
def calibrate_command(output_format: Literal["text", "json"], *, wait: bool, quiet: bool) -> None:
    """Measure what benchctl's own driver and its readings of a node cost, in about four seconds.

    No figure of a run on this machine can be better than what this prints. `benchctl run --calibrate` does
    the same before a run and keeps it with the run.
    """
    with measuring(wait=wait, quiet=quiet) as observer:
        found = calibrate(observer, threading.Event())
    if output_format == "json":
        emit(json_text(found))
    else:
        say("\n".join(calibration_lines(found)))
