"""A plug-in is loaded once a session, from the files that were consented to."""

import sys
from pathlib import Path
from typing import Any

import pytest

from benchctl.errors import BenchctlError
from benchctl.plugin.session import (
    PluginError,
    PluginNeedsError,
    PluginUse,
    check_registered,
    loaded_plugin,
)
from benchctl.track.load import load_track
from benchctl.track.model import Challenge
from plugins import code_in, load_in


def use_of(folder: Path, session: int = 0, **files: str) -> PluginUse:
    code = code_in(folder, {"track.py": next(iter(files.values()), "def register(registry): pass")})
    return PluginUse(folder, code.digest, load_track(str(folder), {})[0], session=session)


def test_tasks_of_a_session_share_what_its_modules_hold_and_the_next_session_does_not(tmp_path: Path):
    use = use_of(tmp_path / "books", 1)
    first = loaded_plugin(use)
    assert loaded_plugin(use) is first
    assert loaded_plugin(use_of(tmp_path / "books", 2)) is not first


def test_a_plug_in_that_has_changed_is_not_executed(tmp_path: Path):
    use = use_of(tmp_path / "books", 1)
    code_in(tmp_path / "books", {"track.py": f"open({str(tmp_path / 'traces')!r}, 'w')"})
    with pytest.raises(BenchctlError, match="has changed since the run was planned"):
        loaded_plugin(use)
    assert not (tmp_path / "traces").exists()


NEEDED = [{"operation type": frozenset({"x", "y"})}, {"operation type": frozenset({"x"})}]


def test_a_trial_says_what_is_missing_and_leaves_no_module(tmp_path: Path):
    before = set(sys.modules)
    plugin = "def register(registry):\n    registry.register_runner('x', print, async_runner=True)"
    code = code_in(tmp_path / "books", {"track.py": plugin})
    assert check_registered(code, NEEDED) == [["operation type 'y' (it registers x)"], []]
    with pytest.raises(PluginError, match=r"track\.py:1: loading track\.py failed: ZeroDivisionError"):
        check_registered(code_in(tmp_path / "books", {"track.py": "1 / 0"}), NEEDED)
    assert set(sys.modules) == before


PROCESSORS = """
    from esrally.track.loader import DefaultTrackPreparator

    class Ids:
        def on_after_load_track(self, track):
            track.selected_challenge_or_default.parameters["track-id"] = f"id of {track.name}"

    def register(registry):
        registry.register_track_processor(Ids())
        registry.register_track_processor(DefaultTrackPreparator())
"""


def test_processors_change_the_track_that_sources_see_and_not_benchctls(tmp_path: Path):
    loaded = load_in(tmp_path / "books", {"track.py": PROCESSORS})
    track, _ = load_track(str(tmp_path / "books"), {})
    challenge = track.challenges["ask"]
    subject = loaded.track(track, challenge)
    selected: Any = subject.selected_challenge
    assert selected.parameters == {"track-id": "id of books"}
    assert challenge.parameters == {}
    assert loaded.track(track, challenge) is subject
    assert loaded.track(track, Challenge("other", ())) is not subject


PREPARING = """
    from pathlib import Path

    from esrally.track import loader
    from osbenchmark.workload.loader import WorkloadProcessor

    class Generator(loader.TrackProcessor):
        def __init__(self):
            self.downloader = None
            self.decompressor = None

        def on_prepare_track(self, track, data_root_dir):
            yield Path.touch, {"self": Path(data_root_dir) / "made"}
            yield from super().on_prepare_track(track, data_root_dir)

    class Renamer(WorkloadProcessor):
        def on_after_load_workload(self, workload):
            workload.name = "renamed"

    class Oldest:
        def on_prepare_track(self, track, data_root_dir):
            return True

    class Nothing(loader.TrackProcessor):
        pass

    GENERATOR = Generator()

    def register(registry):
        registry.register_track_processor(GENERATOR)
        registry.register_workload_processor(Renamer())
        registry.register_track_processor(Oldest())
        registry.register_track_processor(Nothing())
"""


def test_processors_of_either_kind_prepare_what_they_say(tmp_path: Path):
    loaded = load_in(tmp_path / "books", {"track.py": PREPARING})
    track, _ = load_track(str(tmp_path / "books"), {})
    assert loaded.track(track, None).name == "renamed"
    assert (tmp_path / "books" / "made").exists()
    generator: Any = loaded.registry.processors[0]
    assert (generator.downloader.offline, generator.decompressor is None) == (True, False)


def test_a_processor_that_wants_to_download_says_where_to_put_the_file(tmp_path: Path):
    plugin = """
        class Queries:
            def __init__(self):
                self.downloader = None

            def on_prepare_track(self, track, data_root_dir):
                self.downloader.download("http://x.invalid", data_root_dir + "/q.json", None)

        def register(registry):
            registry.register_track_processor(Queries())
    """
    loaded = load_in(tmp_path / "books", {"track.py": plugin})
    track, _ = load_track(str(tmp_path / "books"), {})
    with pytest.raises(PluginNeedsError, match=f"put the file at {tmp_path / 'books' / 'q.json'}"):
        loaded.track(track, None)


def test_names_that_it_does_not_register_are_missing(tmp_path: Path):
    loaded = load_in(tmp_path / "books")
    needed = {
        "param source": frozenset({"author-source", "b"}),
        "operation type": frozenset({"c"}),
        "scheduler": frozenset({"lazily"}),
    }
    assert loaded.missing(needed) == [
        "param source 'b' (it registers author-source)",
        "operation type 'c' (it registers count-books)",
    ]
