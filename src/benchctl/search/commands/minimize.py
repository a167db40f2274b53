"""`benchctl minimize`: the smallest schedule that still shows an effect."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from benchctl.cli.measuring import measuring_options
from benchctl.cli.options import (
    NO_SWEEP,
    AmountType,
    ParamOptions,
    SectionedCommand,
    check_new_file,
    param_options,
)
from benchctl.cli.run_options import (
    BUILT_IN,
    PREPARING,
    SUBJECT,
    asked_run,
    form_options,
    trust_option,
)
from benchctl.errors import UsageError
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.quantities import PERCENT
from benchctl.results.store import RunStore
from benchctl.run.forecast import Past
from benchctl.run.host import describe_host
from benchctl.run.plan import plan_run
from benchctl.search.candidates import compares_variants, parse_effect
from benchctl.search.commands import (
    Opened,
    SearchOptions,
    alone,
    files_of,
    metric_option,
    new_folder,
    search_options,
)
from benchctl.search.minimize import Minimizing, check_search, default_metric, start_forecast
from benchctl.search.record import MinimizeSpec, SearchFolder, SearchRecord
from benchctl.spec import BusyAction, RunForm
from benchctl.stats.metrics import kept_metric_of, used_by
from benchctl.track.model import Track

_MOST_FORKS = 12
_PREFIX_ITERATIONS = 10


@click.command(
    "minimize",
    cls=SectionedCommand,
    instead=NO_SWEEP,
    first=(
        *("challenge", "sentence", "metric", "by", "output"),
        *("variants", "track", "docs", "params"),
        *("most", "budget_s", "on_busy", "output_format", "quiet"),
    ),
)
@click.option("--challenge", required=True, metavar="NAME|FILE", help="Challenge to reduce.")
@click.option(
    "--effect",
    "sentence",
    required=True,
    metavar="SENTENCE",
    help="Effect to keep, e.g. 'range slower than fresh' or 'range slower on os than on es'.",
)
@metric_option(lambda kind: "minimize" in used_by(kind))
@click.option(
    "--by",
    type=AmountType(PERCENT),
    default=None,
    help="Smallest effect that counts.  [default: half of what the first comparison finds]",
)
@click.option(
    "--prefix-iterations",
    type=click.IntRange(min=0),
    default=_PREFIX_ITERATIONS,
    show_default=True,
    help="First try with tasks in front cut to that many requests, without warm-up and rates; 0 leaves them.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE.json",
    help="File for the challenge that is found.  [default: in the search's directory]",
)
@param_options
@form_options(*SUBJECT, *PREPARING)
@search_options(_MOST_FORKS)
@trust_option
@measuring_options
def minimize_command(
    challenge: str,
    sentence: str,
    metric: str | None,
    by: float | None,
    prefix_iterations: int,
    output: Path | None,
    *,
    param_options: ParamOptions,
    form: RunForm,
    search_options: SearchOptions,
    trust: bool,
    on_busy: BusyAction | None,
    quiet: bool,
) -> None:
    """Reduce a challenge to the tasks that cause an effect.

    Every question (is it still there without these?) is measured on fresh nodes, block by block, until the
    answer is sure enough. Its runs are kept with the search; `benchctl resume` continues it.
    """
    if output is not None:
        check_new_file("--output", output, [alone(output.absolute())], ours=False)
    home = resolve_home()
    if not form.paired:
        raise UsageError("the blocks of a search are pairs in any case", hint="remove --unpaired")
    options = asked_run(
        msgspec.structs.replace(
            form, restart="never", forks=search_options.most, challenges=(challenge,), warmup="as-written"
        ),
        param_options,
        # Both where they are compared.
        usual=BUILT_IN if compares_variants(sentence) else BUILT_IN[:1],
    )
    spec = MinimizeSpec(
        effect=parse_effect(sentence, [variant.name for variant in options.variants]),
        by=by,
        prefix_iterations=prefix_iterations or None,
        output="" if output is None else str(output.absolute()),
    )
    plan, track = plan_run(msgspec.structs.replace(options, consent=Consent(home, given=trust)))
    folder = new_folder(home, plan)
    record = SearchRecord(
        id=folder.path.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        spec=spec,
        metric=kept_metric_of(metric).key if metric else "",
        most=search_options.most,
        budget_s=search_options.budget_s,
        plan=msgspec.structs.replace(plan, restart="never", forks=search_options.most, stop=None),
        files=files_of(options.files),
    )
    opened_minimize(home, folder, record, track).conclude(
        search_options.output_format, on_busy=on_busy, quiet=quiet
    )


def opened_minimize(home: Home, folder: SearchFolder, record: SearchRecord, track: Track) -> Opened:
    """Return a search, checked.

    Raises:
        UsageError: If it makes no sense.
    """
    candidates = check_search(record.plan, track, record)
    record = msgspec.structs.replace(record, metric=record.metric or default_metric(candidates.target))

    def remarks() -> Iterator[str]:
        past = Past(RunStore(home.runs), describe_host().fingerprint, home)
        return start_forecast(record, candidates, record.plan, past.history(record.plan))

    return Opened(home, folder, record, track, lambda _stage: Minimizing(candidates), remarks)
