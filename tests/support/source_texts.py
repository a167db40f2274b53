"""Texts that the source holds: docstrings, and what people read."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax of every module by its path."""
    return {
        str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield strings that are statements: of modules, classes, functions, and below constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def command_help(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of docstrings of commands, which their help prints."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.decorator_list
            and node.name.endswith(("_command", "_group"))
        ):
            yield node.lineno, ast.get_docstring(node) or ""


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of all strings but docstrings and keys; fields of f-strings are `{}`."""
    passed = {id(text) for text in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            passed.update(map(id, node.keys))
        if isinstance(node, ast.JoinedStr):
            passed.update(id(part) for part in node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value
