"""An observer that keeps what it is told."""

from benchctl.results.model import ForkRecord
from benchctl.run.bench import Observer


class Told(Observer):
    """Keeps what it is told, by kind."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.stages: list[str] = []
        self.steps: list[tuple[str, int, int]] = []
        self.left: list[float | None] = []
        self.left_after: dict[tuple[int, str], float | None] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)

    def stage(self, text: str) -> None:
        self.stages.append(text)

    def progress(self, what: str, done: int, total: int) -> None:
        self.steps.append((what, done, total))

    def fork_started(self, variant: str, number: int, total: int | None, remaining_s: float | None) -> None:
        del variant, number, total
        self.left.append(remaining_s)

    def fork_done(self, record: ForkRecord, remaining_s: float | None) -> None:
        self.left_after[record.block, record.variant] = remaining_s
