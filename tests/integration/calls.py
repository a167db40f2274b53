"""What it means to call benchctl as a user does."""

import subprocess
from collections.abc import Callable

Benchctl = Callable[..., subprocess.CompletedProcess[str]]
"""Runs the command line: arguments, and changes of the environment by keyword."""
