"""Write docs/assumptions.md: which assumptions hold for the built-in families, as printed and repaired."""

import pathlib

import lqgap
from lqgap.simulators import Audit, check_assumptions
from lqgap.simulators.plants import FAMILIES

PAGE = pathlib.Path(__file__).parent / "assumptions.md"
POINTS = 3
HEADER = """# Which assumptions hold

Written by `python docs/assumptions.py`: every built-in family with its default uncertainty, on a grid of {points} points along each interval, audited by
`lqgap.check_assumptions`. *Printed* is the condition as the paper states it, *repaired* what the corrected theory needs: general noise, stabilisable and
detectable instead of controllable and observable. Coordinates of the state are free: closed loops contract if they do in one weighted norm, found over the class; no verdict depends on units.

| family | rho(A) | norm of A - BK | gamma_1, weighted | gamma_2 | holds |
|---|---|---|---|---|---|
"""

REMARKS = """## What fails, and what to do about it

Of a family that fails after repair, what fails; of the others, what was repaired.
"""


def main() -> None:
    """Audit every family and write the table."""
    lqgap.enable_x64()
    audits = {name: check_assumptions(make().grid(POINTS)) for name, make in FAMILIES.items()}
    passed = sum(audit.holds_after_repair for audit in audits.values())
    rows = "\n".join(_row(name, audit) for name, audit in audits.items())
    summary = f"{passed} of {len(audits)} families hold after repair."
    remarks = "\n".join(_remarks(name, audit) for name, audit in audits.items() if not audit.holds_as_printed)
    PAGE.write_text(f"{HEADER.format(points=POINTS)}{rows}\n\n{summary}\n\n{REMARKS}\n{remarks}\n")
    print(PAGE.read_text())


def _row(name: str, audit: Audit) -> str:
    constants = audit.constants
    contracts = audit.contraction is not None and audit.contraction.holds
    cells = [
        f"`{name}`",
        f"{constants['rho']:.4f}",
        f"{constants['gamma_1']:.3g}",
        f"{constants['gamma_1_weighted']:.3f}" if contracts else "none",
        f"{constants['gamma_2']:.2g}",
        "as printed" if audit.holds_as_printed else "repaired" if audit.holds_after_repair else "no",
    ]
    return "| " + " | ".join(cells) + " |"


def _remarks(name: str, audit: Audit) -> str:
    """What nothing repairs, or else what was repaired."""
    failures = [check for check in audit.checks if not check.repaired]
    told = failures or [check for check in audit.checks if not check.as_printed]
    return "\n".join([f"- `{name}`", *(f"  - {check.statement}: {check.remedy}." for check in told)])


if __name__ == "__main__":
    main()
