"""What a server's prefix cache saves, with the first item of a case ahead of the others or not.

    python benchmarks/prefix_cache.py --model smollm2-135m --api-base http://127.0.0.1:8000/v1

Every run begins with another word, so that none finds what an earlier one left in the cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from apbjudge import JudgeSpec, grade, load_rubric

RUBRIC = "small-unsolvable@1"


def rows(cases: int, models: int) -> list[dict[str, Any]]:
    """Short cases with the same reply of several tested models."""
    return [
        {
            "id": f"table-{case:02}",
            "tested_model": f"asked_model-{model}",
            "split": "holistic_unsolvable",
            "unsolvable_type": "information_missing",
            "query": f"Book table {case} of the place we spoke of. " * 8,
            "model_response": f"Which place do you mean, and when? ({model})",
        }
        for case in range(cases)
        for model in range(models)
    ]


def fresh_rubric(folder: Path) -> str:
    """The rubric with a first word that no cache knows."""
    word = uuid.uuid4().hex
    task = load_rubric(RUBRIC).task
    path = folder / f"{word}.toml"
    path.write_text(f'extends = "{RUBRIC}"\ntask = "{word} {task}"\n', encoding="utf-8")
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a prefix cache saves.")
    parser.add_argument("--model", required=True, help="as the server knows it")
    parser.add_argument("--api-base", required=True)
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--tested-models", type=int, default=4)
    parser.add_argument("--concurrency", type=int, default=16)
    options = parser.parse_args()
    print("first ahead  seconds  prompt tokens  cached  unscored")
    for lead in (False, True):
        judge = JudgeSpec(
            model=f"hosted_vllm/{options.model}",
            api_base=(options.api_base,),
            max_reply_tokens=100,
            params={"frequency_penalty": 1.0},
            max_concurrency=options.concurrency,
            lead=lead,
        )
        with tempfile.TemporaryDirectory() as folder:
            rubric = fresh_rubric(Path(folder))
            begun = time.monotonic()
            work = rows(options.cases, options.tested_models)
            totals = grade(work, judge=judge, rubric=rubric, cache=False).summary.totals
        taken = time.monotonic() - begun
        share = totals.cached_tokens / totals.prompt_tokens
        unscored = sum(totals.unscored.values())
        print(f"{lead!s:11}  {taken:7.1f}  {totals.prompt_tokens:13}  {share:6.0%}  {unscored:8}")


if __name__ == "__main__":
    main()
