"""`benchctl help`: every page is found, and read as it is written."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchctl.cli import root
from benchctl.errors import UsageError

PAGES = Path(__file__).resolve().parents[2] / "docs" / "pages"


def told(*arguments: str) -> str:
    result = CliRunner().invoke(root, ["help", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_every_page_has_a_line_and_a_name_of_its_own():
    names = [line.split()[0] for line in told().splitlines() if line.startswith("  ")]
    files = [path for path in PAGES.glob("*/*.md") if path.stem != "index"]
    assert len(names) == len(set(names)) == len(files) > 30
    assert {"sweeps", "forks", "concepts-forks", "glossary"} <= set(names)
    for name in names:
        assert told(name).count("# ") >= 1


def test_a_page_comes_without_notes_for_its_tests():
    page = (PAGES / "how-to" / "sweeps.md").read_text(encoding="utf-8")
    assert "<!--" in page
    assert told("Sweeps") == "".join(
        line for line in page.splitlines(keepends=True) if not line.startswith("<!--")
    )


def test_a_page_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="'sweep'") as caught:
        told("sweep")
    assert caught.value.hint is not None
    assert "sweeps" in caught.value.hint


def test_dozens_of_pages_are_not_listed_in_a_hint():
    with pytest.raises(UsageError, match="'nonsense'") as caught:
        told("nonsense")
    assert "benchctl help" in caught.value.hint
    assert "sweeps" not in caught.value.hint
