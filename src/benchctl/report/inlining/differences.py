"""Call sites that two variants dispatch differently, for readers and for programs."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from benchctl.jvm.call_sites import Compared, Difference, Site, found_at
from benchctl.jvm.inlining_tree import Fate, simple
from benchctl.report.inlining.trees import compilation_document, receivers_document, receivers_text
from benchctl.report.inlining.words import PARTLY
from benchctl.report.numbers import counted, visible

_MS_PER_S = 1000


def differences_text(sides: tuple[str, str], labels: tuple[str, str], compared: Compared, scope: str) -> str:
    """What differs, the most called first; sites of one caller that fared alike stand together.

    Args:
        sides: short names of the two.
        labels: which logs they are.
        compared: what was found.
        scope: which callers were looked at, in words.
    """
    lines = [f"Calls that are inlined on one side and virtual on the other, {scope}"]
    lines += [f"  {side}: {label}" for side, label in zip(sides, labels, strict=True)]
    for _, group in groupby(compared.differences, key=_alike):
        lines += ["", *_group_lines(sides, list(group))]
    if not compared.differences:
        lines += ["", "none"]
    lines += [
        "",
        f"{counted(compared.matched, 'call site')} in newest compilations by C2 on both sides,",
        f"{compared.baseline_only:,} only in {sides[0]}'s, {compared.contender_only:,} only in {sides[1]}'s.",
        "Counts are those of type profiles when C2 compiled; for a virtual call HotSpot prints none.",
    ]
    return visible("\n".join(lines) + "\n")


def differences_document(
    sides: tuple[str, str], labels: tuple[str, str], compared: Compared, scope: str
) -> dict[str, Any]:
    """The same for programs, site by site."""
    return {
        "sides": dict(zip(sides, labels, strict=True)),
        "scope": scope,
        "matched": compared.matched,
        "only": {sides[0]: compared.baseline_only, sides[1]: compared.contender_only},
        "differences": [
            {
                "caller": one.baseline.key.caller,
                "name": one.baseline.key.name,
                "calls": one.calls,
                "moved": one.moved,
                sides[0]: _site_document(one.baseline),
                sides[1]: _site_document(one.contender),
            }
            for one in compared.differences
        ],
    }


def _alike(one: Difference) -> tuple[object, ...]:
    return (
        one.baseline.key.caller,
        one.baseline.key.name,
        one.calls,
        one.moved,
        one.baseline.words,
        one.contender.words,
        one.baseline.compilation,
        one.contender.compilation,
    )


def _group_lines(sides: tuple[str, str], group: Sequence[Difference]) -> list[str]:
    first = group[0]
    caller, name = simple(first.baseline.key.caller), first.baseline.key.name
    lines = [
        f"{name} in {caller}, bci {_bcis([one.baseline for one in group])}: {counted(first.calls, 'call')}"
    ]
    if first.moved:
        bcis = _bcis([one.contender for one in group])
        lines.append(f"  (bci {bcis} in {sides[1]}: another version of the class, matched by the name)")
    for side, site in zip(sides, (first.baseline, first.contender), strict=True):
        lines += _side_lines(side, site)
    return lines


def _side_lines(side: str, site: Site) -> list[str]:
    lines = [
        f"  {side}: {simple(callee)}  {said if fate is Fate.OTHER else fate.value}"
        for callee, fate, said in site.callees
    ]
    if found_at(site) == "partly":
        lines.append(f"  {' ' * len(side)}  {PARTLY}")
    if site.receivers:
        lines.append(f"  {' ' * len(side)}  saw {receivers_text(site.receivers)}")
    where = site.compilation
    stamp = "" if where.stamp_ms is None else f" at {where.stamp_ms / _MS_PER_S:.2f} s"
    since = "" if site.given_up_ms is None else f", given up at {site.given_up_ms / _MS_PER_S:.2f} s"
    method = simple(where.method) or "a fragment"
    lines.append(f"  {' ' * len(side)}  in the compilation of {method}{stamp}{since}")
    return lines


def _bcis(sites: Sequence[Site]) -> str:
    return ", ".join(str(site.key.bci) for site in sites)


def _site_document(site: Site) -> dict[str, Any]:
    return {
        "bci": site.key.bci,
        "callees": [
            {"callee": callee, "fate": fate.value, "outcome": fate.outcome, "text": said}
            for callee, fate, said in site.callees
        ],
        "found": found_at(site),
        "receivers": receivers_document(site.receivers),
        "compilation": compilation_document(site.compilation),
        "given-up-ms": site.given_up_ms,
        "copies": site.copies,
    }
