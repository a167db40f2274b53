"""`benchctl schema`: the form of what benchctl writes, for programs that read it."""

import click

from benchctl.report.schema import SchemaName, schema_text


@click.command("schema")
@click.argument("name", type=click.Choice(["analysis", "run"]), default="analysis")
def schema_command(name: SchemaName) -> None:
    """Print the JSON Schema of an analysis (what --format json prints), or of run.json: NAME is either."""
    click.echo(schema_text(name), nl=False)
