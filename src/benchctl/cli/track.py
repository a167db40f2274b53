"""`benchctl track` and `corpus`: begin, trust, check and show tracks, and get documents ahead of a run."""

import os
import shlex
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchctl.cli.measuring import measuring, measuring_options, with_documents
from benchctl.cli.options import AmountType, ParamOptions, param_options, print_table
from benchctl.cli.run_options import form_options
from benchctl.cli.streams import note, say
from benchctl.cli.targets import endpoints_of, read_targets
from benchctl.cli.watch import watching
from benchctl.corpus.generated import GENERATORS, list_corpora
from benchctl.corpus.shapes import Anonymizer
from benchctl.corpus.source import Fetch, fetched_files
from benchctl.engine.client import SearchClient
from benchctl.engine.target import Address, explained, identify
from benchctl.engine.variant import BUILT_IN_VERSIONS, parse_variant
from benchctl.errors import BenchctlError, UsageError, suggestion
from benchctl.home import resolve_home
from benchctl.plugin.code import Code, Consent, read_code
from benchctl.quantities import COUNT
from benchctl.report.numbers import counted
from benchctl.report.table import Table
from benchctl.run.bench import Observer
from benchctl.run.capture import (
    Part,
    Queries,
    capture,
    holds_names,
    named,
    of_track,
    read_queries,
    write_track,
)
from benchctl.run.form import run_spec
from benchctl.run.plan import freeze
from benchctl.run.prepare import prepare_corpus
from benchctl.run.queries import Digest, of_log
from benchctl.spec import BusyAction, RunForm, setting
from benchctl.track.library import find_track
from benchctl.track.load import (
    MOST_NAMES,
    TASK_PARAMETERS,
    filter_tasks,
    load_challenge,
    load_track,
    parse_filters,
    reject_unused,
)
from benchctl.track.model import Challenge, GeneratorName, Task, Track
from benchctl.track.operations import Cannot, Operation

_SOURCE = "source"  # the cluster: its credentials are in BENCHCTL_SOURCE_USER and so on
_NOTHING = "-"
_PATH = click.argument("path")


@click.group("track")
def track_group() -> None:
    """Create, validate and inspect tracks."""


@track_group.command("new")
@click.argument("folder", metavar="[NAME]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--from-index",
    "origin",
    nargs=2,
    metavar="URL INDEX",
    help="Address of a cluster, or its name in a file of --targets, and an index of it.",
)
@click.option(
    "--track",
    "source",
    metavar="NAME|PATH",
    help="Track that has the documents, instead of --from-index.",
)
@click.option("--targets", "targets_file", metavar="FILE", help=setting("targets_file").meta.description)
@click.option(
    "--docs", type=AmountType(COUNT), help="Approximate number of documents, drawn at random.  [default: all]"
)
@click.option(
    "--queries",
    "queries_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON file of searches: names and bodies; or a log of searches.  [default: one for all documents]",
)
@click.option(
    "--index",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Indices whose searches to take from a log. Repeatable.  [default: all]",
)
@click.option("--anonymize", is_flag=True, help="Replace the values in a log's searches by other words.")
def new_command(
    folder: Path | None,
    origin: tuple[str, str] | None,
    source: str | None,
    targets_file: str | None,
    docs: int | None,
    queries_file: Path | None,
    patterns: tuple[str, ...],
    *,
    anonymize: bool,
) -> None:
    """Create a track from an index or a log.

    NAME is the new directory. A log is a search slow log in JSON, an export of OpenSearch's query
    insights, or plain lines with timestamp and body. Nothing on the cluster is changed. Credentials of a URL
    are in BENCHCTL_SOURCE_USER and _PASSWORD, in BENCHCTL_SOURCE_API_KEY or _BEARER, or for AWS in
    _ACCESS_KEY, _SECRET_KEY and _REGION.
    """
    folder = folder or (Path(origin[1]) if origin else Path())
    is_log = queries_file is not None and queries_file.is_file() and not holds_names(queries_file)
    rules = (
        (
            (origin is None) == (source is None),
            "give one of --from-index URL INDEX and --track NAME",
            "the documents that are searched come from a cluster, or from another track",
        ),
        (not folder.name, "missing argument NAME", "the directory that the track is written to"),
        (folder.exists(), f"{folder} already exists", "choose another name, or remove it first"),
        (
            source is not None and (docs is not None or targets_file is not None),
            "--docs and --targets require --from-index",
            "give them to benchctl run",
        ),
        (
            queries_file is not None and not queries_file.is_file(),
            f"--queries: no such file '{queries_file}'",
            "give a file of searches, or a log of them",
        ),
        (
            not is_log and bool(patterns or anonymize),
            "--index and --anonymize require a log of searches",
            "give it by --queries FILE",
        ),
    )
    for broken, message, hint in rules:
        if broken:
            raise UsageError(message, hint=hint)
    digest, anonymizer = Digest(), Anonymizer() if anonymize else None
    with watching(quiet=False) as observer:
        names: Queries = {"all": {"query": {"match_all": {}}}}
        if queries_file is None:
            searches = named(names)
        elif is_log:
            searches = of_log(queries_file, digest, observer, patterns=patterns, anonymizer=anonymizer)
        else:
            names = read_queries(queries_file)
            searches = named(names)
        if origin is not None:
            _capture(origin, targets_file, folder, docs, searches, observer)
        else:
            name = source or ""
            write_track(folder, of_track(load_track(name, {})[0], find_track(name).parent), searches)
    if is_log:
        _show_log(digest, load_track(str(folder), {})[0], anonymizer)
    else:
        say(f"searches: {', '.join(names)}")
    quoted = shlex.quote(str(folder))
    say(f"Look at it: benchctl track show {quoted}")
    say(f"Run it: benchctl run --track-path {quoted}")


