"""How many examples hypothesis draws: all of them with the slow tests, and a part of them without."""

import hypothesis


def examples(count):
    """Settings with this many examples, or a third of them in the fast suite."""
    is_fast = hypothesis.settings.get_current_profile_name() == "fast"
    return hypothesis.settings(max_examples=count // 3 if is_fast else count)
