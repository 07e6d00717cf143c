import html
import html.parser
import json
import math
import re
import sys
from itertools import pairwise

import pydantic
import pytest
from damaged_records import damaged_records
from example_record import EVIL, SIGNALS, example_record, hostile_record

from lqgap.errors import LqgapError
from lqgap.experiments.record import BoundRow, LeftOut, Record
from lqgap.report.page import FOLDER, describe_panel, figures_by_section, render, series_of, write

OPTIONAL = ("audit", "gaps", "horizons", "heat_map", "bracket", "trajectories", "adaptations", "bounds")


class Outline(html.parser.HTMLParser):
    """Tags, attributes, text and the text of elements by their id."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag

    def handle_endtag(self, tag):
        del tag
        self.inside = None

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.words.append(data)


def panels_of(page):
    return json.loads(re.search(r'<script type="application/json" id="panels">(.*?)</script>', page, re.S)[1])


def test_a_page_says_what_the_record_holds():
    record = example_record()
    words = " ".join(Outline(render(record)).words)
    for expected in (
        "Use",
        "Robust training",
        "21.0 ± 0.3",
        "a … b: in half of the runs",
        "0.4 % diverge",
        "worn spring is outside of the family",
        "Seed 0",
        "jax 0.10.2",
        "3.10·10¹⁷",
        "vacuous",
        "cost of zero input",
        "how slowly any controller learns the parameters",
        "a controller that probes may learn faster",
        "on the simulators alone a controller may do better",
        "warm-up ends",
        "policies/robust.safetensors",
        'family = "mass_spring_damper"',
    ):
        assert expected in words, expected


def test_the_bracket_of_a_finite_class_says_nothing_of_ranges():
    record = example_record()
    bracket = {
        "over": "class",
        "bounds_class": True,
        "num_members": 25,
        "kind": "two-point",
        "set_by": ["gain 1", "gain 5"],
    }
    record = record.model_copy(update={"bracket": record.bracket.model_copy(update=bracket)})
    section = re.search(r'<h2 id="bracket".*?</section>', render(record), re.S)[0]
    words = " ".join(Outline(section).words)
    assert "Over the 25 simulators of the class" in words
    assert "two members that take time to tell apart" in words
    assert "range" not in words
    assert "search" not in words


def test_hostile_names_stay_text():
    page, plain_page = render(hostile_record()), render(example_record(signals=SIGNALS))
    outline = Outline(page)
    assert outline.tags == Outline(plain_page).tags
    assert not [name for name, _ in outline.attributes if name.startswith("on")]
    assert EVIL + "Robust training" in "".join(outline.words)
    assert EVIL + "voltage [V]" in "".join(outline.words)
    assert panels_of(page).keys() == panels_of(plain_page).keys()
    assert "<script" not in json.dumps(panels_of(page))


def test_nothing_outside_of_the_page_is_named_and_no_style_is_inline():
    attributes = Outline(render(hostile_record())).attributes
    links = [
        value for name, value in attributes if name in ("src", "href", "action", "data", "srcset", "poster")
    ]
    assert links
    assert all(link.startswith(("#", "data:,")) for link in links)
    assert "style" not in [name for name, _ in attributes]


def test_the_policy_admits_nothing_but_hashes():
    page = render(example_record())
    policy = re.search(r'Security-Policy" content="([^"]*)"', page)[1]
    policy = policy.replace("&#39;", "'")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-\S{43}=' 'sha256-\S{43}='", rules["script-src"])
    assert re.fullmatch(r"'sha256-\S{43}='", rules["style-src"])
    assert "unsafe" not in policy


@pytest.mark.parametrize("part", OPTIONAL)
def test_a_part_that_is_absent_leaves_out_its_section(part):
    sections = {"gaps": "gaps", "heat_map": "maps", "trajectories": "runs", "adaptations": "adaptation"}
    name = sections.get(part, part)
    assert f'<h2 id="{name}">' in render(example_record())
    page = render(example_record(**{part: None}))
    assert f'<h2 id="{name}">' not in page
    assert f'href="#{name}"' not in page


def test_a_record_of_nothing_is_a_page():
    nothing = dict.fromkeys(OPTIONAL)
    page = render(
        example_record(
            **nothing,
            responses=[],
            recommended=None,
            methods=[],
            real=[],
            parameters=[],
            warnings=[],
            timings={},
        )
    )
    assert "No controller is recommended" in page
    assert panels_of(page) == {}


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_record_is_shown_or_refused(seed):
    refused = 0
    for text, what in damaged_records(20, seed=seed):
        try:
            record = Record.model_validate_json(text)
        except pydantic.ValidationError:
            refused += 1
            continue
        try:
            render(record)
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
    assert 0 < refused < 20


def test_headings_are_in_order_and_links_lead_somewhere():
    page = render(example_record())
    levels = [int(tag[1]) for tag in Outline(page).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    attributes = Outline(page).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {value[1:] for name, value in attributes if name == "href" and value.startswith("#")} <= set(ids)


def test_every_panel_has_its_place_and_is_described():
    record = example_record()
    page = render(record)
    assert sorted(re.findall(r'data-panel="([^"]*)"', page)) == sorted(panels_of(page))
    [figure] = figures_by_section(record)["horizons"]
    assert "certified lower bound" in describe_panel(figure, figure.panels[0])
    assert series_of(figure) == {series.label for series in record.horizons.series}


def test_a_page_is_the_same_each_time_and_not_large():
    page = render(example_record())
    assert page == render(example_record())
    assert len(page) < 1.6e6


def test_the_bundle_is_the_one_that_it_says_with_its_licence():
    assert "plotly.js (basic - minified) v4.1.1" in (FOLDER / "plotly-basic.min.js").read_text()[:100]
    assert "MIT License" in (FOLDER / "plotly-LICENSE").read_text()


def test_a_page_follows_no_link_and_is_written_whole(tmp_path):
    (tmp_path / "elsewhere").write_text("untouched")
    (tmp_path / "report.html").symlink_to(tmp_path / "elsewhere")
    assert write(example_record(num_plants=3, horizon=5), tmp_path) == [tmp_path / "report.html"]
    assert (tmp_path / "elsewhere").read_text() == "untouched"
    assert not (tmp_path / "report.html").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_figures_without_matplotlib_say_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lqgap.report.static", None)
    with pytest.raises(LqgapError, match=r"lqgap\[figures\]"):
        write(example_record(), tmp_path, figures=True)
    assert (tmp_path / "report.html").exists()


def test_bounds_that_are_all_infinite_are_a_sentence_with_the_reason():
    record = example_record()
    rows = [
        BoundRow(name=name, printed=math.inf, corrected=math.inf, actual=None) for name in ("regret", "gap")
    ]
    sheet = record.bounds.model_copy(update={"rows": [*rows, *record.bounds.rows[1:]]})
    failed = record.audit.conditions[1].model_copy(update={"repaired": False})
    audit = record.audit.model_copy(update={"conditions": [record.audit.conditions[0], failed]})
    page = render(record.model_copy(update={"bounds": sheet, "audit": audit}))
    assert f"does not satisfy: {html.escape(failed.statement)}." in page
    assert "cost of zero input" not in page
    assert "cost of zero input" in render(record)


def test_methods_that_are_unfit_or_left_out_are_named_with_their_reasons():
    record = example_record(left_out=[LeftOut(name="linear", label="Linear", reason="there is none")])
    unfit = record.methods[0].model_copy(update={"unfit": "it diverges at gain = 1"})
    page = render(record.model_copy(update={"methods": [unfit, *record.methods[1:]]}))
    assert f"{unfit.label} is unfit: it diverges at gain = 1." in page
    assert "Linear is left out: there is none." in page


def test_margins_of_linear_methods_are_a_table_and_without_them_there_is_none():
    record = example_record()
    page = render(record)
    assert "34.5" in page
    assert 'id="margins"' in page
    without = [method.model_copy(update={"margins": []}) for method in record.methods]
    assert 'id="margins"' not in render(record.model_copy(update={"methods": without}))


def test_training_that_brought_nothing_is_said():
    record = example_record()
    methods = [m.model_copy(update={"has_improved": m.name != "robust"}) for m in record.methods]
    said = "Robust training: training did not improve on the start."
    assert said in render(record.model_copy(update={"methods": methods}))
    assert said not in render(record)
