import numpy as np
from rich.console import Console

import lqgap as lg
from lqgap.simulators.audit.uninformative import describe, find_uninformative
from lqgap.systems.separation import excess_rates


def everyone(members):
    return np.arange(len(members))


def test_the_controller_that_never_uses_an_actuator_is_named_with_what_it_loses():
    members = lg.plants.spare_actuator().grid(3)
    (found,) = find_uninformative(members, everyone(members))
    assert found.controller == 0
    assert set(found.members) == {1, 2}
    excess = excess_rates(members.systems, members.optima())
    np.testing.assert_allclose(found.excess, excess[0].max())
    np.testing.assert_allclose(found.excess, 0.221, atol=5e-4)  # a step, by a simulation of 3000 steps
    (line,) = describe(members, (found,))
    assert "spare = 0 cannot tell" in line
    assert "spare = 0.5" in line
    assert "7.2%" in line
    assert 'probe = "off"' in line


def test_nothing_is_said_of_classes_whose_noise_tells_members_apart():
    for family in (lg.plants.unknown_sign(), lg.plants.dc_motor(), lg.plants.mass_spring_damper()):
        members = family.grid(3)
        assert find_uninformative(members, everyone(members)) == ()


def test_members_that_are_the_same_plant_leave_nothing_at_stake():
    members = lg.Finite([lg.LQG([[0.9]], [[1.0]], [[1.0]])] * 2)
    assert find_uninformative(members, everyone(members)) == ()


def test_members_without_an_optimum_are_left_out_and_numbers_are_those_of_the_class():
    plants = [lg.LQG([[2.0]], [[0.0, 0.0]], [[1.0]])]
    plants += [lg.LQG([[0.9]], [[0.6, spare]], [[1.0]]) for spare in (0.0, 0.5)]
    audit = lg.check_assumptions(lg.Finite(plants))
    (found,) = audit.uninformative
    assert (found.controller, found.members) == (1, (2,))
    assert len(audit.remarks()) == 1
    assert '"controller": 1' in audit.to_json()


def test_of_many_controllers_the_worst_are_named_and_the_others_counted():
    members = lg.plants.spare_actuator(spare=[0.0, 1e-4, -1e-4, 2e-4, 0.5]).grid(5)
    lines = describe(members, find_uninformative(members, everyone(members)))
    assert len(lines) == 4
    assert lines[-1].startswith("1 more controllers")


def test_the_audit_of_a_class_says_it_under_its_table(capsys):
    Console(width=200).print(lg.check_assumptions(lg.plants.spare_actuator().grid(3)))
    assert "Note: the controller for spare = 0 cannot tell" in capsys.readouterr().out
