"""Tracks with Python plug-ins, written into a folder."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from textwrap import dedent

from benchctl.plugin.code import Code, read_code
from benchctl.plugin.session import Loaded

_TAGS = count()

TRACK = """
{
  "version": 2,
  "indices": [{"name": "books"}],
  "operations": [
    {"name": "authors", "operation-type": "search", "param-source": "author-source", "authors": ["a", "b"]},
    {"name": "count", "operation-type": "count-books"}
  ],
  "challenges": [
    {"name": "ask", "default": true, "schedule": [
      {"operation": "authors", "iterations": 4},
      {"operation": "count", "iterations": 2, "schedule": "lazily"}
    ]}
  ]
}
"""

PLUGIN = """
    from pathlib import Path

    Path(__file__).with_name("executed").touch()


    def authors(track, params, **kwargs):
        return {"body": {"query": {"terms": {"author": params["authors"]}}}, "index": track.indices[0].name}


    async def count(es, params):
        await es.count(index="books")


    def lazily(current):
        return current + 0.01


    def register(registry):
        registry.register_param_source("author-source", authors)
        registry.register_runner("count-books", count, async_runner=True)
        registry.register_scheduler("lazily", lazily)
"""
"""What TRACK needs; whoever executes it leaves a file behind."""


def write_track(folder: Path, files: Mapping[str, str] | None = None) -> Path:
    """A track's folder; files that are given go beside its track.json, and instead of its plug-in."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {"track.json": TRACK, **({"track.py": PLUGIN} if files is None else files)}
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return folder


def executed(folder: Path) -> bool:
    """Whether PLUGIN has been executed in a folder."""
    return (folder / "executed").exists()


def code_in(folder: Path, files: Mapping[str, str] | None = None) -> Code:
    """The plug-in of a track that is written into a folder."""
    code = read_code(write_track(folder, files))
    assert code is not None
    return code


def load_in(folder: Path, files: Mapping[str, str] | None = None) -> Loaded:
    """The same, executed."""
    return Loaded(code_in(folder, files), f"test{next(_TAGS)}")
