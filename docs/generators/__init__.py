"""What the code says of itself, as Markdown: a line `<!-- api lqgap.systems -->` of a page is filled by `api`."""

import re

from generators.api import describe_package, list_names
from generators.commands import describe_commands, list_exit_codes
from generators.keys import describe_keys
from generators.record import describe_record

GENERATORS = {
    "api": describe_package,
    "names": list_names,
    "commands": describe_commands,
    "exit-codes": list_exit_codes,
    "keys": describe_keys,
    "record": describe_record,
}
MARK = re.compile(r"^<!-- (\S+) ?(\S*) -->$", re.MULTILINE)


def fill(text: str) -> str:
    """The page with every mark replaced."""
    return MARK.sub(lambda mark: GENERATORS[mark[1]](*filter(None, [mark[2]])), text)
