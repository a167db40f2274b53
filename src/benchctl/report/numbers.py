"""Numbers as readers want them, text that is shown and not obeyed, and JSON for programs and eyes."""

import math
import re
from collections.abc import Callable

import msgspec

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Unicode's categories Cc but for tabs and line ends, Cf, Cs, Zl and Zp: what moves the cursor, turns the
# direction of the text around, or has no width.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def visible(text: str) -> str:
    """Return the text with a mark in place of every character that a terminal or a browser would obey."""
    return _OBEYED.sub(_REPLACEMENT, text)


def json_text(value: object) -> str:
    """Return a value that msgspec can encode as indented JSON with a final line break."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


NOT_AVAILABLE = "n/a"

_DIGITS = 4
_MOST_DECIMALS = 10
_LEAST_P = 0.001
_LARGE = 10_000
_HUGE_PERCENT = 1000
_COARSE_PERCENT = 10
_ALL_PERCENT, _ABSURD_PERCENT = -99.5, 10_000
_MIB_IN_GIB = 1024
_MB_IN_GB = 1000


def figure(value: float | None) -> str:
    """Return four significant digits, at least one decimal under 10,000: `0.4213`, `12.35`, `1,964.8`."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    if abs(value) >= _LARGE:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(float(f"{value:.{_DIGITS - 1}e}"))))
    decimals = min(max(1, _DIGITS - 1 - magnitude), _MOST_DECIMALS)
    return f"{value:,.{decimals}f}"


def signed_percent(value: float | None, decimals: int = 1) -> str:
    """Return one decimal and always a sign, none beyond 1,000: `+80.0`, `-44.1`; a rounded zero is `0.0`."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    if abs(value) >= _HUGE_PERCENT:
        return f"{value:+,.0f}"
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0 else text


def signed_figure(value: float | None) -> str:
    """Return the number as `figure` does, with a sign unless it is 0."""
    text = figure(value)
    return text if value is None or not value > 0 else f"+{text}"


def percent(value: float | None) -> str:
    """Return a size without a sign: `3.4%`."""
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    return f"{value:,.0f}%" if value >= _HUGE_PERCENT else f"{value:.1f}%"


def rough(size_percent: float) -> str:
    """Return a size in percent as well as an interval's ends are known: whole from ten on, else `4.5`."""
    return f"{size_percent:.{_decimals(size_percent)}f}"


def _decimals(size_percent: float) -> int:
    return 0 if abs(size_percent) >= _COARSE_PERCENT else 1


def interval(low: float | None, high: float | None, shown: Callable[[float], str] | None = None) -> str:
    """Return `-1.2..+3.4`, in percent (whole from ten on) or as `shown`; `over -1.2`, `up to +3.4` if open.

    In percent, an end that is a loss of all, or a gain of more than 10,000%, carries no information.
    """
    if low is None:
        return NOT_AVAILABLE
    begins, ends = True, high is not None
    if shown is None:
        begins, ends = low > _ALL_PERCENT, high is not None and high <= _ABSURD_PERCENT
    ended = shown or (lambda end: signed_percent(end, _decimals(end)))
    first, last = ended(low) if begins else "", ended(high) if ends and high is not None else ""
    if first and last:
        return f"{first}..{last}"
    return f"over {first}" if first else f"up to {last}" if last else "unbounded"


def p_value(p: float | None) -> str:
    """Return three decimals; `<0.001` below them."""
    if p is None:
        return NOT_AVAILABLE
    return f"<{_LEAST_P}" if p < _LEAST_P else f"{p:.3f}"


def counted(count: int, word: str) -> str:
    """Return `1 fork`, `1,200 forks`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def mebibytes(size_bytes: float) -> str:
    """Return a size in MiB or GiB."""
    size = size_bytes / 2**20
    return f"{size / _MIB_IN_GIB:,.1f} GiB" if size >= _MIB_IN_GIB else f"{size:,.1f} MiB"


def megabytes(size_bytes: float) -> str:
    """Return what an index holds, in MB as its metrics have it, or GB."""
    size = size_bytes / 1e6
    return f"{size / _MB_IN_GB:,.1f} GB" if size >= _MB_IN_GB else f"{size:,.1f} MB"


def duration(seconds: float) -> str:
    """Return seconds for readers: `48 s`, `3 min 20 s`, `1 h 05 min`."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - a minute
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def with_unit(number: str, unit: str) -> str:
    """Return the number with its unit: `3.2 ms`, and `3.2%` as options take it."""
    return f"{number}%" if unit == "%" else f"{number} {unit}"
