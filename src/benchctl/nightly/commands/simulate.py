"""`benchctl nightly simulate`: the detector over made-up or recorded nights."""

import math
from pathlib import Path
from typing import Literal

import click
import msgspec
import numpy as np

from benchctl.cli.options import PercentType, printed_as
from benchctl.cli.streams import emit, say
from benchctl.errors import UsageError
from benchctl.nightly.screening import DEFAULT_MARGIN
from benchctl.nightly.simulation import (
    Columns,
    Delay,
    Outcome,
    Process,
    Recorded,
    Rescreened,
    generate,
    outcome_of,
    read_recorded,
    replay,
    rescreen,
)
from benchctl.nightly.suite import ConfirmLimits
from benchctl.report.numbers import counted, json_text, percent, signed_percent
from benchctl.results.model import DEFAULT_FORKS

_RECORDED_ONLY = frozenset({"time", "value", "series_column", "higher_is_better"})
_FOR_BOTH = frozenset({"csv_path", "margin", "output_format"})
_UNCONFIRMED = "Nothing of this could be confirmed: that takes fresh nodes, of last-good and of tonight."


class _Simulated(msgspec.Struct, frozen=True, rename="kebab"):
    """What `--format json` prints of made-up nights."""

    process: Process
    seed: int
    margin_percent: float
    outcome: Outcome


class _Replayed(msgspec.Struct, frozen=True, rename="kebab"):
    """What `--format json` prints of recorded nights."""

    source: str
    margin_percent: float
    confirmed: None
    times: tuple[str, ...]
    series: tuple[Rescreened, ...]


@click.command("simulate")
@click.option("--series", type=click.IntRange(1), default=80, show_default=True, help="Watched series.")
@click.option("--nights", type=click.IntRange(2), default=90, show_default=True, help="Nights of the suite.")
@click.option(
    "--forks", type=click.IntRange(1), default=DEFAULT_FORKS, show_default=True, help="Forks a night."
)
@click.option(
    "--night-sd", type=PercentType(), default="2%", show_default=True, help="SD from night to night."
)
@click.option(
    "--fork-sd", type=PercentType(), default="5%", show_default=True, help="SD from fork to fork in a night."
)
@click.option(
    "--step", type=PercentType(), default="0%", show_default=True, help="Change of the engine's speed."
)
@click.option(
    "--step-night", type=click.IntRange(1), default=61, show_default=True, help="First night with the change."
)
@click.option("--step-ends", type=click.IntRange(1), help="First night without it again.")
@click.option("--faster", is_flag=True, help="The engine gets faster; by default it gets slower.")
@click.option(
    "--host-step",
    type=PercentType(),
    default="0%",
    show_default=True,
    help="What the host gets slower by in that night, engine and canary alike.",
)
@click.option(
    "--canaries", type=click.IntRange(0), default=0, show_default=True, help="Series of a canary; 0 for none."
)
@click.option(
    "--slow-share",
    type=PercentType(),
    default="0%",
    show_default=True,
    help="Forks that land in a state that is 18 % slower.",
)
@click.option(
    "--missing", type=PercentType(), default="0%", show_default=True, help="Share of nights that are missing."
)
@click.option(
    "--most-forks",
    type=click.IntRange(2),
    default=ConfirmLimits().most_forks,
    show_default=True,
    help="Forks a side that a confirmation has time for.",
)
@click.option(
    "--margin",
    type=PercentType(),
    default=f"{100 * DEFAULT_MARGIN:g}%",
    show_default=True,
    help="Differences below this do not matter in practice.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of all random draws."
)
@click.option(
    "--csv",
    "csv_path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Replay recorded values instead: rows of time and value; rows of the same time are forks.",
)
@click.option("--time", default="time", show_default=True, help="Column of the times of a recorded file.")
@click.option("--value", default="value", show_default=True, help="Column of its values.")
@click.option("--series-column", help="Column that says which series a row belongs to.")
@click.option("--higher-is-better", is_flag=True, help="Recorded values are rates, not times.")
@printed_as("text", "json")
@click.pass_context
def simulate_command(
    ctx: click.Context,
    *,
    series: int,
    nights: int,
    forks: int,
    night_sd: float,
    fork_sd: float,
    step: float,
    step_night: int,
    step_ends: int | None,
    faster: bool,
    host_step: float,
    canaries: int,
    slow_share: float,
    missing: float,
    most_forks: int,
    margin: float,
    seed: int,
    csv_path: Path | None,
    time: str,
    value: str,
    series_column: str | None,
    higher_is_better: bool,
    output_format: Literal["text", "json"],
) -> None:
    """Replay the nightly detector over made-up nights, and count its false alarms and delays.

    Every night is screened, findings are held where the canary moved too, and confirmed on fresh forks of
    last-good against tonight. With --csv recorded values are screened instead, and change points located.
    """
    _refuse_what_has_no_use(ctx, recorded=csv_path is not None)
    if not margin > 0:
        raise UsageError("--margin must be above 0 %")
    if csv_path is not None:
        recorded = _read(csv_path, Columns(time, value, series_column), higher_is_better=higher_is_better)
        found = tuple(rescreen(one, margin=margin) for one in recorded.series)
        if output_format == "json":
            say(json_text(_Replayed(str(csv_path), 100 * margin, None, recorded.times, found)), nl=False)
        else:
            say("\n".join(_recorded_lines(recorded, found)))
        return
    if max(step, slow_share, missing) >= 1:
        raise UsageError("--step, --slow-share and --missing must be below 100 %")
    process = Process(
        series=series,
        nights=nights,
        forks=forks,
        night_sd=night_sd,
        fork_sd=fork_sd,
        step=math.log1p(-step if faster else step),
        step_night=step_night,
        step_ends=step_ends,
        host_step=math.log1p(host_step),
        host_night=step_night,
        canaries=canaries,
        slow_share=slow_share,
        missing=missing,
    )
    rng = np.random.default_rng(seed)
    outcome = outcome_of(replay(generate(process, rng), rng, margin=margin, most_forks=most_forks), process)
    if output_format == "json":
        emit(json_text(_Simulated(process, seed, 100 * margin, outcome)))
    else:
        say("\n".join(_outcome_lines(process, seed, outcome)))


