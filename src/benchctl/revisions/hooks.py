"""Answers to the core about bisections."""

from collections.abc import Callable, Iterator

from benchctl.home import Home


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """The runs that bisections rest on, which lie in their folders."""
    del unread
    for run in (home.root / "bisections").glob("*/runs/*"):
        yield str(run.resolve()), f"bisection {run.parents[1].name}"
