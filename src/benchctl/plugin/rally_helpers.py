"""The functions of Rally's `utils` and loader that plug-ins call."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from benchctl.plugin.rally_classes import DataError, InvalidSyntax, Unsupported
from benchctl.track.template import Renderer, parse_rally_params

# Plug-ins give texts and want texts.
basename = os.path.basename
dirname = os.path.dirname
splitext = os.path.splitext

_TRUE = frozenset({"true", "yes", "t", "y", "1"})
_FALSE = frozenset({"false", "no", "f", "n", "0"})


def to_bool(value: object) -> bool:
    """Parse a boolean.

    Raises:
        ValueError: If it is none.
    """
    text = str(value).lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f"Cannot convert [{value}] to bool.")


def ensure_dir(directory: str, mode: int = 0o777) -> None:
    """Create a folder unless it exists."""
    os.makedirs(directory, mode, exist_ok=True)  # noqa: PTH103 - plug-ins give texts


class FileSource:
    """A file read by several lines at a time, always as bytes."""

    def __init__(self, file_name: str, mode: str = "rb") -> None:
        del mode
        self.file_name = file_name
        self._file: BinaryIO | None = None

    def open(self) -> "FileSource":
        self._file = open(self.file_name, "rb")  # noqa: PTH123, SIM115 - closed by its `close`
        return self

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def seek(self, offset: int) -> None:
        self._open_file.seek(offset)

    def read(self) -> bytes:
        return self._open_file.read()

    def readline(self) -> bytes:
        return self._open_file.readline()

    def readlines(self, num_lines: int) -> list[bytes]:
        lines = (self._open_file.readline() for _ in range(num_lines))
        return [line for line in lines if line]

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise DataError(f"{self.file_name} is not open")
        return self._file


def to_dict(text: str) -> dict[str, Any]:
    """Parameters from JSON, the path of a JSON file, or comma-separated `name:value`."""
    return parse_rally_params(text)


def confdir(name: str) -> Callable[[], str]:
    """Return the folder of a driver's settings and data: hidden in the home folder, or from a variable."""

    def found() -> str:
        home = os.environ.get(f"{name.upper()}_HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text
        return os.path.join(home, f".{name}")  # noqa: PTH118 - plug-ins want texts

    return found


def _parser(kind: type) -> Callable[..., Any]:
    """Return a function that returns a parameter of a type, or the default, which must not be None."""

    def parsed(key: str, params: Mapping[str, Any], default: Any = None) -> Any:
        value = params.get(key, default)
        if value is None:
            raise InvalidSyntax(f"Value cannot be None for param {key}")
        if not isinstance(value, (int, float) if kind is float else kind):
            raise InvalidSyntax(f"Value must be a {kind.__name__} for param {key}")
        return value

    return parsed


parse_int_parameter = _parser(int)
parse_float_parameter = _parser(float)
parse_string_parameter = _parser(str)
parse_bool_parameter = _parser(bool)


class TrackProcessor:
    """Changes the track after loading, and prepares its files."""

    def on_after_load_track(self, track: Any) -> None:
        """Changes nothing."""

    def on_prepare_track(self, track: Any, data_root_dir: str) -> Iterable[Any]:
        """(function, its arguments) of each thing to do: none."""
        del track, data_root_dir
        return ()


class WorkloadProcessor:
    """OpenSearch Benchmark's name of the same."""

    def on_after_load_workload(self, input_workload: Any, **_: Any) -> None:
        """Changes nothing."""

    def on_prepare_workload(self, workload: Any, data_root_dir: str) -> Iterable[Any]:
        """Do nothing; see `TrackProcessor`."""
        del workload, data_root_dir
        return ()


class DefaultTrackPreparator(TrackProcessor):
    """Rally's way of providing a track's documents, which benchctl does itself."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cfg: Any = None
        self.downloader: Any = None
        self.decompressor: Any = None


class DefaultWorkloadPreparator(DefaultTrackPreparator, WorkloadProcessor):
    """OpenSearch Benchmark's name of the same."""


def download(url: str, local_path: str, *_: object, **__: object) -> None:
    """Use an existing file; nothing is downloaded while something is measured.

    Raises:
        Unsupported: If it is missing; the message tells where to put it.
    """
    if not os.path.exists(local_path):  # noqa: PTH110 - plug-ins give texts
        raise Unsupported(
            f"the track's plug-in wants to download {url}, which benchctl does not let plug-ins do: "
            f"put the file at {local_path}"
        )


class Downloader:
    """Downloads files of a track."""

    def __init__(self, offline: bool = True, test_mode: bool = False) -> None:  # noqa: FBT001, FBT002 - Rally's
        self.offline = offline
        self.test_mode = test_mode

    def download(
        self, base_url: str | None, target_path: str, size_in_bytes: int | None = None, *_: object
    ) -> None:
        del size_in_bytes
        download(f"{(base_url or '').rstrip('/')}/{os.path.basename(target_path)}", target_path)  # noqa: PTH119 - texts


class Decompressor:
    """Decompresses files of a track."""

    def decompress(
        self, archive_path: str, documents_path: str, uncompressed_size: int | None = None
    ) -> None:
        """Use an already decompressed file.

        Raises:
            Unsupported: If it is missing.
        """
        del uncompressed_size
        if not os.path.exists(documents_path):  # noqa: PTH110 - plug-ins give texts
            raise Unsupported(
                f"the track's plug-in wants to unpack {archive_path}, which benchctl does not do for it: "
                f"put its content at {documents_path}"
            )


class DocumentSetPreparator:
    """Provides files of documents for plug-ins that process them."""

    def __init__(self, track_name: str, downloader: Any, decompressor: Any) -> None:
        self.track_name = track_name
        self.downloader = downloader
        self.decompressor = decompressor

    def is_locally_available(self, file_name: str) -> bool:
        return os.path.isfile(file_name)  # noqa: PTH113 - plug-ins give texts

    def prepare_document_set(self, document_set: Any, data_root: str) -> None:
        """Make sure the decompressed file exists.

        Raises:
            Unsupported: If it would have to be downloaded or decompressed.
        """
        name = document_set.document_file or document_set.document_archive
        path = os.path.join(data_root, name)  # noqa: PTH118 - plug-ins give texts
        if not self.is_locally_available(path):
            self.downloader.download(document_set.base_url, path, document_set.uncompressed_size_in_bytes)

    def prepare_bundled_document_set(self, document_set: Any, data_root: str) -> bool:
        """Return whether the decompressed file is in a folder."""
        return self.is_locally_available(os.path.join(data_root, document_set.document_file or ""))  # noqa: PTH118 - texts


def render_template_from_file(
    template_file_name: str,
    template_vars: Mapping[str, Any] | None,
    *_: Any,
    **__: Any,
) -> str:
    """Render a template beside the track, with these variables."""
    path = Path(template_file_name)
    return Renderer(path.parent, template_vars or {}, lenient=True).render(path).text
