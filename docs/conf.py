"""The documentation site: `make docs-site` builds it into build/site, and any warning is an error.

Sphinx rather than MkDocs: the pages are plain Markdown for either, and Sphinx brings what else is needed by itself
(docstrings in NumPy's style, checked links between pages, headings and functions, a check of outside links) and has
been kept up by many hands since 2008. Nothing here goes out to the network but `make docs-links`.
"""

from unveil import __version__

project = "unveil"
author = "The unveil contributors"
copyright = "The unveil contributors, Apache-2.0"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "cyclopts.sphinx_ext",
]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # a test runs the notebooks; the site shows what they gave

autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
default_role = "code"  # `names` in docstrings

html_theme = "furo"
html_title = f"unveil {release}"
html_static_path: list[str] = []
html_theme_options = {
    "source_repository": "https://github.com/unveil-ncd/unveil/",
    "source_branch": "main",
    "source_directory": "docs/",
}
linkcheck_ignore = [r"https://unveil-ncd\.github\.io/.*", r"https://github\.com/unveil-ncd/.*"]