_MOST_SHOWN = 20


def _show_log(digest: Digest, track: Track, anonymizer: Anonymizer | None) -> None:
    """Print what a log holds: its shapes, what was left out, and what can still be read."""
    whole_ms = sum(one.took_ms for one in digest.shapes)
    rows = [
        (
            one.name,
            f"{one.count:,}",
            f"{one.count / digest.searches:.1%}",
            f"{one.took_ms / whole_ms:.1%}" if digest.timed and whole_ms else _NOTHING,
            f"{one.took_ms / one.count:,.1f}" if digest.timed else _NOTHING,
        )
        for one in digest.shapes[:_MOST_SHOWN]
    ]
    columns = ("shape", "searches", "share", "of the time", "mean ms")
    print_table(Table.listed("", columns, rows), "text")
    if len(digest.shapes) > _MOST_SHOWN:
        say(f"and {len(digest.shapes) - _MOST_SHOWN} more shapes, which `benchctl track show` lists")
    say(f"{digest.searches:,} searches in {digest.seconds:,.0f} s")
    if digest.seconds > digest.window_s:
        say(f"replay sends the busiest {digest.window_s:g} s, from {digest.start_s:,.0f} s on, by default")
    if len(track.indices) == 1 and digest.indices:
        names = (
            ", ".join(digest.indices)
            if len(digest.indices) <= MOST_NAMES
            else f"{len(digest.indices)} indices"
        )
        say(f"searches of {names} are sent to {track.indices[0].name}")
    if not digest.timed:
        note("not every search has its time: shapes are in the order of their number")
    for kind, count in digest.left_out.most_common():
        note(f"left out: {count:,} x {kind}")
    if anonymizer is not None:
        note(f"anonymized; what can still be read: {'; '.join(anonymizer.KEEPS)}")
        note(f"anonymized: {anonymizer.LOSES}")
    if digest.dropped_params:
        note(f"anonymized: without the URL parameters {', '.join(sorted(digest.dropped_params))}")


def _capture(
    origin: tuple[str, str],
    targets_file: str | None,
    folder: Path,
    docs: int | None,
    searches: Part,
    observer: Observer,
) -> None:
    url, index = origin
    target = url if targets_file else f"{_SOURCE}={url}"
    specs = read_targets(RunForm(targets=(target,), targets_file=targets_file or ""))
    ((name, endpoint),) = endpoints_of(specs, os.environ).items()
    facts = identify(Address(name, endpoint))
    with explained(name, endpoint), SearchClient(facts.engine, endpoint) as client:
        observer.stage(f"reading {index}")
        progress = partial(observer.progress, "documents", total=docs or 0)
        made = capture(client, facts, index, folder, docs=docs, searches=searches, progress=progress)
    say(f"{folder}: {made.documents:,} of {made.held:,} documents")
    for left_out in made.left_out:
        note(f"the setting {left_out} is omitted: it belongs to the cluster")


