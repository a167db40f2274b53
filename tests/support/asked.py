"""A run as it is asked for: both engines, on the shipped track."""

from typing import Any

from benchctl.run.plan import RunSpec
from builders import CORPUS, ES, OS


def asked(**changes: Any) -> RunSpec:
    """Return what is usual, with changes."""
    usual: dict[str, Any] = {
        "variants": (ES, OS),
        "challenges": ("range-only",),
        "forks": 3,
        "seed": 1,
        "heap_mb": 512,
        "track": "big5",
        "corpus": CORPUS,
        "params": {},
    }
    return RunSpec(**{**usual, **changes})
