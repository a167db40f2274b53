"""What plug-ins call of Rally: small functions of its `utils`, and its loader."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from benchctl.plugin.rally_classes import DataError, InvalidSyntax, Unsupported
from benchctl.track.parameters import parse_rally_params
from benchctl.track.template import Renderer

_TRUE = frozenset({"true", "yes", "t", "y", "1"})
_FALSE = frozenset({"false", "no", "f", "n", "0"})


def to_bool(value: object) -> bool:
    """A truth from a text.

    Raises:
        ValueError: it says neither.
    """
    text = str(value).lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f"Cannot convert [{value}] to bool.")


def basename(path: str) -> str:
    """The last part of a path."""
    return os.path.basename(path)  # noqa: PTH119 - plug-ins give texts and want texts


def dirname(path: str) -> str:
    """All but the last part of a path."""
    return os.path.dirname(path)  # noqa: PTH120 - plug-ins give texts and want texts


def ensure_dir(directory: str, mode: int = 0o777) -> None:
    """Make a folder where there is none."""
    os.makedirs(directory, mode, exist_ok=True)  # noqa: PTH103 - plug-ins give texts


def splitext(file_name: str) -> tuple[str, str]:
    """A path without its last ending, and that."""
    return os.path.splitext(file_name)  # noqa: PTH122 - plug-ins give texts and want texts


class FileSource:
    """A file that gives several lines at a time, as bytes.

    Args:
        file_name: its path.
        mode: taken from Rally's signature; lines are bytes in any case.
    """

    def __init__(self, file_name: str, mode: str = "rb") -> None:
        del mode
        self.file_name = file_name
        self._file: BinaryIO | None = None

    def open(self) -> "FileSource":
        """Open it."""
        self._file = open(self.file_name, "rb")  # noqa: PTH123, SIM115 - closed by its `close`
        return self

    def close(self) -> None:
        """Close it; harmless when repeated."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def seek(self, offset: int) -> None:
        """Go to a byte."""
        self._opened.seek(offset)

    def read(self) -> bytes:
        """All that is left."""
        return self._opened.read()

    def readline(self) -> bytes:
        """The next line; empty at the end."""
        return self._opened.readline()

    def readlines(self, num_lines: int) -> list[bytes]:
        """The next lines, fewer at the end."""
        lines = (self._opened.readline() for _ in range(num_lines))
        return [line for line in lines if line]

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise DataError(f"{self.file_name} is not open")
        return self._file


def to_dict(text: str) -> dict[str, Any]:
    """Parameters from JSON, from the path of a JSON file, or from `name:value` with commas in between."""
    return parse_rally_params(text)


def confdir(name: str) -> Callable[[], str]:
    """Where a driver keeps its settings and data: a hidden folder at home, or where a variable says."""

    def found() -> str:
        home = os.environ.get(f"{name.upper()}_HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text
        return os.path.join(home, f".{name}")  # noqa: PTH118 - plug-ins want texts

    return found


def parse_int_parameter(key: str, params: Mapping[str, Any], default: int | None = None) -> int:
    """A parameter that is a whole number."""
    found: int = _parsed(key, params, default, int)
    return found


def parse_float_parameter(key: str, params: Mapping[str, Any], default: float | None = None) -> float:
    """A parameter that is a number."""
    found: float = _parsed(key, params, default, float)
    return found


def parse_string_parameter(key: str, params: Mapping[str, Any], default: str | None = None) -> str:
    """A parameter that is a text."""
    found: str = _parsed(key, params, default, str)
    return found


def parse_bool_parameter(key: str, params: Mapping[str, Any], default: bool | None = None) -> bool:  # noqa: FBT001 - theirs
    """A parameter that is a truth."""
    found: bool = _parsed(key, params, default, bool)
    return found


def _parsed(key: str, params: Mapping[str, Any], default: Any, kind: type) -> Any:  # noqa: ANN401 - of that kind
    value = params.get(key, default)
    if value is None:
        raise InvalidSyntax(f"Value cannot be None for param {key}")
    if not isinstance(value, (int, float) if kind is float else kind):
        raise InvalidSyntax(f"Value must be a {kind.__name__} for param {key}")
    return value


# How a track's files are prepared and its templates rendered.


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
