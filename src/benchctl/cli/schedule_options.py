"""Options about what every fork does: challenges, and when a fresh node comes in between."""

from dataclasses import dataclass

import click

from benchctl.cli.completion import completing
from benchctl.cli.options import grouped
from benchctl.results.plan import RestartPolicy
from benchctl.track.library import challenge_names


@dataclass(frozen=True)
class ScheduleOptions:
    """What every fork does.

    Attributes:
        challenges: names or files, in order.
        restart: when a fresh node comes in between.
        warmups: names or files of challenges that run unmeasured after every boot.
        as_written: ask as often as the challenges say, however small the corpus is.
    """

    challenges: tuple[str, ...]
    restart: RestartPolicy
    warmups: tuple[str, ...]
    as_written: bool = True


schedule_options = grouped(
    "schedule_options",
    ScheduleOptions,
    "What is measured",
    click.option(
        "--challenge",
        "--test-procedure",
        "challenges",
        multiple=True,
        metavar="NAME|FILE",
        shell_complete=completing(challenge_names),
        help="What to run; repeat it to run schedules in order on one fork.",
    ),
    click.option(
        "--restart",
        type=click.Choice(["challenge", "task", "never"]),
        default="challenge",
        show_default=True,
        help="When a fresh node comes in between.",
    ),
    click.option(
        "--warmup-challenge",
        "warmups",
        multiple=True,
        metavar="NAME|FILE",
        shell_complete=completing(challenge_names),
        help="Run unmeasured on every fresh node before the schedule.",
    ),
    click.option(
        "--as-written",
        is_flag=True,
        help="Keep the counts of shipped challenges that only say `iterations`, instead of those that warm "
        "the JIT up on a small corpus.",
    ),
)
"""The options; the command gets them as one, `schedule_options`."""
