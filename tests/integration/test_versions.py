"""Versions since the built-in ones on the bundled runtime: how much of big5 each does, and what it lacks.

The newest version of every major, and of the newest major also of the minor before, have to do what the table
in the documentation has of their minors. `--write-goldens` tries every minor and writes the table.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from benchctl.engine.distribution import install
from benchctl.engine.maven import MavenSource, engine_coordinates
from benchctl.engine.variant import BUILT_IN_VERSIONS
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.plan import CorpusSpec, EngineName, VariantSpec
from benchctl.run.bench import Observer, SharedObserver
from benchctl.run.documents import parcels
from benchctl.run.plan import RunSpec, plan_run
from benchctl.run.prepare import check_answers, prepare_corpus, prepare_started
from golden import agree
from integration.conftest import HEAP_MB, QUICK_FLAGS

pytestmark = [pytest.mark.full, pytest.mark.nodes, pytest.mark.timeout(1800)]

PAGE = Path(__file__).parents[2] / "docs/pages/method/limits.md"
HEAD = "| version | tasks of big5 | lacks aggregations | the runtime cannot carry |\n|---|---|---|---|\n"
TITLES: dict[EngineName, str] = {"elasticsearch": "ES", "opensearch": "OS"}
MAJORS = [("elasticsearch", 8), ("elasticsearch", 9), ("opensearch", 2), ("opensearch", 3)]
NEWEST = {"elasticsearch": 9, "opensearch": 3}
"""The last known majors; later ones are tried with them."""
DOCUMENTS = 2_000
MODULE = re.compile(r"jdk\.\w+")
Rows = dict[str, str]
"""Version such as `ES 8.11.4` -> the rest of its row."""


@pytest.mark.parametrize(("engine", "major"), MAJORS)
def test_versions_do_what_the_documentation_says(
    engine: EngineName, major: int, home: Home, request: pytest.FixtureRequest
):
    rows = _read()
    if request.config.getoption("--write-goldens"):
        for version in _versions(engine, major, most=None):
            rows = {name: row for name, row in rows.items() if _minor(name) != _minor(version)}
            rows[version] = _tried(home, engine, version)
            _write(request.config, rows)
        return
    for version in _versions(engine, major, most=2 if major == NEWEST[engine] else 1):
        known = [row for name, row in rows.items() if _minor(name) == _minor(version)]
        newest = next(row for name, row in reversed(rows.items()) if name.startswith(TITLES[engine]))
        assert {version: _tried(home, engine, version)} == {version: known[0] if known else newest}


def _versions(engine: EngineName, major: int, *, most: int | None) -> Iterator[str]:
    """The newest version of each minor, the newest minors first, at most that many."""
    listed = MavenSource(engine_coordinates(engine)).listed()
    first = tuple(map(int, BUILT_IN_VERSIONS[engine].split(".")))
    later = [one for one in listed if one >= first and one[0] == major]
    if major == NEWEST[engine]:
        later = [one for one in listed if one[0] >= major]
    minors = {one[:2]: one for one in later}  # the last patch of each
    for version in sorted(minors.values(), reverse=True)[:most]:
        yield f"{TITLES[engine]} {'.'.join(map(str, version))}"


def _minor(name: str) -> str:
    return name.rpartition(".")[0]


def _tried(home: Home, engine: EngineName, name: str) -> str:
    """Start a node, index some documents, and ask it what big5 asks; returns the row."""
    spec = VariantSpec(engine, engine, name.split()[1])
    original = install(home, spec, lambda *_: None)
    with (original.root / "config/jvm.options").open("a", encoding="utf-8") as options:
        options.write("\n".join(["", *QUICK_FLAGS, ""]))
    made = prepare_corpus(home, DOCUMENTS, 1, Observer())
    corpus = CorpusSpec(made.seed, made.documents, made.generator_version, made.digest)
    asked = RunSpec(
        variants=(spec,),
        challenges=("big5",),
        warmup_challenges=(),
        restart="challenge",
        forks=1,
        seed=1,
        heap_mb=HEAP_MB,
        track="big5",
        corpus=corpus,
        segments=1,
        params={},
    )
    plan, track = plan_run(asked)
    sent, observer = parcels(plan, track, home), SharedObserver(Observer())
    try:
        (subject,) = prepare_started((spec,), plan, track, lambda _: (corpus, sent), home, observer)
        answers = check_answers([subject], plan, track, home, observer)
    except UsageError as err:
        return f"refused |  | {_quoted(MODULE.findall(err.message))} |"
    finally:
        for folder in (home.engines, home.indices, home.artifacts):
            for path in folder.glob(f"{engine}-{spec.version}[-.]*"):
                path.unlink() if path.is_file() else shutil.rmtree(path)
    assert {finding.kind for finding in answers.findings} <= {"unsupported"}
    reasons = [re.findall(r"\[(\w+)\]", finding.detail)[-1] for finding in answers.findings]
    removed = {*original.modules} - {*subject.installation.modules}
    missing = MODULE.findall(" ".join(subject.installation.lacking))
    count = len(answers.operations)
    return f"{count - len(reasons)} of {count} | {_quoted(reasons)} | {_quoted([*removed, *missing])} |"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(set(names)))


def _read() -> Rows:
    rows = _rows_of(PAGE.read_text(encoding="utf-8").partition(HEAD)[2])
    return dict(row.removeprefix("| ").split(" | ", 1) for row in rows.splitlines())


def _write(config: pytest.Config, rows: Rows) -> None:
    def place(name: str) -> tuple[str, list[int]]:
        return name[:2], [int(number) for number in name[3:].split(".")]

    before, _, old = PAGE.read_text(encoding="utf-8").partition(HEAD)
    lines = "".join(f"| {name} | {rows[name]}\n" for name in sorted(rows, key=place))
    agree(config, PAGE, f"{before}{HEAD}{lines}{old.removeprefix(_rows_of(old))}")


def _rows_of(text: str) -> str:
    """The rows that a text begins with."""
    rows = re.match(r"(\|.*\n)*", text)
    assert rows is not None
    return rows[0]
