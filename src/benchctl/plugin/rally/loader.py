"""Classes of Rally's loader that plug-ins name, most of them without ever using them."""

from typing import Any, NoReturn

from benchctl.plugin.rally.exceptions import SystemSetupError


class DefaultTrackPreparator:
    """Rally's own way to provide a track's documents, which benchctl does by itself."""

    def __init__(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - foreign
        self.downloader = None
        self.decompressor = None

    def on_after_load_track(self, track: Any) -> None:  # noqa: ANN401 - foreign
        """Nothing is left to do."""

    def on_prepare_track(self, track: Any, data_root_dir: str) -> list[Any]:  # noqa: ANN401 - foreign
        """Nothing is left to do."""
        del track, data_root_dir
        return []


class _NotHere:
    """Can be named and made; what it is for has to be done beforehand."""

    def __init__(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - foreign
        """Takes whatever Rally's takes."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise SystemSetupError(
            f"benchctl does not let plug-ins download: {type(self).__name__}.{name} was wanted; "
            "put the files beside the plug-in first"
        )


class Downloader(_NotHere):
    """Fetches files."""


class Decompressor(_NotHere):
    """Unpacks files."""


class DocumentSetPreparator(_NotHere):
    """Fetches and unpacks files of documents."""
