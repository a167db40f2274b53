"""Every command line that the source, the pages or the goldens hold is valid; those that read are run."""

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import click
import pytest

from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.errors import BenchctlError
from command_lines import BLOCK, PAGES, commands, in_text, parsed, shell_blocks
from full_home import full_home
from source_texts import command_help, messages, trees

TESTS = Path(__file__).parent
# The first line of what a digest is made of; options come from a field.
NO_COMMANDS = {"corpus {}", "compare RUN {}"}
MISTAKES = re.compile(r"^ *(?:\$|>|Usage:).*|^benchctl [\d.]+.*", re.MULTILINE)
"""Lines of goldens that are tried there, or show a form."""
MASKED = "/var/tmp/benchctlgoldens"  # noqa: S108 - what goldens have in place of their home, never written
VALUE = re.compile(r".*\{\}.*|[A-Z]+(?:\.yml)?")
"""A field of an f-string, or a name that stands for a value."""
READERS = re.compile(
    r"(?:compare|experiment (?:list|report)|explain|help|list|nightly status|runs list|show|track show)\b"
)
INCOMPLETE = (click.MissingParameter, click.exceptions.NoArgsIsHelpError, click.BadOptionUsage)
# The name alone compares nothing; no run of the full home has these metrics.
STATUS: Mapping[str, int] = {"compare": 2, "show latest --metric gc,cpu": 2}
"""How commands exit that do not exit with 0."""
EVIDENCE = {"inlining": "20260101-000000-c", "profile": "20260101-a"}
SIDES = {"RUN": "plain", "latest": "plain", "es": "es", "os": "os"}
Sources = dict[tuple[str, bool], list[str]]


def source_lines() -> Iterator[tuple[str, str, bool]]:
    for name, tree in trees().items():
        for line, text in chain(messages(tree), command_help(tree)):
            for command, quoted in in_text(text):
                yield f"{name}:{line}", command, quoted


def golden_lines() -> Iterator[tuple[str, str, bool]]:
    for path in chain(TESTS.glob("**/golden/*.*"), TESTS.glob("**/cases/*.txt")):
        for command, quoted in in_text(MISTAKES.sub("", path.read_text(encoding="utf-8"))):
            yield path.name, command, quoted


def span_lines() -> Iterator[tuple[str, str, bool]]:
    for page in PAGES:
        for span in re.findall(r"`benchctl [^`\n]+`", BLOCK.sub("", page.read_text(encoding="utf-8"))):
            for command, quoted in in_text(span):
                yield page.name, command, quoted


def block_lines() -> Iterator[tuple[str, str, bool]]:
    for block in shell_blocks():
        for words in commands(block):
            if Path(words[0]).name == "benchctl":
                yield block.page, shlex.join(words[1:]), False


def by_command(found: Iterator[tuple[str, str, bool]]) -> Sources:
    """Return where each command line is found; quoted ones may be no more than a command's name."""
    places: Sources = {}
    for place, command, quoted in found:
        if command not in NO_COMMANDS:
            places.setdefault((command, quoted), []).append(place)
    return places


# Blocks of pages are run by the test of the pages, in a place that is made for them.
TEXT_LINES = by_command(chain(source_lines(), golden_lines(), span_lines()))
LINES = by_command(chain(source_lines(), golden_lines(), span_lines(), block_lines()))


@pytest.mark.parametrize("command", sorted({command for command, _ in LINES}))
def test_a_command_line_is_valid(monkeypatch: pytest.MonkeyPatch, command: str):
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, *_: value)  # files need not exist

    def fill(name: str | None, word: str) -> str:
        return "10" if name == "forks" and VALUE.fullmatch(word) else word

    for quoted in (True, False):
        try:
            if (command, quoted) in LINES:
                parsed(shlex.split(command), fill)
        except click.exceptions.Exit:  # of --help and --version
            continue
        except (click.ClickException, BenchctlError, AssertionError) as err:
            is_name = isinstance(err, INCOMPLETE) and (
                not isinstance(err, click.BadOptionUsage) or "requires an argument" in err.message
            )
            if not (quoted and is_name):
                pytest.fail(f"{LINES[command, quoted]}: benchctl {command}: {err}")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with full_home() as top:
        yield top


@pytest.mark.parametrize("command", sorted({command for command, _ in TEXT_LINES if READERS.match(command)}))
def test_a_command_line_that_reads_is_run(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path, command: str
):
    monkeypatch.chdir(tmp_path)  # where pages are written
    runs = {path.name for path in (home / "home" / "runs").iterdir()}
    explained = EVIDENCE.get(command.rsplit(maxsplit=1)[-1], EVIDENCE["inlining"])
    sides = iter(("plain:es", "plain:os"))
    values = {"path": home / "books", "track": home / "books", "topic": "sweeps"}

    def fill(name: str | None, word: str) -> str:
        if name == "run":
            return explained if command.startswith("explain") else word if word in runs else "plain"
        if name == "sides":
            return word if word.split(":", maxsplit=1)[0] in runs else SIDES.get(word) or next(sides)
        return str(values.get(name or "", word.replace(MASKED, str(tmp_path))))

    try:
        words = parsed(shlex.split(command), fill)
    except (click.UsageError, click.exceptions.Exit):
        return  # the name of a command, or --help: the other test
    assert guarded(root, words) == STATUS.get(command, 0)
