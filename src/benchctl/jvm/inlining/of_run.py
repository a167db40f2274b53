"""The inlining logs of a run: which node starts left one, and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.jvm.inlining.log import PACKED_SUFFIX
from benchctl.results.model import BootRecord, RunRecord
from benchctl.results.store import RunFolder

_LOG_NAME = "jvm.log"
_STDOUT_NAME = "stdout.log"
_FLAG = "-XX:+PrintInlining"
_HOW = "benchctl run --evidence inlining keeps one of every node start"


@dataclass(frozen=True)
class RunLog:
    """The log of one node start.

    Attributes:
        path: of the file.
        variant: whose; empty for a file that belongs to no run.
        block, boot: which node start.
        schedules: positions of the challenges that ran on it.
    """

    path: Path
    variant: str = ""
    block: int = 0
    boot: int = 0
    schedules: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """Which it is, for readers."""
        return f"{self.variant}, block {self.block}, boot {self.boot}" if self.variant else str(self.path)


def logs_of(folder: RunFolder, record: RunRecord) -> list[RunLog]:
    """All there are, by block and boot.

    These are kept as evidence, or are the standard output of nodes whose variant had the flag itself.
    """
    return [
        RunLog(path, fork.variant, fork.block, number, boot.schedules)
        for fork in sorted(record.forks, key=lambda one: (one.block, one.position))
        for number, boot in enumerate(fork.boots)
        if (path := _kept(folder, fork.variant, fork.block, number, boot)) is not None
    ]


def choose(logs: Sequence[RunLog], variant: str | None, block: int | None, boot: int | None) -> RunLog:
    """The one that is asked for: of several blocks the first, of several boots the last.

    Raises:
        UsageError: there is none, or no variant is named where several have one.
    """
    if not logs:
        raise UsageError("the run has no inlining log", hint=_HOW)
    variants = list(dict.fromkeys(log.variant for log in logs))
    if variant is None:
        if len(variants) > 1:
            raise UsageError(f"name one of the variants: {', '.join(variants)}", hint="with --variant")
        variant = variants[0]
    if variant not in variants:
        raise UsageError(f"{variant} has no inlining log", hint=f"these have: {', '.join(variants)}")
    own = [log for log in logs if log.variant == variant]
    fitting = [log for log in own if block is None or log.block == block]
    fitting = [log for log in fitting if log.block == fitting[0].block and (boot is None or log.boot == boot)]
    if not fitting:
        there = ", ".join(f"{log.block} (boot {log.boot})" for log in own)
        raise UsageError("there is no such log", hint=f"{variant} has one of block {there}")
    return fitting[-1]


def _kept(folder: RunFolder, variant: str, block: int, number: int, boot: BootRecord) -> Path | None:
    evidence = folder.evidence_folder(variant, block, number)
    candidates = [evidence / _LOG_NAME, evidence / f"{_LOG_NAME}{PACKED_SUFFIX}"]
    if _FLAG in boot.command and boot.logs:
        candidates.append(folder.inside(boot.logs) / _STDOUT_NAME)
    return next((path for path in candidates if path.is_file()), None)
