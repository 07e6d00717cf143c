"""Two filters of one record, written out step by step: the slow reference of the lower bounds."""

import jax
import numpy as np


def step_by_step(first, second, share, normals, deviations):
    """Both filters of one record, written out: what they want and expect differently."""
    members = [jax.tree.map(np.asarray, measure) for measure in (first, second)]
    shares = (share, 1 - share)
    x = [np.zeros(len(m.A)) for m in members]
    wants, expects = [], []
    for h, (normal, d) in enumerate(zip(normals, deviations, strict=True)):
        expected = [m.C @ xi for m, xi in zip(members, x, strict=True)]
        y = shares[0] * expected[0] + shares[1] * expected[1] + members[0].S_root[h] @ normal
        after = [xi + m.L[h] @ (y - e) for m, xi, e in zip(members, x, expected, strict=True)]
        wanted = [m.K[h] @ f for m, f in zip(members, after, strict=True)]
        u = -shares[0] * wanted[0] - shares[1] * wanted[1] + d
        x = [m.A @ f + m.B @ u for m, f in zip(members, after, strict=True)]
        wants.append(wanted[1] - wanted[0])
        expects.append(expected[1] - expected[0])
    return np.array(wants), np.array(expects)


def operators(first, second, share):
    """The differences as dense matrices: of the noise, and of the deviation."""
    outputs, inputs = len(first.C), first.B.shape[1]
    steps = len(first.K)

    def columns(width, of):
        basis = np.eye(steps * width).reshape(-1, steps, width)
        return [
            np.stack([part.ravel() for part in parts], axis=1) for parts in zip(*map(of, basis), strict=True)
        ]

    of_noise = columns(outputs, lambda e: step_by_step(first, second, share, e, np.zeros((steps, inputs))))
    of_input = columns(inputs, lambda d: step_by_step(first, second, share, np.zeros((steps, outputs)), d))
    return of_noise, of_input
