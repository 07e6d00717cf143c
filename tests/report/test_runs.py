from itertools import accumulate

import pytest
from example_record import example_record

from lqgap.report.figure import Rule
from lqgap.report.runs import adaptation_figures, describe_plant, trajectory_figures


def test_the_cost_of_all_methods_is_accumulated():
    record = example_record()
    figures = trajectory_figures(record, record.trajectories)
    assert len(figures) == 2
    cost = figures[0].panels[0]
    runs = {record.method(run.method).label: run for run in record.trajectories if run.plant == "real 1"}
    assert {mark.label for mark in cost.marks} == runs.keys()
    for mark in cost.marks:
        assert list(mark.y) == list(accumulate(runs[mark.label].cost))
    assert cost.marks[-1].label == "Robust training"


def test_signals_are_those_of_the_recommended_method_and_of_the_reference():
    record = example_record()
    _, inputs, outputs = trajectory_figures(record, record.trajectories)[0].panels
    assert inputs.y.label == "Input"
    assert outputs.y.label == "Output"
    for panel, name in ((inputs, "u"), (outputs, "y")):
        assert [mark.label for mark in panel.marks] == ["LQG that knows the truth", "Robust training"]
        [run] = [run for run in record.trajectories if (run.method, run.plant) == ("robust", "real 1")]
        assert list(panel.marks[-1].y) == [value for [value] in getattr(run, name)]


def test_several_inputs_are_numbered():
    record = example_record()
    runs = [run.model_copy(update={"u": [[*step, 0.0] for step in run.u]}) for run in record.trajectories]
    labels = [panel.y.label for panel in trajectory_figures(record, runs)[0].panels]
    assert labels == ["Accumulated cost", "Input 1", "Input 2", "Output"]


def test_a_plant_outside_of_the_family_is_called_so():
    record = example_record()
    runs = [run.model_copy(update={"plant": "worn spring"}) for run in record.trajectories]
    assert "outside the family" in trajectory_figures(record, runs)[0].caption
    assert describe_plant(record.real[-1]) == "worn spring"


def test_adaptation_shows_regret_models_and_switches():
    record = example_record()
    [run], [figure] = record.adaptations, adaptation_figures(record, record.adaptations)
    regret, models = figure.panels
    assert list(regret.marks[-1].y) == run.regret
    assert list(models.marks[-1].y) == run.set_size
    assert [mark.value for mark in regret.marks if isinstance(mark, Rule)] == pytest.approx(run.switches)
    assert models.marks[-1].hover[4] == "step 40, 22 models left, acting on stiffness 0.7, gain 3"


def test_a_learner_without_sets_of_members_is_shown_with_its_own_figures():
    record = example_record()
    size = len(record.adaptations[0].times)
    bare = {"set_size": None, "model": None, "switches": [], "figures": {"step size": [0.5] * size}}
    [figure] = adaptation_figures(record, [record.adaptations[0].model_copy(update=bare)])
    assert [panel.y.label for panel in figure.panels] == ["Regret", "Step size"]
    assert list(figure.panels[1].marks[-1].y) == [0.5] * size
    assert figure.panels[0].marks[-1].hover[1] == "step 10"
    assert "model acted on" not in figure.caption
