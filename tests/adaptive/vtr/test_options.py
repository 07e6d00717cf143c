import every_policy
import pytest

import lqgap as lg
from lqgap.adaptive import VTROptions


@pytest.mark.usefixtures("as_users_run_it")
def test_options_that_do_not_exist_are_named():
    with pytest.raises(lg.InvalidArgumentError, match="confidence"):
        VTROptions(confidence="hope")
    with pytest.raises(lg.InvalidArgumentError, match="selection is 'best', expected one of 'likelihood'"):
        VTROptions(selection="best")
    with pytest.raises(lg.InvalidArgumentError, match="options is a str, expected an lqgap"):
        lg.adaptive.calibrate(every_policy.PLANTS[0], options="paper")


def test_the_paper_is_a_preset():
    paper = VTROptions.as_in_the_paper(history="full")
    assert (paper.confidence, paper.plan, paper.alarm) == ("targets", "optimistic", "ball")
    assert (paper.selection, paper.history) == ("balanced", "full")
