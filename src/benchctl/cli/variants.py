"""Variants from the command line, complete with what its other options say about them."""

from pathlib import Path

import click

from benchctl.cli.options import keyed
from benchctl.engine.variant import check_overrides, parse_variant
from benchctl.engine.variant_file import check_spec, load_variants, with_newest
from benchctl.results.plan import VariantSpec

variants_option = click.option(
    "--variants",
    "variants_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="YAML file of further variants that can be named: NAME: {extends: es, jvm: [-Xint]}.",
)


def resolve_variants(
    texts: tuple[str, ...],
    distributions: tuple[str, ...],
    jdks: tuple[str, ...],
    file: Path | None = None,
) -> tuple[VariantSpec, ...]:
    """Read variants, and ask for the newest version where one says `latest`.

    Options are as written; without texts, all variants of the file are meant.

    Raises:
        UsageError: a text is not a variant or asks for what no node can be given, an option names none, or
            something is wrong in the file.
    """
    by_distribution = keyed(distributions, "--distribution")
    by_jdk = keyed(jdks, "--jdk")
    defined = {} if file is None else load_variants(file)
    specs = [
        parse_variant(text, distributions=by_distribution, jdks=by_jdk, defined=defined)
        for text in texts or defined
    ]
    check_overrides("--distribution", by_distribution, specs)
    check_overrides("--jdk", by_jdk, specs)
    return with_newest(check_spec(spec) for spec in specs)
