"""Options that set the parameters of templates: benchctl's, and Rally's spelling of the same."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchctl.cli.options import grouped
from benchctl.track.parameters import parse_params, parse_rally_params, read_parameter_files


@dataclass(frozen=True)
class ParamOptions:
    """Parameters, in the order in which a later kind replaces what an earlier one says.

    Attributes:
        param_files: JSON or YAML.
        track_params: as Rally has them: `NAME:VALUE` with commas in between, JSON, or the path of a file.
        params: `NAME=VALUE` each.
    """

    param_files: tuple[Path, ...]
    track_params: tuple[str, ...]
    params: tuple[str, ...]

    def read(self) -> dict[str, Any]:
        """All of them by name.

        Raises:
            UsageError: a text or file is not what it should be.
        """
        found = read_parameter_files(self.param_files)
        for text in self.track_params:
            found.update(parse_rally_params(text))
        return {**found, **parse_params(self.params)}


param_options = grouped(
    "param_options",
    ParamOptions,
    "What is measured",
    click.option(
        "--param",
        "params",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a parameter, such as iterations=300, or one of a single challenge: warmup.iterations=50.",
    ),
    click.option(
        "--param-file",
        "param_files",
        multiple=True,
        metavar="FILE",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Parameters from a JSON or YAML file; --param goes before it.",
    ),
    click.option(
        "--track-params",
        "--workload-params",
        "track_params",
        multiple=True,
        metavar="NAME:VALUE,...|FILE",
        help="Parameters as Rally has them; --param goes before them.",
    ),
)
"""The options; the command gets them as one, `param_options`."""
