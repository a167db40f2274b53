"""A store of records on loopback: takes templates and bulk requests, and finds documents by their ids."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from loopback import KeepingHandler, serving


class FakeStore:
    """What it was told.

    Attributes:
        url: where it is.
        templates: path -> body.
        documents: index -> id -> record.
        bulks: how many bulk requests came.
        statuses: number of a bulk request, from 1 -> what it is answered with instead of being taken.
        refuses: reason that every record is refused with; empty to take them.
        authorization: header of the last request.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.templates: dict[str, Any] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.bulks = 0
        self.statuses: dict[int, int] = {}
        self.refuses = ""
        self.authorization: str | None = None
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        with self._lock:
            parts = path.strip("/").split("/")
            if parts[0] in ("_index_template", "_template"):
                if method == "PUT":
                    self.templates[path] = json.loads(body)
                return (200 if path in self.templates else 404), {}
            if parts[-1] == "_refresh":
                return 200, {}
            if parts[-1] == "_search":
                ids = json.loads(body)["query"]["ids"]["values"]
                known = {one for index in parts[0].split(",") for one in self.documents.get(index, {})}
                return 200, {"hits": {"hits": [{"_id": one} for one in ids if one in known]}}
            if path == "/_bulk":
                return self._bulk(body)
            return 404, {"error": f"{method} {path} is not expected"}

    def _bulk(self, body: bytes) -> tuple[int, Any]:
        self.bulks += 1
        if self.bulks in self.statuses:
            return self.statuses[self.bulks], {"error": {"type": "busy", "reason": "later"}}
        lines = body.decode().splitlines()
        items = []
        for action, record in zip(lines[::2], lines[1::2], strict=True):
            ((verb, where),) = json.loads(action).items()
            held = self.documents.setdefault(where["_index"], {})
            if self.refuses:
                items.append({verb: {"status": 400, "error": {"type": "mapping", "reason": self.refuses}}})
            elif verb == "create" and where["_id"] in held:
                items.append({verb: {"status": 409, "error": {"type": "conflict", "reason": "is there"}}})
            else:
                held[where["_id"]] = json.loads(record)
                items.append({verb: {"status": 201}})
        failed = any("error" in told for item in items for told in item.values())
        return 200, {"errors": failed, "items": items}


@contextmanager
def fake_store(port: int = 0) -> Iterator[FakeStore]:
    """A store that is up within the block."""

    class Store(KeepingHandler):
        def respond(self) -> None:
            store.authorization = self.headers.get("Authorization")
            status, answer = store.answer(self.command, urlsplit(self.path).path, self.sent())
            self.answer(status, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    with serving(Store, port) as used:
        store = FakeStore(used)
        yield store
