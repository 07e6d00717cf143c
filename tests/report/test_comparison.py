import json
import re
import shutil

import pytest
from example_comparison import EVIL, example_comparison
from playwright.sync_api import sync_playwright

from lqgap.report.comparison import (
    PAGE,
    effort_figure,
    growth_figure,
    rate_figure,
    render,
    summarize,
    verdict,
    write,
)

CHROMIUM = shutil.which("chromium")


def test_the_verdict_says_who_wins_who_ties_and_why():
    text = verdict(example_comparison(), "springs")
    assert text.startswith("Too few seeds for a verdict, 4. Bank pays least: ")
    assert (
        "It pays 11 % of that in the second half of the time: it is still learning." in text
    )  # 1 - 0.3 ** 0.1
    assert "Not clearly worse on the same noise, with too few seeds to tell: Map (2 % more)." in text
    assert "clearly pays more, 100 times as much: it learns little, and pays on at every step." in text
    assert "Thompson{Lazy = True} diverged in 1 of 8 runs." in text


def test_the_answer_names_the_first_of_the_table_though_others_before_it_in_the_list_are_its_equals():
    found = example_comparison()
    assert summarize(found).text == "Over 1000 steps Bank pays least on the class."
    swapped = found.model_copy(update={"methods": [found.methods[1], found.methods[0], *found.methods[2:]]})
    assert summarize(swapped).text == "Over 1000 steps Bank pays least on the class."
    assert [fact.value for fact in summarize(found).facts] == ["5", "32", "1"]


def test_on_several_classes_the_answer_counts_where_a_method_is_first_or_its_equal():
    one, two = example_comparison(family="one"), example_comparison(family="two")
    both = one.model_copy(update={"families": one.families + two.families, "cells": one.cells + two.cells})
    assert summarize(both).text == (
        "Over 1000 steps Bank pays least, or not clearly more than the best, on 2 of 2 classes."
    )


def test_where_every_method_diverged_the_answer_does_not_say_who_pays_least():
    found = example_comparison()
    lost = found.model_copy(update={"cells": [cell for cell in found.cells if "thompson" in cell.method]})
    assert summarize(lost).text == (
        "Every method diverged in some run; Thompson{Lazy = True} did least often."
    )


def test_growth_has_an_interval_at_every_horizon():
    figure = growth_figure(example_comparison())
    (panel,) = figure.panels
    points = [mark for mark in panel.marks if mark.label == "Bank" and mark.kind == "points"]
    assert [mark.x for mark in points] == [[100.0, 1000.0]]
    assert all(half > 0 for half in points[0].half_y)
    assert panel.x.is_log
    assert panel.y.is_log


def test_rates_are_differences_of_excess_over_time_and_optimum():
    found = example_comparison()
    (panel,) = rate_figure(found).panels
    (line,) = [mark for mark in panel.marks if mark.label == "Nominal"]
    cell = next(each for each in found.cells if (each.method, each.horizon) == ("nominal", 1000))
    assert line.y[-1] == pytest.approx(100 * (cell.growth[-1] - cell.growth[-2]) / (700 * 2.0))


def test_methods_that_never_switch_have_no_mark_on_a_logarithmic_axis():
    switches, seconds = effort_figure(example_comparison()).panels
    assert [mark.x for mark in switches.marks if mark.label == "Nominal"] == [[]]
    assert [mark.x for mark in seconds.marks if mark.label == "Nominal"] == [pytest.approx([2.0])]


def test_the_page_is_one_file_that_escapes_all_texts(tmp_path):
    page = write(example_comparison(family=EVIL, about=EVIL), tmp_path)
    text = page.read_text()
    assert page.name == PAGE
    assert EVIL not in text
    assert "it needs more" in text
    panels = json.loads(re.search(r'id="panels">(.*?)</script>', text, re.DOTALL)[1])
    assert len(panels) == 4


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: `make browser` installs it")
@pytest.mark.parametrize("width", [390, 1400])
def test_a_browser_draws_every_panel_within_the_window(tmp_path, width):
    (tmp_path / PAGE).write_text(render(example_comparison()), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        heard = []
        page.on("console", lambda message: heard.append(message.text))
        page.goto((tmp_path / PAGE).as_uri())
        assert page.locator("[data-panel] .plot-container").count() == 4
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert heard == []
        browser.close()
