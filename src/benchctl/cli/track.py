"""`benchctl track`: begin a track from a cluster, trust its plug-in, check it, derive a challenge from it."""

import shlex
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from benchctl.cli.options import AmountType, ParamOptions, param_options
from benchctl.cli.run_options import code_of, echo_plugin, form_options, trust_option
from benchctl.cli.streams import emit, is_terminal, note, say, text_width
from benchctl.cli.targets import AddressOptions, address_options
from benchctl.cli.watch import watching
from benchctl.engine.client import SearchClient
from benchctl.engine.target import Address, explained, identify
from benchctl.errors import UsageError, suggestion
from benchctl.home import resolve_home
from benchctl.plugin.code import Code, Consent
from benchctl.quantities import COUNT
from benchctl.report.numbers import counted
from benchctl.report.table import Table, pieces
from benchctl.run.capture import capture, read_queries
from benchctl.run.plan import SETTLING_DOCUMENTS
from benchctl.spec import RunForm
from benchctl.track.load import (
    TASK_PARAMETERS,
    filter_tasks,
    load_challenge,
    load_track,
    parse_filters,
    reject_unused,
)
from benchctl.track.model import Challenge, Corpus, Task, Track
from benchctl.track.operations import Cannot, Operation
from benchctl.track.pollution import POLLUTED
from benchctl.track.schedule import challenge_text

_NOTHING = "-"

_PATH = click.argument("path")


# `benchctl track new`: an index of a live cluster becomes a track of one's own.

_NAME = "source"  # of the cluster: its credentials are in BENCHCTL_SOURCE_USER and so on


