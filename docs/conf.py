"""How the documentation is built: Markdown by MyST, warnings are errors."""

project = "ceph-tuner"
author = "the ceph-tuner authors"
copyright = "the ceph-tuner authors, LGPL-2.1-or-later"  # noqa: A001 - Sphinx's own name for it
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "ceph-tuner"
exclude_patterns = ["build"]
