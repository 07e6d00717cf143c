"""Settings of the documentation: `make docs`."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from generators import fill  # noqa: E402
from mathml import use_mathml  # noqa: E402

project = "lqgap"
author = "The lqgap authors"
extensions = ["myst_nb"]
exclude_patterns = ["_build", "reference/examples.md"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "lqgap"
html_show_copyright = False
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
    "navbar_align": "left",
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": True,
}
# Pages with wide tables have the room of the sidebar.
html_sidebars = {name: [] for name in ("index", "benchmarks", "assumptions", "errata", "gallery", "claims")}
maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"

# Everything is computed when the pages are made: a cell that fails, fails the build.
nb_execution_mode = "force"
nb_execution_timeout = 240
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_ipywidgets_js = {}  # no widgets, so that no page asks the network for their scripts

# Cells compile much and compute little, as tests do.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"
os.environ.setdefault("EXAMPLE_SIZE", "small")
os.environ["MPLCONFIGDIR"] = str(HERE / "_build" / "matplotlib")
os.environ["MATPLOTLIBRC"] = str(HERE / "static" / "matplotlibrc")


def setup(app):
    """Pages have marks that stand for what the code says of itself; formulas need no script."""
    app.connect("source-read", _fill)
    use_mathml(app)


def _fill(_app, _name, source):
    source[0] = fill(source[0])
