"""`lqgap train`: the policy of one method of a study, in a file."""

from pathlib import Path

from lqgap.cli.session import open_workspace
from lqgap.errors import InvalidArgumentError
from lqgap.files import require_folder


def run_train(path: Path | None, output: Path, *, method: str, seed: int | None, trust: bool) -> None:
    """Make the policy of one method and save it; checkpoints lie next to the file."""
    if output.is_dir():
        raise InvalidArgumentError(f"{output} is a folder, expected the name of a file")
    require_folder(output.parent)
    workspace = open_workspace(path, seed=seed, trust=trust)

    from lqgap.experiments.methods import make_policy
    from lqgap.policies import save_policy

    study = workspace.study
    chosen = {name: part for name, part in study.methods.chosen.items() if name not in ("oracle", "vtr")}
    if method not in chosen:
        raise InvalidArgumentError(f"the study has no method {method!r}, only {', '.join(chosen)}")
    made = make_policy(
        method,
        chosen[method],
        family=workspace.plants.family,
        members=workspace.members,
        horizon=study.horizon,
        ends=study.ends,
        seed=study.seed,
        checkpoints=output.with_name(f"{output.name}.checkpoints"),
    )
    save_policy(output, made.policy)
