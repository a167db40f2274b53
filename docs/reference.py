"""The reference, generated from the code: commands from click, schemas and tables from types.

Most pages are made when the site is built. Those that people need in a checkout are committed: after a
change, `python docs/reference.py` writes them again.
"""

import ast
import html
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click
import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from benchctl.cli import root
from benchctl.cli.listing import metrics_table
from benchctl.cli.options import EVERYTHING
from benchctl.cli.targets import TargetEntry
from benchctl.engine.variant import VariantEntry
from benchctl.experiment.file import ExperimentFile
from benchctl.hosts.file import HostsFile
from benchctl.micro.conduct import MicroEntry
from benchctl.nightly.message import MESSAGE_VERSION, Message
from benchctl.nightly.suite import Suite
from benchctl.report.formats import Document
from benchctl.report.numbers import json_text
from benchctl.report.table import pieces
from benchctl.results.model import RECORD_VERSION, RunRecord
from benchctl.spec import RunForm
from benchctl.stats.analysis import SCHEMA_VERSION

_FOLDER = "reference"
COMMITTED = ("files.md", "metrics.md")
"""Pages that are in the repository, too."""
Schema = dict[str, Any]
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_COMMENT = re.compile(r"\s*#\s?(?P<text>.*)")
_NAMES = re.compile(r"(?P<names>`\w+`(?:, `\w+`)*): (?P<text>.*)")


@dataclass(frozen=True)
class Written:
    """A form that programs read, with the key that holds its version."""

    title: str
    type: type[msgspec.Struct]
    version: int
    version_key: str = ""  # empty where files have none


