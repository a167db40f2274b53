"""`benchctl schema`: the JSON Schemas of what benchctl writes, from the types that it is written from.

A change that a reader of the older form could stumble over takes a new version number. A test holds the form
of each version fast.
"""

import inspect
import re
from collections import ChainMap
from typing import Any, Literal

import click
import msgspec

from benchctl.cli.streams import emit
from benchctl.report.formats import Document
from benchctl.report.numbers import json_text
from benchctl.results.model import RECORD_VERSION, RunRecord
from benchctl.slices import hooks
from benchctl.stats.analysis import SCHEMA_VERSION

SchemaName = Literal["analysis", "run", "message"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: dict[str, tuple[type[msgspec.Struct], str, int]] = {
    "analysis": (Document, "schema_version", SCHEMA_VERSION),
    "run": (RunRecord, "record-version", RECORD_VERSION),
}
_SECTION = re.compile(r"\n\s*Attributes:\n")
_FIELDS = re.compile(r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {5,}.*)*)", re.MULTILINE)

Schema = dict[str, Any]


def schema(name: SchemaName) -> Schema:
    """The schema, with descriptions of types and fields from their docstrings."""
    written, version_key, version = ChainMap(_TYPES, *hooks("schemas"))[name]
    found = msgspec.json.schema(written)
    definitions = {key: _described(value) for key, value in sorted(found["$defs"].items())}
    whole = definitions[written.__name__]
    for base in written.__mro__[1:]:
        whole = _described(whole, base.__doc__ or "")
    whole["properties"][version_key] |= {"const": version}
    definitions[written.__name__] = whole
    return {"$schema": _DIALECT, "$id": f"urn:benchctl:{name}:{version}", **found, "$defs": definitions}


def _described(definition: Schema, inherited: str | None = None) -> Schema:
    """Move a docstring's attributes to the descriptions of the properties of these names.

    `inherited` is the docstring of a type that it extends; None for its own, which is in the definition.
    """
    docstring = inspect.cleandoc(definition.get("description", "") if inherited is None else inherited)
    summary, *attributes = _SECTION.split(docstring, maxsplit=1)
    properties = {key: dict(value) for key, value in definition.get("properties", {}).items()}
    for match in _FIELDS.finditer(attributes[0] if attributes else ""):
        for name in match["names"].split(", "):
            for key in {name, name.replace("_", "-")} & properties.keys():
                properties[key].setdefault("description", " ".join(match["text"].split()))
    described = {**definition, "properties": properties} if properties else dict(definition)
    own = inherited is None and docstring
    return {**described, "description": " ".join(summary.split())} if own else described


@click.command("schema")
@click.argument("name", type=click.Choice(["analysis", "run", "message"]), default="analysis")
def schema_command(name: SchemaName) -> None:
    """Print the JSON Schema of NAME.

    `analysis` is what --format json prints, `run` is run.json, `message` is what is told of a night.
    """
    emit(json_text(schema(name)))
