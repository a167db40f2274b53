"""Variants from the command line, complete with what its other options say about them."""

import msgspec

from benchctl.cli.options import keyed
from benchctl.engine.provision.maven import latest_version
from benchctl.engine.settings import check_flags, check_settings
from benchctl.engine.variant import LATEST, check_overrides, parse_variant
from benchctl.results.plan import VariantSpec


def resolve_variants(
    texts: tuple[str, ...], distributions: tuple[str, ...], jdks: tuple[str, ...]
) -> tuple[VariantSpec, ...]:
    """Read variants, and ask for the newest version where one says `latest`.

    Raises:
        UsageError: a text is no variant or asks for what no node can be given, or an option names none.
    """
    by_distribution = keyed(distributions, "--distribution")
    by_jdk = keyed(jdks, "--jdk")
    specs = [parse_variant(text, distributions=by_distribution, jdks=by_jdk) for text in texts]
    check_overrides("--distribution", by_distribution, specs)
    check_overrides("--jdk", by_jdk, specs)
    for spec in specs:
        check_settings(spec.settings)
        check_flags(spec.engine, spec.jvm_flags)
    return tuple(
        msgspec.structs.replace(spec, version=latest_version(spec.engine)) if spec.version == LATEST else spec
        for spec in specs
    )
