"""The module that makes the reference: no package has it."""

import functools
import importlib.util
from pathlib import Path
from types import ModuleType


@functools.cache
def reference() -> ModuleType:
    """Import `docs/reference.py`."""
    path = Path(__file__).parents[2] / "docs" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
