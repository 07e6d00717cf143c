import os
import tracemalloc

import equinox as eqx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from random_systems import random_plant
from springs import FAMILY

import lqgap
from lqgap.interop import load_mat, save_mat

PLANT = random_plant(0)
MATRICES = ("A", "B", "C", "Q", "R", "W", "V", "S0")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plant.mat"


def variables(**changes):
    """The variables of a small file, with some replaced, or left out where they are None."""
    parts = {name: np.asarray(getattr(PLANT, name)) for name in MATRICES} | {"sampling_time": 0.1} | changes
    return {name: value for name, value in parts.items() if value is not None}


def test_a_plant_comes_back_the_same(path):
    save_mat(path, PLANT, sampling_time=0.3)
    plant, sampling_time = load_mat(path)
    assert eqx.tree_equal(plant, PLANT)
    assert sampling_time == 0.3


def test_a_class_comes_back_as_a_batch_and_is_stored_with_the_member_last(path):
    members = FAMILY.grid(2)
    save_mat(path, members, sampling_time=0.3)
    assert eqx.tree_equal(load_mat(path)[0], members.systems)
    stored = scipy.io.loadmat(path)
    np.testing.assert_array_equal(stored["A"][:, :, 3], members[3].A)
    assert stored["R"].shape == (1, 1, 4)
    save_mat(path, lqgap.stack([PLANT]), sampling_time=0.3)
    assert load_mat(path)[0].A.shape == (1, 3, 3)


def test_a_matrix_without_a_third_axis_is_shared_by_all_members(path):
    members = FAMILY.grid(2).systems
    stored = {
        "A": np.moveaxis(np.asarray(members.A), 0, -1),
        "B": np.asarray(members.B)[0],
        "C": [[1.0, 0.0]],
    }
    scipy.io.savemat(path, stored | {"sampling_time": 0.3})
    loaded, _ = load_mat(path)
    np.testing.assert_array_equal(loaded.A, members.A)
    np.testing.assert_array_equal(loaded.B, np.tile(members.B[0], (4, 1, 1)))
    np.testing.assert_array_equal(loaded.V, np.ones((4, 1, 1)))


def test_what_others_leave_out_is_the_identity_and_sparse_or_whole_numbers_are_numbers(path):
    stored = {
        "A": scipy.sparse.csc_matrix([[0.5, 0.0], [0.0, 0.25]]),
        "B": np.array([[1], [0]]),
        "C": [[1.0, 2.0]],
    }
    scipy.io.savemat(path, stored)
    plant, sampling_time = load_mat(path, sampling_time=0.2)
    assert eqx.tree_equal(plant, lqgap.LQG([[0.5, 0.0], [0.0, 0.25]], [[1.0], [0.0]], [[1.0, 2.0]]))
    assert sampling_time == 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"B": None}, "has no variable B"),
        ({"sampling_time": None}, "no variable sampling_time"),
        ({"sampling_time": -1.0}, "sampling_time"),
        ({"sampling_time": [[1.0, 2.0]]}, "sampling_time"),
        ({"D": np.ones((2, 2))}, "direct feedthrough"),
        ({"A": np.full((3, 3), np.nan)}, "A has entries that are NaN"),
        ({"C": np.ones((2, 4))}, r"C has shape \(2, 4\)"),
        ({"V": np.array([[1.0, 0.5], [0.0, 1.0]])}, "V is not symmetric"),
        ({"R": -np.eye(2)}, "R is not positive definite"),
        ({"Q": "two"}, "Q "),
        ({"A": np.ones((3, 3, 2)), "B": np.ones((3, 2, 4))}, "numbers of members differ"),
        ({"A": np.ones((3, 3, 2)), "B": np.ones((2, 2, 2))}, r"B has shape \(2, 2\)"),
        ({"A": np.ones((3, 3, 2)), "Q": "two"}, "Q "),
        (
            {"A": np.ones((3, 3, 2)), "B": np.ones((2, 2, 2, 2))},
            r"B has shape .* expected \(row, column, member\)",
        ),
        ({"A": np.full((3, 3, 2), np.inf)}, "A of member 0"),
        (
            {"A": np.zeros((3, 3, 2)), "Q": np.array([[1.0, 0.5], [0.0, 1.0]])},
            "Q of member 0 is not symmetric",
        ),
        ({"A": np.zeros((3, 3, 2)), "V": -np.eye(2)}, "V of member 0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_no_plant_is_refused_by_name(path, changes, message):
    scipy.io.savemat(path, variables(**changes))
    with pytest.raises(lqgap.InvalidArgumentError, match=message):
        load_mat(path)


def test_two_sampling_times_are_one_too_many(path):
    save_mat(path, PLANT, sampling_time=0.3)
    assert load_mat(path, sampling_time=0.3)[1] == 0.3
    with pytest.raises(lqgap.InvalidArgumentError, match=r"has sampling_time 0.3, and 0.1 was given"):
        load_mat(path, sampling_time=0.1)


def test_every_changed_byte_is_noticed_unless_it_says_nothing(path):
    save_mat(path, PLANT, sampling_time=0.3)
    content = path.read_bytes()
    header = 128  # free text and the version
    for position in [*range(0, header, 7), *range(header, len(content), 3)]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        try:
            plant, sampling_time = load_mat(path)
        except lqgap.CorruptFileError:
            continue
        assert eqx.tree_equal(plant, PLANT)
        assert sampling_time == 0.3


def test_every_missing_end_is_noticed(path):
    save_mat(path, PLANT, sampling_time=0.3)
    content = path.read_bytes()
    for length in range(0, len(content), 3):
        path.write_bytes(content[:length])
        with pytest.raises((lqgap.CorruptFileError, lqgap.InvalidSystemError)):
            load_mat(path)


def test_what_is_no_mat_file_is_refused(path):
    path.write_text("A = [0.5]; B = 1; C = 1;" * 20)
    with pytest.raises(lqgap.CorruptFileError, match="no MAT file"):
        load_mat(path)
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF" * 100)
    with pytest.raises(lqgap.InvalidArgumentError, match="-v7"):
        load_mat(path)
    with pytest.raises(lqgap.InvalidArgumentError, match="cannot be read: No such file"):
        load_mat(path.with_name("missing.mat"))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save_mat(path, PLANT, sampling_time=0.3)

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(lqgap.StorageError, match="cannot be written: No space left"):
        save_mat(path, PLANT, sampling_time=0.5)
    assert load_mat(path)[1] == 0.3
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_small_file_that_fills_the_memory_is_refused(path):
    bomb = {**variables(), "unused": np.zeros((1 << 15, 1 << 11))}  # half a gigabyte
    scipy.io.savemat(path, bomb, do_compression=True)
    assert path.stat().st_size < 1 << 20
    del bomb
    tracemalloc.start()
    with pytest.raises(lqgap.InvalidArgumentError, match=r"plant\.mat holds more than 256 MB"):
        load_mat(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 25
    tracemalloc.stop()


def test_a_sparse_matrix_too_large_to_be_filled_is_refused(path):
    scipy.io.savemat(path, variables(A=scipy.sparse.eye(40_000, format="csc")), do_compression=True)
    with pytest.raises(lqgap.InvalidSystemError, match=r"A is sparse of shape \(40000, 40000\)"):
        load_mat(path)


def test_only_plants_are_written(path):
    with pytest.raises(
        lqgap.InvalidArgumentError, match="is a ParameterBox, expected an LQG or a finite class"
    ):
        save_mat(path, FAMILY, sampling_time=0.1)
    with pytest.raises(lqgap.InvalidArgumentError, match="sampling_time"):
        save_mat(path, PLANT, sampling_time=0)


def test_costs_of_states_come_back_the_same(path):
    """One plant and a class, whose members share them."""
    costs = {"Qx": np.diag([2.0, 0.5]), "N": np.array([[0.1], [0.2]])}
    members = [lqgap.LQG(m.A, m.B, m.C, **costs) for m in FAMILY.grid(2)]
    for plants in (members[0], lqgap.stack(members)):
        save_mat(path, plants, sampling_time=0.3)
        assert eqx.tree_equal(load_mat(path)[0], plants)


def test_a_file_in_continuous_time_is_sampled(path):
    plant = lqgap.LQG([[0.0, 1.0], [-1.0, -0.2]], [[0.0], [1.0]], [[1.0, 0.0]], Qx=np.eye(2))
    stored = {name: np.asarray(matrix) for name, matrix in plant.matrices().items()}
    wanted = lqgap.discretize(plant, dt=0.1)
    for sampling_time in ({"sampling_time": 0.0}, {}):
        scipy.io.savemat(path, stored | sampling_time)
        found, dt = load_mat(path, dt=0.1)
        assert eqx.tree_equal(found, wanted)
        assert dt == 0.1
    scipy.io.savemat(path, stored | {"sampling_time": 0.0, "A": np.stack([stored["A"]] * 3, axis=-1)})
    several, _ = load_mat(path, dt=0.1)
    np.testing.assert_allclose(several.A[1], wanted.A, rtol=1e-12)
    np.testing.assert_allclose(several.W[2], wanted.W, rtol=1e-12)


@pytest.mark.parametrize(
    ("stored", "arguments", "error"),
    [
        (0.0, {}, "in continuous time .* load_mat.dt=0.1"),
        (0.1, {"dt": 0.1}, "in steps already"),
        (None, {"dt": 0.1, "sampling_time": 0.1}, "in steps already"),
        (0.0, {"dt": -1.0}, "dt is -1"),
    ],
)
def test_continuous_time_and_steps_are_not_mixed(path, stored, arguments, error):
    scipy.io.savemat(path, variables(sampling_time=stored))
    with pytest.raises(lqgap.InvalidArgumentError, match=error):
        load_mat(path, **arguments)
