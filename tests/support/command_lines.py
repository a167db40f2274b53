"""Command lines of benchctl: found in texts, and parsed as benchctl parses them."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchctl.cli import root
from benchctl.yaml_file import Document

TOP = Path(__file__).parents[2]
PAGES = sorted([TOP / "README.md", TOP / "CONTRIBUTING.md", *(TOP / "docs" / "pages").rglob("*.md")])
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n+)?^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n"
    r"(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMANDS = root.list_commands(click.Context(root))
SPAN = re.compile(r"`benchctl\s([^`]+)`")
# After these marks a command follows, unless it is a sentence about benchctl.
MARKED = re.compile(r"(?:^|: |\()benchctl (?!(?:\w+s|cannot|did|itself)\b)([-a-z][^;)\n]*)", re.MULTILINE)
PLAIN = re.compile(rf"\bbenchctl ((?:{'|'.join(COMMANDS)})\b[^;)\n]*)")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    mark: str | None
    language: str
    title: str | None
    body: str


def blocks() -> Iterator[Block]:
    """Yield the fenced blocks of all pages."""
    for page in PAGES:
        for match in BLOCK.finditer(page.read_text()):
            yield Block(str(page.relative_to(TOP)), *match.groups())


def shell_blocks() -> list[Block]:
    """Those of a shell, and what the steps of workflows run."""
    return [
        *(block for block in blocks() if block.language in ("sh", "console")),
        *(
            Block(block.page, "not run: on a build server", "sh", None, step["run"])
            for block in blocks()
            for step in steps(block)
            if "run" in step
        ),
    ]


def steps(block: Block) -> list[dict[str, Any]]:
    """The steps of the jobs of a GitHub workflow; none of any other block."""
    if not (block.title or "").startswith(".github/workflows/"):
        return []
    workflow = Document(block.body, block.title or "").value
    assert {*workflow} >= {"name", "on", "jobs"}
    found = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(len({"uses", "run"} & {*step}) == 1 for step in found)
    return found


def commands(block: Block) -> Iterator[list[str]]:
    """Words of every command; without prompts, comments, variables, and where output goes."""
    for line in block.body.replace("\\\n", " ").splitlines():
        if block.language == "sh" or line.startswith("$ "):
            lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="&|;><")
            lexer.whitespace_split = True
            yield from _split(list(lexer))


def _split(words: list[str]) -> Iterator[list[str]]:
    one: list[str] = []
    while words:
        word = words.pop(0)
        if set(word) <= set(">&") and ">" in word:
            words.pop(0)
        elif set(word) <= set("&|;"):
            yield one
            one = []
        elif one or not re.match(r"[A-Z_]+=", word):
            one.append(word)
    if one:
        yield one


def in_text(text: str) -> Iterator[tuple[str, bool]]:
    """Yield commands of a text, without `benchctl`, and whether each is quoted.

    Those in backticks are quoted, and may be no more than the name of a command; others reach to the end of
    their clause.
    """
    yield from ((" ".join(span.split()), True) for span in SPAN.findall(text))
    text = SPAN.sub("", text)
    for found in {*MARKED.findall(text), *PLAIN.findall(text)}:
        clause, *_ = re.split(r"\s{2}|[,:]\s|\.(?:\s|$)|[`\"]", found.replace("...", "RUN"))
        yield clause.strip(), False


Fill = Callable[[str | None, str], str]
"""(name of a parameter, word that is given for it) -> the word to parse."""


def parsed(words: Iterable[str], fill: Fill) -> list[str]:
    """Parse a command line by the command tree, and return its words filled.

    Raises:
        click.ClickException: If it is not valid.
        BenchctlError: If it is not valid.
        AssertionError: If there is no such command.
    """
    command: click.Command = root
    context, rest = click.Context(root, info_name="benchctl"), list(words)
    complete: list[str] = []
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        arguments = sum(isinstance(param, click.Argument) for param in command.params)
        complete += _filled(command, context, rest[:arguments], fill)
        del rest[:arguments]
        if not rest or rest[0].startswith("-"):
            break
        pattern = re.escape(rest.pop(0)).replace(r"\{\}", ".*")
        names = [name for name in command.list_commands(context) if re.fullmatch(pattern, name)]
        assert names, f"no command '{pattern}'"
        inner = command.get_command(context, names[0])
        assert inner is not None
        complete.append(names[0])
        command, context = inner, click.Context(inner, parent=context, info_name=names[0])
    if not isinstance(command, click.Group):
        rest = _filled(command, context, rest, fill)
    command.make_context(context.info_name, list(rest), parent=context.parent)
    return complete + rest


def _filled(command: click.Command, context: click.Context, words: list[str], fill: Fill) -> list[str]:
    """Return the words with values of parameters filled; click's own parser says which word is whose."""
    # Equal words may be of different parameters.
    marked = [word if word.startswith("-") else f"{number}\0{word}" for number, word in enumerate(words)]
    values, _, _ = command.make_parser(context).parse_args(list(marked))
    filled = {
        word: fill(name, word.split("\0")[1]) for name, value in values.items() for word in _words(value)
    }
    return [filled.get(word, word.split("\0")[-1]) for word in marked]


def _words(value: object) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, str) and "\0" in value:
        yield value
