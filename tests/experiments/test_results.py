import math

from lqgap.experiments.record import Estimate, Series
from lqgap.experiments.results import Growth, LowerBound, TrainedPolicy


def test_parts_come_back_from_json_as_they_were():
    series = Series(
        method=None,
        label="none",
        kind="lower bound",
        horizons=[3],
        values=[Estimate(mean=math.inf, stderr=math.nan)],
    )
    for part in (
        TrainedPolicy(),
        Growth(series=series),
        LowerBound(
            value=1 / 3,
            kind="bayes",
            set_by=["a"],
            series=series,
            over="class",
            bounds_class=True,
            confidence=1.0,
            reasons=["few steps"],
        ),
    ):
        plain = part.model_dump(mode="json")
        assert repr(type(part).model_validate(plain)) == repr(part)
