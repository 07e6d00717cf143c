import subprocess
import sys

import equinox as eqx
import every_policy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.archives import write_arrays
from lqgap.states import fingerprint, read_state, write_state


def test_a_fingerprint_tells_values_shapes_keys_and_structures_apart():
    systems = every_policy.systems()
    parts = [
        jnp.ones(2),
        jnp.ones((2, 1)),
        jnp.zeros(2),
        jax.random.key(0),
        jax.random.key(1),
        "a",
        [jnp.ones(2)],
        *(lg.policies.ModelBank(systems, mode=mode) for mode in ("mixture", "map")),
    ]
    assert len({fingerprint(part) for part in parts}) == len(parts)
    assert fingerprint(jnp.ones(2)) == fingerprint(jnp.ones(2))


@pytest.mark.slow
def test_a_fingerprint_is_the_same_in_every_process():
    """Functions are part of networks, and lie elsewhere in the memory of each process."""
    code = (
        "import equinox as eqx, jax, jax.numpy as jnp\n"
        "from lqgap.states import fingerprint\n"
        "print(fingerprint(eqx.nn.MLP(1, 1, 2, depth=1, activation=jnp.tanh, key=jax.random.key(0))))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    made = [eqx.nn.MLP(1, 1, 2, depth=1, activation=f, key=jax.random.key(0)) for f in (jnp.tanh, jnp.sin)]
    assert fingerprint(made[0]) != fingerprint(made[1])


def test_a_state_comes_back_with_its_note(tmp_path):
    state = {"x": jnp.asarray([1 / 3, np.nan]), "n": jnp.asarray(7)}
    write_state(tmp_path / "s", state, kind="test", owner="me", note=[1, "two"])
    again, note = read_state(tmp_path / "s", state, kind="test", owner="me", refusal="of another")
    assert note == [1, "two"]
    np.testing.assert_array_equal(again["x"], state["x"])
    assert again["n"] == 7
    with pytest.raises(lg.InvalidArgumentError, match="s is of another"):
        read_state(tmp_path / "s", state, kind="test", owner="you", refusal="of another")
    with pytest.raises(lg.CorruptFileError, match="lacks array 0"):
        read_state(tmp_path / "s", {**state, "n": jnp.ones(2)}, kind="test", owner="me", refusal="")


@pytest.mark.parametrize("text", ["", "no json", "[]", "3", "null", '{"note": 1}', '{"owner": "me"}'])
def test_a_forged_text_is_no_state(tmp_path, text):
    write_arrays(tmp_path / "s", {"0": np.ones(2)}, kind="test", text=text)  # with a right checksum
    with pytest.raises(lg.CorruptFileError, match="whose state it is"):
        read_state(tmp_path / "s", jnp.ones(2), kind="test", owner="me", refusal="")


@pytest.mark.parametrize(
    "array", [np.ones(2, dtype=bool), np.ones(2, dtype="float32"), np.ones(2, dtype="int64")]
)
def test_an_array_of_another_type_is_no_state(tmp_path, array):
    write_arrays(tmp_path / "s", {"0": array}, kind="test", text='{"owner": "me", "note": null}')
    with pytest.raises(lg.CorruptFileError, match="lacks array 0"):
        read_state(tmp_path / "s", jnp.ones(2), kind="test", owner="me", refusal="")
