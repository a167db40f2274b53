"""What every reading command prints, word for word: a line of `golden/commands.txt`, and a file a format.

`--write-goldens` writes the files anew. A mistake is a line `$ benchctl ...` of `golden/mistakes.txt`.
"""

import html
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
import pytest

import golden
from benchctl.cli import root
from benchctl.cli.boundary import guarded
from full_home import full_home

GOLDEN: Final = Path(__file__).parent / "golden"
COMMANDS, MISTAKES, HELP = "commands.txt", "mistakes.txt", "help.txt"
NOTHING: Final = 1e-12  # what is left of differences between equal figures
SUFFIXES: Final = {
    "markdown": ".md",
    "html": ".html.txt",
}
# Lines break by the length of paths.
MASKED_NAME: Final = "benchctlgoldens"


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


@pytest.fixture(scope="module")
def top() -> Iterator[Path]:
    with full_home() as top:
        yield top


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
