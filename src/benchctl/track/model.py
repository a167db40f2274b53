"""The typed form of a track: index body, operations, challenges and their tasks (Rally's words and keys)."""

from itertools import groupby
from typing import Any, Literal

import msgspec

from benchctl.errors import UsageError
from benchctl.track.catalogue import AnyOperation

ScheduleName = Literal["deterministic", "poisson", "unthrottled"]
ErrorLevel = Literal["non-fatal"]


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
        target_throughput: units a second over all clients; None means as fast as the node answers.
        target_interval: seconds between requests over all clients; the other way to say target_throughput.
        schedule: how arrivals are spaced when there is a target.
        ramp_up_time_period: seconds over which the clients start one after the other.
        ignore_response_error_level: `non-fatal` lets the task go on after failed requests whatever the run's
            policy is.
        per_request: units of target_throughput in one request: 1 for requests, the documents of a body where
            the target is in documents.
        group: which parallel element of the schedule it stands in; None when it runs alone.
        lanes: how many clients the tasks of the group share; None means as many as they have together.
        completes: its end is the end of its group.
        tags: names that filters select it by.
        meta: the user's own notes.
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
    ramp_up_time_period: float | None = None
    ignore_response_error_level: ErrorLevel | None = None
    per_request: float = 1.0
    group: int | None = None
    lanes: int | None = None
    completes: bool = False
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}

    @property
    def label(self) -> str:
        """What tables call this task."""
        return self.name or self.operation

    @property
    def rate_per_s(self) -> float | None:
        """Offered requests a second over all clients; None when the task is closed loop."""
        if self.target_interval is not None:
            return 1.0 / self.target_interval
        if self.target_throughput is None:
            return None
        return self.target_throughput / self.per_request


class Challenge(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A named schedule of tasks.

    Attributes:
        name: what the command line calls it.
        schedule: the tasks, those of a parallel element one behind the other.
        default: whether the track prefers it.
        description: for listings.
        operations: those that are defined within the schedule, by name.
        cluster_settings: put on every node before the first task.
        user_info: shown when the challenge is run.
        meta: the user's own notes.
    """

    name: str
    schedule: tuple[Task, ...]
    default: bool = False
    description: str = ""
    operations: dict[str, AnyOperation] = {}
    cluster_settings: dict[str, Any] = {}
    user_info: str = ""
    meta: dict[str, Any] = {}

    @property
    def steps(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the tasks that run at the same time, in order: one, or a parallel element's."""
        # A task that runs alone has a group of its own, which no element has.
        keyed = groupby(
            range(len(self.schedule)),
            lambda place: (
                (place, None) if self.schedule[place].group is None else (None, self.schedule[place].group)
            ),
        )
        return tuple(tuple(places) for _, places in keyed)


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
    operations: dict[str, AnyOperation]
    digest: str

    @property
    def shards(self) -> int:
        """Primary shards of the index; engines give one where the settings say nothing."""
        settings = self.index_body.settings
        nested = settings.get("index")
        own = nested.get("number_of_shards") if isinstance(nested, dict) else None
        return int(settings.get("index.number_of_shards", settings.get("number_of_shards", own)) or 1)

    def with_challenges(self, *challenges: Challenge) -> "Track":
        """The track with the operations that these challenges define themselves.

        Raises:
            UsageError: two of them define different ones of the same name.
        """
        defined: dict[str, AnyOperation] = {}
        for challenge in challenges:
            for name, operation in challenge.operations.items():
                if defined.setdefault(name, operation) != operation:
                    raise UsageError(
                        f"challenge {challenge.name} and one before it define different operations '{name}'",
                        hint="give each a name of its own",
                    )
        return msgspec.structs.replace(self, operations={**self.operations, **defined})
