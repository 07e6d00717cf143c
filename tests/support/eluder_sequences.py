"""The definition of an Eluder sequence, for tests of the search that finds them."""

import numpy as np


def is_eluder_sequence(values, sequence, *, epsilon):
    """Whether every sample of the sequence is epsilon-independent of those before it."""
    values = np.asarray(values)
    first, second = np.triu_indices(len(values), k=1)
    distances = np.abs(values[first] - values[second])
    spent = np.zeros(len(distances))
    for sample in sequence:
        if not np.any((spent <= epsilon**2) & (distances[:, sample] > epsilon)):
            return False
        spent += distances[:, sample] ** 2
    return True
