"""`lqgap check`: the audit of a study's family, before anything is trained."""

from pathlib import Path

from rich.console import Console

from lqgap.cli.session import open_study, prepare_jax


def run_check(path: Path | None, *, trust: bool, as_json: bool) -> None:
    """Read the study, make its plants, and print which assumptions hold."""
    prepare_jax()
    study, source = open_study(path)

    from lqgap.experiments.plants import Plants
    from lqgap.experiments.responses import make_schedule
    from lqgap.simulators import check_assumptions

    plants = Plants(study, source, trust=trust)
    members, _, _ = plants.members, plants.real, plants.signals
    if study.response is not None:
        make_schedule(plants)
    report = check_assumptions(members)
    if as_json:
        print(report.to_json())
    else:
        Console().print(report)
