"""`lqgap check`: the audit of a study's family, before anything is trained."""

from pathlib import Path

from rich.console import Console

from lqgap.cli.session import open_study, prepare_jax


def run_check(path: Path | None, *, trust: bool, as_json: bool) -> None:
    """Read the study, make its plants, and print which assumptions hold."""
    prepare_jax()
    study, source = open_study(path)

    from lqgap.experiments.family import make_family, signals_of
    from lqgap.experiments.plants import make_members, make_real
    from lqgap.simulators import check_assumptions

    family = make_family(study, source, trust=trust)
    members = make_members(study, family, source)
    make_real(study, family, source)
    signals_of(study, family, source)
    report = check_assumptions(members)
    if as_json:
        print(report.to_json())
    else:
        Console().print(report)
