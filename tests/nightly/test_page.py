"""The page of a suite's nights, parsed: no browser."""

import base64
import json
import re

import msgspec
import numpy as np

from benchctl.nightly.page import suite_page
from benchctl.nightly.series import Series
from nightly.made import KEY, alarm, drawn, night, recovered, series

HOSTILE = "<img src=x onerror=alert(1)>"
NIGHTS = [night(number, era="f" if number > 5 else "e", canary="pinned") for number in range(1, 9)]


def three(task: str = "range") -> list[Series]:
    """Two watched variants and a canary; the second night of one is missing."""
    keys = [msgspec.structs.replace(KEY, variant=name, task=task) for name in ("es", "os", "pinned")]
    made = [Series(**{**vars(drawn([0.0] * 8, seed=seed)), "key": key}) for seed, key in enumerate(keys)]
    return [series([[1.0], [], *[[1.0]] * 6], key=keys[0]), *made[1:]]


def figures(page: str) -> list[dict[str, list[dict[str, object]]]]:
    texts = re.findall(r'<script type="application/json" id="history-\d+-data">(.*?)</script>', page)
    return [json.loads(text) for text in texts]


def test_every_metric_of_a_task_has_a_chart_with_its_alarms_and_eras():
    page = suite_page("big5", NIGHTS, three(), [recovered(1, 3, 5), alarm(2, 7)])
    (chart,) = figures(page)
    assert [trace["name"] for trace in chart["data"]] == ["es", "os", "pinned (canary)", "alarm"]
    assert chart["data"][3]["x"] == [3, 7]
    (line,) = chart["layout"]["shapes"]
    assert line["x0"] == 5.5
    assert NIGHTS[-1].run in page


def test_a_line_ends_where_a_night_is_missing():
    values = figures(suite_page("big5", NIGHTS, three(), []))[0]["data"][0]["y"]
    decoded = np.frombuffer(base64.b64decode(values["bdata"]), "<f4")
    assert (decoded.size, np.flatnonzero(np.isnan(decoded)).tolist()) == (8, [1])


def test_names_from_outside_are_no_markup():
    assert HOSTILE not in suite_page("big5", NIGHTS[:2], three(HOSTILE), [alarm(1, 1, title=HOSTILE)])
