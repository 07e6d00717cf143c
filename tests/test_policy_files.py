import json

import equinox as eqx
import every_policy
import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.archives import read_arrays, write_arrays
from lqgap.policies import AbstractPolicy
from lqgap.policy_files import can_save


@pytest.mark.parametrize("name", sorted(every_policy.NAMES))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_policy_comes_back_bit_for_bit(tmp_path, name, dtype):
    policy = jax.tree.map(
        lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, every_policy.make_policies()[name]
    )
    lg.save_policy(tmp_path / "policy.safetensors", policy)
    back = lg.load_policy(tmp_path / "policy.safetensors")
    assert jax.tree.structure(back) == jax.tree.structure(policy)  # classes and static fields, too
    for before, after in zip(jax.tree.leaves(policy), jax.tree.leaves(back), strict=True):
        if eqx.is_array(before):
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
        else:
            assert before is after


def test_every_class_of_policies_can_be_saved():
    def below(cls):
        return [c for sub in cls.__subclasses__() for c in (sub, *below(sub))]

    ours = {cls for cls in below(AbstractPolicy) if cls.__module__.startswith("lqgap.policies")}
    assert {cls for cls in ours if not cls.__name__.startswith("Abstract")} == {
        type(policy) for policy in every_policy.make_policies().values()
    }


class Foreign(AbstractPolicy):
    num_inputs = 1
    num_outputs = 2

    def init(self, key):  # noqa: ARG002
        return ()

    def step(self, memory, y, u_last):  # noqa: ARG002
        return memory, u_last


@pytest.mark.usefixtures("as_users_run_it")
def test_what_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(lg.InvalidArgumentError, match="policy is a int, expected an lqgap policy"):
        lg.save_policy(tmp_path / "p", 3)
    with pytest.raises(lg.InvalidArgumentError, match="policy is a Foreign"):
        lg.save_policy(tmp_path / "p", Foreign())
    broken = eqx.tree_at(
        lambda p: p.Ac, every_policy.make_policies()["LinearDynamic"], replace_fn=lambda x: x * np.nan
    )
    with pytest.raises(lg.InvalidArgumentError, match=r"policy\.Ac has entries that are NaN"):
        lg.save_policy(tmp_path / "p", broken)
    assert not list(tmp_path.iterdir())


def forge(path, change):
    """A file whose checksum is right and whose content is not what lqgap writes."""
    arrays, text = read_arrays(path, kind="policy")
    header = json.loads(text)
    change(header, arrays)
    write_arrays(path, arrays, kind="policy", text=json.dumps(header))


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.update(format=99),
        lambda header, arrays: header.pop("policy"),
        lambda header, arrays: header["policy"].update({"class": "Popen"}),
        lambda header, arrays: header["policy"]["fields"].pop("Ac"),
        lambda header, arrays: header["policy"]["fields"].update(more={"value": 1}),
        lambda header, arrays: header["policy"]["fields"].update(Ac={"value": [1]}),
        lambda header, arrays: header["policy"]["fields"].update(Ac={"array": "elsewhere"}),
        lambda header, arrays: header["policy"]["fields"].update(Ac={"function": "os.system"}),
        lambda header, arrays: header.update(policy={"value": 1}),
        lambda header, arrays: header.update(policy=[]),
        lambda header, arrays: arrays.update({"policy.Ac": np.eye(3)}),
        lambda header, arrays: arrays.update({"policy.Ac": np.full((1, 1), np.nan)}),
    ],
)
def test_a_forged_header_is_a_damaged_file(tmp_path, change):
    path = tmp_path / "policy.safetensors"
    lg.save_policy(path, every_policy.make_policies()["LinearDynamic"])
    forge(path, change)
    with pytest.raises(lg.CorruptFileError, match=r"policy\.safetensors"):
        lg.load_policy(path)
    assert path.exists()


@pytest.mark.parametrize(
    ("name", "field", "node"),
    [
        ("ModelBank", "mode", {"value": "anything"}),
        ("ModelBank", "last_step", {"value": "evil"}),
        ("ModelBank", "last_step", {"value": -5}),
        ("ModelBank", "last_step", {"value": 10**12}),
        ("Committed", "steps", {"value": -1}),
        ("Committed", "steps", {"value": True}),
        ("RandomProbe", "steps", {"value": 10**12}),
        ("Zero", "sizes", {"tuple": [{"value": 3 * 10**9}, {"value": 1}]}),
        ("Zero", "sizes", {"tuple": [{"value": "1"}, {"value": 1}]}),
    ],
)
def test_forged_numbers_are_refused_and_fill_no_memory(tmp_path, name, field, node):
    path = tmp_path / "policy.safetensors"
    policy = next(policy for policy in every_policy.make_policies().values() if type(policy).__name__ == name)
    lg.save_policy(path, policy)
    lg.load_policy(path)
    forge(path, lambda header, arrays: header["policy"]["fields"].update({field: node}))
    with pytest.raises(lg.CorruptFileError, match=f"{name} has {field} = "):
        lg.load_policy(path)


def test_a_file_can_hold_policies_of_lqgap_and_nothing_else():
    assert can_save(lg.policies.Zero(num_inputs=1, num_outputs=1))
    assert not can_save(Foreign())
    assert not can_save(lg.policies.RandomProbe(2, Foreign()))
    assert not can_save((1, 2))
