"""Writes the cases that ``apbjudge audit`` uses when it is given no rows.

Of each example case one prediction that its label passes, of several the first that takes another
way than the reference; cases with pictures are left out. Run it again when an example or a label
has changed:

    python examples/make_audit_cases.py src/apbjudge/audits/data
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from apbjudge.audits.making.bases import Base, find_bases
from apbjudge.judge import Source, Task
from apbjudge.records import read_labels
from apbjudge.records.rows import item_row

HERE = Path(__file__).parent
FILES = ("holistic", "step_wise", "tool_extraneous", "efficiency", "tool_broken", "unsolvable")


def bases() -> Iterator[Base]:
    for name in FILES:
        labels = read_labels(HERE / "labels" / f"{name}.jsonl", bad=print)
        passed = {(label.item_id, str(label.tested_model)) for label in labels if label.is_correct}
        tasks = [task for task in Source(HERE / f"{name}.jsonl") if isinstance(task, Task)]
        found = find_bases(tasks, passed).found
        yield from (base for base in found if base.origin == "label" and not base.item.files)


def row_of(base: Base) -> dict[str, Any]:
    # What the prompt demanded is known of our own examples, not of what an audit's user grades.
    return {k: v for k, v in item_row(base.item).items() if k != "format_demanded"}


def label_of(base: Base) -> dict[str, Any]:
    item = base.item
    return {"item_id": item.item_id, "tested_model": item.tested_model, "is_correct": True}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    found = list(bases())
    for name, make in (("cases", row_of), ("labels", label_of)):
        lines = (json.dumps(make(base), ensure_ascii=False) + "\n" for base in found)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    print(f"{len(found)} cases")


if __name__ == "__main__":
    main()
