"""What every reading command prints, word for word: a line of `golden/commands.txt`, and a file a format.

`--write-goldens` writes the files anew. A mistake is a line `$ benchctl ...` of `golden/mistakes.txt`.
"""

import html
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import pytest

import golden
from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.experiment.record import ExperimentFolder
from benchctl.home import Home
from benchctl.results.model import OtherLoad, RunRecord
from benchctl.results.store import RunStore
from builders import ES, make_record
from cli.test_runs import earlier
from drawn import draw_run
from evidence.commands.test_inlining import logged
from evidence.commands.test_listing import evident
from evidence.commands.test_profile import profiled
from experiment.test_report import blog, runs_of
from experiment_files import write as write_experiment
from file_server import Served, serving_files
from foreign_tracks import BOOKS, write_files
from made_experiment import comparison, made_record
from nightly.laboratory import SLOW_FLAG, World
from redlines import make_point, redline_fork, redline_plan
from report.conftest import CALIBRATION, cold, complete_record, difficult, driven
from sweeps import swept_record

GOLDEN: Final = Path(__file__).parent / "golden"
COMMANDS, MISTAKES, HELP = "commands.txt", "mistakes.txt", "help.txt"
NOTHING: Final = 1e-12  # what is left of differences between equal figures
SUFFIXES: Final = {
    "markdown": ".md",
    "html": ".html.txt",
}
# Lines break by the length of paths.
MASKED_NAME: Final = "benchctlgoldens"
ENVIRONMENT: Final = {
    "COLUMNS": "110",
    "LINES": "24",
    "TZ": "UTC",
    "NO_PROXY": "127.0.0.1",
}
ENGINES: Final = {"elasticsearch": "8.11.0", "opensearch": "2.11.0"}
DRIVEN: Final[dict[str, Any]] = {"edit": driven, "calibration": CALIBRATION}
MADE: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "cold": {"edit": cold},
    "difficult": {"edit": difficult},
    "three-forks": {"forks": 3},
    "one-fork": {"forks": 1},
    "three-variants": {"variants": ("es", "os", "noinline")},
    "one-variant": {"variants": ("es",)},
    "driver": DRIVEN,
    "driver-one-variant": {**DRIVEN, "variants": ("es",)},
}


def cases() -> Iterator[tuple[str, str, str]]:
    """File, columns, and the command with its format."""
    for line in (GOLDEN / COMMANDS).read_text(encoding="utf-8").splitlines()[1:]:
        name, forms, command = line.split(maxsplit=2)
        for form in forms.split(","):
            if form.isdecimal():
                yield f"{name}-{form}.txt", form, command
            else:
                yield f"{name}{SUFFIXES.get(form, f'.{form}')}", "80", f"{command} --format {form}"


CASES: Final = {name: (columns, command) for name, columns, command in cases()}


def fill(top: Path, home: Home) -> None:
    """Everything that a command can read."""
    store = RunStore(home.runs)

    def keep(run_id: str, record: RunRecord) -> None:
        store.create(run_id).save(msgspec.structs.replace(record, id=run_id))

    for name, options in MADE.items():
        keep(name, complete_record(**options))
    others = OtherLoad(2, 0.7, {"java pid 4711": 0.4, "rsync pid 4802": 0.2}, 1.3)
    busy = complete_record()
    forks = tuple(msgspec.structs.replace(fork, others=others) for fork in busy.forks)
    keep("busy", msgspec.structs.replace(busy, forks=forks))
    # One that is running is kept while anything is measured on this host.
    keep("earlier", msgspec.structs.replace(earlier(), status="complete"))
    points = [make_point(155, 30.0), make_point(160, 60.0, verdict="fail", step=2)]
    forks = [
        redline_fork(name, block, rate + block, points)
        for name, rate in (("es", 100.0), ("os", 80.0))
        for block in range(3)
    ]
    keep("redline", make_record(status="complete", plan=redline_plan(), forks=tuple(forks)))
    draw_run(store, "20260101-000000-c-aaaa")
    draw_run(store, "20260102-000000-c-bbbb", forks=3)
    for make in (evident, profiled, logged):
        make(home.runs)
    for run in runs_of("fresh", "after", "noinline").values():
        keep(run.id, run)
    stopped = blog(
        id="20260101-000000-inlining-efgh", status="interrupted", runs={"fresh": "20260101-000000-fresh"}
    )
    engines = [comparison("engines", "fresh/es/range", "fresh/os/range")]
    small = made_record(engines, measurements=("fresh",), id="20260101-000000-inlining-ijkl")
    for experiment in (blog(), stopped, small):
        (home.experiments / experiment.id).mkdir()
        ExperimentFolder(home.experiments / experiment.id).save(experiment)
    world = World(top)
    for flags in ("", "", SLOW_FLAG):
        world.night(flags=flags)
    write_files(top / "books", BOOKS)
    write_experiment(top, name="experiment.yml")
    keep("sweep", swept_record())
    keep("sweep-heap", swept_record(sweep=("heap=512m,1g",), variants=(ES,)))


