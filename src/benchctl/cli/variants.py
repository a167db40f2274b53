"""Variants from the command line, complete with what its other options say about them."""

from benchctl.cli.options import keyed
from benchctl.engine.newest import check_spec, with_newest
from benchctl.engine.variant import check_overrides, parse_variant
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
    return with_newest(check_spec(spec) for spec in specs)
