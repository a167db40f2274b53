"""The mixture t-test: p-values and intervals that hold however often they are looked at.

Whoever looks at figures and goes on while nothing is found finds something in the end. Here the truth is
weighed against no effect by a likelihood ratio whose expectation never exceeds 1 while there is none: so it
ever exceeds 1 / alpha with a chance of alpha at most, after as many looks as one likes (Ville's inequality).
The SD is unknown with the right-Haar prior, the effect in SDs follows N(0, 1). It needs no bound on the
number of looks and no table.

Lai, Annals of Statistics 4, 1976; Rouder et al., Psychonomic Bulletin & Review 16, 2009; Wang and Ramdas,
"Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", 2024.

Estimate, interval and p are all those of the present look, so that they never contradict each other; the
largest evidence of earlier looks would be a valid p, too, beside an interval that may hold 0 again.
"""

import math

FIRST_LOOK = 5
"""Pairs before the first look: for the size of an effect, not for the test, which holds from two on."""


def log_evidence(t: float, df: float, units: float) -> float:
    """Return the logarithm of the likelihood ratio of some effect against none.

    Args:
        t: estimate / standard error.
        df: degrees of freedom, above 0.
        units: that the estimate rests on: (SD of a unit / standard error)^2, which is the number of pairs.
    """
    v = 1.0 + units
    return -math.log(v) / 2 + (df + 1) / 2 * (math.log1p(t * t / df) - math.log1p(t * t / (v * df)))


def p_value(t: float, df: float, units: float) -> float:
    """Return the two-sided p over all looks; see `log_evidence`."""
    return math.exp(min(0.0, -log_evidence(t, df, units)))


def critical(confidence: float, df: float, units: float) -> float:
    """Return half the width of an interval in standard errors; infinite while there is none.

    Such intervals hold the truth at all looks together with the given confidence, between 0 and 1.
    """
    v = 1.0 + units
    a = math.pow(v / (1 - confidence) ** 2, 1 / (df + 1))
    return math.sqrt(df * (a - 1) / (1 - a / v)) if a < v else math.inf


def p_of_signs(above: int, below: int) -> float:
    """Return the two-sided p over all looks for pairs of which so many lie above 0 and below it.

    The chance of a pair to lie above is 1/2 against uniformly distributed (Laplace's mixture).
    """
    pairs = above + below
    log_ratio = pairs * math.log(2) + math.lgamma(above + 1) + math.lgamma(below + 1) - math.lgamma(pairs + 2)
    return math.exp(min(0.0, -log_ratio))
