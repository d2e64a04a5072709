"""One more fact of a judgement is one more line in one file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import apbjudge

LINE = "    over_refusal: Annotated"
FACT = '    is_loud: Annotated[bool | None, _fact("raises its voice", is_new=True)] = None\n'
SCRIPT = """
import json, sys
from pathlib import Path
from apbjudge import frame
from apbjudge.records import Verdict, check_written_row, judgement_row
from apbjudge.records.run_folder import read_run
from apbjudge.reports.page.items import judgement_view

names = "item_id case_id tested_model protocol rubric judge fingerprint".split()
fields = {**dict.fromkeys(names, "x"), "line": 1, "is_correct": True}
row = judgement_row(Verdict(is_loud=True, **fields))
file = Path(sys.argv[1])
file.write_text(json.dumps(row))
run = read_run(file)
shown = judgement_view(run.row_at(0))["facts"]["raises its voice"]
older = check_written_row({name: row[name] for name in row if name != "is_loud"})["is_loud"]
table = int(run.table.facts["is_loud"][0])
print(json.dumps([older, row["is_loud"], table, bool(frame(file).is_loud[0]), shown]))
"""


def test_one_more_line_is_in_file_table_frame_and_page(tmp_path: Path) -> None:
    copy = shutil.copytree(Path(apbjudge.__file__).parent, tmp_path / "apbjudge")
    file = copy / "records" / "judgements.py"
    before, line, after = file.read_text().partition(LINE)
    file.write_text(before + FACT + line + after)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "judgements.jsonl")]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, check=False, text=True)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [None, True, 1, True, True]
