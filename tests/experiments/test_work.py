import warnings

import pytest

import lqgap as lg
from lqgap.experiments import budgets
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.record import Number
from lqgap.experiments.results import Result
from lqgap.experiments.store import Store
from lqgap.experiments.work import Work
from lqgap.progress import is_spent


class Figure(Result):
    """What the units of these tests find."""

    mean: Number


@pytest.mark.parametrize("value", [1 / 3, float("inf"), float("nan")])
def test_what_is_computed_is_what_is_found_later(small, tmp_path, value):
    store, told = Store(tmp_path / "store.sqlite"), []

    def compute(_):
        warnings.warn("be careful", lg.LqgapWarning, stacklevel=1)
        return Figure(mean=value)

    works = [
        Work(
            Plants(*small, trust=False), store, lambda name, seconds, _: told.append((name, seconds is None))
        )
        for _ in range(2)
    ]
    first, second = (work.do(Figure, "work", {}, compute) for work in works)
    assert repr(first) == repr(second) == repr(compute_quietly(compute))
    assert told == [("work", True), ("work", False), ("work", False)]
    assert works[0].warnings == works[1].warnings == ["be careful"]
    assert works[0].timings == works[1].timings


def compute_quietly(compute):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compute(None)


def test_without_a_store_nothing_is_kept(small):
    values = iter([1.0, 2.0])
    work = Work(Plants(*small, trust=False))
    found = [work.do(Figure, "work", {}, lambda _: Figure(mean=next(values))) for _ in "ab"]
    assert [each.mean for each in found] == [1.0, 2.0]


def test_what_is_computed_anew_takes_the_place_of_what_was_known(small, tmp_path):
    values = iter([1.0, 2.0, 3.0])
    work = Work(Plants(*small, trust=False), Store(tmp_path / "store.sqlite"))

    def do(**options):
        return work.do(Figure, "work", {}, lambda _: Figure(mean=next(values)), **options).mean

    assert [do(), do(), do(anew=True), do()] == [1.0, 1.0, 2.0, 2.0]


def test_plants_from_files_are_part_of_the_key(tmp_path):
    """The matrices themselves: a file or a module may say the same in other words."""

    def key(pole, remark=""):
        (tmp_path / "module_of_this_test.py").write_text(
            f"import lqgap as lg\n{remark}\ndef make():\n"
            f"    return lg.simulators.Finite(lg.stack([lg.LQG([[{pole}]], [[1.0]], [[1.0]])]))"
        )
        study = parse_study('[plant]\npython = "module_of_this_test:make"', name="s.toml", folder=tmp_path)
        return Work(Plants(*study, trust=True)).unit("work", {}).key

    assert key(0.5) == key(0.5, "# a remark")
    assert key(0.5) != key(0.6)


def test_a_method_that_fails_is_left_out_and_trouble_of_the_run_is_not_hidden(small):
    work = Work(Plants(*small, trust=False))

    def fail(error):
        raise error

    assert work.attempt("bank", lambda: 1) == 1
    assert work.attempt("linear", lambda: fail(lg.NotStabilizableError("reason"))) is None
    assert work.left_out == {"linear": "reason"}
    for error in (lg.CorruptFileError("damaged"), lg.StorageError("full"), ZeroDivisionError()):
        with pytest.raises(type(error)):
            work.attempt("bank", lambda error=error: fail(error))


def test_a_unit_that_is_cut_says_so_and_a_larger_budget_goes_on_from_it(small, tmp_path, monkeypatch):
    """What was not cut holds for every budget; what was cut is kept for its own alone."""
    study, source = small
    store, given = Store(tmp_path / "store.sqlite"), []

    def do(budget, *, late):
        work = Work(Plants(study.model_copy(update={"budget": budget}), source, trust=False), store)

        def compute(held):
            given.append(None if held is None else held.mean)
            return Figure(mean=(0 if held is None else held.mean) + 1 + is_spent(0.0 if late else 1.0))

        return work.do(Figure, "train robust", {}, compute), work.warnings

    monkeypatch.setattr(budgets, "SHARE", 1e6)
    first, told = do("1 h", late=True)
    assert (first.mean, first.cut) == (2.0, True)
    assert told[0].startswith("train robust was cut by its budget of ")
    assert do("1 h", late=False) == (first, told)
    assert do("2 h", late=True)[0].mean == 4.0
    whole, none = do("3 h", late=False)
    assert (whole.mean, whole.cut, none) == (5.0, False, [])
    assert do("none", late=True)[0] == whole == do("1 h", late=True)[0]
    assert given == [None, 2.0, 4.0]
