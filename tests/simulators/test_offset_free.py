import equinox as eqx
import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import ModelBank
from lqgap.systems import velocity_form


def test_families_classes_batches_and_plants_are_changed_alike():
    family = lg.plants.mass_spring_damper()
    options = dict(load=1.0, drift=0.1)
    changed = lg.offset_free(family, **options)
    assert changed.names == family.names
    assert changed.is_traceable
    grid, expected = changed.grid(2), [velocity_form(plant, **options) for plant in family.grid(2)]
    for members in (
        grid,
        lg.offset_free(family.grid(2), **options),
        lg.Finite(lg.offset_free(family.grid(2).systems, **options)),
    ):
        for plant, same in zip(members, expected, strict=True):
            for name, matrix in plant.matrices().items():
                np.testing.assert_allclose(matrix, getattr(same, name), atol=1e-12)
    assert lg.offset_free(family.grid(2), **options).names == family.names
    assert eqx.tree_equal(
        lg.offset_free(family.nominal(), **options), velocity_form(family.nominal(), **options)
    )


def test_what_is_returned_is_an_ordinary_family():
    family = lg.offset_free(lg.plants.mass_spring_damper(), load=1.0, drift=0.1, R=[[10.0]])
    sample = family.sample(2, key=jax.random.key(0))
    found = lg.gap(ModelBank(sample.systems), sample, horizon=3, key=jax.random.key(1), num_rollouts=4)
    assert np.all(np.isfinite(found.mean))
    assert float(sample[0].R[0, 0]) == 10.0


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_plant_is_refused():
    with pytest.raises(lg.InvalidArgumentError, match="plants is a str"):
        lg.offset_free("servo", load=1.0, drift=0.1)
