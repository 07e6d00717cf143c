import io
import json
import math

import numpy as np
import pytest
from rich.console import Console
from ten_models import ten_models

import lqgap
from lqgap.policies import Zero
from lqgap.simulators import Finite, check_assumptions
from lqgap.theory import bounds
from lqgap.theory.constants.bounds import regret_terms, root_mean_square_cost
from lqgap.theory.constants.corrected import corrected_constants
from lqgap.theory.constants.norms import uniform_norms
from lqgap.theory.constants.openloop import open_loop_cost


@pytest.fixture(scope="module")
def found():
    return bounds(ten_models(), horizon=10_000, C_w=100.0)


@pytest.mark.slow
def test_all_are_vacuous_at_ten_thousand_steps_and_say_from_when_they_are_not(found):
    for bound in found.bounds:
        assert bound.vacuous
        assert bound.gap > bound.nothing
        later = bounds(ten_models(), horizon=1.01 * bound.useful_from, C_w=100.0)[bound.name]
        sooner = bounds(ten_models(), horizon=bound.useful_from / 1.01, C_w=100.0)[bound.name]
        assert (sooner.vacuous, later.vacuous) == (True, False)
    assert found["actual norms"].gap < found["corrected"].gap


def test_the_yardstick_is_the_worst_gap_of_doing_nothing(found):
    nothing = Zero(num_inputs=1, num_outputs=1)
    expected = max(float(lqgap.exact_gap(nothing, plant, horizon=10_000)) for plant in ten_models())
    np.testing.assert_allclose(found["corrected"].nothing, expected, rtol=1e-9)


def test_the_terms_are_those_of_the_derivation():
    members, H, delta = ten_models(), 1000.0, 0.01
    norms = uniform_norms(check_assumptions(members))
    noise, J = open_loop_cost(members.systems, is_random=True), np.asarray(members.optima().J)
    c = corrected_constants(norms, horizon=H, delta=delta, C_w=1e-13)
    terms = regret_terms(norms, noise, J, horizon=H, delta=delta, C_w=1e-13)
    b = 8 * c["beta"] + c["psi"] + 4 * c["D"] ** 2
    np.testing.assert_allclose(terms["counting"], 1 + 9 * c["D"])
    np.testing.assert_allclose(terms["width"], 2 * math.sqrt(9 * b * H))
    log = math.log(1 / delta)
    bernstein = math.sqrt(2 * H * c["variance"] * log) + 2 * c["scale"] * log
    np.testing.assert_allclose(terms["martingale"], bernstein)
    np.testing.assert_allclose(terms["switches"], 2 * c["D"] * c["Kbar"])
    np.testing.assert_allclose(terms["clipping"], 2 * c["Delta"] * H)
    T_w = float(math.floor(min(c["T_w"], H)))
    assert T_w < H
    np.testing.assert_allclose(terms["warm-up"], max(noise(T_w) - (T_w + 1) * J))


def test_the_counting_lemma_holds_for_sequences_made_to_fill_it(seed):
    """Differences to the truth that stay within b on what was seen: their sum obeys the term of the bound."""
    rng = np.random.default_rng(seed)
    H, size, b = 400, 6, 3.0
    values = rng.uniform(size=(H, size))
    values[:, 0] = 0  # the truth
    seen, total = np.zeros(size), 0.0
    for f in values:
        allowed = seen <= b
        pick = int(np.argmax(np.where(allowed, f, -1)))
        total += f[pick]
        seen += f**2
    d = size - 1
    assert 0 < total <= 1 + min(d, H) * 1.0 + 2 * math.sqrt(d * b * H)


def test_costs_after_bounded_inputs_are_within_their_mean_square():
    """Inputs of norm Ubar that push the state away as far as they can, 20000 runs of 30 steps."""
    plant = lqgap.LQG([[0.8, 0.2], [0, 0.5]], [[0], [1.0]], [[1, 0]])
    norms, Ubar = uniform_norms(check_assumptions(Finite([plant]))), 2.0
    rng, A, B = np.random.default_rng(0), np.asarray(plant.A), np.asarray(plant.B)
    x = rng.normal(size=(20_000, 2))
    for _ in range(30):
        u = Ubar * np.sign(x[:, :1] + 1e-9)
        x = x @ A.T + u @ B.T + rng.normal(size=x.shape)
    cost = (x[:, 0] + rng.normal(size=len(x))) ** 2 + Ubar**2
    assert np.sqrt(np.mean(cost**2)) <= root_mean_square_cost(norms, Ubar)


def test_it_prints_as_a_table_and_is_json_without_infinities(found):
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(found)
    text = console.export_text()
    assert "useful_from" in text
    assert "martingale" in text
    record = json.loads(found.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [bound["name"] for bound in record["bounds"]] == ["printed", "corrected", "actual norms"]
    assert all(bound["vacuous"] for bound in record["bounds"])


@pytest.mark.slow
def test_what_has_no_constants_has_no_bound():
    found = bounds(Finite([lqgap.LQG([[1.1]], [[1.0]], [[1.0]])]), horizon=100)
    for bound in found.bounds:
        assert bound.vacuous
        assert bound.useful_from == math.inf


@pytest.mark.slow
def test_a_fixed_probability_of_failure_costs_linearly_and_never_pays():
    assert bounds(ten_models(), horizon=1000, delta=0.1)["corrected"].useful_from == math.inf
