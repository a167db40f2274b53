"""A dashboard of exported records, as saved objects that Kibana and OpenSearch Dashboards import."""

from typing import Any, NamedTuple

import msgspec

from benchctl.results.shapes import SHAPES, Shape, ShapeName

# The form of Kibana 7.10, which OpenSearch Dashboards began with, and which later Kibanas migrate.
_FORM = {"index-pattern": "7.6.0", "visualization": "7.10.0", "dashboard": "7.9.3"}
_SINCE = "now-90d"
_COLUMNS = 48
_SOURCE = "kibanaSavedObjectMeta.searchSourceJSON.index"

_READ_ME = """\
Each point is the median over **forks**, which are the races of a variant: requests of one fork share a node
start, and are no replicates. Choose a task and an environment first. The table below has the number of forks
and their standard deviation; whether variants differ is for `benchctl compare` to say, which knows blocks, p
and margins.

`meta.loop: closed` means that latency repeats the service time. Throughput is that of the measured window.
"""


class _Line(NamedTuple):
    """A chart: one figure over time, a line a variant."""

    title: str
    metric: str
    field: str


_LINES = (
    _Line("Throughput, median over forks", "throughput", "value.median"),
    _Line("Service time p50, ms", "service_time", "value.50_0"),
    _Line("Service time p90, ms", "service_time", "value.90_0"),
    _Line("Service time p99, ms", "service_time", "value.99_0"),
    _Line("Latency p90, ms", "latency", "value.90_0"),
    _Line("Error rate", "error_rate", "value.single"),
)


def dashboard_objects(name: ShapeName) -> str:
    """Saved objects, a JSON document a line: a pattern of indices, visualizations, and the dashboard."""
    shape = SHAPES[name]
    pattern = f"{shape.indices['results']}-*"
    objects = [
        _object(
            "index-pattern",
            f"benchctl-{name}-results",
            {"title": pattern, "timeFieldName": shape.timestamp},
            (),
        ),
        _read_me(name),
        _choice(name, shape),
        *(_line(name, shape, one, number) for number, one in enumerate(_LINES)),
        _table(name, shape),
    ]
    panels = [one["id"] for one in objects if one["type"] == "visualization"]
    return "".join(f"{_compact(one)}\n" for one in (*objects, _dashboard(name, shape, panels)))