SCHEMAS = {
    "analysis": Written("What `--format json` prints", Document, SCHEMA_VERSION, "schema_version"),
    "run": Written("run.json", RunRecord, RECORD_VERSION, "record-version"),
    "message": Written("Message of a night", Message, MESSAGE_VERSION, "schema-version"),
    "config": Written("A file of `run --config`", RunForm, 1),
}
"""What has a page, and a file of JSON Schema beside it. A change over which a reader of the older form could
stumble takes a new version number; a test holds the form of each version fast."""
_FILES = {
    "Runs": (
        RunForm,
        "`benchctl run --config FILE`. Options on the command line take precedence.",
    ),
    "Suites": (Suite, "`benchctl nightly run FILE`; `nightly init` creates one with comments."),
    "Experiments": (ExperimentFile, "`benchctl experiment run FILE`."),
    "Variants": (VariantEntry, "`--variants FILE`: a mapping of names to the following keys."),
    "Hosts": (HostsFile, "`--hosts FILE`."),
    "Targets": (TargetEntry, "`--targets FILE`: a mapping of names to the following keys."),
    "Microbenchmarks": (MicroEntry, "The key `micro` of experiments."),
}
_REFUSED = {"Suite": {"sweep", "evidence"}}
"""Keys that a form has, and its command always refuses."""
_TEXTS = {
    (
        "Suite",
        "on-busy",
    ): "Busy host: mark the night (warn, wait) or do not measure (fail). Another benchctl is "
    "measuring: skip the night (warn), wait (wait) or end with an error (fail).",
    **{
        (form, "workers"): "Load-generator processes."
        for form in ("Suite", "ExperimentFile", "MeasurementEntry")
    },
    **{
        (
            form,
            "warmup",
        ): "Warm-up of shipped challenges: as in the JSON (as-written) or by corpus size (auto)."
        for form in ("Suite", "ExperimentFile", "MeasurementEntry")
    },
    ("HostLimits", "max-busy"): "Maximum share of CPU time in use.",
    ("HostLimits", "settle"): "Longest wait for a quiet host, before the night.",
    ("CallSite", "name"): "Unique name, for expectations; lower-case letters, digits and . _ -",
    ("CallSite", "method"): "Calling method: `Class::method`, with the package if ambiguous.",
    ("CallSite", "callee"): "Name of the called method, without its class.",
    ("ComparisonSpec", "name"): "Unique name, for expectations; lower-case letters, digits and . _ -",
}
"""Descriptions of keys whose own explain their type only: (form, key) -> text."""
_DEFAULT = re.compile(r"\s*\[default: (?P<default>[^\]]+)\]")
_ANCHORS = {form.__name__: title.lower() for title, (form, _) in _FILES.items()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation's Reference."""
    names = [*root.list_commands(click.Context(root))]
    (entries,) = [section["Reference"] for section in config.nav if "Reference" in section]
    entries[1:1] = [
        {"Commands": [f"{_FOLDER}/commands/{name}.md" for name in names]},
        *(f"{_FOLDER}/{name}.md" for name in ("files", "metrics")),
    ]
    entries.append({"Schemas": [f"{_FOLDER}/schemas/{name}.md" for name in SCHEMAS]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages that are not committed."""
    for path, text in pages().items():
        if path in COMMITTED:
            continue
        files.append(File.generated(config, f"{_FOLDER}/{path}", content=text))
    return files


def pages() -> dict[str, str]:
    """Path below the reference's folder -> Markdown."""
    made = {}
    for name, written in SCHEMAS.items():
        made[f"schemas/{name}.md"] = _schema_page(written.title, f"{name}.json", schema(name))
        made[f"schemas/{name}.json"] = json_text(schema(name))
    made["metrics.md"] = _unescaped("# Metrics\n\n" + "".join(pieces(metrics_table(), "markdown")))
    made["files.md"] = "\n".join(_files())
    top = click.Context(root, info_name="benchctl")
    top.meta[EVERYTHING] = True
    for name in root.list_commands(top):
        command = root.get_command(top, name)
        made[f"commands/{name}.md"] = "\n".join(_command(command, name, top))
    return made


def committed_pages() -> dict[Path, str]:
    """File -> what it has to contain."""
    made = pages()
    folder = Path(__file__).parent / "pages" / _FOLDER
    return {
        folder / name: f"<!-- Made by `python docs/reference.py`. -->\n\n{made[name].strip()}\n"
        for name in COMMITTED
    }


# Commands.


def _command(command: click.Command, name: str, parent: click.Context, level: int = 1) -> Iterator[str]:
    context = command.context_class(command, info_name=name, parent=parent)
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```text\n{context.command_path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    yield f"{_help(command)}\n"
    formatter = _Sections()
    command.format_options(context, formatter)
    for heading, rows in formatter.found:
        if isinstance(command, click.Group) and heading == "Commands":
            continue
        options = [row for row in rows if not row[0].endswith(("--help", "--help-all"))]
        if options and heading != "Options":
            yield f"**{heading}**\n"
        for term, text in options:
            yield f"`{term}`\n:   {_prose(text)}\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None and not found.hidden:
                yield from _command(found, inner, context, level + 1)


class _Sections(click.HelpFormatter):
    """Takes what click would lay out for a terminal: headings with their rows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str]]]] = []

    def write_heading(self, heading: str) -> None:
        self.found.append((heading, []))

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:  # noqa: ARG002 - click's own signature
        self.found[-1][1].extend(rows)


def _help(command: click.Command) -> str:
    """A command's help; paragraphs whose lines click keeps are kept here, too."""
    paragraphs = []
    for paragraph in (command.help or "").split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        if lines[0].strip() == "\b":
            paragraphs.append("\n".join(["```text", *lines[1:], "```"]))
        else:
            paragraphs.append(_prose(" ".join(line.strip() for line in lines)))
    return "\n\n".join(paragraphs)


def _prose(text: str) -> str:
    """Plain text as Markdown that shows it as it is, but for what stands between backticks."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(
        part
        if part.startswith("`") and len(part) > 1
        else re.sub(r"([\\*#]|(?<!\w)_|_(?!\w)|\](?=[(\[]))", r"\\\1", html.escape(part, quote=False))
        for part in parts
    )


def _unescaped(text: str) -> str:
    """Markdown without escapes that it does not need, for those who read the file itself."""
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", text)


# Schemas.


def schema(name: str) -> Schema:
    """The schema of a form; types and fields are described by their docstrings and comments."""
    written = SCHEMAS[name]
    described = described_schema(written.type)
    if written.version_key:
        properties = described["$defs"][written.type.__name__]["properties"]
        properties[written.version_key] |= {"const": written.version}
    return {"$schema": _DIALECT, "$id": f"urn:benchctl:{name}:{written.version}", **described}


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


def _schema_page(title: str, file: str, found: Schema) -> str:
    dialect = found["$schema"].split("/")[-2]
    lines = [f"# {title}\n", f"`{found['$id']}`, JSON Schema {dialect}: [{file}]({file}).\n"]
    whole = found["$ref"].rpartition("/")[2]
    definitions: Mapping[str, Schema] = found["$defs"]
    for name in [whole, *(other for other in definitions if other != whole)]:
        lines += _definition(name, definitions[name])
    return "\n".join(lines)


def _definition(name: str, found: Schema) -> Iterator[str]:
    yield f"## {name}\n"
    if "description" in found:
        yield f"{_prose(found['description'])}\n"
    for key, value in found.get("properties", {}).items():
        needed = "" if key in found.get("required", ()) else ", optional"
        about = value.get("description", "")
        yield f"`{key}` ({_type(value)}{needed})\n:   {_prose(about) or '-'}\n"


def _type(found: Schema) -> str:
    """Return a type in words, with links to other types of the page."""
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        return f"[{name}](#{_ANCHORS.get(name, name.lower())})"
    if "anyOf" in found:
        return " or ".join(map(_type, found["anyOf"]))
    for key in ("const", "enum"):
        if key in found:
            values = found[key] if key == "enum" else [found[key]]
            return ", ".join(f"`{value}`" for value in values)
    kind = found.get("type", "any")
    if kind == "array":
        inner = [*map(_type, found.get("prefixItems", ()))]
        items = found.get("items")
        inner += [_type(items)] if isinstance(items, dict) else []
        return f"array of {' and '.join(inner)}" if inner else "array"
    if kind == "object" and isinstance(found.get("additionalProperties"), dict):
        return f"object of {_type(found['additionalProperties'])}"
    return str(kind)


# Files that people write.


def _files() -> Iterator[str]:
    yield "# YAML files\n"
    yield "Each section is a kind of file: `run --config` takes the keys of Runs, not suites or experiments."
    yield "Keys are the options of `benchctl run` without dashes, in the plural where options are repeatable."
    yield "Paths are relative to the file. Unknown and duplicate keys are errors with file and line.\n"
    shown = {form.__name__ for form, _ in _FILES.values()}
    run_keys = described_schema(RunForm)["$defs"]["RunForm"]["properties"]
    for title, (form, text) in _FILES.items():
        yield f"## {title}\n\n{text}\n"
        definitions = described_schema(form)["$defs"]
        yield from _keys(definitions[form.__name__], form.__name__, run_keys)
        for name in definitions:
            if name not in shown:
                yield f"### {name}\n"
                yield from _keys(definitions[name], name, run_keys)
        shown |= {*definitions}


def _keys(definition: Schema, form: str, run_keys: Schema) -> Iterator[str]:
    """List the keys of a mapping; those that it shares with runs by a link."""
    properties = {
        key: value
        for key, value in definition.get("properties", {}).items()
        if key not in _REFUSED.get(form, ())
    }
    shared = {
        key
        for key, value in properties.items()
        if form != "RunForm" and value == run_keys.get(key) and (form, key) not in _TEXTS
    }
    if shared:
        yield f"- `{'`, `'.join(sorted(shared))}`: as for [runs](#runs)"
    for key, value in properties.items():
        if key not in shared:
            text = _TEXTS.get((form, key), value.get("description", ""))
            yield _key(key, value, text, is_required=key in definition.get("required", ()))
    yield ""


def _key(key: str, value: Schema, text: str, *, is_required: bool) -> str:
    text = text.replace(" Repeatable;", ";").replace(" Repeatable.", "")
    stated = _DEFAULT.search(text)
    default = json.dumps(value.get("default", "")).strip('"')
    note = ""
    if is_required:
        note = ", required"
    elif default not in ("", "null") and default[0] not in "[{":
        note = f", default `{default}`"
    elif stated:
        note = f", default: {stated['default']}"
    about = _prose(_DEFAULT.sub("", text)).removesuffix(".")
    if not about.startswith("es, "):
        about = about[:1].upper() + about[1:]
    return f"- `{key}` ({_kind(value)}{note}){f': {about}.' if about else ''}"


def _kind(found: Schema, *, plural: bool = False) -> str:  # noqa: PLR0911 - a type each
    """Return a type as those who write YAML call it."""
    if "anyOf" in found:
        kinds = [
            one for one in found["anyOf"] if one.get("type") != "null" or found.get("default") is not None
        ]
        return " or ".join(_kind(one, plural=plural) for one in kinds)
    if found.get("type") == "null":
        return "`null`"
    if found.get("type") == "array" and isinstance(found.get("items"), dict):
        return f"{'lists' if plural else 'list'} of {_kind(found['items'], plural=True)}"
    if found.get("type") == "object":
        values = found.get("additionalProperties")
        inner = f" of names to {_kind(values, plural=True)}" if isinstance(values, dict) else ""
        return f"{'mappings' if plural else 'mapping'}{inner}"
    if found.get("type") == "boolean":
        return "`true` or `false`"
    if "type" in found and not {"const", "enum"} & {*found}:
        return f"{found['type']}{'s' if plural else ''}"
    return _type(found)


if __name__ == "__main__":
    for file, content in committed_pages().items():
        file.write_text(content)