# Plug-ins: remember that one may be executed, or forget it.


@track_group.command("trust")
@_PATH
def trust_command(path: str) -> None:
    """Allow a track's Python plug-in to run.

    Trust ends when one of its files changes. A plug-in is a program: it can do whatever you can.
    Review the listed files first.
    """
    code = _existing(path)
    Consent(resolve_home()).remember(code)
    say(f"trusted {code.digest[:12]}: {code.describe()}")


@track_group.command("untrust")
@_PATH
def untrust_command(path: str) -> None:
    """Revoke trust in a track's Python plug-in."""
    code = _existing(path)
    was_trusted = Consent(resolve_home()).forget(code)
    say(f"no longer trusted: {code.path}" if was_trusted else f"was not trusted: {code.path}")


def _existing(path: str) -> Code:
    code = read_code(find_track(path).parent)
    if code is None:
        raise UsageError(
            f"the track at {path} has no Python plug-in", hint="a plug-in is a file track.py or workload.py"
        )
    return code


def _echo_needs(path: str, track: Track, challenges: Collection[Challenge]) -> None:
    """Print what challenges need of the track's plug-in, of which nothing is executed, and its state."""
    for challenge in challenges:
        for task in challenge.schedule:
            operation = _operation(track, challenge, task)
            if isinstance(operation, Cannot):
                say(f"unsupported: task '{task.label}' of {challenge.name}: {operation.reason}")
    needs = dict.fromkeys(phrase for challenge in challenges for phrase in track.lacking(challenge))
    if not needs:
        return
    say(f"needs its Python plug-in ({track.plugin or 'not in the directory of the track'}) for:")
    for phrase in needs:
        say(f"  {phrase}")
    code = read_code(find_track(path).parent)
    if code is not None:
        trusted = Consent(resolve_home()).is_remembered(code)
        how = "(trusted)" if trusted else "with --trust, or after `benchctl track trust`"
        say(f"plug-in {code.digest[:12]}: {code.describe()}")
        say(f"not executed here; `benchctl run` executes it {how}")


# Checking a track, and seeing what it would do.


@track_group.command("validate")
@_PATH
@param_options
def validate_command(path: str, *, param_options: ParamOptions) -> None:
    """Validate a track and every challenge in it.

    PATH is a directory with a track.json or workload.json, such a file, or a shipped track. All that a run
    of any challenge would refuse is printed; exit code 2 if there is anything.
    """
    params = param_options.read()
    try:
        track, known = load_track(path, params)
    except UsageError as err:
        if len(err.errors) > 1:
            _reject_mistakes(path, [(error, "") for error in err.errors], ())
        raise
    challenges: dict[str, Challenge] = {}
    mistakes: list[tuple[UsageError, str]] = [(fault.error, fault.challenge) for fault in track.faults]
    for name in track.challenges:
        try:
            challenges[name] = load_challenge(name, track, params)[0]
            _check_run(path, track, challenges[name], params)
        except UsageError as err:
            mistakes += ((error, name) for error in err.errors)
    reject_unused(params, known | ({*params} & {*TASK_PARAMETERS} if challenges else set()))
    say(f"track {track.name}: {track.description}" if track.description else f"track {track.name}")
    for line in _holdings(track):
        say(line)
    for name, challenge in challenges.items():
        default = " (default)" if name == track.default_name else ""
        types = _counted(_operation(track, challenge, task).type_name for task in challenge.schedule)
        say(f"challenge {name}{default}: {types}")
    _echo_needs(path, track, challenges.values())
    for remark in track.remarks:
        say(f"note: {remark}")
    say(f"parameters ({len(track.known)}): {', '.join(track.known) or 'none'}")
    _reject_mistakes(path, mistakes, challenges)


