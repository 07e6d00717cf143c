import math

import pytest
from example_record import example_record, heavy, measured

from lqgap.experiments.record import HorizonStudy
from lqgap.report.figure import Points, Rule
from lqgap.report.gaps import bracket_bar, gap_against_horizon, gap_by_method, gap_by_plant


def with_gap(record, method, **changes):
    """The same record, but for the gaps of one method."""
    methods = [
        gaps.model_copy(update=changes) if gaps.method == method else gaps for gaps in record.gaps.methods
    ]
    return record.model_copy(update={"gaps": record.gaps.model_copy(update={"methods": methods})})


def test_every_number_of_a_method_is_in_its_row():
    record = example_record()
    figure = gap_by_method(record, record.gaps)
    [panel] = figure.panels
    rows = {label: place for place, label in panel.y.ticks}
    for gaps in record.gaps.methods:
        place = rows[record.method(gaps.method).label]
        marks = [mark for mark in panel.marks if isinstance(mark, Points) and place in mark.y]
        drawn = [x for mark in marks for x in mark.x]
        expected = [gaps.real_mean, gaps.real_worst, gaps.box_worst, *gaps.real]
        assert sorted(drawn) == sorted(e.mean if e.has_interval else e.median for e in expected)
    [rule] = [mark for mark in panel.marks if isinstance(mark, Rule)]
    assert rule.value == record.bracket.lower


def test_the_bound_of_another_horizon_is_not_drawn_among_gaps():
    record = example_record()
    other = record.model_copy(update={"bracket": record.bracket.model_copy(update={"horizon": 50})})
    [panel] = gap_by_method(other, other.gaps).panels
    assert not [mark for mark in panel.marks if isinstance(mark, Rule)]


def test_rows_that_a_logarithmic_axis_cannot_show_are_named():
    record = example_record()
    worst = measured(1e5, 10.0)
    record = with_gap(record, "nominal", box_worst=worst)
    figure = gap_by_method(record, record.gaps)
    [panel] = figure.panels
    assert panel.x.is_log
    assert "LQG that knows the truth" not in [label for _, label in panel.y.ticks]
    assert "LQG that knows the truth (0)" in figure.caption


@pytest.mark.parametrize("value", [1e9, math.inf])
def test_a_hopeless_controller_is_an_arrow_at_the_edge(value):
    record = example_record()
    lost = measured(value, value)
    record = with_gap(record, "nominal", box_worst=lost, real_worst=lost, real=[lost] * len(record.real))
    figure = gap_by_method(record, record.gaps)
    [panel] = figure.panels
    end = 5000  # the next round number beyond a hundred times the worst gap of robust training
    arrows = [
        mark for mark in panel.marks if isinstance(mark, Points) and mark.style.symbol == "triangle-right"
    ]
    assert len(arrows) == 2 + len(record.real)
    assert all(arrow.x == [end] for arrow in arrows)
    assert "Arrows are gaps beyond 5000: LQG of the nominal plant." in figure.caption
    assert panel.x.high > end


def test_a_hopeless_controller_leaves_the_other_figures_at_the_top():
    record = example_record()
    real = [measured(1e9, 1.0)] * len(record.real)
    record = with_gap(record, "nominal", real=real)
    figure = gap_by_plant(record, record.gaps)
    [robust] = [mark for mark in figure.panels[0].marks if mark.label == "Robust training"]
    assert figure.panels[0].y.high == 2000 > 100 * max(robust.y)
    assert "LQG of the nominal plant" in figure.caption
    series = [
        each.model_copy(update={"values": [measured(1e30, 0.0)] * len(each.values)})
        if each.method == "nominal"
        else each
        for each in record.horizons.series
    ]
    figure = gap_against_horizon(record, HorizonStudy(series=series))
    assert figure.panels[0].y.high == 5000 > 100 * max(value.mean for value in series[0].values)
    assert figure.caption.endswith(": LQG of the nominal plant.")


