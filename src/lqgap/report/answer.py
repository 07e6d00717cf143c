"""What a reader came for, in a sentence and a few figures: which controller, how far off, what is possible.

Nothing is claimed that the record does not hold: what was not measured is left out of the sentence.
"""

from dataclasses import dataclass

from lqgap.experiments.record import Bracket, Estimate, MethodGaps, Record
from lqgap.report.numbers import half_width, show, show_estimate, show_over, show_percent
from lqgap.report.runs import describe_plant
from lqgap.report.signals import explain_limits, show_steps

REMEDY = "Give the class more members there ([grid]), narrow the ranges, or try another method."


@dataclass(frozen=True)
class Fact:
    """A figure with what it is, and a remark on it."""

    label: str
    value: str
    remark: str


@dataclass(frozen=True)
class Answer:
    """The sentence is `lead`, the method, and `rest`."""

    lead: str
    method: str
    rest: str
    facts: tuple[Fact, ...] = ()

    @property
    def text(self) -> str:
        """The whole sentence."""
        return self.lead + self.method + self.rest


def answer(record: Record) -> Answer:
    """The answer as far as the record has it."""
    gaps = _gaps_of(record, record.recommended)
    if record.gaps is None:
        return Answer("No controller is recommended: the gaps are not measured yet.", "", "")
    if record.recommended is None or gaps is None:
        return Answer(_trouble(record), "", "")
    found = {
        "On the worst real plant": gaps.real_worst,
        "In the worst case found": gaps.box_worst,
        "On the worst simulator": gaps.grid_worst,
    }
    where, worst = max(
        ((where, each) for where, each in found.items() if each is not None),
        key=lambda pair: pair[1].mean - half_width(pair[1]),  # what is larger within its error is not worse
    )
    horizon = record.gaps.horizon
    rest = (
        f". {where}, it costs {show_estimate(worst)} more over {show_steps(record, horizon)} than a "
        f"controller that knows the plant exactly{_limit(record.bracket, horizon)}."
        f"{_later(gaps, worst, horizon)}{_others(record)}{explain_limits(record)}"
    )
    facts = (*_measured(record, gaps), *_best(record))
    return Answer("Use ", record.method(record.recommended).label, rest, facts)


def _gaps_of(record: Record, method: str | None) -> MethodGaps | None:
    methods = record.gaps.methods if record.gaps else []
    return next((gaps for gaps in methods if gaps.method == method), None)


def _trouble(record: Record) -> str:
    """What speaks against every method, and what to do."""
    against = [f"{method.label}: {method.unfit}" for method in record.methods if method.unfit]
    held = f" {record.method(record.better).label} holds, but has no policy file." if record.better else ""
    if not against:
        return f"No controller is recommended: there is none to choose from.{held}"
    return f"No controller is fit for all plants that were tried. {'; '.join(against)}.{held} {REMEDY}"


def _later(gaps: MethodGaps, worst: Estimate, horizon: int) -> str:
    """What it costs in the long run, where that is more than its interval allows for."""
    later = gaps.later_worst
    if later is None or later.mean <= worst.mean + half_width(worst):
        return ""
    return (
        f" Later on it costs up to {show(later.mean)} more in every {horizon} steps, by which it was chosen."
    )


def _others(record: Record) -> str:
    """Methods that are as good, and one that is better."""
    text = ""
    if record.equals:
        names = [record.method(name).label for name in record.equals]
        verb = "is" if len(names) == 1 else "are"
        text += f" {_listed(names)} {verb} equal to it within what was measured; it is the simplest of them."
    if record.better is not None and (gaps := _gaps_of(record, record.better)) is not None:
        found = show_estimate(gaps.box_worst or gaps.grid_worst)
        text += f" {record.method(record.better).label} did better ({found}), but has no policy file."
    return text


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _limit(bracket: Bracket | None, horizon: int) -> str:
    if bracket is None or not bracket.lower > 0:
        return ""
    steps = "" if bracket.horizon == horizon else f" in {bracket.horizon} steps"
    return (
        f", and no controller that must learn the plant from its outputs can guarantee less than "
        f"{show(bracket.lower)} over {show_over(bracket)}{steps}"
    )


def _measured(record: Record, gaps: MethodGaps) -> list[Fact]:
    if not record.real:
        return []
    hardest, plant = max(zip(gaps.real, record.real, strict=True), key=lambda pair: pair[0].mean)
    share = show_percent(hardest.mean, plant.optimal_cost)
    remark = f"on {describe_plant(plant)}" + (f": {share} of its optimal cost" if share else "")
    facts = [
        Fact("Worst real plant", show_estimate(gaps.real_worst), remark),
        Fact(f"Mean over {len(record.real)} real plants", show_estimate(gaps.real_mean), "on common noise"),
    ]
    if gaps.box_worst is not None:
        places = ", ".join(f"{name} {show(value)}" for name, value in (gaps.box_worst_at or {}).items())
        remark = f"at {places}" if places else "of all plants that were tried"
        facts.append(Fact("Worst found in the ranges", show_estimate(gaps.box_worst), remark))
    return facts


def _best(record: Record) -> tuple[Fact, ...]:
    bracket = record.bracket
    if bracket is None:
        return ()
    where = "the largest found there" if bracket.over == "ranges" else "over the same simulators"
    own = f"{record.method(bracket.method).label}: {show_estimate(bracket.worst)}, {where}"
    remark = f"{own}, is at most {show(bracket.factor, digits=2)} times the best possible"
    if not bracket.lower > 0:
        remark = f"{own}; the lower bound says nothing here"
    elif not bracket.factor < float("inf"):
        remark = (
            f"{own}; how far that is from the best possible is not known, as no mean bounds it from above"
        )
    label = f"Best possible worst gap over {show_over(bracket)}"
    return (Fact(label, f"{show(bracket.lower)} … {show(bracket.upper)}", remark),)
