import json

import pytest

from lqgap.cli.certify import run_certify


@pytest.mark.slow
def test_the_bracket_is_printed(study, policy, capsys):
    run_certify(study, policy, seed=None, trust=False, as_json=True)
    (bracket,) = json.loads(capsys.readouterr().out)
    assert 0 < bracket["lower"] <= bracket["upper"]
