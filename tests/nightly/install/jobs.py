"""Jobs for tests of what starts a suite."""

from pathlib import Path
from typing import Any

from benchctl.nightly.install import Daily, Job


def job(**changes: Any) -> Job:
    content: dict[str, Any] = {
        "suite": "big5",
        "file": Path("/suites/big5.yml"),
        "when": Daily.parse("03:00", "mon-fri"),
        "program": ("/venv/bin/benchctl",),
        "environment": (("PATH", "/usr/bin:/bin"),),
        "folder": Path("/home/me/nightly/big5"),
    }
    return Job(**(content | changes))
