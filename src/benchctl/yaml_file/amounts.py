"""Amounts as people write them into YAML: times, sizes, shares, numbers of documents."""

import re
from typing import Annotated, Final

from msgspec import Meta

Duration = Annotated[
    str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?(s|m|h)$", description="a time such as 90s, 30m or 2h")
]
HeapSize = Annotated[str, Meta(pattern=r"^[0-9]{1,9}[mMgG]$", description="a heap size such as 512m or 4g")]
Percent = Annotated[
    str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})? ?%$", description="a percentage such as 3% or 0.5%")
]
Documents = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]+(_[0-9]+)*(\.[0-9]+)?[kmbKMB]?$",
        description="a number of documents such as 300k, 1m or 20_000",
    ),
]

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def seconds(text: Duration) -> float:
    """A time, seconds."""
    return float(text[:-1]) * _SECONDS[text[-1]]


def mebibytes(text: HeapSize) -> int:
    """A heap size, MiB."""
    return int(text[:-1]) * (1024 if text[-1] in "gG" else 1)


def fraction(text: Percent) -> float:
    """A percentage, as a fraction of one."""
    return float(re.sub(r" ?%$", "", text)) / 100
