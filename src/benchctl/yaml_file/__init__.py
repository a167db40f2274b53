"""YAML that people write for benchctl into typed models: strict, with file, line and words in every error."""

from benchctl.yaml_file.document import Document, Step
from benchctl.yaml_file.typed import Typed, decode, load_typed, read_typed

__all__ = ["Document", "Step", "Typed", "decode", "load_typed", "read_typed"]
