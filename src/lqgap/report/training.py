"""Figures of training: how the gaps over the class fell."""

from lqgap.experiments.record import Method, Record
from lqgap.report.figure import Axis, Figure, Key, Panel, Points, wants_log
from lqgap.report.palette import styles_of_methods


def training_curves(record: Record) -> Figure | None:
    """Worst and mean gap during training; None where nothing was trained."""
    trained = [method for method in record.methods if method.history]
    if not trained:
        return None
    styles = styles_of_methods(record)
    panels = []
    for title in ("worst", "mean"):
        values = [getattr(look, title) for method in trained for look in method.history]
        is_log = wants_log(values)
        marks = tuple(
            Points(
                method.label,
                styles[method.name],
                _steps(method),
                [getattr(look, title) for look in method.history],
                (),
                kind="line",
            )
            for method in trained
        )
        y = Axis(f"{title.capitalize()} gap over the class", is_log)
        panels.append(Panel("", Axis("Steps of training"), y, marks))
    caption = (
        "Measured on noise that stays the same. Randomised training seeks a small mean, "
        "robust training a small worst; stages follow one another."
    )
    legend = tuple(Key(method.label, styles[method.name], is_line=True) for method in trained)
    return Figure("training", "Training", caption, tuple(panels), legend)


def _steps(method: Method) -> list[float]:
    """Steps counted through all stages; each stage counts its own from the start."""
    steps, before, last = [], 0, method.history[0]
    for look in method.history:
        before += last.step if look.stage != last.stage else 0
        steps.append(float(before + look.step))
        last = look
    return steps
