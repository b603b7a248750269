"""How the experiments' figures look."""

from __future__ import annotations

from wellsep.plot import SURFACES

INK, QUIET = (SURFACES["light"][name] for name in ("ink", "quiet"))
STYLE = {
    "font.size": 8.5,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.facecolor": SURFACES["light"]["panel"],
}
