"""One message for one notifier, as it waits to be delivered."""

from typing import Final

import msgspec

from benchctl.report.nightly.message import Message

LETTER_VERSION: Final = 1


class Letter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A message on its way; no field holds a secret.

    Attributes:
        letter_version: of this format.
        key: id of the message, the same at every attempt: who gets it twice can tell by it.
        destination: digest of where it goes.
        title: what messages call that.
        night: id of its night.
        created: wall clock, ISO 8601 with offset.
        subject: one line.
        text: one screen.
        body: the whole message as JSON.
        attempts: how often it was tried.
        reason: why the last attempt failed; empty before the first.
    """

    letter_version: int
    key: str
    destination: str
    title: str
    night: str
    created: str
    subject: str
    text: str
    body: msgspec.Raw
    attempts: int = 0
    reason: str = ""


def write_letter(message: Message, *, destination: str, title: str, created: str) -> Letter:
    """Address a message to one notifier."""
    return Letter(
        letter_version=LETTER_VERSION,
        key=message.id,
        destination=destination,
        title=title,
        night=message.night,
        created=created,
        subject=message.subject,
        text=message.text,
        body=msgspec.Raw(msgspec.json.encode(message)),
    )
