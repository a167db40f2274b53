"""The Python plug-in of a plan: whether it is needed, may be executed, and provides what is needed."""

from collections.abc import Iterable
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.plugin.code import Code, Consent, read_code, refusal
from benchctl.plugin.session import PluginError, PluginUse, check_registered
from benchctl.results.plan import Plan, PluginSpec
from benchctl.track.library import find_track
from benchctl.track.load import reject_lacking
from benchctl.track.model import Challenge, Track
from benchctl.track.operations.catalogue import OPERATION_TYPES, PluginOperation


def allowed_plugin(
    name: str, track: Track, challenges: Iterable[Challenge], consent: Consent | None
) -> PluginSpec | None:
    """The plug-in that challenges need, executed once to check it; None when none is needed.

    A plug-in that only changes the track is executed if the user trusts it.

    Args:
        name: of the track, as given.
        track: as it was read.
        challenges: that are to be run.
        consent: to execute plug-ins; None for none at all.

    Raises:
        UsageError: If the plug-in is needed and may not be executed, is missing, fails, or lacks something.
    """
    needing = [challenge for challenge in challenges if track.lacking(challenge)]
    code = read_code(find_track(name).parent)
    if not needing and (code is None or not code.processes or consent is None or not consent.covers(code)):
        return None
    if code is None or consent is None or not consent.covers(code):
        try:
            reject_lacking(track, needing[0])
        except UsageError as err:
            raise refusal(err.message, code) from err
    if code is None:
        return None
    for problem in plugin_problems(code, track, needing):
        raise problem
    return PluginSpec(str(code.path), code.digest)


def plugin_problems(code: Code, track: Track, challenges: Iterable[Challenge]) -> list[UsageError]:
    """Execute a trusted plug-in, and check whether it provides what challenges need.

    Returns:
        What is missing, one error for each challenge that cannot be run.

    Raises:
        UsageError: If the plug-in fails.
    """
    asked = list(challenges)
    try:
        found = check_registered(code, [_needed(track, challenge) for challenge in asked])
    except PluginError as err:
        raise UsageError(err.message, hint=err.hint) from err
    return [
        UsageError(
            f"challenge '{challenge.name}' needs what the plug-in {code.path} does not register: "
            f"{'; '.join(missing)}"
        )
        for challenge, missing in zip(asked, found, strict=True)
        if missing
    ]


def confirm_plugin(plan: Plan, consent: Consent) -> None:
    """Check consent again when a run is resumed, which somebody else may have started.

    Raises:
        UsageError: If the user of this home has not consented.
    """
    if plan.plugin is None:
        return
    code = read_code(Path(plan.plugin.path).parent)
    # A changed plug-in is not executed at all: `plugin_changes` reports it.
    if code is not None and code.digest == plan.plugin.digest and not consent.covers(code):
        raise refusal("the run needs the Python plug-in of its track", code)


def plugin_use(plan: Plan, track: Track, session: int = 0) -> PluginUse | None:
    """Describe how the load finds the plan's plug-in; tasks of one `session` share its modules' state."""
    if plan.plugin is None:
        return None
    return PluginUse(Path(plan.plugin.path).parent, plan.plugin.digest, track, session=session)


def plugin_changes(plan: Plan) -> list[str]:
    """Return how the plan's plug-in has changed."""
    if plan.plugin is None:
        return []
    code = read_code(Path(plan.plugin.path).parent)
    if code is None:
        return [f"the plug-in {plan.plugin.path} is gone"]
    if code.digest == plan.plugin.digest:
        return []
    return [f"the plug-in {plan.plugin.path} was {plan.plugin.digest[:12]}, is {code.digest[:12]}"]


def _needed(track: Track, challenge: Challenge) -> dict[str, frozenset[str]]:
    """Names that have to be registered, by kind."""
    known = track.operations | challenge.operations
    operations = [known[task.operation] for task in challenge.schedule]
    foreign = [operation for operation in operations if isinstance(operation, PluginOperation)]
    return {
        "param source": frozenset(one.param_source for one in foreign if one.param_source is not None),
        "operation type": frozenset(one.type for one in foreign if one.type not in OPERATION_TYPES),
        "scheduler": frozenset(task.scheduler for task in challenge.schedule if task.scheduler is not None),
    }
