"""`benchctl corpus`: documents ahead of a run."""

import time

import click

from benchctl.cli.measuring import measuring, measuring_options
from benchctl.cli.options import DocumentsType
from benchctl.corpus.files import list_corpora
from benchctl.home import resolve_home
from benchctl.run.prepare import prepare_corpus


@click.group("corpus")
def corpus_group() -> None:
    """Generate and list corpora."""


@corpus_group.command("generate")
@click.option("--docs", type=DocumentsType(), default="1m", show_default=True, help="How many documents.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other documents.")
@measuring_options
def generate_command(docs: int, seed: int, *, wait: bool, quiet: bool) -> None:
    """Generate a corpus that a later run with the same --docs uses."""
    home = resolve_home()
    with measuring(wait=wait, quiet=quiet) as observer:
        start = time.monotonic()
        corpus = prepare_corpus(home, docs, seed, observer)
        seconds = time.monotonic() - start
    on_disk = sum(part.file_bytes for part in corpus.parts)
    click.echo(
        f"{corpus.documents:,} documents, {corpus.raw_bytes / 1e9:.2f} GB, {on_disk / 1e9:.2f} GB on disk, "
        f"in {seconds:.1f} s ({corpus.documents / seconds:,.0f} docs/s)\n"
        f"digest {corpus.digest}\n{corpus.root}"
    )


@corpus_group.command("list")
def list_command() -> None:
    """List the corpora in benchctl's home."""
    for corpus in list_corpora(resolve_home()):
        click.echo(
            f"{corpus.documents:>15,} documents  seed {corpus.seed}  {corpus.digest[:12]}  {corpus.root}"
        )
