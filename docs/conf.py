"""Configuration of the documentation; the API reference is made from the public names."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import wellsep

HERE = Path(__file__).resolve().parent

project = "wellsep"
author = "The wellsep developers"
copyright = "2026, The wellsep developers"
release = version = wellsep.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = f"wellsep {version}"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

GALLERY = HERE.parent / "examples"
if GALLERY.is_dir() and importlib.util.find_spec("sphinx_gallery"):
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": str(GALLERY),
        "gallery_dirs": "auto_examples",
        "remove_config_comments": True,
        "show_memory": False,
    }

TITLES = {
    "indices": "Validity indices",
    "_checks": "Errors",
    "partitions": "Partitions",
    "datasets": "Data sets",
    "spaces": "Tests of a space",
    "cluster": "Clusterers",
    "runs": "Runs",
    "adapters": "AnnData, MLflow and Optuna",
    "evaluate": "Ranking runs",
    "report": "Report page",
    "deep": "Deep clusterers",
    "plot": "Plots",
}


def public_names() -> dict[str, list[str]]:
    """Room -> dotted public names, in the order of TITLES."""
    rooms: dict[str, list[str]] = {}
    for name, home in wellsep._HOME.items():
        rooms.setdefault(home.split(".")[0], []).append(name)
    for room in ("deep", "plot"):
        if importlib.util.find_spec(f"wellsep.{room}") is not None:
            try:
                module = importlib.import_module(f"wellsep.{room}")
            except ImportError:
                continue
            rooms.setdefault(room, []).extend(f"{room}.{n}" for n in getattr(module, "__all__", ()))
    order = [*TITLES, *sorted(set(rooms) - set(TITLES))]
    return {room: rooms[room] for room in order if rooms.get(room)}


def write_reference(app: object) -> None:
    """Write the list that autosummary expands, one section per room."""
    lines = ["Public names", "============", "", ".. currentmodule:: wellsep", ""]
    for room, names in public_names().items():
        title = TITLES.get(room, room)
        lines += [title, "-" * len(title), "", ".. autosummary::", "   :toctree:", ""]
        lines += [f"   {name}" for name in names] + [""]
    folder = HERE / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines)
    path = folder / "names.rst"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# Autosummary looks for its directives as soon as its own handler runs, so the list comes first.
write_reference(None)
