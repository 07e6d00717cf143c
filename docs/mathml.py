"""Formulas as MathML, which browsers draw themselves: no script, no font, no request."""

from docutils import nodes
from latex2mathml.converter import convert


def use_mathml(app):
    """Make it the renderer of formulas in HTML."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    app.config.html_math_renderer = "mathml"


def _inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer, node):
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode
