import numpy as np
import pytest

import lqgap as lg
from lqgap.archives import read_arrays, write_arrays

ARRAYS = {"a": np.array([1.0, 1 / 3, np.inf]), "n": np.array(7), "empty": np.zeros((0, 2), np.float32)}


def test_arrays_come_back_bit_for_bit_and_nothing_lies_beside_them(tmp_path):
    path = tmp_path / "deep" / "arrays.safetensors"
    write_arrays(path, ARRAYS, kind="test", text="hülle")
    write_arrays(path, ARRAYS, kind="test", text="hülle")  # in place of the first
    arrays, text = read_arrays(path, kind="test")
    assert text == "hülle"
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_damage_of_any_byte_is_noticed_and_the_file_stays(tmp_path):
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, ARRAYS, kind="test", text="text")
    whole = path.read_bytes()
    unnoticed = []
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 + position % 255
        path.write_bytes(damaged)
        try:
            read_arrays(path, kind="test")
        except lg.CorruptFileError:
            pass
        else:
            unnoticed.append(whole[position : position + 1])
        assert path.read_bytes() == damaged
    assert set(unnoticed) <= {b" "}  # which pads the header


@pytest.mark.parametrize("keep", [0, 4, 8, 60, -1])
def test_a_file_that_was_cut_is_damaged(tmp_path, keep):
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, ARRAYS, kind="test", text="text")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(lg.CorruptFileError, match=r"arrays\.safetensors"):
        read_arrays(path, kind="test")


def test_equal_arrays_are_equal_files(tmp_path):
    """The library below orders its header by chance."""
    files = [tmp_path / str(number) for number in range(8)]
    for path in files:
        write_arrays(path, ARRAYS, kind="test", text="hülle")
    assert len({path.read_bytes() for path in files}) == 1
    assert (int.from_bytes(files[0].read_bytes()[:8], "little") % 8) == 0


def test_a_remedy_is_part_of_the_error(tmp_path):
    (tmp_path / "file").write_bytes(b"damaged")
    with pytest.raises(lg.CorruptFileError, match=r"; remove it$"):
        read_arrays(tmp_path / "file", kind="test", remedy="remove it")


def test_another_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, ARRAYS, kind="policy", text="")
    with pytest.raises(lg.CorruptFileError, match="no checkpoint file of lqgap, but policy"):
        read_arrays(path, kind="checkpoint")
