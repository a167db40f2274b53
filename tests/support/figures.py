"""Charts as a page has them: plotly checks every key and value, and arrays are lists of six digits again."""

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go

from benchctl.report.charts import Chart
from benchctl.report.html.parts import embedded


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
