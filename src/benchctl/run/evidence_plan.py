"""Which evidence a run may collect; checked before any node starts."""

from collections.abc import Sequence
from typing import get_args

from benchctl.errors import UsageError
from benchctl.results.plan import EvidenceKind, EvidenceSpec, VariantSpec

EVIDENCE_KINDS: tuple[EvidenceKind, ...] = get_args(EvidenceKind)


def check_evidence(evidence: EvidenceSpec, variants: Sequence[VariantSpec]) -> None:
    """Evidence comes from the JVM that a node runs on, so that it must be benchctl that starts it.

    Args:
        evidence: what is wanted.
        variants: of which.

    Raises:
        UsageError: nothing is wanted, in no fork, or of a node that is not benchctl's.
    """
    if not evidence.kinds:
        known = ", ".join(EVIDENCE_KINDS)
        raise UsageError("--evidence names no kind of evidence", hint=f"known: {known}")
    if evidence.extra_forks < 0:
        raise UsageError("--evidence-forks must be at least 1, or all")
    target = next((variant.name for variant in variants if variant.target is not None), None)
    if target is not None:
        raise UsageError(
            f"--evidence: '{target}' is a cluster that runs already (--target), and benchctl cannot give its "
            "JVM any flags",
            hint="leave --evidence out, or measure nodes that benchctl starts (--variant)",
        )
