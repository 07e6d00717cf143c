import os
import time

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lqgap as lg
from lqgap.experiments.parsing import example_text, parse_study, read_study
from lqgap.experiments.study import Study

EXAMPLE = example_text()


def line_with(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("horizon = 100", "horizn = 100", "horizn", "did you mean horizon"),
        ("seed = 0", "seed = nan", "seed", "it is nan"),
        ("[plant]", "[plan]", "plan", "did you mean plant"),
        ("gain = [1.0, 5.0]", "gain = [5.0, 1.0]", "plant.gain", r"an interval is \[low, high\]"),
        ("gain = [1.0, 5.0]", 'gain = "strong"', "plant.gain", "expected a number, an interval"),
        ('points = "auto"', "points = {a = 0}", "grid.points.a", "greater than or equal to 1"),
        ("robust = {policy", "robust = {plicy", "methods.robust.plicy", "did you mean policy"),
        ("probe = 50", "probe = inf", "methods.identify.probe", "it is inf"),
        ("outside = []", "outside = [{A = [[1]], B = [[1]]}]", "real.outside.0.C", "this key is missing"),
        ("rollouts = 256", "rollout = 256", "evaluation.rollout", "did you mean rollouts"),
        ("count = 20", "count = 20\ncount = 20", None, "not TOML"),
    ],
)
def test_an_error_names_file_line_and_key_and_says_what_would_be_right(tmp_path, old, new, key, says):
    text = EXAMPLE.replace(old, new)
    assert text != EXAMPLE
    path = tmp_path / "study.toml"
    path.write_text(text)
    place = new.split("\n")[-1]
    line = line_with(text, place) + new.count("\n")
    with pytest.raises(lg.InvalidStudyError, match=says) as caught:
        read_study(path)
    where = f"{path}, line {line}: "
    assert str(caught.value).startswith(where if key is None else f"{where}{key}: ")
    assert "\n" not in str(caught.value)


def test_a_plant_of_no_kind_is_told_the_kinds(tmp_path):
    text = EXAMPLE.replace("family =", "famly =")
    line = line_with(text, "[plant]")
    with pytest.raises(lg.InvalidStudyError, match=rf"line {line}: plant: .* did you mean family\?"):
        parse_study(text, name="study.toml", folder=tmp_path)


def test_what_is_wrong_with_a_whole_table_does_not_repeat_it(tmp_path):
    text = EXAMPLE.replace("count = 20", "count = 0")
    with pytest.raises(lg.InvalidStudyError, match=r"real: there is no real plant: .* or outside$"):
        parse_study(text, name="study.toml", folder=tmp_path)


def test_several_errors_are_counted_and_the_first_line_comes_first(tmp_path):
    text = EXAMPLE.replace("seed = 0", "sed = 0").replace("count = 20", "cont = 20")
    with pytest.raises(lg.InvalidStudyError, match=r"sed: .* \(and 1 more\)"):
        parse_study(text, name="study.toml", folder=tmp_path)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(lg.InvalidStudyError, match=r"nowhere\.toml cannot be read"):
        read_study(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(lg.InvalidStudyError, match="not a TOML file"):
        read_study(tmp_path / "binary.toml")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(lg.InvalidStudyError, match=r"deep\.toml"):
        read_study(tmp_path / "deep.toml")


def test_hostile_names_stay_on_one_line(tmp_path):
    with pytest.raises(lg.InvalidStudyError) as caught:
        parse_study(EXAMPLE + '\n["a\\nb\\u001b[31m"]\n', name="study.toml", folder=tmp_path)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


WORDS = [
    "nan", "inf", "-1", "0", "1e999", "[]", "{}", '""', "true", "[[]]", "[1, 2]", "=", "\n", "[plant]", "'''",
    "9" * 400, "1979-05-27", '"<script>"', '"../../etc"', "\x00", "{choices = []}", "#", ",", "]", '"\\ud800"',
]  # fmt: skip
edits = st.lists(
    st.tuples(st.integers(0, len(EXAMPLE)), st.integers(0, 12), st.sampled_from(WORDS) | st.text(max_size=4)),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@hypothesis.settings(max_examples=500)
@given(edits)
def test_a_fuzzed_study_is_read_or_refused_in_one_line(tmp_path_factory, edits):
    text = EXAMPLE
    for place, length, word in edits:
        text = text[:place] + word + text[place + length :]
    path = tmp_path_factory.getbasetemp() / "fuzzed.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        study, _ = read_study(path)
    except lg.InvalidStudyError as error:
        message = str(error)
    else:
        message = str(path)
        assert isinstance(study, Study)
        assert parse_study(study.to_toml(), name="x", folder=path.parent)[0] == study
    assert message.startswith(str(path))
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a." * 50_000 + "a = 1", "more than 50 deep"),
        ("x = 1\ny = " + "[1, " * 900 + "]" * 900, "line 2: .*more than 50 deep"),
        ("\n[" + "a ." * 50_000 + '"a"]', "line 2: .*more than 50 deep"),
        ("".join(f"key_{index} = {index}\n" for index in range(30_000)), "more than 20000 keys"),
        ("# padding\n" * 300_000, "larger than 2 MB"),
    ],
)
def test_what_would_take_minutes_to_read_is_refused_at_once(tmp_path, text, says):
    path = tmp_path / "study.toml"
    path.write_text(text)
    start = time.process_time()
    with pytest.raises(lg.InvalidStudyError, match=says):
        read_study(path)
    assert time.process_time() - start < 5


def test_devices_pipes_and_folders_are_no_studies(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(lg.InvalidStudyError, match="cannot be read: it is a"):
            read_study(path)
