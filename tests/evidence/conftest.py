"""What a real `jfr print` says, cut to what matters."""

from pathlib import Path

import pytest

RECORDING = (Path(__file__).parent / "recording.txt").read_text(encoding="utf-8")


@pytest.fixture
def recording() -> str:
    return RECORDING
