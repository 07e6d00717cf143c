import jax
import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY, grid

import lqgap
from lqgap.interop.members import DECK_SIZE, as_plants, read_members, read_pin
from lqgap.simulators import Finite


def generators(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


def same(first, second):
    return all(np.array_equal(*pair) for pair in zip(*map(jax.tree.leaves, (first, second)), strict=True))


def test_plants_in_numpy_are_the_same_plants():
    plant = random_plant(0)
    plants = as_plants(lqgap.stack([plant]))
    np.testing.assert_array_equal(plants.dynamics[0], np.hstack([plant.A, plant.B]))
    np.testing.assert_array_equal(plants.cost[0], jax.scipy.linalg.block_diag(plant.Q, plant.R))
    for name in ("W", "V", "S0"):
        root = getattr(plants, f"{name}_root")[0]
        np.testing.assert_allclose(root @ root.T, getattr(plant, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["family", "class"])
def test_a_deck_depends_on_its_generator_alone(name):
    members = read_members({"family": FAMILY, "class": grid(2)}[name])
    alone = members.deal(generators(7), capacity=1)[0]
    first, second = members.deal(generators(3, 7), capacity=4)
    np.testing.assert_array_equal(second.parameters, alone.parameters)
    assert not np.array_equal(first.parameters, alone.parameters)
    assert alone.parameters.shape == (DECK_SIZE, 2)


def test_the_members_of_a_deck_have_the_parameters_it_says():
    deck = read_members(FAMILY).deal(generators(0), capacity=1)[0]
    for position in (0, 5):
        plant = FAMILY.system(deck.parameters[position])
        expected = as_plants(lqgap.stack([plant])).dynamics[0]
        np.testing.assert_allclose(deck.plants.dynamics[position], expected, rtol=1e-12, atol=1e-14)
    assert np.all(deck.members == -1)


def test_every_member_of_a_class_is_drawn_and_numbered():
    deck = read_members(grid(2)).deal(generators(0), capacity=1)[0]
    assert set(deck.members) == set(range(len(grid(2))))
    np.testing.assert_array_equal(deck.parameters, np.asarray(grid(2).parameters)[deck.members])


def test_a_name_a_batch_and_one_plant_are_read_too():
    assert read_members("mass_spring_damper").names == ("stiffness", "gain")
    assert read_members("mass_spring_damper")._family is read_members("mass_spring_damper")._family
    assert read_members(grid(2).systems).names == ()
    deck = read_members(grid(2)[1]).deal(generators(0), capacity=1)[0]
    assert same(deck.plants.take([0]), as_plants(lqgap.stack([grid(2)[1]])))
    assert deck.parameters.shape == (DECK_SIZE, 0)


def test_a_pin_holds_one_member():
    by_number = read_pin(read_members(grid(2)), {"member": 2})
    by_name = read_pin(
        read_members(grid(2)), {"parameters": dict(zip(grid(2).names, grid(2).parameters[2], strict=True))}
    )
    in_family = read_pin(read_members(FAMILY), {"parameters": {"stiffness": 4.0, "gain": 1.0}})
    assert same(by_number, by_name)
    np.testing.assert_array_equal(by_number.parameters, [[4.0, 1.0]])
    np.testing.assert_array_equal(in_family.parameters, [[4.0, 1.0]])
    np.testing.assert_allclose(in_family.plants.dynamics, by_number.plants.dynamics, rtol=1e-12)
    assert read_pin(read_members(FAMILY), None) is None
    assert read_pin(read_members(FAMILY), {}) is None


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("class", {"member": 4}, "expected one from 0 to 3"),
        ("class", {"member": 1.0}, "expected a whole number"),
        ("class", {"member": True}, "expected a whole number"),
        ("class", {"parameters": {"stifness": 1.0}}, "did you mean stiffness"),
        ("class", {"parameters": {"stiffness": 4.0}}, "2 of 4 members have them"),
        ("class", {"parameters": {"stiffness": 3.0, "gain": 1.0}}, "0 of 4 members have them"),
        ("class", {"parameters": {"stiffness": "hard"}}, "expected a number"),
        ("class", {"parameters": 4.0}, "expected a mapping"),
        ("family", {"member": 0}, "no numbered members: give parameters, a mapping with stiffness, gain"),
        ("family", {"parameters": {"stiffness": 9.0, "gain": 1.0}}, "outside of stiffness"),
        ("family", {"parameters": {"stiffness": 1.0}}, "one value for each"),
        ("family", {"parameter": {"stiffness": 1.0}}, "has 'parameter', expected 'member' or 'parameters'"),
        ("family", {"member": 0, "parameters": {}}, "both"),
        ("family", [3], "expected a mapping"),
    ],
)
def test_a_pin_that_fits_nothing_is_refused(name, options, message):
    family = {"family": FAMILY, "class": grid(2)}[name]
    with pytest.raises(lqgap.InvalidArgumentError, match=message):
        read_pin(read_members(family), options)


def test_what_is_no_family_is_refused():
    with pytest.raises(lqgap.InvalidArgumentError, match="did you mean mass_spring_damper"):
        read_members("mass_spring_dumper")
    with pytest.raises(lqgap.InvalidArgumentError, match="family is a list"):
        read_members([grid(2)[0]])


def test_examples_of_a_large_class_are_few():
    large = Finite(jax.tree.map(lambda leaf: np.repeat(leaf, 100, axis=0), grid(2).systems))
    examples = read_members(large).examples()
    assert len(examples.A) == 64
    np.testing.assert_array_equal(examples.A[-1], grid(2)[3].A)
