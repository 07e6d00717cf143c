from example_record import example_record

from lqgap.experiments.record import Margin, Signals
from lqgap.report.answer import answer
from lqgap.report.gaps import gap_against_horizon, gap_by_method
from lqgap.report.page import render
from lqgap.report.runs import adaptation_figures, trajectory_figures
from lqgap.report.signals import explain_limits, show_margin, show_steps, signal_rows

SERVO = Signals(
    dt=0.01,
    inputs=["voltage [V]"],
    outputs=["angle [rad]"],
    limits=[[-24.0, 24.0]],
    rate_limits=[500.0],
    u0=[2.0],
    y0=[0.5],
)


def test_time_is_in_seconds_where_a_step_is_known():
    plain, timed = example_record(), example_record(signals=SERVO)
    for figures_fn, part in ((trajectory_figures, "trajectories"), (adaptation_figures, "adaptations")):
        steps, times = (figures_fn(record, getattr(record, part))[0].panels[0] for record in (plain, timed))
        assert (steps.x.label, times.x.label) == ("Step", "Time (s)")
        assert [0.01 * x for x in steps.marks[-1].x] == list(times.marks[-1].x)
    steps, times = (gap_against_horizon(record, record.horizons).panels[0] for record in (plain, timed))
    assert (steps.x.label, times.x.label) == ("Horizon (steps)", "Horizon (s)")
    assert [0.01 * x for x in steps.marks[0].x] == list(times.marks[0].x)
    assert gap_by_method(timed, timed.gaps).panels[0].x.label.endswith("over 200 steps (2.00 s)")
    assert (show_steps(plain, 7), show_steps(timed, 7)) == ("7 steps", "7 steps (0.0700 s)")


def test_signals_have_their_names_and_inputs_their_limits():
    record = example_record(signals=SERVO)
    _, inputs, outputs = trajectory_figures(record, record.trajectories)[0].panels
    assert (inputs.y.label, outputs.y.label) == ("voltage [V]", "angle [rad]")
    assert [mark.value for mark in inputs.marks if mark.label == "limit"] == [-24, 24]
    assert not [mark for mark in outputs.marks if mark.label == "limit"]
    assert signal_rows(record) == [
        ["voltage [V]", "−24.0", "24.0", "500", "2.00"],
        ["angle [rad]", "–", "–", "–", "0.500"],
    ]
    page = render(record)
    assert "operating_point=(u0, y0)" in page
    assert "angle [rad]" in page


def test_the_answer_says_how_inputs_are_limited():
    said = "(voltage [V] from -24 to 24, changing by at most 500 per s)"
    assert said in answer(example_record(signals=SERVO)).text
    assert explain_limits(example_record()) == ""
    two = explain_limits(example_record(signals=Signals(limits=[[0.0, 1.0], [0.0, 2.0]])))
    assert "(Input 1 from 0 to 1; Input 2 from 0 to 2)" in two


def test_a_delay_margin_is_also_a_time_where_a_step_has_one():
    timed = example_record(signals=SERVO)
    delay, phase = Margin(kind="delay", value=3.0, plant=""), Margin(kind="phase", value=3.0, plant="")
    endless = Margin(kind="delay", value=float("inf"), plant="")
    assert show_margin(timed, delay) == "3.00 (0.0300 s)"
    assert show_margin(example_record(), delay) == show_margin(timed, phase) == "3.00"
    assert show_margin(timed, endless) == "∞"
