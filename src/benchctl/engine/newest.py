"""Variants as they were asked for: checked without a network, then with the version that `latest` means."""

from collections.abc import Callable, Iterable
from functools import cache

import msgspec

from benchctl.engine.provision.maven import latest_version
from benchctl.engine.settings import check_environment, check_flags, check_settings
from benchctl.engine.variants.values import LATEST, check_index_settings, check_parts
from benchctl.results.plan import EngineName, VariantSpec


def check_spec(spec: VariantSpec) -> VariantSpec:
    """Give a variant back when a node can be given what it asks for.

    Raises:
        UsageError: one of its flags, settings, variables, jars or plug-ins can never be had.
    """
    check_settings(spec.settings)
    check_index_settings(spec.index_settings)
    check_flags(spec.engine, spec.jvm_flags)
    check_environment(spec.environment)
    check_parts(spec)
    return spec


def with_newest(
    specs: Iterable[VariantSpec], newest: Callable[[EngineName], str] = latest_version
) -> tuple[VariantSpec, ...]:
    """The variants with a version each; an engine whose newest is wanted is asked about once.

    Args:
        specs: any.
        newest: says the newest version of an engine; asks the repository.

    Raises:
        BenchctlError: the repository cannot be reached, or lists no release.
    """
    known = cache(newest)
    return tuple(
        msgspec.structs.replace(spec, version=known(spec.engine)) if spec.version == LATEST else spec
        for spec in specs
    )
