import numpy as np
import pytest
from springs import FAMILY
from ten_models import ten_models

from lqgap.errors import InvalidArgumentError
from lqgap.theory import constants
from lqgap.theory.constants.comparison import MEANING


@pytest.fixture(scope="module")
def sheets():
    members = ten_models()
    return [constants(members, horizon=H, C_w=100.0, certificate="predictor") for H in (1e4, 1e6)]


def test_what_depends_on_the_class_alone_is_that_of_the_reference_to_its_digits(sheets):
    columns = [sheet[f"corrected, {kind}"] for kind in ("uniform", "actual") for sheet in sheets]
    assert [round(column["Kbar"]) for column in columns] == [95, 155, 95, 155]
    assert f"{columns[0]['kappa_2']:.2f}, {columns[0]['gamma_2']:.2f}" == "1.13, 0.47"
    for column in columns:
        assert column["T_w"] == max(value for name, value in column.items() if name.startswith("T_w "))
        # What heavy tails cost is far less than what taking targets as bounded did.
        assert column["beta"] < 1e-6 * 2 * column["D"] ** 2


def test_the_filter_certificate_is_the_default_and_both_are_reported():
    column = constants(ten_models(), horizon=1e4, C_w=100.0)["corrected, uniform"]
    assert f"{column['kappa_2']:.2f}, {column['gamma_2']:.3f}" == "1.55, 0.499"


def test_a_smaller_probability_of_failure_has_larger_constants(sheets):
    column = constants(ten_models(), horizon=1e4, delta=1e-8, C_w=100.0, certificate="predictor")
    names = ("Xbar_1", "D", "beta")
    assert all(column["corrected, uniform"][name] > sheets[0]["corrected, uniform"][name] for name in names)


def test_every_row_is_explained_and_columns_have_no_others(sheets):
    for column in sheets[0].columns.values():
        assert set(column) <= set(MEANING)
    assert set(sheets[0]["corrected, actual"]) == set(MEANING)
    assert sheets[0]["corrected, actual"]["D_limit"] <= sheets[0]["corrected, actual"]["D_h"]


def test_a_class_that_contracts_only_in_other_coordinates_has_corrected_constants_alone():
    sheet = constants(FAMILY.grid(3), horizon=1000)
    assert sheet["printed, uniform"]["D"] == np.inf
    assert sheet["corrected, actual"]["gamma_1"] < 1
    assert np.isfinite(sheet["corrected, actual"]["T_w"])


@pytest.mark.parametrize("change", [{"horizon": 1}, {"delta": 1.5}, {"delta": -0.1}, {"C_w": 0.0}])
def test_bad_arguments_are_named(change):
    [name] = change
    with pytest.raises(InvalidArgumentError, match=f"{name} is"):
        constants(ten_models(), **({"horizon": 100} | change))
