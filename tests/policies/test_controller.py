import copy

import every_policy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import AbstractPolicy, FiniteHorizonLQG, StationaryLQG

PLANT = every_policy.PLANTS[1]


def test_it_chooses_what_the_policy_chooses_in_a_rollout():
    policy = StationaryLQG(PLANT)
    run = lg.rollout(policy, PLANT, horizon=20, key=jax.random.key(0))
    controller = lg.Controller(policy)
    np.testing.assert_allclose([controller(y) for y in run.y], run.u, rtol=1e-12)


class Learning(AbstractPolicy):
    """Begins with weakly typed numbers, as of Python, and hands on others."""

    traces: list

    num_inputs = 1
    num_outputs = 2

    def init(self, key):  # noqa: ARG002
        return jnp.asarray(0), jnp.asarray(0.0), jnp.asarray(0.0)

    def step(self, memory, y, u_last):
        self.traces.append(None)
        count, largest, before = memory
        return (count + jnp.sum(y > 0), jnp.maximum(largest, before), y[0]), u_last


def test_it_is_compiled_when_it_is_made_and_never_again():
    policy = Learning([])
    controller = lg.Controller(policy)
    for y in np.ones((4, 2)):
        controller(y)
    controller.reset()
    controller(None)
    assert len(policy.traces) == 1


def test_reset_begins_anew_also_with_another_key():
    controller = lg.Controller(every_policy.make_policies()["RandomProbe"], key=jax.random.key(1), ends=True)
    first = [controller(np.ones(2)) for _ in range(3)]
    controller.reset(key=jax.random.key(1))
    np.testing.assert_array_equal([controller(np.ones(2)) for _ in range(3)], first)
    controller.reset(key=jax.random.key(2))
    assert np.any(controller(np.ones(2)) != first[0])
    controller.reset()
    third = controller(np.ones(2))
    controller.reset()
    assert np.any(controller(np.ones(2)) != third)  # every episode has its own chance


def test_it_is_neither_pickled_nor_copied():
    with pytest.raises(TypeError, match="keep its policy"):
        copy.deepcopy(lg.Controller(StationaryLQG(PLANT)))


def test_the_input_really_applied_is_fed_back():
    policy = StationaryLQG(PLANT)
    limited, told = lg.Controller(policy, limits=(-0.1, 0.1)), lg.Controller(policy)
    y = np.random.default_rng(0).normal(size=(10, 2)) * 5
    inputs, applied = [], None
    for now in y:
        inputs.append(limited(now))
        applied = np.clip(told(now, applied=applied), -0.1, 0.1)
    np.testing.assert_allclose(np.abs(inputs).max(), 0.1)
    np.testing.assert_allclose(inputs[-1], applied, rtol=1e-12)
    np.testing.assert_array_equal(limited.u_last, inputs[-1])


def test_an_applied_input_that_the_step_does_not_survive_is_forgotten():
    controller, calm = (lg.Controller(StationaryLQG(PLANT)) for _ in range(2))
    for each in (controller, calm):
        each(np.ones(2))
    with pytest.raises(lg.InvalidArgumentError, match="no plant receives that"):
        controller(np.ones(2), applied=np.full(PLANT.num_inputs, 1.7e308))
    np.testing.assert_array_equal(controller(np.ones(2)), calm(np.ones(2)))
    np.testing.assert_array_equal(controller.u_last, calm.u_last)


def test_a_lost_sample_is_predicted_over():
    controller = lg.Controller(StationaryLQG(PLANT), nan_is_lost=True)
    controller(np.ones(2))
    here = controller(None)
    again = lg.Controller(StationaryLQG(PLANT), nan_is_lost=True)
    again(np.ones(2))
    np.testing.assert_array_equal(again(np.ma.masked_array([1.0, 2.0], mask=True)), here)
    assert np.all(np.isfinite(controller(np.ones(2))))


@pytest.mark.parametrize("y", [[1.0], [1.0, np.nan], [1.0, np.inf], "abc", ["1", "2"], [[1.0, 2.0]], 3.0])
@pytest.mark.usefixtures("as_users_run_it")
def test_a_bad_observation_is_refused_and_changes_nothing(y):
    controller = lg.Controller(StationaryLQG(PLANT))
    expected = lg.Controller(StationaryLQG(PLANT))(np.ones(2))
    with pytest.raises(lg.InvalidArgumentError, match="y "):
        controller(y)
    np.testing.assert_array_equal(controller(np.ones(2)), expected)


def test_a_number_serves_where_there_is_one_output():
    plant = lg.LQG([[0.9]], [[1.0]], [[1.0]])
    assert lg.Controller(StationaryLQG(plant))(1.0) == lg.Controller(StationaryLQG(plant))([1.0])


def test_a_policy_that_will_stop_is_warned_of_at_once():
    policy = FiniteHorizonLQG(PLANT, 7)
    with pytest.warns(lg.LqgapWarning, match=r"steps 0\.\.7.* error at step 8: use one without a horizon"):
        lg.Controller(policy)
    lg.Controller(policy, ends=True)  # known, and no warning


