import json

import pytest

from lqgap.cli.plants import print_plants
from lqgap.simulators.plants import catalogue


@pytest.mark.slow
def test_all_families_are_listed(capsys):
    print_plants(as_json=True)
    records = json.loads(capsys.readouterr().out)
    assert [record["name"] for record in records] == list(catalogue())
    [spring] = [record for record in records if record["name"] == "mass_spring_damper"]
    assert spring["uncertain"] == ["stiffness = 0.5 .. 4 N/m", "gain = 1 .. 5"]
    assert spring["J"] == pytest.approx(3.915149, rel=2e-7)
    print_plants(as_json=False)
    assert "web_server" in capsys.readouterr().out
