"""Resolution of a form on this host: its texts as documents, heaps, CPUs, stop rules and paths."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from benchctl.disk import expanded
from benchctl.engine.variant import placed_jdk, placed_variant
from benchctl.errors import UsageError
from benchctl.git import repository_place
from benchctl.home import Home
from benchctl.plugin.code import Consent
from benchctl.quantities import COUNT, DURATION, PERCENT, SIZE
from benchctl.results.plan import (
    DEFAULT_LENGTH,
    CorpusSpec,
    EvidenceSpec,
    PinSpec,
    Plan,
    StopSpec,
    VariantSpec,
)
from benchctl.run.documents import GENERATED_DOCUMENTS, FileOptions
from benchctl.run.host import allowed_cpus, cores_of, pin_of
from benchctl.run.plan import RunSpec
from benchctl.spec import (
    DEFAULT_FORKS,
    MOST_FORKS,
    Conditions,
    RunForm,
    Work,
    check_settings,
    problems,
    settings_in,
)
from benchctl.track.library import checked_out, track_names
from benchctl.track.load import warmup_names
from benchctl.track.model import Challenge, Task
from benchctl.yaml_file import Typed, read_typed


def documents_of(form: Conditions) -> int | None:
    """Return how many documents are asked for; None for as many as there usually are."""
    return COUNT.parse(form.docs) if isinstance(form.docs, str) else form.docs


def pin_of_form(form: Conditions, workers: int) -> PinSpec | None:
    """Return the CPUs of node and driver here; the driver's clients work in that many processes.

    Raises:
        UsageError: If these CPUs are not available.
    """
    if not form.pin:
        return None
    allowed = allowed_cpus()
    return pin_of(form.pin, workers=workers, allowed=allowed, cores=cores_of(allowed))


def run_spec(
    form: Work,
    variants: Sequence[VariantSpec],
    *,
    home: Home,
    consent: Consent | None = None,
    stop: StopSpec | None = None,
    at_most: bool = False,
) -> RunSpec:
    """Return the run that a form asks for, on this host, of the variants that it names.

    The home has copies of repositories; with `at_most`, fewer documents than asked for will do.

    Raises:
        UsageError: If something is out of range, or cannot be had here.
        BenchctlError: If the repository of the track cannot be copied.
    """
    check_settings(form)
    track, source = form.track, None
    if form.track_repository:
        versions = {spec.version: spec.name for spec in variants if spec.version}
        path, source = checked_out(home, form.track_repository, track, form.track_revision, versions)
        track = str(path)
    elif form.track_revision:
        raise UsageError("--track-revision requires --track-repository")
    docs = documents_of(form)
    builds, workers = (one if isinstance(one, int) else 1 for one in (form.index_builds, form.workers))
    return RunSpec(
        **{**settings_in(form), "index_builds": builds},
        variants=tuple(variants),
        challenges=form.challenges,
        warmup_challenges=form.warmup_challenges,
        forks=DEFAULT_FORKS if form.forks is None else form.forks,
        seed=1 if form.seed is None else form.seed,
        heap_mb=SIZE.parse(form.heap),
        track=track,
        track_source=source,
        corpus=CorpusSpec(
            seed=form.corpus_seed, documents=docs or GENERATED_DOCUMENTS, generator_version=0, digest=""
        ),
        files=FileOptions(
            Path(expanded(form.corpus)) if form.corpus else None,
            tuple(map(Path, form.corpus_dirs)),
            docs,
            at_most=at_most,
        ),
        params=form.params,
        workers=workers,
        free_builds=not isinstance(form.index_builds, int),
        pin=pin_of_form(form, workers),
        settle=form.warmup == "auto",
        evidence=EvidenceSpec.of(form.evidence),
        consent=consent,
        stop=stop,
    )


def stop_of(form: RunForm) -> StopSpec | None:
    """Return the stop rule; None when all forks are run."""
    margin = None if form.margin is None else PERCENT.parse(form.margin)
    budget_s = None if form.budget is None else DURATION.parse(form.budget)
    if form.until_decided or margin is not None:
        return StopSpec(budget_s, margin=margin, decided=form.until_decided)
    if budget_s is not None:
        return StopSpec(budget_s=budget_s, least_forks=DEFAULT_FORKS)
    return DEFAULT_LENGTH if form.forks is None else None


def forks_of(form: RunForm) -> int:
    """Return the forks of every variant; with a rule, the maximum."""
    return MOST_FORKS if form.forks is None else form.forks


# Files with keys of the form.

_C = TypeVar("_C", bound=Conditions)


def refuse_problems(typed: Typed[_C]) -> None:
    """Refuse numbers and amounts out of range, and addresses, with their places in the file.

    Raises:
        UsageError: If one is.
    """
    for setting, problem in problems(typed.value):
        name = setting.within or setting.name
        key = next(field.encode_name for field in msgspec.structs.fields(typed.value) if field.name == name)
        raise typed.document.refuse((key, *((setting.name,) if setting.within else ())), problem)


def placed(form: _C, folder: Path) -> _C:
    """Return a form whose paths, which are relative to a folder, are absolute."""
    return msgspec.structs.replace(
        form,
        # In a repository, it is a name.
        track=form.track if form.track_repository else named_path(form.track, folder, track_names()),
        track_repository=form.track_repository and repository_place(form.track_repository, folder),
        corpus=form.corpus and absolute(form.corpus, folder),
        corpus_dirs=tuple(absolute(corpus_dir, folder) for corpus_dir in form.corpus_dirs),
        hosts=form.hosts and absolute(form.hosts, folder),
    )


def placed_work(form: Work, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return challenges and warm-ups of a form with absolute paths."""
    challenges, warmups = (
        tuple(named_path(name, folder, warmup_names()) for name in names)
        for names in (form.challenges, form.warmup_challenges)
    )
    return challenges, warmups


