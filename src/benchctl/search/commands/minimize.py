"""`benchctl minimize`: the smallest schedule that still shows an effect."""

import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchctl.cli.measuring import measuring, measuring_options
from benchctl.cli.options import (
    AmountType,
    ParamOptions,
    SectionedCommand,
    check_new_file,
    format_option,
    param_options,
    refuse_beside,
)
from benchctl.cli.run_options import (
    BUILT_IN,
    PREPARING,
    ScheduleOptions,
    SubjectOptions,
    run_spec,
    settings_options,
    subject_options,
    trust_option,
)
from benchctl.cli.streams import emit, text_width
from benchctl.cli.targets import endpoints_of
from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.quantities import DURATION, PERCENT
from benchctl.report.command_line import command
from benchctl.results.figures import FIGURES
from benchctl.results.store import RunStore, new_run_id
from benchctl.run.bench import Bench, Observer
from benchctl.run.documents import FileOptions
from benchctl.run.forecast import earlier_runs
from benchctl.run.host import describe_host
from benchctl.run.plan import RunSpec, plan_run, reload_track
from benchctl.run.plugin import confirm_plugin
from benchctl.run.prepare import check_host
from benchctl.run.questions import Nodes
from benchctl.search.candidates import Candidates, compares_variants, parse_effect
from benchctl.search.minimize import (
    SearchContext,
    check_search,
    conduct,
    default_metric,
    new_search,
    start_forecast,
)
from benchctl.search.minimize_report import Ended, render_minimize
from benchctl.search.record import ALPHA, MinimizeFolder, MinimizeRecord, MinimizeSpec, find_search
from benchctl.stats.metrics import kept_keys, kept_metric_of, used_by
from benchctl.track.model import Track
from benchctl.track.schedule import challenge_text

if TYPE_CHECKING:
    from benchctl.report.formats import Format

_METRICS = [
    key for one in FIGURES if "minimize" in used_by(one) for key in dict.fromkeys([*kept_keys(one), one.name])
]
# What may stand beside --resume: it says where things are and what to show, not what to measure.
_WITH_RESUME = frozenset(
    {
        "resume", "wait", "quiet", "output_format", "output", "budget_s", "trust",
        "corpus_file", "has_actions", "corpus_dirs", "docs",
    }
)  # fmt: skip
_MOST_FORKS = 12
_PREFIX_ITERATIONS = 10


@dataclass(frozen=True)
class _Search:
    folder: MinimizeFolder
    record: MinimizeRecord
    track: Track
    candidates: Candidates


@click.command("minimize", cls=SectionedCommand)
@click.option("--challenge", metavar="NAME|FILE", help="Challenge to reduce.")
@click.option(
    "--effect",
    "sentence",
    metavar="SENTENCE",
    help="What has to persist: 'range slower than fresh', 'range slower on os than on es', or faster.",
)
@click.option(
    "--metric",
    type=click.Choice(_METRICS),
    default=None,
    metavar="NAME",
    help="What shows it, such as throughput, service_time_p90 or cpu  [default: throughput; "
    "service_time_p50 of a task with a rate]",
)
@click.option(
    "--by",
    type=AmountType(PERCENT),
    default=None,
    help="The least effect that counts  [default: half of what the first question finds]",
)
@click.option(
    "--forks",
    type=int,
    default=_MOST_FORKS,
    show_default=True,
    help="The most pairs of forks that a question may take; what is open then is kept.",
)
@click.option(
    "--budget",
    "budget_s",
    type=AmountType(DURATION),
    default=None,
    help="End after this time, such as 60m, with the smallest schedule so far; preparing not counted.",
)
@click.option(
    "--prefix-iterations",
    type=click.IntRange(min=0),
    default=_PREFIX_ITERATIONS,
    show_default=True,
    help="First try with tasks in front cut to so many requests, without warm-up and rates; 0 leaves them.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE.json",
    help="Where the challenge goes that is found  [default: the search's folder]",
)
@click.option(
    "--resume", metavar="SEARCH", help="Go on with a search that was interrupted, or ran out of time."
)
@param_options
@subject_options
@settings_options(*PREPARING)
@trust_option
@measuring_options
@format_option
def minimize_command(
    challenge: str | None,
    sentence: str | None,
    metric: str | None,
    by: float | None,
    forks: int,
    budget_s: float | None,
    prefix_iterations: int,
    output: Path | None,
    resume: str | None,
    output_format: "Format",
    *,
    param_options: ParamOptions,
    subject_options: SubjectOptions,
    settings: dict[str, Any],
    trust: bool,
    wait: bool,
    quiet: bool,
) -> None:
    """Remove tasks from a challenge while an effect persists, and print the smallest one that shows it.

    Every question (is it still there without these?) is measured on fresh nodes, block by block, until the
    answer is sure enough. Its runs are kept with the search.
    """
    if output is not None:
        check_new_file("--output", output, [_alone(output.absolute())], ours=resume is not None)
    home = resolve_home()
    consent = Consent(home, given=trust)
    if resume is None:
        if challenge is None or sentence is None:
            raise UsageError("--challenge and --effect say what is searched for", hint="or --resume SEARCH")
        if not subject_options.paired:
            raise UsageError("the blocks of a search are pairs in any case", hint="leave --unpaired out")
        asked = run_spec(
            subject_options,
            param_options,
            {**settings, "restart": "never"},
            forks=forks,
            schedule=ScheduleOptions(challenges=(challenge,), warmups=()),
            # Both where they are compared.
            usual=BUILT_IN if compares_variants(sentence) else BUILT_IN[:1],
        )
        spec = MinimizeSpec(
            effect=parse_effect(sentence, [one.name for one in asked.variants]),
            metric=kept_metric_of(metric).key if metric else "",
            by=by,
            most_forks=forks,
            prefix_iterations=prefix_iterations or None,
            budget_s=budget_s,
            alpha=ALPHA,
        )
        search = _begun(home, msgspec.structs.replace(asked, consent=consent), spec)
    else:
        refuse_beside("--resume", click.get_current_context(), _WITH_RESUME, "a search")
        folder = find_search(home.minimize, resume)
        record = folder.load()
        confirm_plugin(record.plan, consent)
        track = reload_track(record.plan)
        search = _Search(folder, record, track, check_search(record.plan, track, record.spec))
    record = search.record
    if record.status != "complete":
        check_host(record.plan, home)
        with measuring(wait=wait, quiet=quiet) as observer:
            if not record.decisions:
                _announce(home, search, observer)
            record = _searched(home, search, subject_options.files, observer, budget_s)
    paths = _write_files(search, record, output)
    ended = Ended(record, tuple(map(str, paths)), _commands(record, search.track, paths))
    emit(render_minimize(ended, output_format, width=text_width()))
    if record.found is None and record.status == "interrupted":
        raise BenchctlError(
            "the time was up before it was known whether the effect is there",
            hint=f"go on with: benchctl minimize --resume {record.id} --budget 60m",
            exit_code=ExitCode.INCONCLUSIVE,
        )
    if record.found is None:
        raise BenchctlError(
            f"the effect is not confirmed: {record.spec.effect}",
            hint="more --forks, more documents or longer tasks may show it",
            exit_code=ExitCode.INCONCLUSIVE,
        )