@pytest.mark.parametrize("name", [*every_policy.NAMES, pytest.param("LQG-VTR", marks=pytest.mark.slow)])
def test_a_run_that_was_interrupted_goes_on_to_the_bit(tmp_path, name):
    if name == "LQG-VTR":
        policy = lg.adaptive.LQGVTR(lg.simulators.Finite(every_policy.PLANTS), horizon=12)
    else:
        policy = every_policy.make_policies()[name]
    y = np.random.default_rng(0).normal(size=(12, 2))
    controller = lg.Controller(policy, limits=(-0.4, 0.4), key=jax.random.key(3), ends=True)
    whole = [controller(now) for now in y]
    controller.reset(key=jax.random.key(3))
    first = [controller(now, applied=None if t != 4 else [0.05]) for t, now in enumerate(y[:5])]
    controller.save(tmp_path / "state")
    later = [controller(now) for now in y[5:]]
    again = lg.Controller(policy, limits=(-0.4, 0.4), ends=True)  # as in a new process: with another key
    again.restore(tmp_path / "state")
    np.testing.assert_array_equal(again.u_last, first[-1])
    np.testing.assert_array_equal([again(now) for now in y[5:]], later)
    if name != "Zero":
        assert np.any(np.asarray(later) != 0)
    np.testing.assert_array_equal(first[:4], whole[:4])
    again.reset()
    controller.reset()
    np.testing.assert_array_equal(again(y[0]), controller(y[0]))  # the same chance in the next episode, too


def test_the_state_of_another_policy_is_refused_and_changes_nothing(tmp_path):
    bank = every_policy.make_policies()["ModelBank mixture"]
    likeliest = every_policy.make_policies()["ModelBank map"]
    controller, other = lg.Controller(bank, ends=True), lg.Controller(likeliest, ends=True)
    controller(np.ones(2))
    controller.save(tmp_path / "state")
    with pytest.raises(lg.InvalidArgumentError, match="of a controller with another policy"):
        other.restore(tmp_path / "state")
    content = bytearray((tmp_path / "state").read_bytes())
    content[-1] ^= 1
    (tmp_path / "state").write_bytes(content)
    expected = lg.Controller(bank, ends=True)
    expected(np.ones(2))
    with pytest.raises(lg.CorruptFileError, match="checksum"):
        controller.restore(tmp_path / "state")
    np.testing.assert_array_equal(controller(np.ones(2)), expected(np.ones(2)))


def test_beyond_its_horizon_a_policy_is_not_asked():
    controller = lg.Controller(FiniteHorizonLQG(PLANT, 1), ends=True)
    controller(np.ones(2))
    controller(np.ones(2))
    with pytest.raises(lg.InvalidArgumentError, match=r"steps 0\.\.1"):
        controller(np.ones(2))


def test_an_input_that_is_not_finite_never_leaves():
    controller = lg.Controller(lg.policies.LinearDynamic(Dc=[[1e300, 1e300]]))
    with pytest.raises(lg.NotConvergedError, match="not finite"):
        controller([1e99, 1e99])


@pytest.mark.usefixtures("as_users_run_it")
def test_only_policies_are_controlled_with():
    with pytest.raises(lg.InvalidArgumentError, match=r"expected an lqgap\.policies\.AbstractPolicy"):
        lg.Controller("policy")


def test_a_sample_beyond_all_measure_counts_as_lost_and_such_an_input_is_refused():
    bank = every_policy.make_policies()["ModelBank mixture"]
    wild, lost = (lg.Controller(bank, ends=True) for _ in range(2))
    for y in ([0.1, 0.2], [1e308, 0.1]):
        own = wild(y)
    lost.nan_is_lost = True
    for y in ([0.1, 0.2], [np.nan, 0.1]):
        expected = lost(y)
    np.testing.assert_array_equal(own, expected)
    with pytest.raises(lg.InvalidArgumentError, match="no plant receives that"):
        wild([0.0, 0.0], applied=[1e300])
    with pytest.raises(lg.InvalidArgumentError, match="nan_is_lost=True"):
        wild([0.0, np.nan])
    with pytest.raises(lg.InvalidArgumentError, match=r"not finite: \[nan\]$"):
        wild([0.0, 0.0], applied=[np.nan])


def test_about_an_operating_point_signals_are_real_and_the_policy_sees_deviations():
    policy, u0, y0 = StationaryLQG(PLANT), np.full(PLANT.num_inputs, 5.0), np.array([20.0, -3.0])
    about = lg.Controller(policy, operating_point=(u0, y0), limits=(4.9, 5.1))
    plain = lg.Controller(policy, limits=(-0.1, 0.1))
    for y in np.random.default_rng(0).normal(size=(6, 2)):
        np.testing.assert_allclose(about(y0 + y), u0 + plain(y), rtol=1e-12)
    np.testing.assert_allclose(about.u_last, u0 + plain.u_last, rtol=1e-12)
    applied = plain.u_last / 2
    np.testing.assert_allclose(
        about(None, applied=u0 + applied), u0 + plain(None, applied=applied), rtol=1e-12
    )


