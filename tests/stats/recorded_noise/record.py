"""Makes a file of the library: `benchctl show RUN --format json | python record.py WHAT > NAME.json`."""

import json
import sys
from typing import Any


def of_analysis(analysis: dict[str, Any], what: str) -> dict[str, Any]:
    """What the file holds: pairs of figures; blocks that lack a side are left out."""
    pairs = {}
    for row in analysis["rows"]:
        first, second = (dict(zip(one["blocks"], one["values"], strict=True)) for one in row["figures"])
        pairs[f"{row['label']} {row['metric']}"] = [
            [float(f"{side[block]:.5g}") for side in (first, second)]
            for block in sorted(first.keys() & second.keys())
        ]
    return {"what": what, "figures": pairs}


if __name__ == "__main__":
    text = json.dumps(of_analysis(json.load(sys.stdin), sys.argv[1]))
    print(text.replace('], "', '],\n "').replace('{"', '{\n "'))  # noqa: T201 - a program
