"""Commands with a home of the test's."""

from cli.conftest import home

__all__ = ["home"]