def _refuse_what_has_no_use(ctx: click.Context, *, recorded: bool) -> None:
    useless = ctx.params.keys() - _RECORDED_ONLY - _FOR_BOTH if recorded else _RECORDED_ONLY
    for name in sorted(useless):
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            why = (
                "is about made-up nights" if recorded else "is about recorded values: name a file with --csv"
            )
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def _read(path: Path, columns: Columns, *, higher_is_better: bool) -> Recorded:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return read_recorded(lines, source=str(path), columns=columns, higher_is_better=higher_is_better)
    except UnicodeDecodeError as err:
        raise UsageError(f"{path} is not UTF-8 text: {err.reason} at byte {err.start}") from err
    except OSError as err:
        raise UsageError(f"{path} cannot be read: {err.strerror}") from err


def _outcome_lines(process: Process, seed: int, found: Outcome) -> list[str]:
    became = ", ".join(f"{status} {count:,}" for status, count in sorted(found.screened.items()))
    rows = [
        ("alarms", f"{found.alarms:,}"),
        ("false alarms", f"{found.false_alarms:,}"),
        ("screened", f"{sum(found.screened.values()):,}" + (f": {became}" if became else "")),
        ("until screened", _delay_text(found.until_screened)),
        ("until alarm", _delay_text(found.until_alarm)),
        ("recovered", f"{found.recoveries:,}"),
        ("cost", f"{counted(found.forks, 'fork')} in {counted(found.confirmations, 'confirmation')}"),
    ]
    head = (
        f"{found.series:,} series, {counted(found.nights, 'night')} of {counted(process.forks, 'fork')}; "
        f"night SD {percent(100 * process.night_sd)}, fork SD {percent(100 * process.fork_sd)}; seed {seed}"
    )
    return [head, "", *(f"{name:<16}{text}" for name, text in rows)]


def _delay_text(delay: Delay | None) -> str:
    if delay is None:
        return "nothing changes"
    median, often = (
        "never" if nights is None else counted(nights, "night") for nights in (delay.median, delay.p90)
    )
    return f"median {median}, 90 % {often}; {delay.seen:,} of {delay.of:,} series"


def _recorded_lines(recorded: Recorded, found: tuple[Rescreened, ...]) -> list[str]:
    lines = []
    for one in found:
        title = f"{one.name}: " if one.name else ""
        lines += [f"{title}{counted(one.nights, 'night')}", ""]
        lines += [
            f"  screened      {_finding_text(recorded, place, one)}" for place in range(len(one.findings))
        ]
        lines += [
            f"  change point  {recorded.times[point.night - 1]}: "
            f"{signed_percent(100 * math.expm1(point.after_log - point.before_log))} %, p {point.p:.4f}"
            for point in one.change_points
        ]
        if not one.findings and not one.change_points:
            lines.append("  nothing stands out")
        lines.append("")
    return [*lines, _UNCONFIRMED]


def _finding_text(recorded: Recorded, place: int, one: Rescreened) -> str:
    finding = one.findings[place]
    screened = finding.screened
    since = "" if screened.since == finding.night else f", since {recorded.times[screened.since - 1]}"
    return (
        f"{recorded.times[finding.night - 1]}: {signed_percent(screened.effect_percent)} % "
        f"({screened.direction}){since}, over {counted(screened.baseline_nights, 'night')}; "
        f"{' and '.join(screened.rules)}"
    )
