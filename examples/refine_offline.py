"""From cases to a refined, graded comparison, offline and in one go.

    python examples/refine_offline.py

Two scripted tested models plan (``scripted_model.py``), a scripted critic reviews their drafts,
they write final answers, and a scripted judge (``scripted_judge.py``) grades both. Nobody here
thinks: the figures show what the commands do and say nothing about any model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from scripted_judge import HERE, Handler, Server, read_labels
from scripted_model import Examples, TestedModelHandler

import apbjudge
from apbjudge.reports.paper.formatting import tables_text

MODELS = ("hosted_vllm/birch-medium", "hosted_vllm/cress-small")
TABLES = ("refinement", "refinement-changes")


@contextmanager
def serving(handler: type[Handler]) -> Iterator[str]:
    """A server on a free port; yields its address."""
    with Server(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


def main() -> None:
    Handler.labels = read_labels(HERE)
    TestedModelHandler.examples = Examples(HERE)
    cases = HERE / "cases.jsonl"
    with (
        serving(TestedModelHandler) as asked_model,
        serving(Handler) as judge,
        TemporaryDirectory() as folder,
    ):
        out = Path(folder)
        models = [
            apbjudge.TestedModelSpec(model=f"{name}@{asked_model}", vision="yes") for name in MODELS
        ]
        critic = apbjudge.TestedModelSpec(model=f"hosted_vllm/critic@{asked_model}", vision="yes")
        scripted = apbjudge.JudgeSpec(model=f"hosted_vllm/scripted@{judge}", images=False)

        drafts = apbjudge.predict(cases, model=models, out=out / "drafts", cache=False)
        base = apbjudge.grade(drafts, cases=cases, judge=scripted, out=out / "base", cache=False)
        runs: dict[str, apbjudge.Run] = {}
        for mode in ("critic", "static"):
            final = apbjudge.refine(
                drafts,
                mode=mode,
                critic=critic if mode == "critic" else None,
                out=out / mode,
                cache=False,
            )
            method = f"{mode}+" if mode == "critic" else mode
            runs[method] = apbjudge.grade(
                final, cases=cases, judge=scripted, out=out / f"graded-{mode}", cache=False
            )
        report = apbjudge.report(base, refined=list(runs.items()), tables=TABLES)
        sys.stdout.write(tables_text(report.tables))


if __name__ == "__main__":
    main()
