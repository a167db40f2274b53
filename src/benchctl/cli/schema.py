"""`benchctl schema`: the JSON Schemas of what benchctl writes and reads, from types and comments of fields.

A change that a reader of the older form could stumble over takes a new version number. A test holds the form
of each version fast.
"""

import ast
import inspect
import re
import textwrap
from collections import ChainMap
from collections.abc import Iterator
from typing import Any, Literal, cast, get_args

import click
import msgspec

from benchctl.cli.streams import emit
from benchctl.report.formats import Document
from benchctl.report.numbers import json_text
from benchctl.results.model import RECORD_VERSION, RunRecord
from benchctl.slices import hooks
from benchctl.spec import RunForm
from benchctl.stats.analysis import SCHEMA_VERSION

SchemaName = Literal["analysis", "run", "message", "config"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: dict[str, tuple[type[msgspec.Struct], str, int]] = {
    "config": (RunForm, "", 1),
    "analysis": (Document, "schema_version", SCHEMA_VERSION),
    "run": (RunRecord, "record-version", RECORD_VERSION),
}
_COMMENT = re.compile(r"\s*#\s?(?P<text>.*)")
_NAMES = re.compile(r"(?P<names>`\w+`(?:, `\w+`)*): (?P<text>.*)")

Schema = dict[str, Any]


def schema(name: SchemaName) -> Schema:
    """Return the schema, with descriptions of types and fields from their docstrings and comments."""
    written, version_key, version = ChainMap(_TYPES, *hooks("schemas"))[name]
    described = described_schema(written)
    if version_key:
        described["$defs"][written.__name__]["properties"][version_key] |= {"const": version}
    return {"$schema": _DIALECT, "$id": f"urn:benchctl:{name}:{version}", **described}


def described_schema(written: type[msgspec.Struct]) -> Schema:
    """Return the schema of a type, with descriptions from docstrings and comments."""
    generated = msgspec.json.schema(written)
    definitions = dict(sorted(generated["$defs"].items()))
    for struct in _structs(msgspec.inspect.type_info(written), set()):
        definition = definitions.get(struct.__name__, {})
        if "description" in definition:
            definition["description"] = " ".join(definition["description"].split())
        comments = _field_comments(struct)
        for field, key in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
            if field in comments and key in definition.get("properties", {}):
                definition["properties"][key].setdefault("description", comments[field])
    return {**generated, "$defs": definitions}


def _structs(node: object, seen: set[type]) -> Iterator[type[msgspec.Struct]]:
    """Walk the types that a type is made of, each once."""
    if isinstance(node, msgspec.inspect.StructType):
        if node.cls in seen:
            return
        seen.add(node.cls)
        yield node.cls
    children = getattr(node, "fields", ()) or getattr(node, "types", ()) or getattr(node, "item_types", ())
    for child in (*children, *(getattr(node, name, None) for name in ("type", "item_type", "value_type"))):
        if child is not None:
            yield from _structs(child, seen)


def _field_comments(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Read the comment above or after each field, those of base types included."""
    # A comment that begins with names (`low`, `high`: ...) explains all of these.
    comments: dict[str, str] = {}
    for base in reversed(struct.__mro__[:-2]):
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except OSError:  # made of a row of a table: its fields are explained there
            continue
        lines = source.splitlines()
        for statement in cast(ast.ClassDef, ast.parse(source).body[0]).body:
            if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
                continue
            text = _comment_of(lines, statement)
            named = _NAMES.fullmatch(text)
            names = re.findall(r"\w+", named["names"]) if named else [statement.target.id]
            comments |= dict.fromkeys(names, named["text"] if named else text) if text else {}
    return comments


def _comment_of(lines: list[str], statement: ast.stmt) -> str:
    # Columns count bytes of UTF-8.
    end = lines[(statement.end_lineno or statement.lineno) - 1].encode()[statement.end_col_offset :]
    after = _COMMENT.fullmatch(end.decode())
    if after and not after["text"].startswith(("type: ", "noqa")):
        return after["text"]
    above: list[str] = []
    for line in reversed(lines[: statement.lineno - 1]):
        comment = _COMMENT.fullmatch(line)
        if comment is None:
            break
        above.insert(0, comment["text"])
    return " ".join(above)


@click.command("schema")
@click.argument("name", type=click.Choice(get_args(SchemaName)), default="analysis")
def schema_command(name: SchemaName) -> None:
    """Print the JSON Schema of an output format.

    `analysis` is what --format json prints, `run` is run.json, `message` is what is told of a night; `config`
    is what a file of --config may hold.
    """
    emit(json_text(schema(name)))
