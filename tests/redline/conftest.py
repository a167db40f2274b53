"""Commands with a home of the test's, and samples."""

from cli.conftest import home
from stats.conftest import samples

__all__ = ["home", "samples"]
