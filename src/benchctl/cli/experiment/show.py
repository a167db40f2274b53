"""`benchctl experiment show`: what an experiment asks, takes and will see."""

import textwrap
from typing import Literal

import click
import msgspec

from benchctl.cli.experiment.options import SizeOptions, estimated, left_out_text, size_options
from benchctl.cli.options import ParamOptions, param_options
from benchctl.cli.streams import emit, note, say, text_width
from benchctl.cli.tables import print_listing
from benchctl.experiment.check import Experiment, load_experiment
from benchctl.experiment.describe import (
    content_listings,
    cost_lines,
    cost_listing,
    overview_lines,
    sight_lines,
    sight_listing,
)
from benchctl.experiment.estimate import Estimate
from benchctl.experiment.library import find_experiment
from benchctl.home import resolve_home
from benchctl.report.listing import Listing
from benchctl.results.store import RunStore


@click.command("show")
@click.argument("name", metavar="NAME|FILE")
@size_options
@param_options
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="How it is printed.",
)
def show_command(
    name: str,
    output_format: Literal["text", "markdown", "json"],
    *,
    size_options: SizeOptions,
    param_options: ParamOptions,
) -> None:
    """Say what NAME, or a file, asks, how long that takes, and what it will be able to see.

    All of it is checked as for a run; nothing is started. Durations and precision come from earlier runs on
    this machine.
    """
    home = resolve_home()
    experiment = load_experiment(find_experiment(name), size_options.changes(param_options), home)
    found = estimated(experiment, RunStore(home.root / "runs"), size_options.budget_s)
    if output_format == "json":
        whole = {"spec": experiment.spec, "estimate": found}
        emit(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n")
    else:
        _print(experiment, found, output_format)


def _print(experiment: Experiment, found: Estimate, output_format: Literal["text", "markdown"]) -> None:
    spec = experiment.spec
    say(_paragraphs([*overview_lines(spec)]))
    left = left_out_text(experiment)
    if left:
        note(left)
    for listing in content_listings(spec):
        _titled(listing, output_format)
    _titled(cost_listing(found), output_format)
    say("\n" + _paragraphs([*cost_lines(found)]))
    if found.sights:
        _titled(sight_listing(found), output_format)
        say("\n" + _paragraphs([*sight_lines(found)]))


def _paragraphs(lines: list[str]) -> str:
    return "\n".join(textwrap.fill(line, text_width()) for line in lines)


def _titled(listing: Listing, output_format: Literal["text", "markdown"]) -> None:
    say(f"\n## {listing.title}\n" if output_format == "markdown" else f"\n{listing.title}")
    print_listing(listing, output_format)
