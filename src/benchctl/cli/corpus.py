"""`benchctl corpus`: documents ahead of a run."""

import time
from collections.abc import Sequence
from typing import Any

import click

from benchctl.cli.measuring import measuring, measuring_options
from benchctl.cli.options import AmountType, ParamOptions, param_options
from benchctl.cli.streams import say
from benchctl.cli.watch import watching
from benchctl.corpus.generated import GENERATORS, list_corpora
from benchctl.corpus.source import Fetch, fetched_files
from benchctl.errors import UsageError, suggestion
from benchctl.home import resolve_home
from benchctl.quantities import COUNT
from benchctl.run.prepare import prepare_corpus
from benchctl.spec import BusyAction
from benchctl.track.load import TASK_PARAMETERS, load_track, reject_unused
from benchctl.track.model import Corpus, GeneratorName


@click.group("corpus")
def corpus_group() -> None:
    """Generate, download and list corpora."""


@corpus_group.command("generate")
@click.option("--docs", type=AmountType(COUNT), default="1m", show_default=True, help="How many documents.")
@click.option(
    "--generator",
    type=click.Choice(list(GENERATORS)),
    default="big5",
    show_default=True,
    help="Of which kind.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other documents.")
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
@click.option("--from", "source", metavar="URL", help="Where the files are, instead of where the track says.")
@param_options
@click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
def fetch_command(
    name: str | None, track_path: str, source: str | None, *, param_options: ParamOptions, quiet: bool
) -> None:
    """Download the published corpora of a track.

    NAME is one of them. Interrupted downloads resume. The first run that needs a packed file makes an indexed
    copy of it.
    """
    corpora = _declared(track_path, name, param_options.read())
    home = resolve_home()
    with watching(quiet=quiet) as observer:
        fetch = Fetch(home, observer.progress, source)
        for corpus in corpora:
            for documents in corpus.documents:
                observer.stage(f"{corpus.name}: {documents.source_file}")
                path = fetch.get(corpus, documents)
                say(f"{path.stat().st_size:>18,} bytes  {path}")


def _declared(track_path: str, name: str | None, values: dict[str, Any]) -> Sequence[Corpus]:
    track, param_names = load_track(track_path, values)
    reject_unused(values, param_names | set(TASK_PARAMETERS))
    named = {corpus.name: corpus for corpus in track.corpora if not corpus.streaming_ingestion}
    if not named:
        raise UsageError(f"track '{track.name}' declares no files of documents")
    if name is None:
        return list(named.values())
    if name not in named:
        raise UsageError(f"track '{track.name}' has no corpus '{name}'", hint=suggestion(name, sorted(named)))
    return [named[name]]


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
