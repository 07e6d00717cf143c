"""The page in a browser: it draws, answers to the pointer, fits, and asks nobody for anything."""

import re
import shutil

import pytest
from example_record import EVIL, example_record, hostile_record, measured
from playwright.sync_api import sync_playwright

from lqgap.report.page import render

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: `make browser` installs it")
PHONE, WIDE = 390, 1600
WATCH = "addEventListener('securitypolicyviolation', event => console.error('policy: ' + event.violatedDirective))"


def far_apart():
    """Gaps that need a logarithmic axis."""
    record = example_record()
    far = measured(1e5, 1e3)
    methods = [gaps.model_copy(update={"box_worst": far}) for gaps in record.gaps.methods]
    return record.model_copy(update={"gaps": record.gaps.model_copy(update={"methods": methods})})


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """Pages by name."""
    folder = tmp_path_factory.mktemp("pages")
    records = {"example": example_record(), "hostile": hostile_record(), "far apart": far_apart()}
    for name, record in records.items():
        (folder / f"{name}.html").write_text(render(record), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in records}


@pytest.fixture
def visit(browser, addresses):
    """Opens a page, and in the end checks that nothing was asked for or complained about."""
    heard, contexts = [], []

    def open_page(name="example", *, width=WIDE, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(WATCH)
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: heard.append(f"dialog {dialog.message}"))
        page.on("request", lambda request: request.url == addresses[name] or heard.append(request.url))
        page.goto(addresses[name])
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in heard if not text.startswith("data:")] == []


def colour_of_ticks(page):
    return page.locator(".xtick text").first.evaluate("element => getComputedStyle(element).fill")


@pytest.mark.parametrize(
    ("name", "width"), [("example", PHONE), ("example", 768), ("example", WIDE), ("hostile", PHONE)]
)
def test_every_panel_is_drawn_and_nothing_is_wider_than_the_window(visit, name, width):
    page = visit(name, width=width)
    assert page.locator("[data-panel]").count() == page.locator("[data-panel] .plot-container").count() > 10
    assert page.evaluate("document.documentElement.scrollWidth") == width
    too_wide = "[...document.querySelectorAll('.main-svg, figcaption, p, h1, h2, h3')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
    assert page.evaluate(too_wide) == 0


def test_a_table_too_wide_for_a_phone_scrolls_within_itself(visit):
    page = visit(width=PHONE)
    table = page.get_by_role("region", name="Gaps by method")
    assert table.evaluate("element => element.scrollWidth > element.clientWidth")
    table.evaluate("element => element.scrollTo(1000, 0)")
    assert table.evaluate("element => element.scrollLeft") > 0


def test_a_label_appears_under_the_pointer(visit):
    page = visit()
    for panel, target, text in (
        ("gap-by-method-0", ".point", "LQG that knows the truth"),
        ("gap-against-horizon-0", ".point", "horizon 25"),
        ("gap-map-0", ".barlayer .point", "optimal cost"),
        ("bracket-0", ".barlayer .point", "no controller"),
        ("trajectory-1-0", ".js-line", "("),
    ):
        place = page.locator(f'[data-panel="{panel}"]')
        place.scroll_into_view_if_needed()
        box = place.locator(target).first.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
        label = place.locator(".hoverlayer .hovertext").first
        label.wait_for(timeout=5000)
        assert text in label.text_content(), panel


@pytest.mark.parametrize("name", ["example", "far apart"])
def test_a_rule_stands_at_its_value_on_any_axis(visit, name):
    page = visit(name)
    place = '[data-panel="gap-by-method-0"]'
    axis = f"document.querySelector('{place}')._fullLayout.xaxis"
    assert page.evaluate(f"{axis}.type") == ("log" if name == "far apart" else "linear")
    expected = page.evaluate(f"{axis}._offset + {axis}.d2p({example_record().bracket.lower})")
    drawn = page.locator(f"{place} .shapelayer path").get_attribute("d")
    assert float(re.match(r"M([\d.]+),", drawn)[1]) == pytest.approx(expected, abs=0.5)


def test_a_hostile_name_is_read_as_it_is_written(visit):
    page = visit("hostile")
    ticks = "".join(page.locator('[data-panel="gap-by-method-0"] .ytick').all_text_contents())
    assert "<script>alert(1)</script>" in ticks.replace(" ", "")
    assert page.locator("main a:not([href^='#'])").count() == 0
    assert page.locator("svg a").count() == 0
    assert page.locator("h1").text_content().startswith(EVIL)


def test_a_series_is_switched_off_and_on_by_the_keyboard(visit):
    page = visit()
    figure = page.get_by_role("figure", name="Gap against the horizon")
    button = figure.get_by_role("button", name="Untrained bank")
    before = figure.locator(".trace").count()
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert figure.locator(".trace").count() < before
    page.keyboard.press("Enter")
    assert figure.locator(".trace").count() == before


def test_focus_can_be_seen(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_figures_follow_the_colours_of_the_system_at_once(visit):
    page = visit(scheme="light")
    light = colour_of_ticks(page)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "old => getComputedStyle(document.querySelector('.xtick text')).fill !== old", arg=light
    )
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"


def test_figures_follow_the_width_of_the_window(visit):
    page = visit(width=WIDE)
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.wait_for_function("document.querySelector('.main-svg').getBoundingClientRect().width < 390")


@pytest.mark.slow
def test_paper_is_light_and_figures_fit_on_it(visit):
    page = visit(scheme="dark")
    dark = colour_of_ticks(page)
    page.evaluate(
        "addEventListener('beforeprint', () => { window.printed = {"
        "  width: Math.max(...[...document.querySelectorAll('.main-svg')].map(e => e.getBoundingClientRect().width)),"
        "  fill: getComputedStyle(document.querySelector('.xtick text')).fill,"
        "  closed: document.querySelectorAll('details:not([open])').length } })"
    )
    assert page.pdf(format="A4").startswith(b"%PDF")
    printed = page.evaluate("window.printed")
    assert printed["width"] <= 180 / 25.4 * 96 + 1
    assert printed["fill"] != dark
    assert printed["closed"] == 0
    assert colour_of_ticks(page) == dark
    assert page.locator("details[open]").count() == 0
