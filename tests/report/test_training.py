from example_record import example_record

from lqgap.report.training import training_curves


def test_steps_of_training_go_on_through_the_stages():
    record = example_record()
    worst, mean = training_curves(record).panels
    steps = list(worst.marks[0].x)
    assert steps == sorted(steps)
    assert steps[-1] > max(look.step for look in record.method("robust").history)
    assert [mark.label for mark in mean.marks] == ["Robust training", "Randomised training"]


def test_without_training_there_are_no_curves():
    record = example_record()
    methods = [method.model_copy(update={"history": []}) for method in record.methods]
    assert training_curves(record.model_copy(update={"methods": methods})) is None
