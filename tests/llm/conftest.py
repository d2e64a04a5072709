"""What is not ours to warn of."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A remark of pydantic on litellm's types, made when the first reply is read; not ours."""
    remark = pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning")
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here:
            item.add_marker(remark)
