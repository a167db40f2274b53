"""What variants cannot ask of a plan."""

from pathlib import Path

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.run.plan import check_index_settings
from benchctl.track.load import load_track
from builders import ES
from foreign_tracks import write_files

OWN = msgspec.structs.replace(ES, name="own", index_settings={"index.codec": "default"})


def test_index_settings_want_an_index_that_benchctl_makes(tmp_path: Path):
    prepared, _ = load_track("big5", {})
    check_index_settings((ES, OWN), prepared, "prepared")
    check_index_settings((ES,), prepared, "empty")
    with pytest.raises(UsageError, match="'own' has index settings, but no index is prepared"):
        check_index_settings((ES, OWN), prepared, "empty")
    folder = write_files(tmp_path / "streams", {"track.json": '{"data-streams": [{"name": "c"}]}'})
    streams, _ = load_track(str(folder), {})
    with pytest.raises(UsageError, match="'own' has index settings, but no index is prepared"):
        check_index_settings((OWN,), streams, "prepared")
