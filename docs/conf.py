"""Settings of the documentation."""

project = "lqgap"
author = "The lqgap authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "lqgap"
html_show_copyright = False
html_sidebars = {"**": []}  # the pages are listed on top; tables need the room
