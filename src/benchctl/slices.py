"""The register of features on top of the core, and the hooks that it calls."""

import importlib
from typing import Any, Literal

SLICES = ("experiment", "nightly", "search")

Hook = Literal["whole", "listing", "references", "schemas", "sql_view"]
"""What a slice may give in its `hooks.py`:

- listing: a command of `benchctl list`
- references(home, unread) -> (id of a run or its resolved path, who refers to it); `unread` is told what
  cannot be read
- schemas: name -> (type, key of its version, version), for `benchctl schema`
- whole(home, id, tags of the run of that id) -> None, or a `cli.resume.Whole` to go on with: that of this id,
  or that the run is part of
- sql_view(home) -> a `results.sql.FileView`
"""


def hooks(name: Hook) -> list[Any]:
    """Return what the slices give by that name; those that give nothing are left out."""
    modules = [importlib.import_module(f"benchctl.{one}.hooks") for one in SLICES]
    return [getattr(module, name) for module in modules if hasattr(module, name)]
