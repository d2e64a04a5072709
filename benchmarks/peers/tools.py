"""The other tools that are measured: what to install, which script, which answer they expect."""

from __future__ import annotations

import json
from dataclasses import dataclass

REASONING = "Both calls exist, take the arguments they are given, and cover the query."
FLAGS = {f"E{i}": False for i in range(1, 7)}
VERDICT = json.dumps({"reasoning": REASONING, **FLAGS, "grade": 1.0, "is_correct": True})
"""A verdict on a whole plan, as apbjudge's rubric asks for it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another tool.

    Attributes:
        packages: What pip installs: the tool, and its client where it leaves that to the user.
        file: Its script in this folder.
        content: What the assistant says to it.
    """

    packages: tuple[str, ...]
    file: str
    content: str


PEERS = {
    "openevals": Peer(
        ("openevals==0.2.2", "openai==3.54.0"),
        "with_openevals.py",
        json.dumps({"reasoning": REASONING, "score": True}),
    ),
    "phoenix-evals": Peer(
        ("arize-phoenix-evals==3.9.4", "openai==2.54.0"),
        "with_phoenix.py",
        json.dumps({"explanation": REASONING, "label": "correct"}),
    ),
    "autorubric": Peer(
        ("autorubric==1.6.1", "litellm==1.106.2"),
        "with_autorubric.py",
        json.dumps({"criterion_status": "MET", "explanation": REASONING}),
    ),
    "inspect_ai": Peer(
        ("inspect-ai==0.3.285", "openai==3.54.0"),
        "with_inspect.py",
        f"{REASONING}\n\nGRADE: C",
    ),
}
