"""Git repositories of tracks, as Rally has them."""

import json
from pathlib import Path

from scripted_history import git

TRACK = """{
    "indices": [{"name": "a", "body": "index.json"}],
    "corpora": [{"name": "a", "documents": [{"source-file": "docs.json", "document-count": 3}]}],
    "operations": [{"name": "range", "operation-type": "search", "body": {"query": {"match_all": {}}}}],
    "challenges": [{"name": "first", "default": true,
        "schedule": [{"operation": "range", "iterations": ITERATIONS}]}]
}"""


def track_files(name: str, iterations: int = 3) -> dict[str, str]:
    """Files of a track with an index of three documents and a search of so many iterations."""
    return {
        f"{name}/track.json": TRACK.replace("ITERATIONS", str(iterations)),
        f"{name}/index.json": json.dumps({"settings": {"index.number_of_replicas": 0}}),
        f"{name}/docs.json": '{"a": 1}\n' * 3,
    }


def commit_files(folder: Path, files: dict[str, str], subject: str = "More") -> str:
    """Commit files, in a new repository if there is none; the commit's hash."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", subject)
    return git(folder, "rev-parse", "HEAD")
