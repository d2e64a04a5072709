"""``apbjudge entropy``: compares a model's uncertainty with its errors."""

from __future__ import annotations

from ..agents.environments.branching.config import EntropyConfig
from .options import Output, Values, command, print_problems, print_result


@command(EntropyConfig, Output)
def entropy(values: Values) -> int:
    """Prints whether a model errs where it is uncertain: entropies against errors.

    Exit code 0: done; 1: done, but some rows were unusable; 2: unusable input or options.
    """
    from ..agents.environments.branching.analysis import entropy as analyse
    from ..agents.environments.branching.analysis_text import entropy_document

    result = analyse(EntropyConfig.of(values))
    print_result(result, entropy_document, Output.of(values).format)
    return print_problems(result.problems)
