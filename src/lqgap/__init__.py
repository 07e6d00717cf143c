"""Train in simulation, know the gap: see https://arxiv.org/abs/2210.15598 for the theory.

The names are listed once, in `__init__.pyi`, and loaded on first use, so that `import lqgap` and the command
line start without JAX.
"""

import lazy_loader

from lqgap.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__", "enable_x64"]


def enable_x64() -> None:
    """Switch JAX to double precision, which lqgap requires; call it before any JAX computation."""
    import jax

    jax.config.update("jax_enable_x64", True)
