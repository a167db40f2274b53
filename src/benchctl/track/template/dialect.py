"""What Rally and OpenSearch Benchmark give to the templates of tracks: helpers, filters and globals."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

RESERVED = ("now", "glob")
"""Globals that no parameter replaces, as in Rally."""

GIVEN: Mapping[str, Any] = {"build_flavor": "default", "serverless_operator": False}
"""Variables that have a value unless a parameter says otherwise."""

_HELPERS = """
{%- macro collect(parts) -%}
  {%- for part in glob(parts) -%}
    {%- if not loop.first %},
{% endif -%}
    {%- include part -%}
  {%- endfor -%}
{%- endmacro -%}
{%- macro exists_set_param(setting_name, value, default_value=None, comma=True) -%}
  {%- if value is defined -%}
    {{ "," if comma }} "{{ setting_name }}": {{ value | tojson }}
  {%- elif default_value is not none -%}
    {{ "," if comma }} "{{ setting_name }}": {{ default_value | tojson }}
  {%- endif -%}
{%- endmacro -%}
"""

HELPER_TEMPLATES: Mapping[str, str] = {"rally.helpers": _HELPERS, "benchmark.helpers": _HELPERS}
"""Name of an import -> its template."""


def _moment(value: Any, date_format: str, zone: tzinfo) -> datetime:  # noqa: ANN401 - whatever a template holds
    """A moment from a datetime, seconds since 1970, or a text in a format."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=zone)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, tz=zone)
    found = datetime.strptime(str(value), date_format)  # noqa: DTZ007 - the next line sees to that
    return found if found.tzinfo else found.replace(tzinfo=zone)


def days_ago(start: Any, end: Any, date_format: str = "%d-%m-%Y", default_tz: tzinfo = UTC) -> int:  # noqa: ANN401 - as above
    """Whole days from one moment to another."""
    return (_moment(end, date_format, default_tz) - _moment(start, date_format, default_tz)).days


def get_start_date(moment: Any, date_format: str = "%Y-%m-%d", default_tz: tzinfo = UTC) -> str:  # noqa: ANN401 - as above
    """A moment as a date."""
    return _moment(moment, date_format, default_tz).strftime(date_format)


def get_end_date(
    start: Any,  # noqa: ANN401 - as above
    duration_days: int = 1,
    date_format: str = "%Y-%m-%d",
    default_tz: tzinfo = UTC,
) -> str:
    """The date so many days after a moment."""
    return (_moment(start, date_format, default_tz) + timedelta(days=duration_days)).strftime(date_format)


def version_between(version: str, first: str, last: str) -> bool:
    """Whether a version such as 2.11.0 lies between two others, both included."""
    low, found, high = (tuple(map(int, text.split("."))) for text in (first, version, last))
    return low <= found <= high


FILTERS: Mapping[str, Callable[..., Any]] = {
    "days_ago": days_ago,
    "get_start_date": get_start_date,
    "get_end_date": get_end_date,
    "version_between": version_between,
}
"""Those beside Jinja2's own."""
