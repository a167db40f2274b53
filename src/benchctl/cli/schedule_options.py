"""Options about what every fork does: challenges, their parameters, and when a fresh node comes between."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from benchctl.results.plan import RestartPolicy

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ScheduleOptions:
    """What every fork does.

    Attributes:
        challenges: names or files, in order.
        params: as written.
        restart: when a fresh node comes in between.
        warmups: names or files of challenges that run unmeasured after every boot.
    """

    challenges: tuple[str, ...]
    params: tuple[str, ...]
    restart: RestartPolicy
    warmups: tuple[str, ...]


def schedule_options(command: F) -> Callable[..., Any]:
    """The options; the command gets them as one, `schedule_options`."""

    @click.option(
        "--challenge", "challenges", multiple=True, metavar="NAME|FILE",
        help="What to run; repeat it to run schedules in order on one fork.",
    )  # fmt: skip
    @click.option(
        "--param", "params", multiple=True, metavar="NAME=VALUE",
        help="Set a parameter, such as iterations=300, or one of a single challenge: warmup.iterations=50.",
    )  # fmt: skip
    @click.option(
        "--restart", type=click.Choice(["challenge", "task", "never"]), default="challenge",
        show_default=True, help="When a fresh node comes in between.",
    )  # fmt: skip
    @click.option(
        "--warmup-challenge", "warmups", multiple=True, metavar="NAME|FILE",
        help="Run unmeasured on every fresh node before the schedule.",
    )  # fmt: skip
    @functools.wraps(command)
    def collected(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the command takes and gives
        own = {name: kwargs.pop(name) for name in ScheduleOptions.__dataclass_fields__}
        return command(*args, schedule_options=ScheduleOptions(**own), **kwargs)

    return collected
