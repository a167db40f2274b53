"""Options of a red-line search into a plan, checked before any node starts."""

import msgspec

from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.run.plan import PlanOptions, check_options, freeze
from benchctl.track.load import load_track, reject_unused
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.operations.common import MOST_WAIT_S, Asking
from benchctl.track.schedule import MOST_CLIENTS, MOST_PER_S

_MOST_TOLERANCE = 0.5
_LEAST_TOLERANCE = 0.001
_LEAST_MAX_PER_S = 2.0
_LEAST_WARM_UP_S = 0.5
_LEAST_STEP_S = 0.5
_NS_PER_S = 10**9


def plan_redline(options: PlanOptions, search: RedlineSpec) -> tuple[Plan, Track]:
    """Check that a search makes sense, and freeze it.

    The plan has one challenge of one task, the operation, so that everything that reads plans knows what was
    asked; the search decides at which rates.

    Args:
        options: what it has in common with a run; of challenges there are none.
        search: what is searched for.

    Raises:
        UsageError: something is wrong; nothing has been started.
    """
    check_options(options)
    _check(search)
    warmed = next((spec.name for spec in options.variants if spec.warmups), None)
    if warmed is not None:
        raise UsageError(
            f"variant '{warmed}' has warm-up challenges, and a red-line search warms up by itself",
            hint="name a variant without, or raise --warm-up",
        )
    track, known = load_track(options.track, options.params)
    reject_unused(options.params, known)
    operation = track.operations.get(search.operation)
    if operation is None:
        raise UsageError(
            f"there is no operation '{search.operation}' in track {track.name}",
            hint=f"{suggestion(search.operation, sorted(track.operations))}; see: benchctl list operations",
        )
    if isinstance(operation, PluginOperation):
        raise UsageError(
            f"'{search.operation}' needs {operation.lacks} of the track's Python plug-in, and red-lines are "
            "searched without plug-ins",
            hint="name an operation of benchctl's own types",
        )
    if not isinstance(operation, Asking):
        raise UsageError(
            f"'{search.operation}' is a {operation.type_name}, which has no red-line: only searches do",
            hint="name an operation that searches",
        )
    task = Task(
        operation=search.operation,
        clients=search.clients,
        time_period=search.step_s,
        warmup_time_period=search.settle_s,
        schedule=search.schedule,
    )
    challenge = Challenge(name=f"redline-{search.operation}", schedule=(task,))
    plan = msgspec.structs.replace(freeze(options, track, (challenge,)), redline=search)
    return plan, track


def _check(search: RedlineSpec) -> None:
    rules = (
        (not 1 <= search.clients <= MOST_CLIENTS, f"--clients must be at least 1, at most {MOST_CLIENTS:,}"),
        (
            not _LEAST_WARM_UP_S <= search.warm_up_s <= MOST_WAIT_S,
            f"--warm-up must be from {_LEAST_WARM_UP_S:g} to {MOST_WAIT_S:,} s",
        ),
        (
            not _LEAST_STEP_S <= search.step_s <= MOST_WAIT_S,
            f"--step-time must be from {_LEAST_STEP_S:g} to {MOST_WAIT_S:,} s",
        ),
        (not 0 <= search.settle_s <= MOST_WAIT_S, f"--settle must be from 0 to {MOST_WAIT_S:,} s"),
        (search.limit_ns > MOST_WAIT_S * _NS_PER_S, f"--slo must be at most {MOST_WAIT_S:,} s"),
        (
            not _LEAST_TOLERANCE <= search.tolerance <= _MOST_TOLERANCE,
            f"--tolerance must be from {_LEAST_TOLERANCE:.1%} to {_MOST_TOLERANCE:.0%}",
        ),
        (
            search.max_per_s is not None and not _LEAST_MAX_PER_S <= search.max_per_s <= MOST_PER_S,
            f"--max-rate must be from {_LEAST_MAX_PER_S:g} to {MOST_PER_S:,} a second",
        ),
    )
    for broken, text in rules:
        if broken:
            raise UsageError(text)
