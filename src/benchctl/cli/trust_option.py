"""`--trust`: the option, and what `track validate` and `track show` say of a track's Python plug-in."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from benchctl.cli.options import under
from benchctl.cli.streams import say
from benchctl.home import resolve_home
from benchctl.plugin.code import Code, Consent, read_code
from benchctl.run.plugin import plugin_problems
from benchctl.track.library import find_track
from benchctl.track.model import Challenge, Track

F = TypeVar("F", bound=Callable[..., Any])

trust_option = under(
    "What is measured",
    click.option(
        "--trust", is_flag=True, help="Execute the track's Python plug-in; see `benchctl track trust`."
    ),
)
"""The option; the command gets it as `trust`."""


def code_of(path: str) -> Code | None:
    """The plug-in of a track, given by path or a shipped track's name; nothing of it is executed."""
    return read_code(find_track(path).parent)


def echo_plugin(path: str, track: Track, challenges: Iterable[Challenge], *, trust: bool) -> None:
    """Print the state of the plug-in that challenges need; execute it only if trusted.

    Raises:
        UsageError: it was executed, and failed, or lacks something that all of the challenges need.
    """
    challenges = tuple(challenges)
    needing = [challenge for challenge in challenges if track.lacking(challenge)]
    code = code_of(path) if needing else None
    if code is None:
        return
    say(f"plug-in {code.digest[:12]}: {code.describe()}")
    if trust:
        problems = plugin_problems(code, track, needing)
        if problems and len(problems) == len(challenges):
            raise problems[0]
        say("it was executed" if problems else "it was executed, and registers all that is needed")
        for problem in problems:
            say(problem.message)
    elif Consent(resolve_home()).is_remembered(code):
        say("you trust it: `benchctl run` executes it")
    else:
        say(
            "nothing of it was executed; `benchctl run` does so with --trust, or after `benchctl track trust`"
        )
