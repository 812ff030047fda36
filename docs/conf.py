"""Sphinx's configuration of the site; ``make site`` (tools/site.py) calls it strictly, without a network."""

from include.version import VERSION

project = "Tidewise"
author = "The Tidewise authors"
copyright = "The Tidewise authors. Apache 2.0"  # noqa: A001 - Sphinx's name for it
release = version = VERSION

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
nitpicky = True
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "none"

html_theme = "furo"
html_title = f"Tidewise {release}"
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None  # the same sources are the same bytes, whenever they are built
html_theme_options = {"navigation_with_keys": True}