def absolute(text: str, folder: Path) -> str:
    """Return a path below a folder, absolute."""
    return str(folder / expanded(text))


def named_path(text: str, folder: Path, known: Sequence[str]) -> str:
    """Return a known name as it is, and the path of what else exists, or looks like a file, absolute."""
    # A track's own challenges are known once it is loaded: a file is what is there, or looks like one.
    is_file = "/" in text or text.endswith(".json")
    with suppress(OSError, ValueError):  # a name too long, or none that a file can have
        is_file = is_file or (folder / expanded(text)).exists()
    return absolute(text, folder) if text not in known and is_file else text


def read_form(path: Path) -> RunForm:
    """Read a file of `--config`, whose paths are relative to its folder.

    Raises:
        UsageError: If it cannot be read or something in it is wrong: with file, line and column.
    """
    typed = read_typed(path, RunForm)
    refuse_problems(typed)
    folder = path.absolute().parent
    form = placed(typed.value, folder)
    challenges, warmups = placed_work(form, folder)
    variants = []
    for number, text in enumerate(form.variants):
        try:
            variants.append(placed_variant(text, folder))
        except UsageError as err:
            raise typed.document.refuse(("variants", number), err.message, hint=err.hint) from err
    return msgspec.structs.replace(
        form,
        variants=tuple(variants),
        jdk=form.jdk and placed_jdk(form.jdk, folder),
        variants_file=form.variants_file and absolute(form.variants_file, folder),
        targets_file=form.targets_file and absolute(form.targets_file, folder),
        challenges=challenges,
        warmup_challenges=warmups,
    )


# `--test-mode`: everything is started, asked and compared as usual, but hardly repeated.

TEST_MODE_DOCUMENTS = 100_000
"""Default corpus: the smallest in which all of big5 finds something."""

TEST_MODE_FORKS = 1
"""Default number of forks."""

_ITERATIONS = 3
_WARMUP_ITERATIONS = 1
_PERIOD_S = 2.0
_MICRO_TEST_MODE = {"-wi": "1", "-i": "1", "-w": "50ms", "-r": "50ms"}


def in_test_mode(plan: Plan) -> Plan:
    """The plan with tasks as short as possible that still exercise everything.

    Every task sends at most three requests per client after one warm-up, or runs for two seconds,
    unthrottled; a task
    that ends by itself, such as indexing a corpus, does. A microbenchmark has one iteration of 50 ms.
    """
    if plan.micro is not None:
        words = list(plan.micro.arguments)
        for name, value in _MICRO_TEST_MODE.items():
            if name in words:
                words[words.index(name) + 1] = value
            else:
                words += [name, value]
        micro = msgspec.structs.replace(plan.micro, arguments=tuple(words))
        plan = msgspec.structs.replace(plan, micro=micro)
    return msgspec.structs.replace(
        plan,
        schedules=tuple(map(_shortened, plan.schedules)),
        warmup_challenges=tuple(map(_shortened, plan.warmup_challenges)),
        variant_warmups={
            name: tuple(map(_shortened, warmups)) for name, warmups in plan.variant_warmups.items()
        },
        pollution=plan.pollution and _shortened(plan.pollution),
        test_mode=True,
    )


def _shortened(challenge: Challenge) -> Challenge:
    return msgspec.structs.replace(challenge, schedule=tuple(map(_short, challenge.schedule)))


def _short(task: Task) -> Task:
    return msgspec.structs.replace(
        task,
        iterations=task.iterations and min(task.iterations, _ITERATIONS),
        warmup_iterations=task.warmup_iterations and min(task.warmup_iterations, _WARMUP_ITERATIONS),
        time_period=task.time_period and min(task.time_period, _PERIOD_S),
        warmup_time_period=None,
        ramp_up_time_period=None,
        target_throughput=None,
        target_interval=None,
        # Arrivals need a rate.
        schedule="deterministic" if task.schedule == "poisson" else task.schedule,
        scheduler=None,
    )
