"""The first screen of a judgement: first places, groups, map and questions; HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from wellsep._text.sentences import SURFACES, colour_of, html_table
from wellsep.evaluate.clusters.agreed import AgreedGroups
from wellsep.spaces.drawing_planes import spread_colours

SIDE = 340  # pixels of the map
SHARE = "display:flex;overflow:hidden;border:1px solid rgba(128,128,128,.5)"
SHRINK = "overflow:hidden;text-overflow:ellipsis;min-width:0"


def bar_html(bar: list[tuple[str, float]]) -> str:
    """Return shares of the first places as a bar in HTML."""
    shown = ""
    for name, share in bar:  # the name shrinks, the share stays; none where neither has room
        label = f"<span style='{SHRINK}'>{escape(name)}</span>&nbsp;" if share >= 0.1 else ""
        number = f"<b style='flex:none'>{share:.0%}</b>" if share >= 0.05 else ""
        room = "0 5px;min-width:3.4em" if label else "0 2px" if number else "0"
        shown += (
            f"<span style='{SHARE};flex:{share:.3f} 1 0;padding:{room}' "
            f"title='{escape(name)}: {share:.0%}'>{label}{number}</span>"
        )
    row = "display:flex;white-space:nowrap;max-width:56em"
    return f"First place in the half-samples:<div style='{row}'>{shown}</div>" if bar else ""


def groups_html(
    agreed: AgreedGroups, support: Mapping[str, float], objects: np.ndarray, xy: np.ndarray
) -> str:
    """Return groups, map and questions beside each other, in HTML without a script.

    ``xy`` (s, 2) are the places of some ``objects``; the map is left out where there are none.
    """
    names = [agreed.clusters[c] for c in agreed.rows]
    groups = {"agreed": names, "objects": agreed.sizes[agreed.rows].tolist()}
    if support:
        groups["support"] = [f"{support[name]:.2f}" for name in names]
    questions = {
        "in question": [question.text for question in agreed.questions],
        "share": [
            "; ".join(f"{side.words} {side.share:.0%}" for side in question.sides)
            for question in agreed.questions
        ],
    }
    shown = html_table(groups) if names else ""
    shown += _map(agreed, objects, xy) if len(xy) else ""
    shown += html_table(questions) if agreed.questions else ""
    return f"<div style='display:flex;flex-wrap:wrap;gap:0 2em'>{shown}</div>"


def _map(agreed: AgreedGroups, objects: np.ndarray, xy: np.ndarray) -> str:
    """The objects as dots, those in question as rings, on a surface of its own."""
    codes, panel = agreed.codes[objects], SURFACES["light"]["panel"]
    colours = np.append(spread_colours(xy, codes, len(agreed.clusters)), -1)  # the last: noise
    wide = max(float(np.ptp(xy, axis=0).max()), 1e-300)
    at = xy * [1, -1] * (SIDE - 16) / wide  # upwards is less
    at += 8 - at.min(axis=0)
    high = at[:, 1].max() + 8
    drawn = names = ""
    for c in range(-1, len(agreed.clusters)):
        own = at[codes == c]
        path = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in own)
        drawn += f"<path d='{path}' stroke='{colour_of(int(colours[c]))}' stroke-width='5'/>"
        if c >= 0 and not agreed.is_agreed[c]:
            drawn += f"<path d='{path}' stroke='{panel}' stroke-width='3'/>"
        if c >= 0 and len(own):
            x, y = np.median(own, axis=0)
            name = escape(agreed.clusters[c][:12])
            names += f"<text x='{x:.0f}' y='{y:.0f}'>{name}</text>"
    return (
        f"<div><svg role='img' aria-label='Map of the objects' width='{SIDE}' height='{high:.0f}'"
        f" style='background:{panel}' stroke-linecap='round'>{drawn}<g font-weight='700'"
        f" text-anchor='middle' stroke='{panel}' stroke-width='3' paint-order='stroke'>{names}</g>"
        "</svg><br>Map; rings are in question.</div>"
    )