def _compact(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _object(
    kind: str, name: str, attributes: dict[str, Any], references: tuple[tuple[str, str, str], ...]
) -> dict[str, Any]:
    return {
        "id": name,
        "type": kind,
        "attributes": attributes,
        "migrationVersion": {kind: _FORM[kind]},
        "references": [{"name": label, "type": of, "id": other} for label, of, other in references],
    }


def _visualization(
    shape_name: ShapeName,
    suffix: str,
    title: str,
    state: dict[str, Any],
    *,
    query: str | None = None,
    references: tuple[tuple[str, str, str], ...] = (),
) -> dict[str, Any]:
    """`query` is what it counts, of the pattern of results; None if it counts nothing."""
    source: dict[str, Any] = {"query": {"query": query or "", "language": "kuery"}, "filter": []}
    if query is not None:
        source["indexRefName"] = _SOURCE
        references = ((_SOURCE, "index-pattern", f"benchctl-{shape_name}-results"), *references)
    attributes = {
        "title": f"benchctl: {title}",
        "visState": _compact({"title": title, **state}),
        "uiStateJSON": "{}",
        "description": "",
        "version": 1,
        "kibanaSavedObjectMeta": {"searchSourceJSON": _compact(source)},
    }
    return _object("visualization", f"benchctl-{shape_name}-{suffix}", attributes, references)


def _read_me(name: ShapeName) -> dict[str, Any]:
    params = {"markdown": _READ_ME, "fontSize": 12, "openLinksInNewTab": False}
    return _visualization(
        name, "read-me", "how to read this", {"type": "markdown", "aggs": [], "params": params}
    )


def _choice(name: ShapeName, shape: Shape) -> dict[str, Any]:
    """Lists to choose from: medians over different tasks, or hosts, would mean nothing."""
    fields = ("environment", shape.track, shape.challenge, "task", shape.car)
    controls = [
        {
            "id": field,
            "fieldName": field,
            "parent": "",
            "label": field,
            "type": "list",
            "options": {
                "type": "terms",
                "multiselect": True,
                "dynamicOptions": True,
                "size": 20,
                "order": "desc",
            },
            "indexPatternRefName": f"control_{place}_index_pattern",
        }
        for place, field in enumerate(fields)
    ]
    state = {
        "type": "input_control_vis",
        "aggs": [],
        "params": {
            "controls": controls,
            "updateFiltersOnChange": True,
            "useTimeFilter": True,
            "pinFilters": False,
        },
    }
    references = tuple(
        (str(one["indexPatternRefName"]), "index-pattern", f"benchctl-{name}-results") for one in controls
    )
    return _visualization(name, "choice", "choose", state, references=references)


def _aggregation(number: int, kind: str, schema: str, **params: object) -> dict[str, Any]:
    return {"id": str(number), "enabled": True, "type": kind, "schema": schema, "params": params}


def _median(number: int, field: str, label: str) -> dict[str, Any]:
    return _aggregation(number, "median", "metric", field=field, percents=[50], customLabel=label)


def _terms(number: int, schema: str, field: str) -> dict[str, Any]:
    return _aggregation(number, "terms", schema, field=field, orderBy="_key", order="asc", size=50)


def _line(name: ShapeName, shape: Shape, line: _Line, number: int) -> dict[str, Any]:
    axis = {"show": True, "style": {}, "labels": {"show": True, "truncate": 100}}
    value_axis = {
        **axis,
        "id": "ValueAxis-1",
        "name": "LeftAxis-1",
        "type": "value",
        "position": "left",
        "scale": {"type": "linear", "mode": "normal"},
        "title": {"text": line.title},
    }
    series = {
        "show": True,
        "type": "line",
        "mode": "normal",
        "data": {"label": line.title, "id": "1"},
        "valueAxis": "ValueAxis-1",
        "drawLinesBetweenPoints": True,
        "lineWidth": 2,
        "showCircles": True,
        "interpolate": "linear",
    }
    category = {
        **axis,
        "id": "CategoryAxis-1",
        "type": "category",
        "position": "bottom",
        "scale": {"type": "linear"},
        "title": {},
    }
    params = {
        "type": "line",
        "grid": {"categoryLines": False},
        "categoryAxes": [category],
        "valueAxes": [value_axis],
        "seriesParams": [series],
        "addTooltip": True,
        "addLegend": True,
        "legendPosition": "right",
        "times": [],
        "addTimeMarker": False,
    }
    days = {"interval": "d", "min_doc_count": 1, "extended_bounds": {}}
    aggs = [
        _median(1, line.field, line.title),
        _aggregation(2, "date_histogram", "segment", field=shape.timestamp, **days),
        _terms(3, "group", shape.car),
    ]
    state = {"type": "line", "aggs": aggs, "params": params}
    return _visualization(name, f"line-{number}", line.title, state, query=_results_of(line.metric))


def _table(name: ShapeName, shape: Shape) -> dict[str, Any]:
    """Task by task and variant by variant: how many forks, where they are, and how far apart."""
    params = {"perPage": 25, "showPartialRows": False, "showMetricsAtAllLevels": False, "showTotal": False}
    aggs = [
        _aggregation(1, "cardinality", "metric", field=shape.id, customLabel="forks"),
        _median(2, "value.50_0", "median of p50, ms"),
        _aggregation(3, "std_dev", "metric", field="value.50_0", customLabel="p50 over forks, ms"),
        _median(4, "value.90_0", "median of p90, ms"),
        _median(5, "value.99_0", "median of p99, ms"),
        _terms(6, "bucket", "task"),
        _terms(7, "bucket", shape.car),
    ]
    state = {"type": "table", "aggs": aggs, "params": params}
    return _visualization(name, "table", "service time over forks", state, query=_results_of("service_time"))


def _results_of(metric: str) -> str:
    return f"name: {metric} and active: true"


def _dashboard(name: ShapeName, shape: Shape, panels: list[str]) -> dict[str, Any]:
    """Two panels a row; the table, which is last, has one of its own."""
    height, half = 14, _COLUMNS // 2
    cells = []
    for place, panel in enumerate(panels):
        last = place == len(panels) - 1
        cells.append(
            {
                "version": _FORM["visualization"],
                "gridData": {
                    "x": 0 if last else place % 2 * half,
                    "y": -(-place // 2) * height if last else place // 2 * height,
                    "w": _COLUMNS if last else half,
                    "h": height,
                    "i": panel,
                },
                "panelIndex": panel,
                "embeddableConfig": {},
                "panelRefName": f"panel_{place}",
            }
        )
    attributes = {
        "title": f"benchctl: results in {shape.tool}'s shape",
        "hits": 0,
        "description": "",
        "panelsJSON": _compact(cells),
        "optionsJSON": _compact({"useMargins": True, "hidePanelTitles": False}),
        "version": 1,
        "timeRestore": True,
        "timeFrom": _SINCE,
        "timeTo": "now",
        "refreshInterval": {"pause": True, "value": 0},
        "kibanaSavedObjectMeta": {
            "searchSourceJSON": _compact({"query": {"query": "", "language": "kuery"}, "filter": []})
        },
    }
    references = tuple((f"panel_{place}", "visualization", panel) for place, panel in enumerate(panels))
    return _object("dashboard", f"benchctl-{name}", attributes, references)
