"""A suite: what is measured every night, on what, for how long, and whom it tells; one YAML file."""

import re
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from benchctl.engine.variant import BUILT_IN_VERSIONS, LATEST, check_spec, parse_variant, placed_variant
from benchctl.errors import UsageError
from benchctl.nightly.message import Notifier
from benchctl.quantities import DURATION, PERCENT, Duration, Percent
from benchctl.results.plan import FIRST_LOOK, VariantSpec
from benchctl.run.fitness import HostLimits
from benchctl.run.form import placed, placed_work, refuse_problems
from benchctl.spec import DEFAULT_FORKS, OnBusy, Text, Work
from benchctl.stats.metrics import DEFAULT_METRICS, kept_metric_of, metric, metric_names
from benchctl.yaml_file import Document, Step, Typed, read_typed

MOST_FORKS: Final = 1000

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}", re.ASCII)
_VARIANTS: Final = Meta(min_length=1, description="a list of variants such as [es@8.19.0]")


class Suite(Work, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A suite file, with the settings of its runs.

    Paths in it are relative to its folder; in a suite that was loaded they are absolute. It is called like
    its file, without the extension.
    """

    # Watched variants, as on the command line; `es@latest` is the newest release at each night.
    variants: Annotated[tuple[Text, ...], _VARIANTS]
    canary: Text | None = None  # a variant that never changes; when it gets slower, the host did
    forks: Annotated[int, Meta(ge=1, le=MOST_FORKS)] = DEFAULT_FORKS  # forks per variant and night
    budget: Duration | None = None  # time limit of a night with its confirmations; by default none
    # Forks per variant that a confirmation takes at most; it ends earlier with a verdict.
    confirm_forks: Annotated[int, Meta(ge=FIRST_LOOK, le=MOST_FORKS)] = 50
    # Largest change without an alarm, by metric, such as `throughput: 3%`; 5% by default.
    margins_text: dict[str, Percent] = msgspec.field(name="margins", default_factory=dict)
    # Busy host: mark the night (warn) or do not measure (fail). Another benchctl is measuring: skip the
    # night (warn), wait, or fail.
    on_busy: OnBusy = "warn"
    host: HostLimits = HostLimits()  # limits for a host that is quiet enough
    # Measured nights for which samples and node logs are kept; `null` keeps all. Values are kept forever.
    raw_nights: Annotated[int, Meta(ge=1)] | None = 30
    notify: Notifier | None = None  # where messages of nights are sent

    @property
    def budget_s(self) -> float | None:
        """Of a night, seconds; None for none."""
        return None if self.budget is None else DURATION.parse(self.budget)

    @property
    def margins(self) -> dict[str, float]:
        """Metric -> relative change that nobody is to be woken for."""
        return {kept_metric_of(name).key: PERCENT.parse(text) for name, text in self.margins_text.items()}

    @property
    def members(self) -> list[tuple[str, tuple[Step, ...]]]:
        """Variants and their places in the file: what a night measures, in order, the canary last."""
        watched = [(variant, ("variants", place)) for place, variant in enumerate(self.variants)]
        return [*watched, *([] if self.canary is None else [(self.canary, ("canary",))])]

    @property
    def specs(self) -> tuple[VariantSpec, ...]:
        """Return what the members ask for; `latest` is left to be resolved."""
        return tuple(check_spec(parse_variant(variant)) for variant, _ in self.members)


def load_suite(path: Path) -> Suite:
    """Read and check a suite file, without a network and its track.

    Raises:
        UsageError: If the file cannot be read or something in it is wrong: with file, line and column.
    """
    if not _NAME.fullmatch(path.stem):
        raise UsageError(
            f"{path}: '{path.stem}' cannot be the name of a suite",
            hint="rename the file: at most 60 lower-case letters, digits and . _ - after a letter or digit",
        )
    typed = read_typed(path, Suite)
    folder = path.absolute().parent
    refuse_problems(typed)
    _check_members(typed, folder)
    _check_metrics(typed.value, typed.document)
    _check_parts(typed.value, typed.document)
    suite = placed(typed.value, folder)
    challenges, warmups = placed_work(suite, folder)
    return msgspec.structs.replace(
        suite,
        variants=tuple(placed_variant(variant, folder) for variant in suite.variants),
        canary=suite.canary and placed_variant(suite.canary, folder),
        challenges=challenges,
        warmup_challenges=warmups,
    )


def _check_members(typed: Typed[Suite], folder: Path) -> None:
    """Check that every variant can be measured, once, and canaries stay what they are."""
    seen: set[str] = set()
    for variant, steps in typed.value.members:
        try:
            spec = check_spec(parse_variant(placed_variant(variant, folder)))
        except UsageError as err:
            raise typed.document.refuse(steps, err.message, hint=err.hint) from err
        if spec.name in seen:
            raise typed.document.refuse(
                steps,
                f"variant '{spec.name}' is a duplicate",
                hint=f"give one a label, such as again={variant}",
            )
        if steps == ("canary",) and spec.version == LATEST:
            raise typed.document.refuse(
                steps,
                f"a canary must not change, but {variant} changes with the next release",
                hint=f"name a version, such as {variant.replace(LATEST, BUILT_IN_VERSIONS[spec.engine])}",
            )
        seen.add(spec.name)


def _check_metrics(suite: Suite, document: Document) -> None:
    try:
        chosen = [metric(name) for name in metric_names(suite.metrics)] or DEFAULT_METRICS
    except UsageError as err:
        raise document.refuse(("metrics",), err.message, hint=err.hint) from err
    for judged in chosen:
        if not judged.kind.of_tasks:
            raise document.refuse(("metrics",), f"suites cannot use index-build metrics: {judged.key}")
    judging = {judged.kind.name for judged in chosen}
    for key, text in suite.margins_text.items():
        try:
            if kept_metric_of(key).kind.name not in judging:
                raise ValueError(f"the suite does not compare {key}")  # noqa: TRY301 - told like that below
        except ValueError as err:
            keys = ", ".join(judged.key for judged in chosen)
            raise document.refuse(("margins",), str(err), hint=f"known: {keys}", key=key) from err
        if not 0 < PERCENT.parse(text) < 1:
            raise document.refuse(("margins", key), "a margin is more than 0% and less than 100%")


def _check_parts(suite: Suite, document: Document) -> None:
    """Check that parts of a suite fit together."""
    rules: tuple[tuple[bool, tuple[Step, ...], str, str], ...] = (
        (
            not suite.challenges,
            (),
            "'challenges' is missing",
            "add a list of challenges such as [range-only]",
        ),
        (
            bool(suite.sweep),
            ("sweep",),
            "suites do not support sweeps",
            "name the variants and challenges to watch; of histories: `warmup-challenges: [polluted]`",
        ),
        (suite.budget_s == 0, ("budget",), "must be more than 0s", ""),
        (
            suite.evidence is not None,
            ("evidence",),
            "a night collects no evidence",
            "add --evidence to the command of an alarm",
        ),
        (
            suite.index_builds > suite.forks,
            ("index-builds",),
            f"{suite.index_builds} builds need at least {suite.index_builds} forks",
            "raise `forks`: forks take the builds in turn",
        ),
    )
    for broken, steps, message, hint in rules:
        if broken:
            raise document.refuse(steps, message, hint=hint)
