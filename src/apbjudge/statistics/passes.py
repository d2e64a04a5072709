"""Stand-in until merged."""

import numpy as np
from scipy.special import comb


def pass_at_k(n, c, k):
    n = np.asarray(n, float)
    c = np.asarray(c, float)
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n, c, k):
    n = np.asarray(n, float)
    c = np.asarray(c, float)
    return comb(c, k) / comb(n, k)
