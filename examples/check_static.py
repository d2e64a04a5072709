"""How much of the labelled faults the static judge proves, and whether it ever proves too much.

    python examples/check_static.py

The examples and their labels are our own, so this is no measure of real predictions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import apbjudge

HERE = Path(__file__).parent
NAMES = ("holistic", "step_wise", "tool_extraneous", "tool_broken", "unsolvable", "efficiency")


def main() -> int:
    false_proofs = 0
    for name in NAMES:
        lines = (HERE / "labels" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        labels = {(row["item_id"], row["tested_model"]): row for row in map(json.loads, lines)}
        wrong = proven = 0
        for judgement in apbjudge.grade(HERE / f"{name}.jsonl").judgements:
            if not isinstance(judgement, apbjudge.Verdict):
                print(f"{name}: {judgement.detail}")
                return 1
            label = labels[judgement.item_id or "", judgement.tested_model or ""]
            wrong += not label["is_correct"]
            proven += not label["is_correct"] and not judgement.is_correct
            flags = [code for code, is_set in (judgement.errors or {}).items() if is_set]
            false_proofs += label["is_correct"] and not judgement.is_correct
            false_proofs += any(not label["errors"][code] for code in flags)
        print(f"{name}: {len(labels)} labelled, {wrong} wrong, {proven} of them proven")
    print(f"proofs that contradict a label: {false_proofs}")
    return 1 if false_proofs else 0


if __name__ == "__main__":
    sys.exit(main())
