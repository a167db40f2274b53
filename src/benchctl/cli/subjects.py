"""Options about what is measured, and on which index: variants, engines, corpus, order; as one value."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click
import msgspec
import psutil
from click.core import ParameterSource

from benchctl.cli.completion import completing
from benchctl.cli.options import DocumentsType, HeapType, grouped, once
from benchctl.cli.variants import resolve_variants, variants_option
from benchctl.results.plan import CorpusSpec, PinSpec, StartMode, VariantSpec
from benchctl.run.documents import GENERATED_DOCUMENTS, FileOptions
from benchctl.run.pin import AUTO, allowed_cpus, cores_of, pin_of
from benchctl.run.plan import default_heap_mb
from benchctl.track.library import track_names

BUILT_IN = ("es", "os")


@dataclass(frozen=True)
class SubjectOptions:
    """What is measured.

    Attributes:
        variants: as written; empty when none was.
        variants_file: of variants that these may name.
        docs: documents that are used; None for a million generated ones, or all of files.
        corpus_file: a file of documents for the track's only index.
        has_actions: whether a line before each of its documents says what to do with it.
        corpus_dirs: where files of the track's documents are looked for.
        track: name or path.
        heap: of every node, MiB; None for the default.
        jdks, distributions: as written.
        segments: of the prepared index.
        ingest_clients: that fill it.
        seed: of order and arrivals.
        corpus_seed: of the corpus.
        paired: blocks will be analysed as pairs.
        index_builds: how often every prepared index is built.
        pin: as written; None to leave CPUs to the kernel.
        start: how nodes are started; None for as their variants say.
    """

    variants: tuple[str, ...]
    variants_file: Path | None
    docs: int | None
    corpus_file: Path | None
    has_actions: bool
    corpus_dirs: tuple[Path, ...]
    track: str
    heap: int | None
    jdks: tuple[str, ...]
    distributions: tuple[str, ...]
    segments: int
    ingest_clients: int
    seed: int
    corpus_seed: int
    paired: bool
    index_builds: int
    pin: str | None
    start: StartMode | None

    def specs(self, default: tuple[str, ...] = BUILT_IN) -> tuple[VariantSpec, ...]:
        """The variants; when none was named, all of the file, or these.

        Raises:
            UsageError: one cannot be understood.
        """
        texts = self.variants if self.variants_file is not None else self.variants or default
        found = resolve_variants(texts, self.distributions, self.jdks, self.variants_file)
        if self.start is None:
            return found
        return tuple(msgspec.structs.replace(spec, start=self.start) for spec in found)

    @property
    def heap_mb(self) -> int:
        """Heap of every node, MiB."""
        generated = self.corpus_file is None and self.track in track_names()
        documents = self.corpus.documents if generated else self.docs
        return self.heap or default_heap_mb(psutil.virtual_memory().total, documents)

    def pin_spec(self, workers: int) -> PinSpec | None:
        """Which CPUs node and driver get here.

        Args:
            workers: processes that the driver's clients work in.

        Raises:
            UsageError: these CPUs cannot be had.
        """
        if self.pin is None:
            return None
        allowed = allowed_cpus()
        return pin_of(self.pin, workers=workers, allowed=allowed, cores=cores_of(allowed))

    @property
    def corpus(self) -> CorpusSpec:
        """The generated corpus, where there is one."""
        documents = self.docs or GENERATED_DOCUMENTS
        return CorpusSpec(seed=self.corpus_seed, documents=documents, generator_version=0, digest="")

    @property
    def files(self) -> FileOptions:
        """Which documents are to come from files."""
        return FileOptions(
            self.corpus_file,
            self.has_actions,
            self.corpus_dirs,
            self.docs,
            # Nobody asked for the number of documents that another option brings.
            at_most=click.get_current_context().get_parameter_source("docs") is ParameterSource.DEFAULT_MAP,
        )


subject_options = grouped(
    "subject_options",
    SubjectOptions,
    "What is measured",
    click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="VARIANT",
        shell_complete=completing(lambda: BUILT_IN),
        help="es, os, es@8.19.0, or LABEL=BASE with options behind commas: jvm:FLAG, setting:KEY=VALUE, "
        "jdk:JDK, distribution:PATH|URL, heap:SIZE, env:NAME=VALUE, index:KEY=VALUE, jar:JAR, plugin:PLUGIN, "
        "warmup:CHALLENGE, start:script; repeatable, the first is the baseline  [default: all of --variants; "
        "else es and os; for run, the targets]",
    ),
    variants_option,
    click.option(
        "--docs",
        type=DocumentsType(),
        default=None,
        help="Documents: of files an even share  [default: 1m generated ones, 100k where run raises the "
        "counts of shipped challenges; all of files]",
    ),
    click.option(
        "--corpus",
        "corpus_file",
        type=click.Path(path_type=Path),
        default=None,
        metavar="FILE",
        help="Documents for the only index of the track: JSON, one a line; .zst, .bz2 and .gz, too.",
    ),
    click.option(
        "--corpus-has-actions",
        "has_actions",
        is_flag=True,
        help="Before each document of --corpus, a line says what to do with it.",
    ),
    click.option(
        "--corpus-dir",
        "corpus_dirs",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        multiple=True,
        metavar="DIR",
        help="Where files of the track's documents are, beside the track's own folder; repeatable.",
    ),
    click.option(
        "--track",
        "--track-path",
        "--workload-path",
        "track",
        multiple=True,
        callback=once,
        default=("big5",),
        show_default=True,
        metavar="NAME|PATH",
        shell_complete=completing(track_names),
        help="Indices, documents and operations: a shipped track, or a folder or file of your own.",
    ),
    "Nodes and indices",
    click.option(
        "--heap",
        type=HeapType(),
        default=None,
        help="Heap of every node  [default: a quarter of memory, at most 4g, for few documents less]",
    ),
    click.option(
        "--jdk",
        "jdks",
        multiple=True,
        metavar="[VARIANT=]PATH|MAJOR",
        help="Java home, or a major version to fetch  [default: the bundled 21]",
    ),
    click.option(
        "--distribution",
        "distributions",
        multiple=True,
        metavar="VARIANT=PATH|URL",
        help="A .tar.gz, .zip or folder instead of Maven Central.",
    ),
    click.option(
        "--segments", type=int, default=1, show_default=True, help="Segments of the prepared index."
    ),
    click.option(
        "--ingest-clients",
        type=int,
        default=2,
        show_default=True,
        help="Concurrent bulk senders that fill the prepared index.",
    ),
    "How much",
    click.option(
        "--seed", type=int, default=1, show_default=True, help="Of the order in blocks, arrivals and values."
    ),
    click.option("--corpus-seed", type=int, default=1, show_default=True, help="Of the corpus."),
    click.option(
        "--index-builds",
        type=int,
        default=1,
        show_default=True,
        metavar="K",
        help="Build every prepared index so often; forks take the builds in turn, and their spread counts.",
    ),
    "Nodes and indices",
    click.option(
        "--pin",
        is_flag=False,
        flag_value=AUTO,
        default=None,
        metavar="[node=CPUS,driver=CPUS]",
        help="Give nodes and benchctl CPUs of their own; chosen when none are named.",
    ),
    click.option(
        "--start",
        type=click.Choice(get_args(StartMode)),
        default=None,
        help="Start servers by their own command line, or by the engine's script  [default: direct]",
    ),
    "How much",
    click.option(
        "--paired/--unpaired",
        default=True,
        show_default=True,
        help="Analyse blocks as pairs, which takes the drift of the host out; declared before the run.",
    ),
)
"""The options; the command gets them as one, `subject_options`."""
