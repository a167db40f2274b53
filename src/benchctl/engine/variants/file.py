"""A YAML file of variants: a mapping of names to what each of them is."""

from pathlib import Path

from benchctl.engine.variants.entry import VariantEntry
from benchctl.engine.variants.extends import resolve_variants_mapping
from benchctl.errors import UsageError
from benchctl.results.plan import VariantSpec
from benchctl.yaml_file import read_typed


def load_variants(path: Path) -> dict[str, VariantSpec]:
    """Read a file of variants; its paths are relative to it.

    Returns:
        By name, in the order of the file.

    Raises:
        UsageError: it cannot be read, or something in it is wrong: with file, line and column.
    """
    typed = read_typed(path, dict[str, VariantEntry])
    if not typed.value:
        raise UsageError(f"{path} defines no variant", hint="write NAME: {extends: es, jvm: [-XX:-Inline]}")
    return resolve_variants_mapping(typed.value, typed.document, (), path.absolute().parent)
