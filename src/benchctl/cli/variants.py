"""Variants from the command line, complete with what its other options say about them."""

import msgspec

from benchctl.cli.options import keyed
from benchctl.engine.artifacts import latest_version
from benchctl.engine.variant import LATEST, check_overrides, parse_variant
from benchctl.results.model import VariantSpec


def resolve_variants(
    texts: tuple[str, ...], distributions: tuple[str, ...], jdks: tuple[str, ...]
) -> tuple[VariantSpec, ...]:
    """Read variants, and ask for the newest version where one says `latest`.

    Raises:
        UsageError: a text is no variant, or an option names none of them.
    """
    by_distribution = keyed(distributions, "--distribution")
    by_jdk = keyed(jdks, "--jdk")
    specs = [parse_variant(text, distributions=by_distribution, jdks=by_jdk) for text in texts]
    check_overrides("--distribution", by_distribution, specs)
    check_overrides("--jdk", by_jdk, specs)
    return tuple(
        msgspec.structs.replace(spec, version=latest_version(spec.engine)) if spec.version == LATEST else spec
        for spec in specs
    )
