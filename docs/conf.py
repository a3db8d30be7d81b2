"""Sphinx reads this: the pages of this folder and the docstrings of the public names, as HTML."""

from mcspark import __version__

project = "mcspark"
release = __version__
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
html_theme = "furo"
nitpicky = False
exclude_patterns = ["site"]
