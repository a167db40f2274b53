"""Modules of OpenSearch that Maven has as jars: names, and what only the distribution has beside a jar."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from benchctl.errors import UsageError, suggestion
from benchctl.results.plan import EngineName

GROUP: Final = "org.opensearch.plugin"
FULL: Final = "full"
"""Instead of a module's name: all that are published."""
CORE: Final = "core"
"""Instead of a module's name: none that distributions before 3.5 lack."""
CORE_MODULES: Final = frozenset({"transport-grpc", "transport-netty4"})


@dataclass(frozen=True)
class Module:
    """A module that is published as a jar, which lacks descriptor and policy."""

    artifact: str  # in `GROUP`
    extends: tuple[str, ...] = ()  # modules whose classes it sees
    permissions: tuple[str, ...] = ()  # that its code is granted, as policy files have them


_CONNECT: Final = ('java.net.SocketPermission "*", "connect"',)
_CREATE: Final = 'java.lang.RuntimePermission "createClassLoader"'
_IN_EXPRESSIONS: Final = (
    "java.lang.Math",
    "java.lang.String",
    "org.apache.lucene.expressions.Expression",
    "org.apache.lucene.expressions.js.ExpressionMath",
    "org.apache.lucene.search.DoubleValues",
    "org.apache.lucene.util.MathUtil",
    "org.apache.lucene.util.SloppyMath",
)
MODULES: Final[Mapping[str, Module]] = {
    "aggs-matrix-stats": Module("aggs-matrix-stats-client"),
    "analysis-common": Module("analysis-common", ("lang-painless",)),
    "geo": Module("geo"),
    "ingest-common": Module("ingest-common", ("lang-painless",)),
    "ingest-user-agent": Module("ingest-user-agent"),
    "lang-expression": Module(
        "lang-expression",
        (),
        (_CREATE, *(f'org.opensearch.script.ClassPermission "{name}"' for name in _IN_EXPRESSIONS)),
    ),
    "lang-mustache": Module(
        "lang-mustache-client", (), ('java.lang.RuntimePermission "accessDeclaredMembers"',)
    ),
    "lang-painless": Module("lang-painless", (), (_CREATE, 'java.lang.RuntimePermission "getClassLoader"')),
    "mapper-extras": Module("mapper-extras-client"),
    "parent-join": Module("parent-join-client"),
    "percolator": Module("percolator-client"),
    "rank-eval": Module("rank-eval-client"),
    "reindex": Module("reindex-client", (), (*_CONNECT, 'java.net.NetPermission "getProxySelector"')),
    "repository-url": Module("repository-url", (), _CONNECT),
}


def check_modules(engine: EngineName, names: Iterable[str]) -> None:
    """Refuse modules that a variant cannot have.

    Raises:
        UsageError: If the engine's modules are not published, a name is unknown or a duplicate, or the names
            contradict each other.
    """
    names = list(names)
    if names and engine != "opensearch":
        raise UsageError(
            "modules can be added to OpenSearch only: those of Elasticsearch are published up to 7.17.29",
            hint="use a full distribution: distribution:official",
        )
    for name in names:
        if name not in MODULES and name not in (FULL, CORE):
            raise UsageError(f"unknown module '{name}'", hint=suggestion(name, [FULL, CORE, *MODULES]))
        if names.count(name) > 1:
            raise UsageError(f"duplicate module '{name}'", hint="remove one")
    if FULL in names and len(names) > 1:
        raise UsageError(
            f"modules:{FULL} cannot be used with {', '.join(name for name in names if name != FULL)}",
            hint=f"remove either; {CORE} can be used with names of modules",
        )
