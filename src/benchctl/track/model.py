"""The typed form of a track: index body, operations, challenges and their tasks (Rally's words and keys)."""

from typing import Any, Literal

import msgspec

ScheduleName = Literal["deterministic", "poisson"]


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One request that a task repeats.

    Attributes:
        name: what tasks and tables call it.
        operation_type: Rally's type; `search` is the one that can be measured so far.
        body: the JSON body of the request.
        index: the index to search; None means the track's own.
        request_params: query parameters of the URL.
        request_timeout: seconds until a request counts as timed out; None means the driver's default.
    """

    name: str
    operation_type: Literal["search"] = "search"
    body: dict[str, Any] = {}
    index: str | None = None
    request_params: dict[str, Any] = {}
    request_timeout: float | None = None

    @property
    def url_params(self) -> dict[str, str]:
        """The query parameters as engines read them: `true` and `false`, lists separated by commas."""
        return {key: _url_param(value) for key, value in self.request_params.items()}


def _url_param(value: Any) -> str:  # noqa: ANN401 - whatever JSON the track holds
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(_url_param(item) for item in value)
    return "" if value is None else str(value)


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """One entry of a schedule. Iterations are per client, as in Rally.

    Attributes:
        operation: the operation's name.
        name: the task's own name; empty means the operation's.
        clients: concurrent clients, each with one connection.
        warmup_iterations: unmeasured requests before the measured ones, per client.
        iterations: measured requests per client; None with a time period.
        warmup_time_period: seconds of unmeasured requests.
        time_period: seconds of measured requests.
        target_throughput: requests a second over all clients; None means as fast as the node answers.
        target_interval: seconds between requests over all clients; the other way to say target_throughput.
        schedule: how arrivals are spaced when there is a target.
    """

    operation: str
    name: str = ""
    clients: int = 1
    warmup_iterations: int | None = None
    iterations: int | None = None
    warmup_time_period: float | None = None
    time_period: float | None = None
    target_throughput: float | None = None
    target_interval: float | None = None
    schedule: ScheduleName = "deterministic"

    @property
    def label(self) -> str:
        """What tables call this task."""
        return self.name or self.operation

    @property
    def rate_per_s(self) -> float | None:
        """Offered requests a second over all clients; None when the task is closed loop."""
        if self.target_interval is not None:
            return 1.0 / self.target_interval
        return self.target_throughput


class Challenge(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A named schedule of tasks."""

    name: str
    schedule: tuple[Task, ...]
    default: bool = False
    description: str = ""


class IndexBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings and mappings that both engines get."""

    settings: dict[str, Any]
    mappings: dict[str, Any]


class Track(msgspec.Struct, frozen=True):
    """A loaded track.

    Attributes:
        name: the track's name.
        index_name: the index that documents go to and searches ask.
        index_body: settings and mappings of that index.
        operations: by name.
        digest: SHA-256 over the rendered files, so that results of different tracks are never compared.
    """

    name: str
    index_name: str
    index_body: IndexBody
    operations: dict[str, Operation]
    digest: str
