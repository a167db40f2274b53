"""Call sites that two JVMs dispatch differently: inlined by one, a virtual call in the other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchctl.jvm.inlining.sites import Site, SiteKey

ENGINE_PACKAGES = ("org.apache.lucene.", "org.elasticsearch.", "org.opensearch.")


@dataclass(frozen=True)
class Difference:
    """A call site that fared differently.

    Attributes:
        baseline, contender: the same site on both sides.
        moved: whether it was matched by the callee's name alone, since its bci differs.
    """

    baseline: Site
    contender: Site
    moved: bool

    @property
    def calls(self) -> int:
        """How often the side with a profile called it."""
        return max(self.baseline.calls, self.contender.calls)


@dataclass(frozen=True)
class Compared:
    """Two logs, site by site.

    Attributes:
        differences: the most called first.
        matched: sites that are on both sides.
        baseline_only, contender_only: sites that are not.
    """

    differences: tuple[Difference, ...]
    matched: int
    baseline_only: int
    contender_only: int


def compare_sites(
    baseline: Mapping[SiteKey, Site], contender: Mapping[SiteKey, Site], *, everywhere: bool = False
) -> Compared:
    """Find the sites that are inlined on one side and a virtual call on the other.

    Sites are the same when caller, bci and the called method's name are. Where the two sides have different
    versions of a class, bcis differ: then the n-th call of a name in a caller is matched with the n-th, given
    that both have equally many.

    Args:
        baseline: sites by key, of `newest_sites`.
        contender: the same of the other side.
        everywhere: in all callers, not only in Lucene's and the engines' own.
    """
    pairs, moved = _matched(baseline, contender)
    differences = [
        Difference(one, other, (one, other) in moved)
        for one, other in pairs
        if (everywhere or one.key.caller.startswith(ENGINE_PACKAGES)) and _differ(one, other)
    ]
    differences.sort(key=lambda each: (-each.calls, each.baseline.key.caller, each.baseline.key.bci))
    return Compared(tuple(differences), len(pairs), len(baseline) - len(pairs), len(contender) - len(pairs))


def _differ(one: Site, other: Site) -> bool:
    if one.is_virtual == other.is_virtual:
        return False
    return other.is_inlined if one.is_virtual else one.is_inlined


def _matched(
    baseline: Mapping[SiteKey, Site], contender: Mapping[SiteKey, Site]
) -> tuple[list[tuple[Site, Site]], set[tuple[Site, Site]]]:
    pairs = [(site, contender[key]) for key, site in baseline.items() if key in contender]
    left = _by_name(site for key, site in baseline.items() if key not in contender)
    right = _by_name(site for key, site in contender.items() if key not in baseline)
    moved = [
        pair
        for name, sites in left.items()
        if len(sites) == len(right.get(name, ()))
        for pair in zip(sites, right[name], strict=True)
    ]
    return pairs + moved, set(moved)


def _by_name(sites: Iterable[Site]) -> dict[tuple[str, str], list[Site]]:
    found: dict[tuple[str, str], list[Site]] = {}
    for site in sorted(sites, key=lambda one: one.key.bci):
        found.setdefault((site.key.caller, site.key.name), []).append(site)
    return found
