"""What an audit found: a table for people, JSON for programs, and the class pruned or repaired."""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from lqgap.errors import InvalidArgumentError
from lqgap.files import finite_or_text
from lqgap.linalg import sqrt_psd
from lqgap.simulators.audit.contraction import Contraction
from lqgap.simulators.audit.measures import Measures
from lqgap.simulators.audit.uninformative import Uninformative, describe
from lqgap.simulators.finite import Finite

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


@dataclass(frozen=True)
class Check:
    """One condition: whether it holds as printed and after repair, the margin, and the limiting member."""

    assumption: str
    statement: str
    as_printed: bool
    repaired: bool
    value: float
    margin: float
    member: int
    remedy: str


class Audit(eqx.Module):
    """The audit of a class."""

    members: Finite
    measures: Measures
    checks: tuple[Check, ...] = eqx.field(static=True)
    constants: dict[str, float]
    contraction: Contraction | None
    uninformative: tuple[Uninformative, ...] = eqx.field(static=True)

    @property
    def holds_as_printed(self) -> bool:
        """Whether the class satisfies the assumptions as the paper states them."""
        return all(check.as_printed for check in self.checks)

    @property
    def holds_after_repair(self) -> bool:
        """Whether it satisfies what the corrected theory needs."""
        return all(check.repaired for check in self.checks)

    def remarks(self) -> list[str]:
        """Controllers that cannot tell members apart although that would pay, and what is done about it."""
        return describe(self.members, self.uninformative)

    def prune(self) -> Finite:
        """The members that have an optimum and a stable open loop; the others cannot be repaired."""
        keep = self.measures.has_optimum & (self.measures.spectral_radius < 1)
        if not np.any(keep):
            radius = float(np.min(self.measures.spectral_radius))
            raise InvalidArgumentError(
                f"pruning would leave no member: each has rho(A) >= 1 (the least {radius:.4g}) or no "
                f"optimum; unstable members may stay for training, only the paper's bounds do not hold"
            )
        return self.members.subset(keep)

    def repair(self) -> Finite:
        """The members that have an optimum, in coordinates in which all closed loops contract."""
        keep = self.measures.has_optimum
        if self.contraction is None or not self.contraction.holds:
            best = (
                "none was found" if self.contraction is None else f"the best has {self.contraction.gamma:.4g}"
            )
            raise InvalidArgumentError(
                f"no common norm contracts all closed loops ({best}): take smaller ranges, or fewer members "
                f"(members.subset); training needs neither"
            )
        return self.members.subset(keep).in_coordinates(sqrt_psd(jnp.asarray(self.contraction.weight)))

    def to_json(self) -> str:
        """The checks and constants, with the parameters of the limiting members."""
        checks = [{**asdict(check), "parameters": self._parameters(check.member)} for check in self.checks]
        record = {
            "num_members": len(self.members),
            "holds_as_printed": self.holds_as_printed,
            "holds_after_repair": self.holds_after_repair,
            "checks": checks,
            "constants": self.constants,
            "uninformative": [
                {**asdict(each), "parameters": self._parameters(each.controller)}
                for each in self.uninformative
            ],
        }
        return json.dumps(finite_or_text(record), indent=2)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.markup import escape  # loaded only where something is shown
        from rich.padding import Padding
        from rich.table import Table

        del console, options
        table = Table(title=f"Assumptions of a class of {len(self.members)} members", title_justify="left")
        for column in ("", "condition", "printed", "repaired", "value"):
            table.add_column(column, no_wrap=column != "condition")
        for check in self.checks:
            marks = _mark(check.as_printed), _mark(check.repaired)
            table.add_row(check.assumption, escape(check.statement), *marks, f"{check.value:.4g}")
        yield table
        for check in self.checks:
            if check.remedy:
                member = escape(self.members.describe(check.member))
                yield f"[bold]{check.assumption} {escape(check.statement)}[/] (limited by {member})"
                yield Padding(escape(check.remedy), (0, 0, 1, 4))
        for line in self.remarks():
            yield escape(f"Note: {line}.")
        constants = Table(title="Constants of the class", title_justify="left")
        constants.add_column("name")
        constants.add_column("value", justify="right")
        for name, value in self.constants.items():
            constants.add_row(name, f"{value:.4g}")
        yield constants

    def _parameters(self, member: int) -> dict[str, float]:
        values = np.asarray(self.members.parameters[member])
        return dict(zip(self.members.names, values.tolist(), strict=True))


def _mark(holds: bool) -> str:
    return "[green]yes[/]" if holds else "[red]no[/]"
