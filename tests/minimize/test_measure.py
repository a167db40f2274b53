"""What whoever watches a search is told of its runs, and what not."""

from typing import Any

from benchctl.minimize.measure import _CalmObserver
from builders import make_fork


class Heard:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def note(self, text: str) -> None:
        self.told.append(("note", text))

    def stage(self, text: str) -> None:
        self.told.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        self.told.append((what, done, total))

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        self.told.append((variant, number, total, remaining_s))

    def fork_done(self, record: Any) -> None:
        self.told.append(record.block)


def test_what_is_fetched_and_built_is_told_once_and_of_forks_everything_but_when_all_are_done() -> None:
    heard = Heard()
    observer = _CalmObserver(heard)
    observer.stage("building an index")
    observer.progress("documents", 1, 2)
    observer.note("5 forks see 10 %")
    observer.prepared = True
    observer.stage("looking for the index again")
    observer.fork_started("es", 1, 24, 99.0)
    observer.stage("a task")
    observer.fork_done(make_fork("es", 3))
    observer.stage("after it")
    assert heard.told == [
        "building an index",
        ("documents", 1, 2),
        ("es", 1, 24, None),
        "a task",
        3,
    ]
