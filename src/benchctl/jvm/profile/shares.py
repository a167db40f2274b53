"""Counted stacks -> which frames took which share of the samples, and how two sides differ in that."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchctl.jvm.profile.counting import Counted, merged
from benchctl.jvm.profile.model import Stack

_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Share:
    """What one frame, with some of its callers, took.

    Attributes:
        stack: the frame itself, then its callers outwards.
        samples: of all forks.
        share: of all forks' counted samples, 0 to 1.
        least, most: of the forks' own shares; the share itself where there is one fork.
    """

    stack: Stack
    samples: int
    share: float
    least: float
    most: float


@dataclass(frozen=True)
class Difference:
    """What one frame, with some of its callers, took on two sides.

    Attributes:
        stack: as in `Share`.
        baseline, contender: of each side; with 0 samples where it was never seen.
        noise: 95 % of the differences that sampling alone makes are smaller, as a share: binomial, and so a
            lower bound, because the samples of one request are alike, and forks differ.
    """

    stack: Stack
    baseline: Share
    contender: Share
    noise: float

    @property
    def difference(self) -> float:
        """Contender's share minus baseline's, -1 to 1."""
        return self.contender.share - self.baseline.share


def shares(forks: Sequence[Counted], *, size: int = 1, inclusive: bool = False) -> list[Share]:
    """What took most first; equal ones by name.

    Args:
        forks: of one variant; those without samples say nothing.
        size: frames of a stack that are told apart, from the running one outwards, at least 1.
        inclusive: count a frame wherever it is in a stack, once a stack, and not only where it runs itself;
            the shares of all frames are then more than 1 together.
    """
    own = [_cut_to(fork.stacks, size, inclusive=inclusive) for fork in forks if fork.samples]
    sizes = [fork.samples for fork in forks if fork.samples]
    pooled: Counter[Stack] = Counter()
    for counts in own:
        pooled.update(counts)
    found = [_share(stack, count, own, sizes) for stack, count in pooled.items()]
    return sorted(found, key=lambda share: (-share.samples, share.stack))


def differences(
    baseline: Sequence[Counted],
    contender: Sequence[Counted],
    *,
    size: int = 1,
    inclusive: bool = False,
) -> list[Difference]:
    """What differs most first; equal ones by name.

    Args:
        baseline: forks of the one side.
        contender: forks of the other.
        size: as in `shares`.
        inclusive: as in `shares`.
    """
    first = {share.stack: share for share in shares(baseline, size=size, inclusive=inclusive)}
    second = {share.stack: share for share in shares(contender, size=size, inclusive=inclusive)}
    sizes = merged(baseline).samples, merged(contender).samples
    found = [
        _difference(
            first.get(stack, Share(stack, 0, 0.0, 0.0, 0.0)),
            second.get(stack, Share(stack, 0, 0.0, 0.0, 0.0)),
            sizes,
        )
        for stack in {**first, **second}
    ]
    return sorted(found, key=lambda one: (-abs(one.difference), one.stack))


def _difference(baseline: Share, contender: Share, sizes: tuple[int, int]) -> Difference:
    pairs = zip((baseline.share, contender.share), sizes, strict=True)
    variance = sum(share * max(1 - share, 0.0) / size for share, size in pairs if size)
    return Difference(baseline.stack, baseline, contender, _NORMAL_95 * math.sqrt(variance))


def _cut_to(stacks: Mapping[Stack, int], size: int, *, inclusive: bool) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        outwards = stack[::-1]
        places = range(len(outwards)) if inclusive else range(1)
        for cut in {outwards[place : place + size] for place in places}:
            found[cut] += count
    return found


def _share(stack: Stack, count: int, forks: Sequence[Mapping[Stack, int]], sizes: Sequence[int]) -> Share:
    own = [counts.get(stack, 0) / size for counts, size in zip(forks, sizes, strict=True)]
    return Share(stack, count, count / sum(sizes), min(own), max(own))
