import json

import pytest

from lqgap.cli.plants import print_plants
from lqgap.errors import InvalidArgumentError
from lqgap.simulators.plants import FAMILIES


def test_all_families_are_listed(capsys):
    print_plants(None, as_json=True)
    records = json.loads(capsys.readouterr().out)
    assert [record["name"] for record in records] == list(FAMILIES)
    [spring] = [record for record in records if record["name"] == "mass_spring_damper"]
    assert spring["uncertain"] == ["stiffness = 0.5 .. 4 N/m", "gain = 1 .. 5 N"]
    print_plants(None, as_json=False)
    assert "web_server" in capsys.readouterr().out


def test_one_family_is_described_with_its_nominal_member(capsys):
    print_plants("unknown_sign", as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["J"] == pytest.approx(3.0642, rel=1e-4)
    print_plants("unknown_sign", as_json=False)
    assert "3.0642" in capsys.readouterr().out


def test_an_unknown_family_is_refused_with_the_nearest():
    with pytest.raises(InvalidArgumentError, match="did you mean mass_spring_damper"):
        print_plants("mass_spring_dampr", as_json=False)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("name", [None, "hanging_pendulum_cart"])
def test_no_word_is_broken_on_a_narrow_screen(name, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    print_plants(name, as_json=False)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= width
    names = FAMILIES if name is None else [name]
    words = {
        word for each in names for word in [each, *" ".join(map(str, FAMILIES[each]().parameters)).split()]
    }
    assert words <= set(text.replace("\u2502", " ").split())
