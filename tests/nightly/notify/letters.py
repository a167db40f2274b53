"""Messages and letters for tests of notifiers."""

from typing import Any

from benchctl.nightly.model import Message
from benchctl.nightly.notify import Letter, write_letter

CREATED = "2026-11-21T03:40:00+01:00"


def message(number: int = 42, **changes: Any) -> Message:
    night = f"{number:05d}-20261121-0300"
    content: dict[str, Any] = {
        "id": f"big5/{night}",
        "suite": "big5",
        "night": night,
        "number": number,
        "started": "2026-11-21T03:00:00+01:00",
        "status": "alarm",
        "subject": f"big5 night {number}: 1 alarm → range is 12 % slower",
        "text": "range is 12 % slower\n  since night 41\n",
    }
    return Message(**(content | changes))


def letter(number: int = 42, **changes: Any) -> Letter:
    return write_letter(message(number, **changes), destination="d", title="somebody", created=CREATED)
