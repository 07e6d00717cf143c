import json

import pytest

from lqgap.cli.certify import run_certify


@pytest.mark.slow
def test_the_bracket_is_printed(study, policy, capsys):
    run_certify(study, policy, seed=None, trust=False, as_json=True)
    (bracket,) = json.loads(capsys.readouterr().out)
    assert bracket["lower"] > 0
    assert bracket["upper"] == "inf"  # the study has few rollouts
    assert bracket["confidence"] == 0
    assert "rollouts are too few" in bracket["doubt"]