def test_plants_are_in_the_order_of_the_recommended_method():
    record = example_record()
    [panel] = gap_by_plant(record, record.gaps).panels
    [robust] = [mark for mark in panel.marks if mark.label == "Robust training"]
    assert list(robust.y) == sorted(robust.y)
    assert sorted(label for _, label in panel.x.ticks) == sorted(plant.name for plant in record.real)
    assert "LQG that knows the truth" not in [mark.label for mark in panel.marks]


def test_gaps_against_the_horizon_are_on_logarithmic_axes_with_their_intervals():
    record = example_record()
    [panel] = gap_against_horizon(record, record.horizons).panels
    assert panel.x.is_log
    assert panel.y.is_log
    for mark, series in zip(panel.marks, record.horizons.series, strict=True):
        assert list(mark.x) == series.horizons
        assert mark.style.is_dashed == (series.kind != "worst gap")
        if mark.is_upward:
            continue
        assert list(mark.y) == [value.mean for value in series.values]
        assert mark.half_y == pytest.approx([2 * value.stderr for value in series.values])


def test_runs_without_a_mean_are_drawn_from_the_median_to_nine_in_ten_by_an_open_mark():
    record = example_record()
    figures = {
        "methods": gap_by_method(record, record.gaps),
        "plants": gap_by_plant(record, record.gaps),
        "horizons": gap_against_horizon(record, record.horizons),
    }
    for name, figure in figures.items():
        ranges = [mark for mark in figure.panels[0].marks if isinstance(mark, Points) and mark.is_upward]
        assert ranges, name
        assert all(mark.is_open for mark in ranges), name
        assert any("no mean can be given" in key.label for key in figure.legend), name
    [runs] = [mark for mark in figures["horizons"].panels[0].marks if getattr(mark, "is_upward", False)]
    [series] = [each for each in record.horizons.series if each.method == "vtr"]
    assert list(runs.y) == [value.median for value in series.values]
    tops = [median + half for median, half in zip(runs.y, runs.half_y, strict=True)]
    assert tops == pytest.approx([value.most for value in series.values])


def test_a_line_never_mixes_means_and_medians():
    record = example_record()
    [series] = [each for each in record.horizons.series if each.method == "robust"]
    mixed = [value.model_copy(update={"median": 1.0, "most": 2.0}) for value in series.values]
    mixed[-1] = heavy(1.0)
    mixed = series.model_copy(update={"values": mixed})
    [mark] = gap_against_horizon(record, HorizonStudy(series=[mixed])).panels[0].marks
    assert list(mark.y) == [1.0] * (len(mixed.values) - 1) + [0.5]


def test_the_bracket_spans_what_is_possible():
    record = example_record()
    out_of_reach, bracket, worst = bracket_bar(record).panels[0].marks
    assert (out_of_reach.low, out_of_reach.high) == (0, record.bracket.lower)
    assert (bracket.low, bracket.high) == (record.bracket.lower, record.bracket.upper)
    assert worst.x == [record.bracket.worst.mean]


@pytest.mark.parametrize("over", ["ranges", "class"])
def test_figures_of_a_bound_say_what_it_is_over_and_nothing_of_the_other(over):
    record = example_record()
    bracket = record.bracket.model_copy(update={"over": over})
    horizons = record.horizons.model_copy(update={"over": over})
    record = record.model_copy(update={"bracket": bracket, "horizons": horizons})
    figures = (bracket_bar(record), gap_against_horizon(record, horizons))
    [bound] = [key.label for key in gap_by_method(record, record.gaps).legend if key.is_line]
    words = {"ranges": "ranges", "class": "simulators"}
    other = next(word for name, word in words.items() if name != over)
    for text in (bound, *(figure.caption for figure in figures), figures[0].panels[0].x.label):
        assert words[over] in text
        assert other not in text


@pytest.mark.parametrize("upper", [math.inf, None])
def test_without_an_upper_end_there_is_no_bar(upper):
    record = example_record()
    bracket = record.bracket.model_copy(update={"upper": upper}) if upper else None
    assert bracket_bar(record.model_copy(update={"bracket": bracket})) is None
