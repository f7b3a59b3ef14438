"""How the documentation is built (`make docs`): Markdown by MyST, warnings are errors."""

project = "ceph-tuner"
author = "the ceph-tuner authors"
copyright = "the ceph-tuner authors, LGPL-2.1-or-later"  # noqa: A001 - Sphinx's own name for it
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "ceph-tuner"
# the source is the repository: links to results are the same here and where the sources are read
root_doc = "docs/index"
include_patterns = ["docs/**", "benchmarks/results/**"]
exclude_patterns = [".*", "build", "tests"]
