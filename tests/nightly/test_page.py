"""The page of a suite's nights, parsed: no browser."""

import base64
import json
import re

import numpy as np

from benchctl.nightly.page import suite_page
from nightly_suites import VARIANTS, eventful_log, eventful_nights, eventful_series, night_id

HOSTILE = "<img src=x onerror=alert(1)>"
NIGHTS = eventful_nights()


def figures(page: str) -> list[dict[str, list[dict[str, object]]]]:
    texts = re.findall(r'<script type="application/json" id="history-\d+-data">(.*?)</script>', page)
    return [json.loads(text) for text in texts]


def test_every_metric_of_a_task_has_a_chart_with_its_alarms_and_eras():
    page = suite_page("big5", NIGHTS, eventful_series(("range",)), eventful_log(), {NIGHTS[0].run})
    service, throughput = figures(page)
    assert [trace["name"] for trace in service["data"]] == [
        *VARIANTS[:2],
        "pinned (canary)",
        "alarm",
    ]
    (line,) = service["layout"]["shapes"]
    assert line["x0"] == 59.5
    assert service["data"][3]["x"] == [40, 69]
    assert throughput["data"][3]["x"] == [40, 69]
    assert f'href="{NIGHTS[0].run}.html"' in page
    assert f'href="{NIGHTS[1].run}.html"' not in page
    assert night_id(70) in page


def test_a_line_ends_where_a_night_is_missing():
    page = suite_page("big5", NIGHTS, eventful_series(("range",)), (), ())
    values = figures(page)[0]["data"][0]["y"]
    decoded = np.frombuffer(base64.b64decode(values["bdata"]), "<f4")
    assert (decoded.size, np.flatnonzero(np.isnan(decoded)).tolist()) == (70, [19, 20, 54])


def test_names_from_outside_are_no_markup_and_a_suite_without_nights_has_a_page():
    page = suite_page("big5", NIGHTS[:2], eventful_series((HOSTILE,)), (), ())
    assert HOSTILE not in page
    assert "No night yet." in suite_page("big5", (), (), (), ())
