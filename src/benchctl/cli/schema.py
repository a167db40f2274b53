"""`benchctl schema`: the form of what benchctl writes, for programs that read it."""

import click

from benchctl.cli.streams import emit
from benchctl.report.schema import SchemaName, schema_text


@click.command("schema")
@click.argument("name", type=click.Choice(["analysis", "run", "message"]), default="analysis")
def schema_command(name: SchemaName) -> None:
    """Print the JSON Schema of NAME.

    `analysis` is what --format json prints, `run` is run.json, `message` is what is told of a night.
    """
    emit(schema_text(name))