@pytest.fixture(scope="module")
def top() -> Iterator[Path]:
    """A full home and a bare one, and what commands name beside them; nothing else of this host is seen."""
    top = Path("/var/tmp") / f"goldens{secrets.token_hex(4)}"  # noqa: S108 - as long a path for everybody
    top.mkdir(mode=0o755)
    with pytest.MonkeyPatch.context() as patch, serving_files() as files:
        for variable, value in ENVIRONMENT.items():
            patch.setenv(variable, value)
        for variable in ("BENCHCTL_HOME", "HOME", "XDG_CONFIG_HOME"):
            patch.setenv(variable, str(top / "home"))
        patch.delenv("FORCE_COLOR", raising=False)
        patch.setenv("PATH", str(top / "bin"))
        patch.setenv(REPOSITORY_VARIABLE, files.url)
        for name, version in ENGINES.items():
            place = f"/org/{name}/distribution/integ-test-zip/{name}/{version}/{name}-{version}.zip"
            files.files[place] = Served(b"")
        time.tzset()
        try:
            fill(top, Home(top / "home"))
            yield top
        finally:
            shutil.rmtree(top)
    time.tzset()


def page_text(page: str) -> str:
    """A page without its tags: a line a block, cells apart."""
    page = re.sub(
        r"(?s)<(script|style)\b.*?</\1>|<wbr>|</?(?:b|i|a|code|span|strong|em|abbr)\b[^>]*>", "", page
    )
    page = re.sub(r"<[^>]*>", "\n", re.sub(r"</t[dh]>\s*<t[dh]\b[^>]*>", " | ", page))
    lines = (" ".join(html.unescape(line).split()) for line in page.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def file_text(path: Path) -> str:
    """What a command wrote; pages as text."""
    text = path.read_text(encoding="utf-8")
    return page_text(text) if path.suffix == ".html" else text


def masked(text: str, top: Path) -> str:
    """Without what is another one every time, and without the digits in which processors differ."""
    text = text.replace(top.name, MASKED_NAME)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"^\[ *\d+\.\d s\]", "[SECONDS]", text, flags=re.MULTILINE)
    text = re.sub(r"^\[SECONDS\] warning: host is busy.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"-?\d+(?:\.\d+)?e-\d+|-?\d+\.\d{7,}(?:e\+\d+)?", _rounded, text)


def _rounded(found: re.Match[str]) -> str:
    value = float(found[0])
    return repr(float(f"{value:.6g}") if abs(value) > NOTHING else 0.0)


Tell = Callable[[str], str]
Agree = Callable[[str, str], None]


@pytest.fixture
def tell(top: Path, capsys: pytest.CaptureFixture[str]) -> Tell:
    """All that a command says and writes, and how it ends."""
    names = {
        "out": top / "out",
        "books": top / "books",
        "experiment": top / "experiment.yml",
    }

    def run(command: str) -> str:
        shutil.rmtree(names["out"], ignore_errors=True)
        names["out"].mkdir()
        status = guarded(root, [word.format_map(names) for word in shlex.split(command)])
        said = capsys.readouterr()
        text = page_text(said.out) if said.out.startswith("<!") else said.out
        error = masked(said.err, top)
        text += f"[stderr]\n{error}" * bool(error) + f"[exit {status:d}]\n" * bool(status)
        for path in sorted(names["out"].rglob("*.*")):
            if path.suffix in (".html", ".collapsed"):
                text += f"[{path.relative_to(names['out'])}]\n{file_text(path)}"
        return masked(text, top)

    return run


@pytest.fixture
def agree(request: pytest.FixtureRequest) -> Agree:
    """Compare a text with its file, or write that."""

    return lambda name, text: golden.agree(request.config, GOLDEN / name, text)


@pytest.mark.parametrize("name", CASES)
def test_a_command(name: str, top: Path, tell: Tell, agree: Agree, monkeypatch: pytest.MonkeyPatch):
    columns, command = CASES[name]
    monkeypatch.setenv("BENCHCTL_HOME", str(top / ("bare" if name.startswith("bare-") else "home")))
    monkeypatch.setenv("COLUMNS", columns)
    agree(name, tell(command))


def test_mistakes(tell: Tell, agree: Agree):
    lines = (GOLDEN / MISTAKES).read_text(encoding="utf-8").splitlines()
    commands = [line.removeprefix("$ benchctl ") for line in lines if line.startswith("$ benchctl ")]
    agree(MISTAKES, "\n".join(f"$ benchctl {command}\n{tell(command)}" for command in commands))


def test_help(tell: Tell, agree: Agree):
    def pages(command: click.Command, path: str) -> Iterator[str]:
        # click keeps what it was where a test invoked the command without its parents.
        command._help_option = None
        yield f"{path}--help"
        if any("--help-all" in param.opts for param in command.params):
            yield f"{path}--help-all"
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from pages(inner, f"{path}{name} ")

    agree(HELP, "\n".join(map(tell, pages(root, ""))))


def test_no_file_is_left_over(request: pytest.FixtureRequest):
    left = [path for path in GOLDEN.iterdir() if path.name not in {*CASES, COMMANDS, MISTAKES, HELP}]
    if request.config.getoption("--write-goldens"):
        for path in left:
            path.unlink()
    else:
        assert not left
