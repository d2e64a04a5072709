"""Names of models, as they are asked for and as endpoints report them."""

from __future__ import annotations

import re

_VERSION = re.compile(r"[-@:_](?:(?:\d{3,8}|\d{4}-\d\d-\d\d)(?:-v\d+(?::\d+)?)?|latest|default)")
"""A provider's addition to the name of a model: a date or a number of at least three digits.

One or two digits distinguish models: gpt-4.1 is not gpt-4.
"""


def is_same_model(asked: str, served: str) -> bool:
    """True if a reported name may be that of the model asked, apart from provider and version."""
    name, reported = (each.lower().rpartition("/")[2] for each in (asked, served))
    names = (name, name.removesuffix("-latest"))
    return reported in names or any(
        reported.startswith(each) and _VERSION.fullmatch(reported[len(each) :]) for each in names
    )


def may_be_one_model(name: str, other: str) -> bool:
    """True if two names may be of one model, whichever of them has the version."""
    return is_same_model(name, other) or is_same_model(other, name)
