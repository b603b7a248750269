"""Configuration of the documentation; the API reference is made from the public names."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

import wellsep

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # formulas.py

project = "wellsep"
author = "The wellsep developers"
copyright = "2026, The wellsep developers"
release = version = wellsep.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "formulas",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

html_math_renderer = "mathml"  # formulas.py: no script, no font, no request
html_theme = "pydata_sphinx_theme"
html_title = f"wellsep {version}"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_js_files = ["copy.js"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False

autosummary_generate = True
# Pages of names that differ by case only would overwrite each other on macOS and Windows.
autosummary_filename_map = {
    "wellsep.Ace": "wellsep.Ace-switches",
    "wellsep.deep.Sweep": "wellsep.deep.Sweep-result",
}
autodoc_typehints = "none"  # numpydoc sections say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The stories alone: sphinx-gallery would take every folder with a README for a part of the gallery.
STORIES = HERE / "_build" / "stories"
STORIES.mkdir(parents=True, exist_ok=True)
for path in [*(HERE.parent / "examples").glob("*.py"), HERE.parent / "examples/GALLERY_HEADER.rst"]:
    shutil.copy2(path, STORIES / path.name)
extensions.append("sphinx_gallery.gen_gallery")
sphinx_gallery_conf = {
    "examples_dirs": str(STORIES),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",  # every example is executed
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # its page would ask for scripts of another site
    "within_subsection_order": "story_order.StoryOrder",
}

# The reference by task: title → packages, in this order.
GROUPS = {
    "From data to a clustering": ("explorer",),
    "Rank clusterings without labels": ("evaluate", "runs", "adapters"),
    "Validity indices": ("indices", "_checks", "compute", "distances"),
    "Is there anything to cluster?": ("spaces",),
    "Clusterers, number of clusters, stability": ("cluster",),
    "Deep clustering": ("deep",),
    "Report page and plots": ("report", "plot"),
    "Saved results, and the classes of results": ("records",),
    "Data sets": ("datasets",),
}
# Names that are imported from their package.
STEPS = {
    "evaluate": ("rank", "rank_confidence", "input_scores"),
    "spaces": ("dip_statistic", "holm"),
    "indices": ("Index",),
}  # fmt: skip


def public_names() -> dict[str, list[str]]:
    """Title of a group → its dotted public names."""
    rooms: dict[str, list[str]] = {}
    for name, home in wellsep._HOME.items():
        rooms.setdefault(home.split(".")[0], []).append(name)
    for room in ("deep", "plot", "adapters", "records"):
        module = importlib.import_module(f"wellsep.{room}")
        rooms.setdefault(room, []).extend(f"{room}.{n}" for n in module.__all__)
    for room, steps in STEPS.items():
        rooms[room] += [f"{room}.{name}" for name in steps]
    titles = {room: title for title, named in GROUPS.items() for room in named}
    groups: dict[str, list[str]] = {title: [] for title in GROUPS}
    for room, names in rooms.items():
        groups[titles[room]] += names
    return groups


def write_reference() -> None:
    """Write one page per group, which autosummary expands."""
    folder = HERE / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for number, (title, names) in enumerate(public_names().items(), 1):
        lines = [title, "=" * len(title), "", ".. currentmodule:: wellsep", ""]
        lines += [".. autosummary::", "   :toctree:", "", *(f"   {name}" for name in names), ""]
        text, path = "\n".join(lines), folder / f"group-{number}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# Autosummary looks for its directives as soon as its own handler runs, so the list comes first.
write_reference()
