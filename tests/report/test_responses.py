from example_record import example_record

from lqgap.experiments.record import Signals
from lqgap.report.page import render
from lqgap.report.responses import response_figures, response_table


def test_the_recommended_method_is_shown_beside_the_nominal_one_with_set_point_and_limits():
    signals = Signals(dt=0.1, inputs=["voltage [V]"], outputs=["angle [rad]"], limits=[[-9.0, 9.0]])
    record = example_record(signals=signals)
    figures = response_figures(record, record.responses)
    assert [figure.title for figure in figures] == ["Robust training", "LQG of the nominal plant"]
    angle, voltage = figures[0].panels
    assert (angle.y.label, voltage.y.label, angle.x.label) == ("angle [rad]", "voltage [V]", "Time (s)")
    set_point, *lines = angle.marks
    assert list(set_point.y) == [now for [now] in record.responses[1].reference]
    assert list(lines[0].y) == [now for [now] in record.responses[1].y[0]]
    assert set(lines[1].hover) == {"stiffness = 0.5, gain = 1"}
    assert [mark.value for mark in voltage.marks if mark.label == "limit"] == [-9, 9]


def test_a_line_that_leaves_the_picture_is_cut_and_counted():
    """The second plant goes to 5, 10, ...: beyond three times the step of one."""
    record = example_record()
    figure = response_figures(record, record.responses)[0]
    assert [len(mark.x) for mark in figure.panels[0].marks] == [30, 30, 1]
    assert "1 of 2 leave the picture" in figure.caption


def test_the_table_has_shares_of_the_step_times_and_who_cannot_follow():
    record = example_record(signals=Signals(dt=0.1))
    table = response_table(record)
    assert [row["figures"][0][0] for row in table["rows"]] == ["30.0 %", "5.00 %"]
    assert [row["figures"][1][0] for row in table["rows"]] == ["never", "0.400 s"]
    assert "LQG-VTR" in table["missing"]
    assert "LQG that knows the truth" not in table["missing"]
    assert response_table(example_record(responses=[])) is None


def test_without_a_recommendation_or_responses_the_page_still_stands():
    record = example_record(recommended=None, bracket=None, responses=example_record().responses[1:])
    assert [figure.title for figure in response_figures(record, record.responses)] == ["Robust training"]
    assert "Step responses" in render(record)
    assert "Step responses" not in render(example_record(responses=[]))
