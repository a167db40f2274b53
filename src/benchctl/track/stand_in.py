"""What stands in for a data stream on a node that has none: a plain index, made from the same templates."""

from collections.abc import Iterable, Mapping
from typing import Any

from benchctl.track.model import Template

DATA_STREAM = "data_stream"
"""The key of a composable template that makes what it is for a data stream."""

DATA_STREAMS = "/_data_stream/*"
"""What a node is asked for to find out whether it has data streams."""

_TIMESTAMP = "@timestamp"


def as_plain_template(body: Mapping[str, Any], templates: Iterable[Template]) -> dict[str, Any]:
    """A composable template whose indices are plain ones, and otherwise like those of its data stream.

    A node maps a data stream's time stamp as a date where no template maps it; so does this. Other templates
    are left as they are.

    Args:
        body: of the template.
        templates: among which the components are that it may be composed of.
    """
    if DATA_STREAM not in body:
        return dict(body)
    rest = {key: value for key, value in body.items() if key != DATA_STREAM}
    field = _timestamp(body[DATA_STREAM])
    composed_of = _listed(body.get("composed_of"))
    parts = [one.body for one in templates if one.kind == "component" and one.name in composed_of]
    if any(_maps(field, part) for part in (rest, *parts)):
        return rest
    template = _mapping(rest.get("template"))
    mappings = _mapping(template.get("mappings"))
    properties = {**_mapping(mappings.get("properties")), field: {"type": "date"}}
    return {**rest, "template": {**template, "mappings": {**mappings, "properties": properties}}}


def _timestamp(stream: object) -> str:
    """OpenSearch lets a template say which field it is."""
    said = _mapping(_mapping(stream).get("timestamp_field")).get("name")
    return said if isinstance(said, str) else _TIMESTAMP


def _maps(field: str, part: Mapping[str, Any]) -> bool:
    mappings = _mapping(_mapping(part.get("template")).get("mappings"))
    return field in _mapping(mappings.get("properties"))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
