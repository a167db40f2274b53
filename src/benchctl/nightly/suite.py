"""A suite: what is measured every night, on what, for how long, and whom it tells; one YAML file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from benchctl.engine.variant import BUILT_IN_VERSIONS, LATEST, parse_variant, placed_variant
from benchctl.engine.variant_file import check_spec
from benchctl.errors import BenchctlError, UsageError
from benchctl.micro.conduct import MICRO_METRICS, MicroEntry
from benchctl.micro.conduct import parse_variant as parse_micro_variant
from benchctl.micro.conduct import placed_variant as placed_micro_variant
from benchctl.nightly.model import Role
from benchctl.nightly.notify import Notifier
from benchctl.nightly.retention import Retention
from benchctl.quantities import DURATION, PERCENT, Duration, Percent
from benchctl.results.plan import FIRST_LOOK, VariantSpec
from benchctl.run.fitness import HostLimits
from benchctl.run.form import absolute, placed, placed_work, refuse_problems
from benchctl.spec import DEFAULT_FORKS, OnBusy, Text, Work
from benchctl.stats.metrics import DEFAULT_METRICS, kept_metric_of, metric, metric_names
from benchctl.track.library import find_challenge
from benchctl.track.load import load_track, warmup_names
from benchctl.yaml_file import Document, Step, Typed, read_typed

MOST_FORKS: Final = 1000

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}", re.ASCII)
_VARIANTS: Final = Meta(min_length=1, description="a list of variants such as [es@8.19.0]")


class ConfirmLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Budget of a confirmation."""

    most_forks: int = 50  # maximum forks per variant; ends earlier with a verdict
    # Share of the night's budget that is reserved for confirmations while the night's forks run.
    share_of_budget: float = 0.4


