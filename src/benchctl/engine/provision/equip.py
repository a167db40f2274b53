"""An installation with what its variant adds: plug-ins first, then jars, each kept by what is in it."""

from dataclasses import dataclass
from pathlib import Path

from benchctl.engine.provision.artifacts import Archive, download_archive, fetch_published, local_archive
from benchctl.engine.provision.install import Installation, check_distribution, install
from benchctl.engine.provision.jars import Jar, with_jars
from benchctl.engine.provision.jdk import Jdk, check_java_home, provide_jdk
from benchctl.engine.provision.maven import Coordinates
from benchctl.engine.provision.plugins import with_plugins
from benchctl.engine.variants.values import PATCHED, part_kind
from benchctl.home import Home
from benchctl.network import Progress
from benchctl.results.plan import VariantSpec


@dataclass(frozen=True)
class Equipment:
    """What a variant's nodes are.

    Attributes:
        installation: what is measured.
        builder: what builds its index: the same, before any jar was replaced.
        jdk: what both run on.
    """

    installation: Installation
    builder: Installation
    jdk: Jdk


def equip(home: Home, spec: VariantSpec, progress: Progress) -> Equipment:
    """Install a variant's engine, runtime, plug-ins and jars; at once when that was done before.

    Raises:
        BenchctlError: one of them cannot be had, or does not go with the engine.
    """
    plain = install(home, spec, progress)
    jdk = provide_jdk(home, spec.jdk)
    plugins = [(text, _plugin(home, text, progress)) for text in spec.plugins]
    builder = with_plugins(home, plain, plugins)
    jars = [_jar(home, builder, text, progress) for text in spec.jars]
    return Equipment(with_jars(home, builder, jars), builder, jdk)


def check_asked(home: Home, spec: VariantSpec) -> None:
    """Find out whether `equip` asks for what is not there, and get nothing.

    Raises:
        UsageError: there is no such version, distribution or Java home.
        BenchctlError: the Maven repository cannot be reached.
    """
    check_java_home(spec.jdk)
    check_distribution(home, spec)


def _plugin(home: Home, text: str, progress: Progress) -> Archive:
    kind = part_kind(text)
    if kind == "url":
        return download_archive(home, text, progress)
    if kind == "maven":
        group, artifact, version = text.split(":")
        return fetch_published(home, Coordinates(group, artifact, "zip"), version, progress)
    return local_archive(Path(text))


def _jar(home: Home, installation: Installation, text: str, progress: Progress) -> Jar:
    kind = part_kind(text)
    if kind == "patched":
        # What compiles is loaded only where something is to be compiled.
        from benchctl.engine.patched import build_jar  # noqa: PLC0415 - see above

        # The compiler needs a newer Java than the nodes may have, and gives every variant the same bytes.
        compiling = provide_jdk(home, None)
        return Jar(build_jar(home, installation, compiling, text.removeprefix(PATCHED), progress), text)
    if kind == "maven":
        group, artifact, version = text.split(":")
        return Jar(
            fetch_published(home, Coordinates(group, artifact), version, progress).path, text, artifact
        )
    return Jar(Path(text), text)
