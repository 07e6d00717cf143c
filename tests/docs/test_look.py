"""The look at the pages sees what is wrong with them."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

from look import main

PAGE = (
    '<!DOCTYPE html><p id="top">words</p><div id="search-results"><ul><li><a href="#top">found</a></ul></div>'
)
WRONG = {
    "pixels too wide": '<div style="width: 2000px">wide</div>',
    "asks for": '<img src="http://localhost:9/picture.png">',
    "no file": '<a href="nowhere.html">lost</a>',
    "index.html#nowhere": '<a href="index.html#nowhere">lost</a>',
    "fails: ": "<script>undefined_name()</script>",
}
pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="`make ci-browser` installs chromium"
)


def look_at(folder, capsys):
    with pytest.raises(SystemExit) as result:
        main(folder)
    return bool(result.value.code), capsys.readouterr().out


def test_pages_that_are_well_pass_and_each_fault_is_seen(tmp_path, capsys):
    for name in ("index.html", "search.html"):
        (tmp_path / name).write_text(PAGE)
    assert not look_at(tmp_path, capsys)[0]
    (tmp_path / "index.html").write_text(PAGE + "".join(WRONG.values()))
    failed, said = look_at(tmp_path, capsys)
    assert failed
    assert [fault for fault in WRONG if fault not in said] == []
