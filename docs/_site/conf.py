"""Settings of Sphinx for the site. `make docs` stages the pages with build.py, which runs Sphinx with this file."""

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("MPLBACKEND", "agg")

TOP = Path(__file__).resolve().parents[2]
PACKAGE = (TOP / "src/mercer/__init__.py").read_text(encoding="utf-8")

project = "Mercer"
author = "The Mercer maintainers"
copyright = author
release = version = re.search(r'__version__ = "(.+)"', PACKAGE)[1]

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["gallery/**/*.py", "gallery/**/*.ipynb", "gallery/**/*.md5", "gallery/**/*.json", "examples/**"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions, which Sphinx cannot compare
highlight_language = "python"
smartquotes = False  # quotes in signatures and commands are typed as they are shown
nitpicky = False

# Docstrings are plain text with `code`: escape.py makes reStructuredText of them before numpydoc reads the sections.
default_role = "code"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # fit() in the list of a page, not KernelRidge.fit()
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "Mercer"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["mercer.css"]
html_show_sourcelink = False
html_copy_source = False
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_show_search_summary = False  # summaries are fetched, which browsers forbid for file://
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "Mercer"},
    "navbar_start": ["navbar-logo"],
    "navbar_center": ["navbar-nav"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}

SECTIONS = ["start", "kernels", "regression", "classification", "smoothing", "objects"]


def fresh(gallery_conf, name):
    """Close all figures before each example, so that no example depends on another."""
    import matplotlib.pyplot as plt

    plt.close("all")


sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [f"examples/{name}" for name in SECTIONS],
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "remove_config_comments": True,
    "reset_modules": (fresh,),
    "matplotlib_animations": False,
    "min_reported_time": 0,
    "download_all_examples": True,
    "show_signature": False,
    "show_memory": False,
    "image_scrapers": ("matplotlib",),
    "capture_repr": (),
    "write_computation_times": False,  # that page loads scripts from the network; each example shows its own time
    "nested_sections": True,
    "copyfile_regex": r".*\.(csv|json|md)",
    "first_notebook_cell": '# In an environment with Mercer: pip install ".[cli,plot]" in a clone\n%matplotlib inline',
}


def setup(app):
    from escape import readable

    app.connect("autodoc-process-docstring", readable, priority=100)
