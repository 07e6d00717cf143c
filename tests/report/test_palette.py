import itertools

import numpy as np
import pytest
from example_record import example_record

from lqgap.experiments.methods import METHODS
from lqgap.experiments.record import Record
from lqgap.report.palette import DARK, LIGHT, NUM_COLOURS, NUM_HUES, NUM_SHADES, shade, styles_of_methods

# Machado, Oliveira and Fernandes (2009), severity 1: what linear RGB looks like without one kind of cone.
SIGHT = {
    "all cones": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def linear(colour):
    values = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return float(linear(colour) @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(one, other):
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def seen(colour, sight):
    """In OKLab, where equal distances look equally large."""
    return np.array(LAB) @ np.cbrt(np.array(CONES) @ np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1))


@pytest.fixture(params=[LIGHT, DARK], ids=["light", "dark"])
def palette(request):
    return request.param


@pytest.mark.parametrize("ground", ["background", "surface"])
def test_texts_have_the_contrast_that_wcag_aa_asks_for(palette, ground):
    for role in ("ink", "muted", "accent", "warning", "good", "bad"):
        assert contrast(palette[role], palette[ground]) >= 4.5, role


def test_lines_stand_out_from_the_background(palette):
    for role in ("neutral", *(f"method-{index}" for index in range(1, NUM_COLOURS + 1))):
        assert contrast(palette[role], palette["background"]) >= 3, role


@pytest.mark.parametrize("sight", list(SIGHT))
@pytest.mark.parametrize(("count", "apart"), [(NUM_HUES, 0.1), (NUM_COLOURS, 0.06)])
def test_colours_of_methods_stay_apart_without_one_kind_of_cone(palette, sight, count, apart):
    """About 0.02 in OKLab is just noticeable: those of all hues are five times, all are three times apart."""
    colours = [seen(palette[f"method-{index}"], sight) for index in range(1, count + 1)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colours, 2)) > apart


def test_a_map_leads_from_the_background_to_the_ink(palette):
    steps = [luminance(palette[f"heat-{index}"]) for index in range(NUM_SHADES)]
    towards = np.sign(luminance(palette["ink"]) - luminance(palette["background"]))
    assert np.all(towards * np.diff(steps) > 0)
    assert (shade(-1.0), shade(0.0), shade(1.0), shade(2.0)) == ("heat-0", "heat-0", "heat-24", "heat-24")


def test_both_palettes_know_the_same_roles():
    assert LIGHT.keys() == DARK.keys()


def test_each_method_has_a_style_of_its_own_that_is_the_same_on_every_page():
    record = example_record()
    styles = styles_of_methods(record)
    assert styles["truth"].colour == "neutral"
    assert len(set(styles.values())) == len(styles)
    kept = [method for method in reversed(record.methods) if method.name in ("vtr", "bank")]
    fewer = styles_of_methods(record.model_copy(update={"methods": kept, "recommended": "vtr"}))
    assert fewer == {name: styles[name] for name in ("vtr", "bank")}


def test_sixteen_methods_have_colours_of_their_own_and_hues_differ_in_dash_and_symbol():
    record = example_record()
    known = [name for name, method in METHODS.items() if method.kind != "reference"]
    names = [*known, *(f"new {index}" for index in range(NUM_COLOURS - len(known)))]
    methods = [record.methods[0].model_copy(update={"name": name}) for name in names]
    styles = styles_of_methods(Record.model_construct(methods=methods)).values()
    assert len({style.colour for style in styles}) == NUM_COLOURS
    hues = [(int(style.colour.removeprefix("method-")) - 1) % NUM_HUES for style in styles]
    for trait in ("is_dashed", "symbol"):
        seen_as = [(hue, getattr(style, trait)) for hue, style in zip(hues, styles, strict=True)]
        assert len(set(seen_as)) == NUM_COLOURS
