import math
from collections.abc import Collection
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from benchctl.nightly.model import Series, SeriesKey
from benchctl.nightly.screening import canary_moved
from nightly.made import KEY, series

NIGHTS = 20


def canary(tasks: int, *, host: float = 0.0, one: float = 0.0, seed: int = 1) -> list[Series]:
    """Tasks of which all, and the first besides, are slower in the last night."""
    rng = np.random.default_rng(seed)
    made = []
    for task in range(tasks):
        logs = math.log(3.0 + task) + rng.normal(0, 0.02, (NIGHTS, 1)) + rng.normal(0, 0.02, (NIGHTS, 3))
        logs[-1] += host + (one if task == 0 else 0.0)
        made.append(series(np.exp(logs).tolist(), key=key("canary", f"task {task}")))
    return made


def key(variant: str, task: str, metric: str = KEY.metric) -> SeriesKey:
    return msgspec.structs.replace(KEY, variant=variant, task=task, metric=metric)


def before(_series: Series) -> Collection[int]:
    return range(1, NIGHTS)


def test_a_canary_that_does_not_move_holds_nothing():
    found = canary_moved(canary(10), NIGHTS, usual=before, margin=0.05)
    assert (found.moves, found.text) == ((), "")
    assert found.holds(key("es", "task 3"), "slower") == ""


def test_a_slower_host_holds_every_slower_figure_of_that_metric():
    found = canary_moved(canary(10, host=0.08), NIGHTS, usual=before, margin=0.05)
    (whole,) = found.moves
    assert (whole.variant, whole.tasks, whole.screened.direction) == ("canary", 10, "slower")
    assert found.text.startswith("the canary is slower: service_time.p50 of its 10 tasks +")
    assert found.holds(key("es", "a task of its own"), "slower") == found.text
    assert found.holds(key("es", "task 3"), "faster") == ""
    assert found.holds(key("es", "a task of its own", "throughput"), "slower") == ""


def test_a_single_figure_of_the_canary_holds_nothing():
    assert canary_moved(canary(40, one=0.3), NIGHTS, usual=before, margin=0.05).moves == ()


def test_a_task_that_is_new_tonight_does_not_move_the_mean():
    new = series([[1000.0, 1000.0, 1000.0]], first=NIGHTS, key=key("canary", "new"))
    found = canary_moved([*canary(10), new], NIGHTS, usual=before, margin=0.05)
    assert found.moves == ()


def test_two_canaries_are_two_wholes():
    others = [
        replace(one, key=msgspec.structs.replace(one.key, variant="other")) for one in canary(5, host=0.1)
    ]
    found = canary_moved([*canary(5, host=0.1), *others], NIGHTS, usual=before, margin=0.05)
    assert [whole.variant for whole in found.moves] == ["canary", "other"]
    assert ";" in found.text


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("canary", "the canary"),
        ("canary-es", "canary-es"),
        ("old-canary", "old-canary"),
        ("old", "canary old"),
    ],
)
def test_a_canary_is_called_one_once(label: str, said: str):
    def labelled(made: list[Series]) -> list[Series]:
        return [replace(one, key=msgspec.structs.replace(one.key, variant=label)) for one in made]

    whole = canary_moved(labelled(canary(10, host=0.08)), NIGHTS, usual=before, margin=0.05)
    assert whole.text.startswith(f"{said} is slower: ")