def _alone(output: Path) -> Path:
    """The file of the target alone, beside that of the schedule."""
    return output.with_name(f"{output.stem}-alone.json")


def _begun(home: Home, asked: RunSpec, spec: MinimizeSpec) -> _Search:
    """Return a new search, checked; it is written when it is carried out."""
    plan, track = plan_run(asked)
    candidates = check_search(plan, track, spec)
    spec = msgspec.structs.replace(spec, metric=spec.metric or default_metric(candidates.target))
    now_text = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder = MinimizeFolder(home.minimize / new_run_id(plan.schedules[0].name, now_text))
    return _Search(folder, new_search(folder, plan, spec), track, candidates)


def _announce(home: Home, search: _Search, observer: Observer) -> None:
    plan = search.record.plan
    history = earlier_runs(RunStore(home.runs), plan, describe_host().fingerprint, most=100)
    for line in start_forecast(search.record.spec, search.candidates, plan, history):
        observer.note(line)


def _searched(
    home: Home, search: _Search, files: FileOptions, observer: Observer, more_s: float | None
) -> MinimizeRecord:
    """Carry out the search; a new budget is for this session."""
    record, store = search.record, search.folder.runs
    endpoints = endpoints_of(record.plan.variants, os.environ)
    bench = Bench(home, store, observer, threading.Event(), endpoints)
    budget = more_s
    if budget is None and record.spec.budget_s is not None:
        budget = max(1.0, record.spec.budget_s - record.spent_s)
    nodes = Nodes(bench, store, search.track, files)
    return conduct(SearchContext(search.folder, search.candidates, nodes, observer, budget), record)


def _write_files(search: _Search, record: MinimizeRecord, output: Path | None) -> list[Path]:
    """The challenge that was found, and beside it the target alone if that is the reference."""
    if record.found is None:
        return []
    path = output or search.folder.path / f"{record.found.name}.json"
    files = {path: record.found}
    if not record.spec.effect.against:
        name = f"{record.found.name}-alone"
        short = any(one.short for one in record.decisions if one.verdict == "present")
        files[_alone(path)] = search.candidates.build((), name, short=short)
    for target, challenge in files.items():
        with disk_errors(f"write {target}"):
            target.write_text(challenge_text(challenge), encoding="utf-8")
    return list(files)


def _commands(record: MinimizeRecord, track: Track, paths: list[Path]) -> dict[str, str]:
    found = {}
    if not record.minimal and record.status != "complete":
        found["To go on"] = f"benchctl minimize --resume {record.id} --budget 60m"
    if paths:
        plan = msgspec.structs.replace(
            record.plan,
            schedules=tuple(
                msgspec.structs.replace(record.plan.schedules[0], name=str(path)) for path in paths
            ),
            sources={},
            restart="challenge",
            # Counts and rates are in the file.
            params={name: value for name, value in record.plan.params.items() if name in track.known},
        )
        found["To see it again"] = command(plan, forks=10)
    return found
