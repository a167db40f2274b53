"""Docstrings and messages keep to the rules of prose that a machine can check."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"

PRONOUN = re.compile(
    "(It|Its|They|Their|Them|That|Those|These|This|What|How|Whether|Which|Who|Whose|Where|When|Why|All|Each|One|He"
    "|She|We|I|You|Your|Most|None|Some|Any|Both|Same|As|If|So|The same)[^a-z]"
)
RAISED = re.compile(r"^ {4}(?:\w+): (?!If )(.*)$", re.MULTILINE)
SECTION = re.compile(r"Raises:\n((?:    .*\n?|\n)*)")
FAULT = re.compile(
    r"(?<=[\d}]) %(?![a-zA-Z(0-9{%}]|$)"
    r"|\b(anew|meanwhile|so often|so many|in between|befall|befell|calm down|folders?|somebody|nobody|unlike"
    r"|of (?:its|their) own|goes on|go on|leave [^;,.]{0,60}\bout|stands for|per cent|as usual"
    r"|there (?:is|are) no|is no|(?:is|are) there|sa(?:y|ys|id) that)\b",
    re.IGNORECASE,
)


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the syntax of every module."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield strings that are statements: of modules, classes, functions, and below constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of all other strings of several words; fields of f-strings are `{}`."""
    passed = {id(text) for text in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            passed.update(id(part) for part in node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value


def test_docstrings_begin_with_a_verb_or_a_noun():
    assert not [
        (name, text.lineno, str(text.value).splitlines()[0])
        for name, tree in trees()
        for text in docstrings(tree)
        if PRONOUN.match(f"{text.value} ")
    ]


def test_docstrings_say_when_errors_are_raised():
    assert not [
        (name, text.lineno, line)
        for name, tree in trees()
        for text in docstrings(tree)
        for section in SECTION.findall(inspect.cleandoc(str(text.value)) + "\n")
        for line in RAISED.findall(section)
    ]


def test_messages_are_free_of_the_guides_faults():
    assert not [
        (name, line, text)
        for name, tree in trees()
        for line, text in messages(tree)
        if " " in text and FAULT.search(text)
    ]
