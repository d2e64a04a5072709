"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PROTOCOL_HELP = (
    "holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency, or auto: each row "
    "by its split or its fields."
)

Predictions = Annotated[Path, typer.Argument(help="JSONL file, one prediction a line.")]
ProtocolOption = Annotated[str, typer.Option(help=PROTOCOL_HELP)]
Cases = Annotated[
    Path | None, typer.Option(help="JSONL file of cases, joined with the predictions on id.")
]
RubricOption = Annotated[
    str | None, typer.Option(help="name@version of a shipped rubric, or a TOML file.")
]
Blind = Annotated[bool, typer.Option("--blind", help="Judge without the reference.")]
NoEvidence = Annotated[
    bool,
    typer.Option("--no-evidence", help="Neither tell the judge what code proved nor enforce it."),
]
NoImages = Annotated[bool, typer.Option("--no-images", help="Show the judge no pictures.")]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        help="static (no network; the default), or a litellm model such as openai/gpt-5, with its "
        "address after @; several make a panel."
    ),
]
Addresses = Annotated[
    list[str] | None,
    typer.Option(help="Address of an OpenAI-compatible server; several for its replicas."),
]
Config = Annotated[
    list[str] | None, typer.Option(help="KEY=VALUE or a TOML file of the settings below.")
]
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Folder that paths of pictures are looked for in, before the input's own."),
]
Cluster = Annotated[str, typer.Option(help="Field whose equal values hang together, or none.")]
Adjudicator = Annotated[
    str | None, typer.Option(help="Rater whose word is final; else the majority's is.")
]
Level = Annotated[float, typer.Option(help="Confidence level.")]
Format = Annotated[str, typer.Option(help="text or json.")]
