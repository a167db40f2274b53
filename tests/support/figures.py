"""Charts as a page has them: plotly checks every key and value, and arrays are lists of six digits again."""

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go

from benchctl.report.charts import Chart
from benchctl.report.html import embedded

MOST_SHOWN = 12


def drawn(chart: Chart | None) -> dict[str, Any]:
    """Return `data` and `layout` of a chart's figure."""
    assert chart is not None
    go.Figure(chart.figure)
    return _decoded(json.loads(embedded(chart.figure)))


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if "bdata" not in value:
            return {name: _decoded(inner) for name, inner in value.items()}
        numbers = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"]).tolist()
        return [None if np.isnan(number) else float(f"{number:.6g}") for number in numbers]
    return [_decoded(inner) for inner in value] if isinstance(value, list) else value


def chart_text(chart: Chart | None) -> str:
    """A chart as lines to compare: words, axes, shapes, traces with some of their numbers, the table."""
    if chart is None:
        return "no chart\n"
    figure = drawn(chart)
    lines = [f"{chart.key} | {chart.group} | {chart.title}", chart.about]
    for name, value in sorted(figure["layout"].items()):
        parts = value if isinstance(value, list) else [value]
        lines += [f"  {name}: {_brief(part)}" for part in parts if name != "template"]
    lines += [f"  trace: {_brief(trace)}" for trace in figure["data"]]
    table = chart.table
    lines += [] if table is None else [f"  | {' | '.join(row)}" for row in (table.titles, *table.texts)]
    return "".join(f"{line}\n" for line in lines)


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_brief(inner)}" for name, inner in sorted(value.items())) + "}"
    if isinstance(value, list) and len(value) > MOST_SHOWN:
        return f"{_brief(value[:4])[:-1]}, ... {len(value)} ..., {_brief(value[-2:])[1:]}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_brief, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