@click.command("new")
@click.option(
    "--from-index",
    "origin",
    nargs=2,
    required=True,
    metavar="URL INDEX",
    help="Address of a cluster, and an index of it.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="New directory of the track.  [default: the index's name]",
)
@click.option(
    "--docs",
    type=AmountType(COUNT),
    default=None,
    help="Approximate number of documents, drawn at random.  [default: all]",
)
@click.option(
    "--queries",
    "queries_file",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="JSON file of searches: names and bodies.  [default: one for all documents]",
)
@address_options
def new_command(
    origin: tuple[str, str],
    output: Path | None,
    docs: int | None,
    queries_file: Path | None,
    address: AddressOptions,
) -> None:
    """Create a track from an existing index.

    Nothing on the cluster is changed. Credentials are in BENCHCTL_SOURCE_USER and _PASSWORD, in
    BENCHCTL_SOURCE_API_KEY or _BEARER, or for AWS in _ACCESS_KEY, _SECRET_KEY and _REGION.
    """
    url, index = origin
    folder = output or Path(index)
    if folder.exists():
        raise UsageError(
            f"{folder} already exists", hint="choose another directory with --output, or remove it first"
        )
    queries = {"all": {"query": {"match_all": {}}}} if queries_file is None else read_queries(queries_file)
    source = Address(_NAME, address.endpoint(_NAME, url))
    facts = identify(source)
    with (
        watching(quiet=False) as observer,
        explained(_NAME, source.endpoint),
        SearchClient(facts.engine, source.endpoint) as client,
    ):
        observer.stage(f"reading {index}")
        progress = partial(observer.progress, "documents", total=docs or 0)
        made = capture(client, facts, index, folder, docs=docs, queries=queries, progress=progress)
    say(f"{folder}: {made.documents:,} of {made.held:,} documents; searches: {', '.join(queries)}")
    for setting in made.left_out:
        note(f"the setting {setting} is left out: it belongs to the cluster")
    quoted = shlex.quote(str(folder))
    say(f"Look at it: benchctl track show {quoted}")
    say(f"Run it: benchctl run --track-path {quoted}")


# `benchctl track trust` and `untrust`: remember that a Python plug-in may be executed, or forget it.


@click.command("trust")
@click.argument("path")
def trust_command(path: str) -> None:
    """Allow a track's Python plug-in to run.

    Trust ends when one of its files changes. A plug-in is a program: it can do whatever you can. Read the
    files that are named first.
    """
    code = _existing(path)
    Consent(resolve_home()).remember(code)
    say(f"trusted {code.digest[:12]}: {code.describe()}")


@click.command("untrust")
@click.argument("path")
def untrust_command(path: str) -> None:
    """Revoke trust in a track's Python plug-in."""
    code = _existing(path)
    found = Consent(resolve_home()).forget(code)
    say(f"no longer trusted: {code.path}" if found else f"was not trusted: {code.path}")


def _existing(path: str) -> Code:
    code = code_of(path)
    if code is None:
        raise UsageError(
            f"the track at {path} has no Python plug-in", hint="one is called track.py or workload.py"
        )
    return code


# Checking a track, and seeing what it would do.


@click.group("track")
def track_group() -> None:
    """Create, validate and inspect tracks."""


track_group.add_command(new_command)
track_group.add_command(trust_command)
track_group.add_command(untrust_command)


@track_group.command("validate")
@_PATH
@param_options
@trust_option
def validate_command(path: str, *, param_options: ParamOptions, trust: bool) -> None:
    """Validate a track and every challenge in it.

    PATH is a directory with a track.json or workload.json, such a file, or a shipped track. Challenges that
    cannot be run are named with the reason; exit code 2 if the default challenge, or all of the track, is
    among them.
    """
    track, challenges = _load(path, param_options)
    say(f"track {track.name}: {track.description}" if track.description else f"track {track.name}")
    for line in _holdings(track):
        say(line)
    if challenges:
        rows = []
        default = track.default_challenge
        for name, challenge in challenges.items():
            lacking = track.lacking(challenge)
            row = (
                f"{name} (default)" if default is not None and name == default.name else name,
                str(len(challenge.schedule)),
                _counted(_operation(track, challenge, task).type_name for task in challenge.schedule),
                f"{len(lacking)}, see below" if lacking else _NOTHING,
            )
            rows.append(row)
        _print(("challenge", "tasks", "operation types", "needs"), rows)
    _echo_lacking(track, challenges.values())
    echo_plugin(path, track, challenges.values(), trust=trust)
    for remark in track.remarks:
        say(f"note: {remark}")
    say(f"parameters ({len(track.known)}): {', '.join(track.known) or 'none'}")
    _report_faults(track)


@track_group.command("show")
@_PATH
@click.option(
    "--challenge",
    "--test-procedure",
    "name",
    default=None,
    metavar="NAME",
    help="Which one.  [default: the default one]",
)
@form_options("include_tasks", "exclude_tasks")
@param_options
@trust_option
def show_command(
    path: str,
    name: str | None,
    *,
    form: RunForm,
    param_options: ParamOptions,
    trust: bool,
) -> None:
    """Show the expanded schedule of a challenge.

    Tasks of the same step run concurrently.
    """
    track, challenges = _load(path, param_options)
    (challenge,) = filter_tasks(
        [_chosen(track, challenges, name)],
        track.operations,
        include=parse_filters(form.include_tasks),
        exclude=parse_filters(form.exclude_tasks),
    )
    lines = []
    for number, places in enumerate(challenge.steps, 1):
        tasks = [challenge.schedule[place] for place in places]
        ending = [task.label for task in tasks if task.completes]
        for task in tasks:
            operation = _operation(track, challenge, task)
            measured = _bound(task, task.iterations, task.time_period)
            if ending and not task.completes:
                measured = f"{measured}, until {ending[0]} ends".removeprefix(", ")
            elif len(ending) > 1:
                measured = f"{measured}, until any ends".removeprefix(", ")
            line = (
                str(number),
                task.label,
                operation.type_name,
                str(task.clients),
                _bound(task, task.warmup_iterations, task.warmup_time_period) or _NOTHING,
                measured or ("to its end" if operation.ends else _bound(task, 1, None)),
                _rate(task),
            )
            lines.append(line)
    say(f"{track.name}, challenge {challenge.name}")
    _print(("step", "task", "operation type", "clients", "warm-up", "measured", "rate"), lines)
    _echo_lacking(track, [challenge])
    echo_plugin(path, track, [challenge], trust=trust)
    for remark in challenge.remarks:
        say(f"note: {remark}")


@track_group.command("pollute")
@_PATH
@click.option(
    "--docs",
    type=AmountType(COUNT),
    default=None,
    help="Documents to be searched: more get fewer iterations.  [default: the track's, or 100k]",
)
@param_options
def pollute_command(path: str, docs: int | None, *, param_options: ParamOptions) -> None:
    """Print the warm-up challenge that is derived from a track.

    Its searches, of every kind of field, bring further implementations to call sites that queries share. It
    is what benchctl run --warmup-challenge polluted runs, and can be given there as a file.
    """
    params = param_options.read()
    track, known = load_track(path, params)
    documents = docs or track.documents or SETTLING_DOCUMENTS
    challenge, own = load_challenge(POLLUTED, track, params, documents)
    reject_unused(params, known | own)
    emit(challenge_text(challenge))


def _load(path: str, options: ParamOptions) -> tuple[Track, Mapping[str, Challenge]]:
    """Load a track and its challenges with parameters set; unused parameters are an error."""
    params = options.read()
    track, known = load_track(path, params)
    challenges = {name: load_challenge(name, track, params)[0] for name in track.challenges}
    reject_unused(params, known | {key for key in params if challenges and key in TASK_PARAMETERS})
    return track, challenges


def _chosen(track: Track, challenges: Mapping[str, Challenge], name: str | None) -> Challenge:
    if not challenges:
        raise UsageError(
            f"track '{track.name}' defines no challenges",
            hint="see the shipped ones: benchctl list challenges",
        )
    if name is None:
        name = track.default_name
        if name is None:
            raise UsageError(
                f"track '{track.name}' has no default challenge",
                hint=f"give --challenge, one of {', '.join(challenges)}",
            )
    fault = track.fault_of(name)
    if fault is not None:
        raise fault.error
    if name not in challenges:
        raise UsageError(
            f"track '{track.name}' has no challenge '{name}'", hint=suggestion(name, sorted(challenges))
        )
    return challenges[name]


def _operation(track: Track, challenge: Challenge, task: Task) -> Operation:
    return challenge.operations.get(task.operation) or track.operations[task.operation]


def _holdings(track: Track) -> Iterable[str]:
    """Return what the track holds besides its challenges, a line a kind."""
    for index in track.indices:
        yield f"index {index.name}: {counted(index.body.shards, 'shard')}"
    for data_stream in track.data_streams:
        yield f"data stream {data_stream}"
    for template in track.templates:
        yield f"{template.kind} template {template.name}"
    for corpus in track.corpora:
        yield _corpus(corpus)
    if track.operations:
        types = _counted(operation.type_name for operation in track.operations.values())
        yield f"operations: {types}"
    if track.plugin is not None:
        yield f"Python plug-in: {track.plugin}, not executed to read the track"


def _corpus(corpus: Corpus) -> str:
    """Return counts and sizes; a sum over files some of which have no size is given as at least that."""
    files = corpus.documents
    sizes = []
    for word, values in (
        ("compressed", [file.compressed_bytes for file in files]),
        ("uncompressed", [file.uncompressed_bytes for file in files]),
    ):
        given = [value for value in values if value is not None]
        if given:
            least = "at least " if len(given) < len(values) else ""
            sizes.append(f"{least}{_size(sum(given))} {word}")
    count = sum(file.document_count or 0 for file in files)
    return f"corpus {corpus.name}: " + ", ".join(
        [counted(len(files), "file"), counted(count, "document"), *sizes]
    )


def _echo_lacking(track: Track, challenges: Collection[Challenge]) -> None:
    found = dict.fromkeys(phrase for challenge in challenges for phrase in track.lacking(challenge))
    if found:
        there = track.plugin or "which is not in the track's directory"
        say(f"needs its Python plug-in ({there}) for:")
    for phrase in found:
        say(f"  {phrase}")
    for challenge in challenges:
        for task in challenge.schedule:
            operation = _operation(track, challenge, task)
            if isinstance(operation, Cannot):
                say(f"unsupported: task '{task.label}' of {challenge.name}: {operation.reason}")


def _report_faults(track: Track) -> None:
    """Report what is wrong with parts of the track; the other challenges can still be run.

    Raises:
        UsageError: If the default challenge cannot be run.
    """
    for fault in track.faults:
        part = f"challenge '{fault.challenge}' cannot be run" if fault.challenge else "unusable operation"
        say(f"{part}: {fault.message}" + (f" ({fault.hint})" if fault.hint else ""))
    name = track.default_name
    if name is not None and track.fault_of(name) is not None:
        raise UsageError(
            f"the default challenge '{name}' cannot be run",
            hint=f"these can be run: {', '.join(track.challenges)}",
        )


def _bound(task: Task, iterations: int | None, seconds: float | None) -> str:
    if iterations is not None:
        # Iterations are each client's.
        return f"{iterations:,} x" if task.clients == 1 else f"{task.clients} x {iterations:,}"
    return f"{seconds:g} s" if seconds is not None else ""


def _rate(task: Task) -> str:
    if task.scheduler is not None:
        return f"by {task.scheduler}"
    rate = task.rate_per_s
    if rate is None:
        return _NOTHING
    spaced = " poisson" if task.schedule == "poisson" else ""
    return f"{rate:g}/s{spaced}"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(names).most_common())


def _size(count: int) -> str:
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count} B"


def _print(columns: Sequence[str], lines: Sequence[tuple[str, ...]]) -> None:
    # Lines of a file or a pipe are not folded: programs read them.
    width = text_width() if is_terminal(sys.stdout) else None
    for piece in pieces(Table.listed("", columns, lines), "text", width):
        emit(piece)
