import json

import pytest

SMALL = ("compare", "unknown_sign", "--method", "map", "--horizon", "40", "--seeds", "3", "--processes", "1")


def test_a_comparison_is_printed_kept_and_shown_on_a_page(command, tmp_path):
    first = command(*SMALL, "-o", tmp_path, "-v")
    assert first.returncode == 0, first.stderr
    assert "Likeliest member pays least" in " ".join(first.stdout.split())
    assert "map on unknown_sign" in first.stderr
    assert "</html>" in (tmp_path / "comparison.html").read_text()
    again = command(*SMALL, "-o", tmp_path, "-v", "--json")
    found = json.loads(again.stdout)
    assert "map on unknown_sign" not in again.stderr  # it was kept
    assert [cell["horizon"] for cell in found["cells"]] == [40]
    assert len(found["cells"][0]["runs"]) == 6


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_disk_at_the_page_leaves_the_answer(command, tmp_path, full_disk, options):
    with full_disk("comparison.html"):
        result = command(*SMALL, "-o", tmp_path, *options)
    assert result.returncode == 1
    assert result.stderr.endswith("comparison.html cannot be written: No space left on device\n")
    assert "Likeliest member" in result.stdout
    assert "Page:" not in result.stdout
    assert not list(tmp_path.glob("*.html"))


def test_what_is_not_there_is_named_in_a_line(command, tmp_path):
    for arguments, message in (
        (("unknown_sing",), "no family 'unknown_sing'"),
        (("unknown_sign", "--method", "mapp"), "no method 'mapp'"),
        (("unknown_sign", "--method", "map{x = 1}"), "methods.map.x"),
    ):
        failed = command("compare", *arguments, "-o", tmp_path / "nothing")
        assert failed.returncode == 3
        assert message in failed.stderr
        assert failed.stderr.count("\n") == 1
    assert not (tmp_path / "nothing").exists()
