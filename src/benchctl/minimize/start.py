"""A new search: what was asked for, checked against the challenge, and its folder."""

from datetime import UTC, datetime

import msgspec

from benchctl.errors import UsageError
from benchctl.minimize.candidates import Candidates, candidates_of
from benchctl.results.minimize import MinimizeFolder, MinimizeRecord, MinimizeSpec
from benchctl.results.plan import Plan
from benchctl.track.model import Task, Track
from benchctl.track.schedule import challenge_text

LEAST_FORKS = 3


def default_metric(target: Task) -> str:
    """What shows an effect unless something else is asked for: a rate that was offered shows none."""
    return "service_time_p50" if target.throttled else "throughput"


def check_search(plan: Plan, track: Track, spec: MinimizeSpec) -> Candidates:
    """Whether a search makes sense; what it can try.

    Args:
        plan: of a run of the whole schedule.
        track: of the plan.
        spec: what is searched for; an empty metric means the usual one.

    Raises:
        UsageError: it makes none; nothing has been started.
    """
    if len(plan.schedules) != 1:
        raise UsageError(
            f"tasks are removed from one challenge, and {len(plan.schedules)} are given",
            hint="name one with --challenge",
        )
    challenge = plan.schedules[0]
    if plan.origin == "empty":
        raise UsageError(
            f"challenge '{challenge.name}' makes its own data, which its tasks cannot be without",
            hint="give a challenge that runs on data that benchctl prepares",
        )
    if spec.most_forks < LEAST_FORKS:
        raise UsageError(f"--forks must be at least {LEAST_FORKS}", hint="two pairs that agree may be luck")
    if spec.prefix_iterations is not None and spec.prefix_iterations < 1:
        raise UsageError("--prefix-iterations must be at least 1", hint="0 leaves counts as they are")
    if spec.by is not None and spec.by <= 0:
        raise UsageError("--by must be more than 0 %")
    if spec.budget_s is not None and spec.budget_s <= 0:
        raise UsageError("--budget must be more than no time")
    operations = track.with_challenges(challenge).operations
    candidates = candidates_of(challenge, spec.effect.task, operations, spec.prefix_iterations)
    target = operations[candidates.target.operation]
    if not target.reported:
        raise UsageError(
            f"--effect: '{spec.effect.task}' is a {target.type_name}, which has no figures to show it",
            hint="name a task that asks or indexes something",
        )
    if spec.metric == "throughput" and candidates.target.throttled:
        raise UsageError(
            f"--metric throughput: that of '{spec.effect.task}' is offered by its rate, and shows no effect",
            hint="use --metric service_time_p50, or --param target_throughput=0",
        )
    # What comes out has to be a file.
    challenge_text(challenge)
    return candidates


def new_search(folder_of: MinimizeFolder, plan: Plan, spec: MinimizeSpec) -> MinimizeRecord:
    """The record of a search that is about to start.

    Args:
        folder_of: its folder, which is named after the search.
        plan: of a run of the whole schedule.
        spec: what is searched for.
    """
    return MinimizeRecord(
        id=folder_of.path.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="running",
        spec=spec,
        plan=msgspec.structs.replace(plan, restart="never", forks=spec.most_forks, stop=None),
    )
