"""What the README says a user will see, a user sees."""

import contextlib
import io
import pathlib
import re

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_prints_what_it_says():
    [code] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    [expected] = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})  # noqa: S102
    assert printed.getvalue() == expected


def test_the_two_commands_exist():
    makefile = (pathlib.Path(__file__).parent.parent / "Makefile").read_text()
    for target in re.findall(r"^    make (\S+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
