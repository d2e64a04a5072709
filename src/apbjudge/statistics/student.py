"""Student's t distribution.

Written out because a run that grades ends with intervals, and importing scipy.special takes longer
than grading a few dozen rows; a test holds it against scipy's.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, pi, sqrt
from statistics import NormalDist

_MANY = 1e5
_SOME = 200
_TINY = 1e-300


def t_cdf(t: float, df: float) -> float:
    """Chance of a value of at most t.

    Args:
        t: Any finite number.
        df: Degrees of freedom, above 0, whole or not.
    """
    if df > _MANY:
        return NormalDist().cdf(t * (1 - 1 / (4 * df)) / sqrt(1 + t * t / (2 * df)))
    below = _incomplete_beta(df / (df + t * t), df / 2, 0.5) / 2
    return 1 - below if t > 0 else below


def two_sided(t: float, df: float) -> float:
    """P-value of a statistic with this distribution, both directions counted.

    Args:
        t: The statistic.
        df: Degrees of freedom, above 0.
    """
    return min(1.0, 2 * t_cdf(-abs(t), df))


@lru_cache(maxsize=4096)  # a table asks for the same ones again and again
def t_quantile(p: float, df: float) -> float:
    """The value that is not exceeded with chance p.

    Args:
        p: Between 0 and 1.
        df: Degrees of freedom, above 0, whole or not.
    """
    if p < 0.5:
        return -t_quantile(1 - p, df)
    t = _expansion(NormalDist().inv_cdf(p), df)
    if df > _SOME or p == 0.5:
        return t
    # the chance is concave in t > 0: from the first step on, Newton's come from below
    for _ in range(200):
        step = (t_cdf(t, df) - p) / _density(t, df)
        t = t - step if t > step else t / 2
        if abs(step) <= 1e-13 * t:
            break
    return t


def _expansion(z: float, df: float) -> float:
    """Cornish and Fisher's, from the normal quantile; exact to 11 digits from 200 on."""
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return sum(term / df**i for i, term in enumerate(terms))


def _density(t: float, df: float) -> float:
    front = lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi) / 2
    return exp(front - (df + 1) / 2 * log(1 + t * t / df))


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularised, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's method: numerators come in pairs."""
    c, d = 1.0, 1 / _kept(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 5000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            d, c = 1 + part * d, 1 + part / c
            if -_TINY <= d <= _TINY or -_TINY <= c <= _TINY:
                d, c = _kept(d), _kept(c)
            d = 1 / d
            value *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return value


def _kept(value: float) -> float:
    """Away from 0, through which the fraction's parts may pass."""
    return value if abs(value) > _TINY else _TINY
