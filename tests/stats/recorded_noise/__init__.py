"""Figures of real A/A runs, in which every difference is noise: methods are judged on them, too.

A file is one run: for every task and metric one pair of figures a block, in the order of blocks. `record.py`
makes one of a run.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent


def recorded() -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """(run, task and metric), ln of the figures of both sides, shape (blocks, 2)."""
    for path in sorted(FOLDER.glob("*.json")):
        figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
        for name, pairs in figures.items():
            yield f"{path.stem}, {name}", np.log(np.asarray(pairs, dtype=np.float64))
