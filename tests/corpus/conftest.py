import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchctl.corpus.generator import generate
from benchctl.home import Home

SAMPLE_DOCUMENTS = 100_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture(scope="session")
def sample() -> list[dict[str, Any]]:
    """The smallest corpus on which every operation must match something, parsed and flattened."""
    lines = b"".join(generate(1, SAMPLE_DOCUMENTS, 0, SAMPLE_DOCUMENTS)).splitlines()
    assert len(lines) == SAMPLE_DOCUMENTS
    return [_fields(json.loads(line)) for line in lines]


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    """Only what operations look at: half the memory of whole documents."""
    return {
        "@timestamp": document["@timestamp"],
        "aws.cloudwatch.log_stream": document["aws.cloudwatch"]["log_stream"],
        "cloud.region": document["cloud"]["region"],
        "event.id": document["event"]["id"],
        "host.name": document["host"]["name"],
        "log.file.path": document["log.file.path"],
        "message": document["message"],
        "message.words": frozenset(re.findall("[a-z]+", document["message"].partition(": ")[2])),
        "meta.file": document["meta"]["file"],
        "metrics.size": document["metrics"]["size"],
        "metrics.tmin": document["metrics"]["tmin"],
        "process.name": document["process"]["name"],
        "agent.id": document["agent"]["id"],
    }
