"""The parts of a record, in the order in which the code has them, and then the record itself."""

import inspect

from generators.api import list_fields
from lqgap.experiments import record


def describe_record() -> str:
    """A table of fields for every part."""
    kinds = [
        each for each in vars(record).values() if inspect.isclass(each) and issubclass(each, record.Part)
    ]
    kinds = [each for each in kinds if each is not record.Part]
    return "\n\n".join(
        f"### {each.__name__}\n\n{inspect.getdoc(each)}\n\n{list_fields(each)}" for each in kinds[::-1]
    )
