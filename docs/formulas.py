"""Formulas as MathML: browsers draw it themselves, so that pages need no script and no network."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number


def write_inline(writer: Any, node: Any) -> None:
    """Write a formula in a line of text."""
    writer.body.append(convert(node.astext()))
    raise SkipNode


def write_block(writer: Any, node: Any) -> None:
    """Write a formula on a line of its own, with its number where it has one."""
    writer.body.append(writer.starttag(node, "div", CLASS="formula", style="margin: 1em 0"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})</span>')
    writer.body.append(convert(node.astext(), display="block") + "</div>\n")
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx of the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
