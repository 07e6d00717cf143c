import jax
import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY, grid

import lqgap
from lqgap.batches import take
from lqgap.interop.members import NUM_AHEAD, as_plants, read_family, read_fixed
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
def test_what_is_drawn_depends_on_its_generator_alone(name):
    members = read_family({"family": FAMILY, "class": grid(2)}[name])
    alone = members.draw(generators(7))[0]
    first, second = members.draw(generators(3, 7))
    np.testing.assert_array_equal(second.parameters, alone.parameters)
    assert not np.array_equal(first.parameters, alone.parameters)
    assert alone.parameters.shape == (NUM_AHEAD, 2)


def test_drawn_members_have_the_parameters_that_are_stated():
    drawn = read_family(FAMILY).draw(generators(0))[0]
    for position in (0, 5):
        plant = FAMILY.system(drawn.parameters[position])
        expected = as_plants(lqgap.stack([plant])).dynamics[0]
        np.testing.assert_allclose(drawn.plants.dynamics[position], expected, rtol=1e-12, atol=1e-14)
    assert np.all(drawn.members == -1)


def test_every_member_of_a_class_is_drawn_and_numbered():
    drawn = read_family(grid(2)).draw(generators(0))[0]
    assert set(drawn.members) == set(range(len(grid(2))))
    np.testing.assert_array_equal(drawn.parameters, np.asarray(grid(2).parameters)[drawn.members])


def test_a_name_a_batch_and_one_plant_are_read_too():
    assert read_family("mass_spring_damper").names == ("stiffness", "gain")
    assert read_family("mass_spring_damper")._family is read_family("mass_spring_damper")._family
    assert read_family(grid(2).systems).names == ()
    drawn = read_family(grid(2)[1]).draw(generators(0))[0]
    assert same(take(drawn.plants, [0]), as_plants(lqgap.stack([grid(2)[1]])))
    assert drawn.parameters.shape == (NUM_AHEAD, 0)


def test_a_fixed_member_is_the_only_one():
    by_number = read_fixed(read_family(grid(2)), {"member": 2})
    by_name = read_fixed(
        read_family(grid(2)), {"parameters": dict(zip(grid(2).names, grid(2).parameters[2], strict=True))}
    )
    in_family = read_fixed(read_family(FAMILY), {"parameters": {"stiffness": 4.0, "gain": 1.0}})
    assert same(by_number, by_name)
    np.testing.assert_array_equal(by_number.parameters, [[4.0, 1.0]])
    np.testing.assert_array_equal(in_family.parameters, [[4.0, 1.0]])
    np.testing.assert_allclose(in_family.plants.dynamics, by_number.plants.dynamics, rtol=1e-12)
    assert read_fixed(read_family(FAMILY), None) is None
    assert read_fixed(read_family(FAMILY), {}) is None


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
def test_a_fixed_member_that_fits_nothing_is_refused(name, options, message):
    family = {"family": FAMILY, "class": grid(2)}[name]
    with pytest.raises(lqgap.InvalidArgumentError, match=message):
        read_fixed(read_family(family), options)


def test_what_is_no_family_is_refused():
    with pytest.raises(lqgap.InvalidArgumentError, match="did you mean mass_spring_damper"):
        read_family("mass_spring_dumper")
    with pytest.raises(lqgap.InvalidArgumentError, match="family is a list"):
        read_family([grid(2)[0]])


def test_examples_of_a_large_class_are_few():
    large = Finite(jax.tree.map(lambda leaf: np.repeat(leaf, 100, axis=0), grid(2).systems))
    examples = read_family(large).examples()
    assert len(examples.A) == 64
    np.testing.assert_array_equal(examples.A[-1], grid(2)[3].A)
