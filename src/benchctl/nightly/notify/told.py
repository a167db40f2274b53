"""Up to which night somebody was told: one that was killed before it told is told of by the next."""

import contextlib
from collections.abc import Iterable
from typing import Final

from benchctl.errors import BenchctlError
from benchctl.nightly.baseline import number_of
from benchctl.results.nightly.folder import SuiteFolder, write_whole
from benchctl.results.nightly.model import NightRecord

_NAME: Final = "told"


def remember_told(folder: SuiteFolder, night: NightRecord) -> None:
    """Keep that the messages about a night are sent, or wait in the outbox.

    Where that cannot be written, the night is told of again: rather twice than never.
    """
    if night.id:
        with contextlib.suppress(BenchctlError):
            write_whole(folder.root / _NAME, f"{night.id}\n".encode())


def untold(folder: SuiteFolder, nights: Iterable[NightRecord], tonight: NightRecord) -> list[NightRecord]:
    """The nights before tonight's that nobody was told of, in order; none where that was never kept.

    Args:
        folder: of the suite.
        nights: of it, as they ended.
        tonight: the night that is told of just now.
    """
    try:
        last = number_of((folder.root / _NAME).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []
    return sorted(
        (night for night in nights if last and last < night.number < tonight.number),
        key=lambda night: night.number,
    )