@pytest.mark.parametrize("point", [1.0, (1.0,), (np.nan, 0.0), ([1.0, 2.0, 3.0, 4.0], 0.0)])
@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_operating_point_is_refused(point):
    with pytest.raises(lg.InvalidArgumentError, match="operating_point is"):
        lg.Controller(StationaryLQG(PLANT), operating_point=point)


def test_a_reference_holds_until_another_is_given_and_over_a_restart(tmp_path):
    controller = lg.Controller(StationaryLQG(PLANT), follow=[0])
    y = np.random.default_rng(0).normal(size=(6, 2))
    controller(y[0], reference=[2.0])
    controller.save(tmp_path / "state")
    inputs = [controller(row) for row in y[1:]]
    again = lg.Controller(StationaryLQG(PLANT), follow=[0])
    again.restore(tmp_path / "state")
    np.testing.assert_array_equal([again(row) for row in y[1:]], inputs)
    controller.restore(tmp_path / "state")
    np.testing.assert_array_equal([controller(row, reference=2.0) for row in y[1:]], inputs)
    controller.reset()
    plain = lg.Controller(StationaryLQG(PLANT))
    np.testing.assert_allclose(controller(y[0]), plain(y[0]), rtol=1e-12)


@pytest.mark.usefixtures("as_users_run_it")
def test_references_are_read_strictly():
    policy = StationaryLQG(PLANT)
    with pytest.raises(lg.InvalidArgumentError, match=r"Controller\(policy, follow=\[0\]\)"):
        lg.Controller(policy)(np.zeros(2), reference=[1.0])
    for follow in ([2], [0, 0], 0, ["y"]):
        with pytest.raises(lg.InvalidArgumentError, match="below 2"):
            lg.Controller(policy, follow=follow)
    with pytest.raises(lg.InvalidArgumentError, match="1 inputs for 2 references"):
        lg.Controller(policy, follow=[0, 1])
    controller = lg.Controller(policy, follow=[1])
    for reference in ([1.0, 2.0], np.nan, "up"):
        with pytest.raises(lg.InvalidArgumentError, match="reference"):
            controller(np.zeros(2), reference=reference)


def test_references_are_real_signals_about_an_operating_point():
    policy = StationaryLQG(PLANT)
    plain, about = (
        lg.Controller(policy, follow=[1]),
        lg.Controller(policy, follow=[1], operating_point=(3.0, [10.0, 20.0])),
    )
    for y in np.random.default_rng(0).normal(size=(4, 2)):
        u = about(y + np.array([10.0, 20.0]), reference=[20.5])
        np.testing.assert_allclose(u, plain(y, reference=[0.5]) + 3.0, rtol=1e-12)


class Compiled:
    """How many programs were compiled since it was made."""

    def __init__(self):
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self)

    def __call__(self, event, _seconds, **_other):
        self.count += event == "/jax/core/compile/backend_compile_duration"


@pytest.mark.parametrize("name", ["StationaryLQG", "ModelBank thompson", "RandomProbe"])
def test_a_loop_compiles_nothing(tmp_path, name):
    policy = every_policy.make_policies()[name]
    controller = lg.Controller(policy, follow=[0], limits=(-1, 1), nan_is_lost=True, ends=True)
    key, compiled = jax.random.key(3), Compiled()
    controller(np.ones(2), reference=[1.0])
    controller([1, 2], applied=[0.5])
    controller(np.array([1.0, np.nan]), reference=2)
    controller(None)
    controller.save(tmp_path / "state")
    controller.reset()
    controller.reset(key=key)
    controller.restore(tmp_path / "state")
    controller(np.ones(2))
    assert compiled.count == 0
    jax.jit(lambda x: x + 1)(np.ones(7))
    assert compiled.count == 1  # this one is seen


@pytest.mark.parametrize("dtype", [int, float])
def test_a_lost_whole_number_is_a_lost_one(dtype):
    y, mask = np.array([3, 5], dtype=dtype), [False, True]
    reading = np.ma.masked_array(y, mask=mask)
    here, there = (lg.Controller(StationaryLQG(PLANT), nan_is_lost=True) for _ in range(2))
    np.testing.assert_array_equal(here(reading), there([3.0, np.nan]))
    with pytest.raises(lg.InvalidArgumentError, match="nan_is_lost=True"):
        lg.Controller(StationaryLQG(PLANT))(reading)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("flag", ["nan_is_lost", "ends"])
def test_flags_are_true_or_false(flag):
    with pytest.raises(lg.InvalidArgumentError, match=f"{flag} is 'no', expected True or False"):
        lg.Controller(StationaryLQG(PLANT), **{flag: "no"})


def test_without_double_precision_it_is_neither_made_nor_asked():
    policy = StationaryLQG(PLANT)
    controller = lg.Controller(policy)
    jax.config.update("jax_enable_x64", False)
    try:
        for act in (lambda: lg.Controller(policy), lambda: controller(None), lambda: controller(np.ones(2))):
            with pytest.raises(lg.PrecisionError, match="32-bit mode"):
                act()
    finally:
        jax.config.update("jax_enable_x64", True)
