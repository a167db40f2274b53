"""`benchctl nightly init`: a suite file to begin with, every setting explained."""

from importlib import resources
from pathlib import Path

import click

from benchctl.cli.streams import emit, note
from benchctl.errors import BenchctlError, UsageError


@click.command("init")
@click.argument("path", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
def init_command(path: Path | None) -> None:
    """Write a suite file to begin with to FILE, which must not be there yet; without FILE, print it."""
    text = resources.files("benchctl.nightly.suites").joinpath("template.yml").read_text(encoding="utf-8")
    if path is None:
        emit(text)
        return
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as err:
        raise UsageError(f"{path} is there already", hint="give another name") from err
    except OSError as err:
        raise BenchctlError(f"cannot write {path}: {err.strerror or err}") from err
    note(f"{path} is written; change it to your needs, then: benchctl nightly run {path}")
