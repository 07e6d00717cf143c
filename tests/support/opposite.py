"""Two plants whose inputs push in opposite directions: the class of the reference figures of lower bounds."""

import functools

import lqgap


@functools.cache
def opposite():
    return lqgap.stack([lqgap.LQG([[0.9]], [[1.0]], [[1.0]]), lqgap.LQG([[0.9]], [[-0.7]], [[1.0]])])
