"""What plug-ins name of Rally's loader: how a track's files are prepared and its templates rendered."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchctl.plugin.rally.exceptions import Unsupported
from benchctl.track.template.renderer import Renderer


class TrackProcessor:
    """Changes the track after it was read, and prepares files for it."""

    def on_after_load_track(self, track: Any) -> None:  # noqa: ANN401 - foreign
        """Nothing is changed."""

    def on_prepare_track(self, track: Any, data_root_dir: str) -> Iterable[Any]:  # noqa: ANN401 - foreign
        """Nothing is left to do.

        Returns:
            (function, its arguments) of what is to be done.
        """
        del track, data_root_dir
        return ()


class WorkloadProcessor:
    """The same in OpenSearch Benchmark's words."""

    def on_after_load_workload(self, input_workload: Any, **_: Any) -> None:  # noqa: ANN401 - foreign
        """Nothing is changed."""

    def on_prepare_workload(self, workload: Any, data_root_dir: str) -> Iterable[Any]:  # noqa: ANN401 - foreign
        """Nothing is left to do; see `TrackProcessor`."""
        del workload, data_root_dir
        return ()


class DefaultTrackPreparator(TrackProcessor):
    """Rally's own way to provide a track's documents, which benchctl does by itself."""

    def __init__(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - foreign
        self.cfg: Any = None
        self.downloader: Any = None
        self.decompressor: Any = None


class DefaultWorkloadPreparator(DefaultTrackPreparator, WorkloadProcessor):
    """The same in OpenSearch Benchmark's words."""


def download(url: str, local_path: str, *_: object, **__: object) -> None:
    """A file that is there already is taken; nothing goes out to the network while something is measured.

    Raises:
        Unsupported: it is not there; the message says where to put it.
    """
    if not os.path.exists(local_path):  # noqa: PTH110 - plug-ins give texts
        raise Unsupported(
            f"the track's plug-in wants to download {url}, which benchctl does not let plug-ins do: "
            f"put the file at {local_path}"
        )


class Downloader:
    """Fetches files of a track."""

    def __init__(self, offline: bool = True, test_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - Rally's
        self.offline = offline
        self.test_mode = test_mode

    def download(
        self, base_url: str | None, target_path: str, size_in_bytes: int | None = None, *_: object
    ) -> None:
        """See `download`."""
        del size_in_bytes
        download(f"{(base_url or '').rstrip('/')}/{os.path.basename(target_path)}", target_path)  # noqa: PTH119 - texts


class Decompressor:
    """Unpacks files of a track."""

    def decompress(
        self, archive_path: str, documents_path: str, uncompressed_size: int | None = None
    ) -> None:
        """A file that is unpacked already is taken.

        Raises:
            Unsupported: it is not.
        """
        del uncompressed_size
        if not os.path.exists(documents_path):  # noqa: PTH110 - plug-ins give texts
            raise Unsupported(
                f"the track's plug-in wants to unpack {archive_path}, which benchctl does not do for it: "
                f"put its content at {documents_path}"
            )


class DocumentSetPreparator:
    """Provides files of documents for plug-ins that work on them.

    Args:
        track_name: for messages of Rally's.
        downloader: fetches them.
        decompressor: unpacks them.
    """

    def __init__(self, track_name: str, downloader: Any, decompressor: Any) -> None:  # noqa: ANN401 - foreign
        self.track_name = track_name
        self.downloader = downloader
        self.decompressor = decompressor

    def is_locally_available(self, file_name: str) -> bool:
        """Whether a file is there."""
        return os.path.isfile(file_name)  # noqa: PTH113 - plug-ins give texts

    def prepare_document_set(self, document_set: Any, data_root: str) -> None:  # noqa: ANN401 - foreign
        """Have the unpacked file at its place.

        Raises:
            Unsupported: it would have to be downloaded or unpacked.
        """
        name = document_set.document_file or document_set.document_archive
        path = os.path.join(data_root, name)  # noqa: PTH118 - plug-ins give texts
        if not self.is_locally_available(path):
            self.downloader.download(document_set.base_url, path, document_set.uncompressed_size_in_bytes)

    def prepare_bundled_document_set(self, document_set: Any, data_root: str) -> bool:  # noqa: ANN401 - foreign
        """Whether the unpacked file is in a folder."""
        return self.is_locally_available(os.path.join(data_root, document_set.document_file or ""))  # noqa: PTH118 - texts


def render_template_from_file(
    template_file_name: str,
    template_vars: Mapping[str, Any] | None,
    *_: Any,  # noqa: ANN401 - foreign
    **__: Any,  # noqa: ANN401 - foreign
) -> str:
    """The text of a template beside the track, with values for its variables."""
    path = Path(template_file_name)
    return Renderer(path.parent, template_vars or {}, lenient=True).render(path).text
