"""Sizes of corpora as people write them: 300k, 1m, 1.74b, 1_000_000."""

import re
from fractions import Fraction

from benchctl.errors import UsageError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}
_SIZE = re.compile(r"(?P<number>[0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?)(?P<unit>[kmb]?)", re.IGNORECASE | re.ASCII)


def parse_documents(text: str) -> int:
    """Read a number of documents: digits, `_` between them, a decimal fraction, and k, m or b in either case.

    Raises:
        UsageError: the text is something else, or not a whole number of at least one document.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"'{text}' is not a number of documents",
            hint="write it like 300k, 1m, 1.74b or 1_000_000",
        )
    documents = Fraction(match["number"].replace("_", "")) * _UNITS[match["unit"].lower()]
    if not documents:
        raise UsageError(
            f"'{text}': without documents there is nothing to search",
            hint="give at least 1, or leave it out for the default",
        )
    if documents.denominator != 1:
        raise UsageError(
            f"'{text}' is not a whole number of documents",
            hint="give fewer digits behind the point, or a larger unit: k, m or b",
        )
    return int(documents)
