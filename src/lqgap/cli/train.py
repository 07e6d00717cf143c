"""`lqgap train`: the policy of one method of a study, in a file."""

from pathlib import Path

from lqgap.cli.session import method_of, open_study, open_workspace
from lqgap.errors import InvalidArgumentError
from lqgap.files import require_folder


def run_train(path: Path | None, output: Path, *, method: str, seed: int | None, trust: bool) -> None:
    """Make the policy of one method and save it; checkpoints lie next to the file."""
    if output.is_dir():
        raise InvalidArgumentError(f"{output} is a folder, expected the name of a file")
    require_folder(output.parent)
    chosen = method_of(open_study(path)[0], method)  # before any work
    if chosen.kind == "reference":
        raise InvalidArgumentError(f"the method {method!r} knows the plant: there is no policy to save")
    workspace = open_workspace(path, seed=seed, trust=trust)

    from lqgap.experiments.budgets import allotted
    from lqgap.policy_files import save_policy

    checkpoints = output.with_name(f"{output.name}.checkpoints")
    with allotted(workspace.plants, f"train {method}"):
        policy = workspace.make(method, chosen, checkpoints).policy
    save_policy(output, policy)
