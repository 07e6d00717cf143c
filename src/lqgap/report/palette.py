"""One colour and one symbol per method, the same in every figure, in light, in dark and on paper.

Colours are referred to by role; a page resolves roles with its style sheet, a printed figure with `LIGHT`.
The colours of methods stay apart for readers with any of the three colour deficiencies and stand out
from the background by 3:1 or more; dashes and symbols tell methods of one hue apart.
"""

from dataclasses import dataclass
from itertools import pairwise

from lqgap.experiments.comparison import Comparison
from lqgap.experiments.methods import METHODS
from lqgap.experiments.record import Record

NUM_COLOURS = 16  # of methods: eight hues, then the same eight darker or lighter, for dashed lines
NUM_HUES = 8
NUM_SHADES = 25  # of a map, from small to large gaps


def shades(*stops: str) -> dict[str, str]:
    """Colours between the stops, evenly spaced."""
    channels = [[int(stop[place : place + 2], 16) for place in (1, 3, 5)] for stop in stops]
    steps, shades = (NUM_SHADES - 1) // (len(stops) - 1), [channels[0]]
    for first, last in pairwise(channels):
        shades += [
            [round(a + (b - a) * step / steps) for a, b in zip(first, last, strict=True)]
            for step in range(1, steps + 1)
        ]
    return {f"heat-{index}": "#{:02x}{:02x}{:02x}".format(*shade) for index, shade in enumerate(shades)}


_ROLES = {  # in light, in dark
    "background": ("#ffffff", "#14171b"),
    "surface": ("#f5f6f8", "#1c2026"),
    "ink": ("#1c2127", "#e6e9ed"),
    "muted": ("#58616b", "#a0a9b4"),
    "rule": ("#d9dde2", "#343b44"),
    "accent": ("#2f4fb5", "#7fb2ff"),
    "warning": ("#8f4a00", "#f0b36a"),
    "good": ("#1d6b4a", "#6fd0a3"),
    "bad": ("#a3293d", "#ff8f9c"),
    "neutral": ("#767f8a", "#98a2ae"),
    "method-1": ("#2c31ac", "#7397fd"),
    "method-2": ("#b54000", "#c5490a"),
    "method-3": ("#17a58c", "#1f836e"),
    "method-4": ("#a480e5", "#875abc"),
    "method-5": ("#c38802", "#fbe29d"),
    "method-6": ("#840256", "#d796a6"),
    "method-7": ("#2c7297", "#89e5f9"),
    "method-8": ("#1c3808", "#9cc126"),
    "method-9": ("#7b57fa", "#6640fd"),
    "method-10": ("#df736a", "#eebb98"),
    "method-11": ("#1c6949", "#c9fce6"),
    "method-12": ("#6a33d7", "#9e85c1"),
    "method-13": ("#5f4310", "#c3850d"),
    "method-14": ("#52063f", "#ef2e7c"),
    "method-15": ("#6f8dad", "#50c2f1"),
    "method-16": ("#5c794c", "#b9e42e"),
}
_HEAT = (
    ("#f3f5fb", "#b5c4ea", "#6580cc", "#314bad", "#131f52"),
    ("#1b2340", "#28468f", "#3b7fd9", "#8ebcf5", "#f0f6ff"),
)
LIGHT, DARK = (
    {role: colours[which] for role, colours in _ROLES.items()} | shades(*stops)
    for which, stops in enumerate(_HEAT)
)
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "pentagon", "star")


@dataclass(frozen=True)
class Style:
    """How a method is drawn."""

    colour: str  # a role
    symbol: str
    is_dashed: bool = False


BOUND = Style("ink", "line-ew", is_dashed=True)


def shade(share: float) -> str:
    """The role of a place on the scale of colours, from 0 to 1."""
    return f"heat-{round(min(max(share, 0.0), 1.0) * (NUM_SHADES - 1))}"


def styles_of_methods(record: Record | Comparison) -> dict[str, Style]:
    """A method looks the same on every page; what no controller can know is grey."""
    known = [name for name, method in METHODS.items() if method.kind != "reference"]
    known.sort(key=lambda name: not METHODS[name].is_default)
    seekers = [method.name for method in record.methods if method.kind != "reference"]
    order = {name: index for index, name in enumerate(dict.fromkeys((*known, *seekers)))}
    return {
        method.name: _style(order[method.name]) if method.name in seekers else Style("neutral", "x")
        for method in record.methods
    }


def _style(index: int) -> Style:
    """Of sixteen methods no two have a colour in common, nor hue and symbol, nor hue and dash."""
    shift = 3 * (index // NUM_HUES)
    symbol = _SYMBOLS[(index + shift) % len(_SYMBOLS)]
    return Style(f"method-{index % NUM_COLOURS + 1}", symbol, is_dashed=index // NUM_HUES % 2 == 1)