@track_group.command("show")
@_PATH
@click.option(
    "--challenge",
    "--test-procedure",
    "name",
    metavar="NAME|FILE",
    help="Challenge of the track, shipped one, or file.  [default: the track's]",
)
@form_options("include_tasks", "exclude_tasks")
@param_options
def show_command(path: str, name: str | None, *, form: RunForm, param_options: ParamOptions) -> None:
    """Show the expanded schedule of a challenge.

    Tasks of the same step run concurrently.
    """
    params = param_options.read()
    track, known = load_track(path, params)
    name = name or track.default_name
    if name is None:
        raise UsageError(
            f"track '{track.name}' has no default challenge",
            hint=f"give --challenge: {', '.join(track.challenges) or 'see benchctl list challenges'}",
        )
    whole, own = load_challenge(name, track, params)
    reject_unused(params, known | own)
    (challenge,) = filter_tasks(
        [whole],
        track.operations,
        include=parse_filters(form.include_tasks),
        exclude=parse_filters(form.exclude_tasks),
    )
    rows = []
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
            row = (
                str(number),
                task.label,
                operation.type_name,
                str(task.clients),
                _bound(task, task.warmup_iterations, task.warmup_time_period) or _NOTHING,
                measured or ("to its end" if operation.ends else _bound(task, 1, None)),
                _rate(task),
            )
            rows.append(row)
    say(f"{track.name}, challenge {challenge.name}")
    columns = ("step", "task", "operation type", "clients", "warm-up", "measured", "rate")
    print_table(Table.listed("", columns, rows), "text")
    _echo_needs(path, track, [challenge])
    for remark in challenge.remarks:
        say(f"note: {remark}")


def _operation(track: Track, challenge: Challenge, task: Task) -> Operation:
    return challenge.operations.get(task.operation) or track.operations[task.operation]


def _holdings(track: Track) -> Iterator[str]:
    """Yield what the track holds besides its challenges, a line a kind."""
    for index in track.indices:
        yield f"index {index.name}: {counted(index.body.shards, 'shard')}"
    for data_stream in track.data_streams:
        yield f"data stream {data_stream}"
    for template in track.templates:
        yield f"{template.kind} template {template.name}"
    for corpus in track.corpora:
        documents = sum(file.document_count or 0 for file in corpus.documents)
        files = counted(len(corpus.documents), "file")
        yield f"corpus {corpus.name}: {files}, {counted(documents, 'document')}"
    if track.operations:
        types = _counted(operation.type_name for operation in track.operations.values())
        yield f"operations: {types}"
    if track.plugin is not None:
        yield f"Python plug-in: {track.plugin}, not executed to read the track"


def _check_run(path: str, track: Track, challenge: Challenge, params: dict[str, Any]) -> None:
    """Check what a run of a challenge looks at before a node starts; its plug-in is not executed.

    Raises:
        UsageError: If the run would be refused on each engine.
    """
    if track.lacking(challenge):
        return
    track = track.with_challenges(challenge)
    home = resolve_home()
    refused: BenchctlError | None = None
    for engine in BUILT_IN_VERSIONS:
        spec = run_spec(RunForm(track=path, params=params), [parse_variant(engine)], home=home)
        try:
            with_documents(freeze(spec, track, (challenge,)), track, spec.files, home)
        except BenchctlError as err:
            refused = refused or err
        else:
            return
    if refused is not None:
        raise UsageError(f"{find_track(path)}: {refused.message}", hint=refused.hint)


def _reject_mistakes(path: str, mistakes: Iterable[tuple[UsageError, str]], usable: Collection[str]) -> None:
    """Print mistakes, each once with the challenges that cannot be run because of it.

    Raises:
        UsageError: If there are any.
    """
    challenges: dict[str, list[str]] = {}
    hints: dict[str, str] = {}
    for error, challenge in mistakes:
        challenges.setdefault(error.message, []).extend([challenge] if challenge else [])
        hints[error.message] = error.hint
    for message, names in challenges.items():
        say(f"mistake: {message}")
        if hints[message]:
            say(f"  hint: {hints[message]}")
        if names:
            say(f"  challenges that cannot be run: {', '.join(names)}")
    if challenges:
        refused = {name for names in challenges.values() for name in names}
        others = ", ".join(name for name in usable if name not in refused)
        hint = f"these challenges can be run: {others}" if others else ""
        raise UsageError(f"{path}: {counted(len(challenges), 'mistake')}", hint=hint)


def _bound(task: Task, iterations: int | None, seconds: float | None) -> str:
    if iterations is not None:
        # Iterations are each client's.
        return f"{iterations:,} x" if task.clients == 1 else f"{task.clients} x {iterations:,}"
    return f"{seconds:g} s" if seconds is not None else ""


def _rate(task: Task) -> str:
    if task.scheduler is not None:
        return f"by {task.scheduler}"
    if task.schedule == "logged":
        return "as logged" if task.log_speed == 1 else f"as logged, x {task.log_speed:g}"
    rate = task.rate_per_s
    if rate is None:
        return _NOTHING
    spaced = " poisson" if task.schedule == "poisson" else ""
    return f"{rate:g}/s{spaced}"


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(names).most_common())


# `benchctl corpus`: documents ahead of a run.


@click.group("corpus")
def corpus_group() -> None:
    """Generate, download and list corpora."""


@corpus_group.command("generate")
@click.option("--docs", type=AmountType(COUNT), default="1m", show_default=True, help="Number of documents.")
@click.option(
    "--generator",
    type=click.Choice(list(GENERATORS)),
    default="big5",
    show_default=True,
    help="Kind of documents.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed of the documents.")
@measuring_options
def generate_command(
    docs: int, generator: GeneratorName, seed: int, *, on_busy: BusyAction | None, quiet: bool
) -> None:
    """Generate a corpus for later runs."""
    home = resolve_home()
    with measuring(on_busy, quiet=quiet) as observer:
        start = time.monotonic()
        corpus = prepare_corpus(home, docs, seed, observer, generator)
        seconds = time.monotonic() - start
    on_disk = sum(part.file_bytes for part in corpus.parts)
    say(
        f"{corpus.documents:,} documents, {corpus.raw_bytes / 1e9:.2f} GB, {on_disk / 1e9:.2f} GB on disk, "
        f"in {seconds:.1f} s ({corpus.documents / seconds:,.0f} docs/s)\n"
        f"digest {corpus.digest}\n{corpus.root}"
    )


@corpus_group.command("fetch")
@click.argument("name", required=False)
@click.option(
    "--track", "track_path", metavar="PATH", required=True, help="The track whose corpora these are."
)
@click.option("--from", "source", metavar="URL", help="URL of the files, instead of the track's.")
@param_options
@click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
def fetch_command(
    name: str | None, track_path: str, source: str | None, *, param_options: ParamOptions, quiet: bool
) -> None:
    """Download the published corpora of a track.

    NAME is one of them. Interrupted downloads resume. The first run that needs a packed file makes an indexed
    copy of it.
    """
    values = param_options.read()
    track, param_names = load_track(track_path, values)
    reject_unused(values, param_names | set(TASK_PARAMETERS))
    corpora = {corpus.name: corpus for corpus in track.corpora if not corpus.streaming_ingestion}
    if not corpora:
        raise UsageError(f"track '{track.name}' declares no files of documents")
    if name is not None and name not in corpora:
        raise UsageError(
            f"track '{track.name}' has no corpus '{name}'", hint=suggestion(name, sorted(corpora))
        )
    home = resolve_home()
    with watching(quiet=quiet) as observer:
        fetch = Fetch(home, observer.progress, source)
        for corpus in corpora.values() if name is None else [corpora[name]]:
            for documents in corpus.documents:
                observer.stage(f"{corpus.name}: {documents.source_file}")
                path = fetch.get(corpus, documents)
                say(f"{path.stat().st_size:>18,} bytes  {path}")


@corpus_group.command("list")
def list_command() -> None:
    """List generated and downloaded corpora."""
    home = resolve_home()
    for corpus in list_corpora(home):
        say(
            f"{corpus.documents:>15,} documents  {corpus.generator}  seed {corpus.seed}  "
            f"{corpus.digest[:12]}  {corpus.root}"
        )
    for path in fetched_files(home):
        say(f"{path.stat().st_size:>15,} bytes      {path}")
