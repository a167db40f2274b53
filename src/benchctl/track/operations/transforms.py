"""Operations that make other indices out of indices: transforms, lifecycles, downsampling, shrinking."""

from typing import Any, Literal

import msgspec

from benchctl.track.operations.common import Operation, PositiveSeconds, Retried, demand
from benchctl.track.operations.condition import Condition


class _OnTransform(Retried, frozen=True, kw_only=True):
    """Operations on a transform.

    Attributes:
        transform_id: its name.
    """

    transform_id: str


class CreateTransform(_OnTransform, frozen=True, kw_only=True, tag="create-transform"):
    """Create a transform.

    Attributes:
        body: what it does.
        defer_validation: check it only when it starts.
    """

    body: dict[str, Any]
    defer_validation: bool = False


class StartTransform(_OnTransform, frozen=True, kw_only=True, tag="start-transform"):
    """Start a transform.

    Attributes:
        timeout: how long the node waits for it to start.
    """

    timeout: str | None = None


class WaitForTransform(_OnTransform, frozen=True, kw_only=True, tag="wait-for-transform"):
    """Stop a transform at its next checkpoint, and ask until it has stopped.

    Attributes:
        force: stop it even when it has failed.
        timeout: of the request that stops it.
        wait_for_completion: False does not wait.
        wait_for_checkpoint: False stops it at once.
        transform_timeout: seconds in all.
        poll_interval: seconds between questions.
    """

    force: bool = False
    timeout: str | None = None
    wait_for_completion: bool = True
    wait_for_checkpoint: bool = True
    transform_timeout: PositiveSeconds = 3600.0
    poll_interval: PositiveSeconds = 0.5


class DeleteTransform(_OnTransform, frozen=True, kw_only=True, tag="delete-transform"):
    """Delete a transform; a missing one is no failure.

    Attributes:
        force: even while it runs.
    """

    force: bool = False


class TransformStats(_OnTransform, frozen=True, kw_only=True, tag="transform-stats"):
    """Statistics of a transform.

    Attributes:
        condition: on the statistics of the first transform of the answer; None takes any answer.
    """

    condition: Condition | None = None


class _OnPolicy(Retried, frozen=True, kw_only=True):
    """Operations on a lifecycle policy.

    Attributes:
        policy_name: its name.
    """

    policy_name: str


class CreateIlmPolicy(_OnPolicy, frozen=True, kw_only=True, tag="create-ilm-policy"):
    """Create a lifecycle policy.

    Attributes:
        body: with the `policy`.
    """

    body: dict[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(("policy" in self.body, "body: 'policy' is missing"))


class DeleteIlmPolicy(_OnPolicy, frozen=True, kw_only=True, tag="delete-ilm-policy"):
    """Delete a lifecycle policy."""


class Downsample(Operation, frozen=True, kw_only=True, tag="downsample"):
    """Make a coarser index of a time series.

    Attributes:
        source_index: from which; None means the track's own.
        target_index: to which; None means the source's name with the interval behind it.
        fixed_interval: of its points.
        sampling_method: how values become one.
    """

    source_index: str | None = None
    target_index: str | None = None
    fixed_interval: str = "1h"
    sampling_method: Literal["aggregate", "last_value"] | None = None


class ShrinkIndex(Retried, frozen=True, kw_only=True, tag="shrink-index"):
    """Make indices with fewer shards: all shards of a source move to one node, and become fewer there.

    Attributes:
        source_index: one, or a pattern.
        target_index: its name; with several sources, what they do not have in common goes behind it.
        target_body: settings of the target.
        shrink_node: that takes the shards; None means one that holds data, drawn by the run's seed.
    """

    source_index: str
    target_index: str
    target_body: dict[str, Any] = msgspec.field(default_factory=dict)
    shrink_node: str | None = None
