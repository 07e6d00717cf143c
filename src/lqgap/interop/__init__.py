"""Other tools: python-control, SciPy, MATLAB, Gymnasium and stable-baselines3.

Names are listed in `__init__.pyi` and loaded on first use: reading a MAT file loads neither Gymnasium nor
`scipy.signal`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
