"""A process that prepares an index as `benchctl run` does, and can be interrupted and killed.

Its arguments are benchctl's home, an engine, the number of documents, and the bytes beyond which no file of
it or its node grows, as on a disk that is full; 0 for no such bound.
It says what it does, one line each: `node PID`, `documents N`, and `failed MESSAGE`.
"""

import resource
import sys
from pathlib import Path

import psutil

from benchctl.errors import BenchctlError
from benchctl.home import resolve_home
from benchctl.results.plan import CorpusSpec, EngineName, VariantSpec
from benchctl.run.bench import Observer, SharedObserver
from benchctl.run.documents import parcels
from benchctl.run.plan import RunSpec, plan_run
from benchctl.run.prepare import prepare_corpus, prepare_started
from benchctl.run.session import Subject

HEAP_MB = 512
VERSIONS: dict[EngineName, str] = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}


def tell(what: str, value: object) -> None:
    """A line for the test that listens."""
    sys.stdout.write(f"{what} {value}\n")
    sys.stdout.flush()


class Teller(Observer):
    """Prints what a test waits for."""

    def stage(self, text: str) -> None:
        if "ingesting" in text:
            server = max(psutil.Process().children(recursive=True), key=lambda one: one.memory_info().rss)
            tell("node", server.pid)

    def progress(self, what: str, done: int, total: int) -> None:
        if what == "documents" and total:
            tell("documents", done)


def fill(home_root: Path, engine: EngineName, documents: int) -> Subject:
    """Prepare the index of one engine."""
    home = resolve_home({"BENCHCTL_HOME": str(home_root)})
    made = prepare_corpus(home, documents, 1, Observer())
    options = RunSpec(
        variants=(VariantSpec(engine, engine, VERSIONS[engine]),),
        challenges=("range-only-short",),
        warmup_challenges=(),
        restart="challenge",
        forks=1,
        seed=1,
        heap_mb=HEAP_MB,
        track="big5",
        corpus=CorpusSpec(made.seed, made.documents, made.generator_version, made.digest),
        segments=1,
        params={},
    )
    plan, track = plan_run(options)
    sent = parcels(plan, track, home)
    (subject,) = prepare_started(
        plan.variants,
        plan,
        track,
        lambda _: (plan.corpus, sent),
        home,
        SharedObserver(Teller()),
    )
    return subject


def main() -> None:
    root, engine, documents, most_bytes = sys.argv[1:]
    if int(most_bytes):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), int(most_bytes)))
    try:
        fill(Path(root), "opensearch" if engine == "opensearch" else "elasticsearch", int(documents))
    except BenchctlError as err:
        tell("failed", " ".join(str(err).split()))
        sys.exit(err.exit_code)


if __name__ == "__main__":
    main()
