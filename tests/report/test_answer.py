import math

from example_record import example_record, measured

from lqgap.report.answer import REMEDY, answer
from lqgap.report.numbers import show_estimate


def sentence(record):
    return answer(record).text


def with_method(record, name, **changes):
    methods = [m.model_copy(update=changes if m.name == name else {}) for m in record.methods]
    return record.model_copy(update={"methods": methods})


def test_the_answer_names_the_controller_its_gap_and_what_is_possible():
    assert sentence(example_record()) == (
        "Use Robust training. In the worst case found, it costs 21.0 ± 0.3 more over 200 steps than a "
        "controller that knows the plant exactly, and no controller that must learn the plant from its "
        "outputs can guarantee less than 9.40 over the ranges."
    )


def test_a_real_plant_worse_than_all_that_was_searched_is_the_worst_case():
    record = example_record()
    worst = measured(99.0, 1.0)
    methods = [gaps.model_copy(update={"real_worst": worst}) for gaps in record.gaps.methods]
    record = record.model_copy(update={"gaps": record.gaps.model_copy(update={"methods": methods})})
    assert "On the worst real plant, it costs 99 ± 2 more" in sentence(record)
    worst = measured(21.2, 1.0)  # within its error it is no larger than the 21.0 ± 0.3 in the ranges
    methods = [gaps.model_copy(update={"real_worst": worst}) for gaps in record.gaps.methods]
    record = record.model_copy(update={"gaps": record.gaps.model_copy(update={"methods": methods})})
    assert "In the worst case found, it costs 21.0 ± 0.3 more" in sentence(record)


def test_what_costs_more_later_on_is_said():
    record = example_record()
    for later, said in ((99.0, True), (2.0, False), (21.2, False)):  # the worst is 21.0 ± 0.3
        methods = [
            gaps.model_copy(update={"later_worst": measured(later, 1.0)}) for gaps in record.gaps.methods
        ]
        changed = record.model_copy(update={"gaps": record.gaps.model_copy(update={"methods": methods})})
        assert (f"Later on it costs up to {later:.1f} more in every 200 steps" in sentence(changed)) == said


def test_without_ranges_a_simulator_worse_than_all_real_plants_is_the_worst_case():
    record = example_record()
    methods = [gaps.model_copy(update={"box_worst": None}) for gaps in record.gaps.methods]
    record = record.model_copy(update={"gaps": record.gaps.model_copy(update={"methods": methods})})
    assert "On the worst simulator, it costs 19.6 ± 0.3 more" in sentence(record)


def test_without_a_bound_nothing_is_said_of_other_controllers():
    record = example_record(bracket=None)
    assert sentence(record).endswith("that knows the plant exactly.")
    assert not any("Best possible" in fact.label for fact in answer(record).facts)


def test_a_bound_over_another_horizon_says_so():
    record = example_record()
    bracket = record.bracket.model_copy(update={"horizon": 50})
    assert sentence(record.model_copy(update={"bracket": bracket})).endswith(
        "less than 9.40 over the ranges in 50 steps."
    )


def test_a_bound_of_zero_promises_nothing():
    record = example_record()
    bracket = record.bracket.model_copy(update={"lower": 0.0, "factor": math.inf})
    found = answer(record.model_copy(update={"bracket": bracket}))
    assert "no controller" not in found.rest
    assert "says nothing" in found.facts[-1].remark


def test_a_bound_beside_a_gap_without_a_mean_still_says_what_it_says():
    record = example_record()
    bracket = record.bracket.model_copy(update={"upper": math.inf, "factor": math.inf})
    found = answer(record.model_copy(update={"bracket": bracket}))
    assert "can guarantee less than 9.40" in found.rest
    assert "says nothing" not in found.facts[-1].remark
    assert "not known" in found.facts[-1].remark


def test_before_gaps_are_measured_nothing_is_recommended():
    assert "not measured" in sentence(example_record(gaps=None))
    assert "not measured" not in sentence(example_record())


def test_without_a_method_that_holds_every_reason_and_a_remedy_are_given():
    record = with_method(example_record(recommended=None), "bank", unfit="it diverges at gain = 1")
    text = sentence(with_method(record, "robust", unfit="it diverges at gain = 2"))
    assert text.startswith("No controller is fit for all plants that were tried. ")
    assert "Untrained bank: it diverges at gain = 1; Robust training: it diverges at gain = 2." in text
    assert text.endswith(REMEDY)
    assert "LQG-VTR holds, but has no policy file" in sentence(record.model_copy(update={"better": "vtr"}))
    assert "none to choose from" in sentence(example_record(recommended=None))


def test_equals_and_a_better_method_without_a_file_are_named():
    record = example_record(recommended="bank", equals=["robust", "randomized"], better="vtr")
    [vtr] = [gaps for gaps in record.gaps.methods if gaps.method == "vtr"]
    text = sentence(record)
    assert "Robust training and Randomised training are equal to it within what was measured" in text
    assert text.endswith(f"LQG-VTR did better ({show_estimate(vtr.box_worst)}), but has no policy file.")


def test_the_bracket_says_what_it_is_over_beside_the_gap_of_the_method_there():
    record = example_record()
    fact = answer(record).facts[-1]
    assert fact.label == "Best possible worst gap over the ranges"
    assert fact.remark.startswith(
        "Robust training: 21.0 ± 0.3, the largest found there, is at most 2.3 times"
    )
    bracket = record.bracket.model_copy(update={"over": "class", "num_members": 25})
    found = answer(record.model_copy(update={"bracket": bracket}))
    assert found.facts[-1].label == "Best possible worst gap over the 25 simulators"
    assert "21.0 ± 0.3, over the same simulators, is at most" in found.facts[-1].remark
    assert found.rest.endswith("can guarantee less than 9.40 over the 25 simulators.")


def test_facts_give_the_worst_plant_as_a_share_of_its_optimal_cost():
    record = example_record()
    facts = answer(record).facts
    [robust] = [gaps for gaps in record.gaps.methods if gaps.method == "robust"]
    index = max(range(len(record.real)), key=lambda index: robust.real[index].mean)
    share = 100 * robust.real[index].mean / record.real[index].optimal_cost
    assert record.real[index].name in facts[0].remark
    assert f"{share:.1f} % of its optimal cost" in facts[0].remark
    assert facts[2].remark == "at stiffness 0.520, gain 4.90"