class Suite(Work, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A suite file, with the settings of its runs.

    Paths in it are relative to its folder; in a suite that was loaded they are absolute.
    """

    name: str = ""  # name of its directory in benchctl's home; by default the file's, without the extension
    # Watched variants, as on the command line; `es@latest` is the newest release at each night.
    variants: Annotated[tuple[Text, ...], _VARIANTS]
    # One or several variants that never change; when they get slower, the host did.
    canary: Text | tuple[Text, ...] = ()
    # Microbenchmarks instead of challenges; then variants are as `benchctl micro run` takes them.
    micro: MicroEntry | None = None
    forks: Annotated[int, Meta(ge=1, le=MOST_FORKS)] = DEFAULT_FORKS  # forks per variant and night
    budget: Duration | None = None  # time limit of a night with its confirmations; by default none
    confirm: ConfirmLimits = ConfirmLimits()  # limits of confirmations
    # Largest change without an alarm, by metric, such as `throughput: 3%`; 5% by default.
    margins_text: dict[str, Percent] = msgspec.field(name="margins", default_factory=dict)
    # Busy host: mark the night (warn) or do not measure (fail). Another benchctl is measuring: skip the
    # night (warn), wait, or fail.
    on_busy: OnBusy = "warn"
    on_cut_off: Literal["resume", "discard"] = "resume"  # what to do with an interrupted night
    host: HostLimits = HostLimits()  # limits for a host that is quiet enough
    retention: Retention = Retention()  # how long large files are kept
    runs: Text | None = None  # directory of the runs; by default in benchctl's home
    notify: tuple[Notifier, ...] = ()  # where messages of nights are sent

    @property
    def canaries(self) -> tuple[Text, ...]:
        """The canaries, however many."""
        return self.canary if isinstance(self.canary, tuple) else (self.canary,)

    @property
    def budget_s(self) -> float | None:
        """Of a night, seconds; None for none."""
        return None if self.budget is None else DURATION.parse(self.budget)

    @property
    def margins(self) -> dict[str, float]:
        """Metric -> relative change that nobody is to be woken for."""
        return {kept_metric_of(name).key: PERCENT.parse(text) for name, text in self.margins_text.items()}

    def spec_of(self, variant: str) -> VariantSpec:
        """Return what a variant of the suite asks for; `latest` is left to be resolved.

        Raises:
            UsageError: If the text is no variant.
        """
        if self.micro is not None:
            return parse_micro_variant(variant)
        return check_spec(parse_variant(variant))

    def members(self) -> Iterator[tuple[Role, str, tuple[Step, ...]]]:
        """Return (role, variant, place in the file): what a night measures, in order."""
        listed = isinstance(self.canary, tuple)
        for place, variant in enumerate(self.variants):
            yield "watched", variant, ("variants", place)
        for place, variant in enumerate(self.canaries):
            yield "canary", variant, ("canary", place) if listed else ("canary",)


def load_suite(path: Path) -> Suite:
    """Read and check a suite file, without a network and its track.

    Raises:
        UsageError: If the file cannot be read or something in it is wrong: with file, line and column.
    """
    typed = read_typed(path, Suite)
    folder = path.absolute().parent
    suite = msgspec.structs.replace(typed.value, name=typed.value.name or path.stem)
    _check_name(suite.name, typed)
    _check_members(typed, folder)
    _check_amounts(typed)
    if suite.micro is not None:
        try:
            suite.micro.spec(folder)
        except UsageError as err:
            raise typed.document.refuse(("micro",), err.message, hint=err.hint) from err
    return _absolute(suite, folder)


def _check_name(name: str, typed: Typed[Suite]) -> None:
    if _NAME.fullmatch(name):
        return
    hint = "use at most 60 lower-case letters, digits and . _ - after a letter or digit"
    if typed.value.name:
        raise typed.document.refuse(("name",), f"'{name}' cannot be the name of a suite", hint=hint)
    raise UsageError(
        f"{typed.document.name}: the file's name, '{name}', cannot be that of the suite",
        hint=f"add a line such as `name: search`; {hint}",
    )


def _check_members(typed: Typed[Suite], folder: Path) -> None:
    """Check that every variant can be measured, once, and canaries stay what they are."""
    seen: set[str] = set()
    for role, variant, steps in typed.value.members():
        try:
            spec = typed.value.spec_of(_placed(variant, folder, typed.value.micro))
        except UsageError as err:
            raise typed.document.refuse(steps, err.message, hint=err.hint) from err
        if spec.name in seen:
            raise typed.document.refuse(
                steps,
                f"variant '{spec.name}' is a duplicate",
                hint=f"give one a label, such as again={variant}",
            )
        if role == "canary" and spec.version == LATEST:
            raise typed.document.refuse(
                steps,
                f"a canary must stay what it is, and {variant} changes with the next release",
                hint=f"name a version, such as {variant.replace(LATEST, BUILT_IN_VERSIONS[spec.engine])}",
            )
        seen.add(spec.name)


def _check_metrics(suite: Suite, document: Document) -> None:
    try:
        names = suite.metrics or (MICRO_METRICS if suite.micro is not None else "")
        chosen = [metric(name) for name in metric_names(names)] or DEFAULT_METRICS
    except UsageError as err:
        raise document.refuse(("metrics",), err.message, hint=err.hint) from err
    for judged in chosen:
        if not judged.kind.of_tasks:
            raise document.refuse(("metrics",), f"no night is judged by index builds: {judged.key}")
    judging = {judged.kind.name for judged in chosen}
    seen = set()
    for key, text in suite.margins_text.items():
        try:
            kept = kept_metric_of(key)
            if kept.kind.name not in judging:
                raise ValueError(f"no night is judged by {key}")  # noqa: TRY301 - told like those below
            if kept.key in seen:
                raise ValueError(f"{kept.key} has two margins")  # noqa: TRY301 - told like those below
            seen.add(kept.key)
        except ValueError as err:
            keys = ", ".join(judged.key for judged in chosen)
            raise document.refuse(("margins",), str(err), hint=f"known: {keys}", key=key) from err
        if not 0 < PERCENT.parse(text) < 1:
            raise document.refuse(("margins", key), "a margin is more than 0% and less than 100%")


def _check_amounts(typed: Typed[Suite]) -> None:
    """Check that numbers fit together."""
    refuse_problems(typed)
    suite, document = typed.value, typed.document
    confirm = suite.confirm
    _check_metrics(suite, document)
    rules: tuple[tuple[bool, tuple[Step, ...], str, str], ...] = (
        (
            not suite.challenges and suite.micro is None,
            (),
            "'challenges' is missing",
            "add a list of challenges such as [range-only], or `micro`",
        ),
        (
            bool(suite.challenges) and suite.micro is not None,
            ("micro",),
            "a suite has challenges or microbenchmarks",
            "make two suites of it",
        ),
        (
            bool(suite.sweep),
            ("sweep",),
            "a night watches figures, and a sweep draws curves",
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
        (
            confirm.most_forks < FIRST_LOOK,
            ("confirm", "most-forks"),
            f"a verdict takes at least {FIRST_LOOK} forks of either side",
            "",
        ),
        (
            not 0 <= confirm.share_of_budget < 1,
            ("confirm", "share-of-budget"),
            "a share is at least 0 and less than 1",
            "write 0.4 for 40%",
        ),
    )
    for broken, steps, message, hint in rules:
        if broken:
            raise document.refuse(steps, message, hint=hint)


def _absolute(suite: Suite, folder: Path) -> Suite:
    """Return a suite that means the same wherever it is used."""

    def variant(text: str) -> str:
        return _placed(text, folder, suite.micro)

    challenges, warmups = placed_work(suite, folder)
    micro = suite.micro
    return msgspec.structs.replace(
        placed(suite, folder),
        variants=tuple(map(variant, suite.variants)),
        canary=tuple(map(variant, suite.canaries)),
        challenges=challenges,
        warmup_challenges=warmups,
        micro=micro and msgspec.structs.replace(micro, source=absolute(micro.source, folder)),
        runs=suite.runs and absolute(suite.runs, folder),
    )


def _placed(text: str, folder: Path, micro: MicroEntry | None) -> str:
    return placed_variant(text, folder) if micro is None else placed_micro_variant(text, folder)


Named = tuple[str, tuple[Step, ...]]
"""(challenge, place in the file)."""


def check_challenges(path: Path, suite: Suite) -> None:
    """Refuse a challenge that neither benchctl nor the suite's track has.

    Paths are left to the night, and so is a track that cannot be loaded, or is in a repository: files come
    and go, and a night that cannot be measured is reported.

    Raises:
        UsageError: If a challenge does not exist: with file, line and column.
    """
    unknown = [(name, steps) for name, steps in _named(suite) if name not in warmup_names()]
    if not unknown or suite.track_repository:
        return
    common = {name: value for name, value in suite.params.items() if "." not in name}
    try:
        track, _ = load_track(suite.track, common)
    except BenchctlError:
        return
    for name, steps in unknown:
        if name in track.challenges:
            continue
        try:
            find_challenge(name, (*track.challenges, *warmup_names()))
        except UsageError as err:
            raise read_typed(path, Suite).document.refuse(steps, err.message, hint=err.hint) from err


def _named(suite: Suite) -> Iterator[Named]:
    """Return all challenges that are not paths: those were made absolute."""
    for key, names in (("challenges", suite.challenges), ("warmup-challenges", suite.warmup_challenges)):
        for place, name in enumerate(names):
            if not Path(name).is_absolute():
                yield name, (key, place)
    for _, variant, steps in suite.members():
        for name in suite.spec_of(variant).warmups:
            if not Path(name).is_absolute():
                yield name, steps
