"""Recipes of ``docs/contributing.md`` that change the package, each carried out in a copy of it.

Of the others an example is run: a protocol (``test_own_rubric``), a log format
(``trajectories/test_reading``), an environment (``agents/environments/execution/test_command``), a
function in a model's place (``judge/test_function``); a metric is stated in
``judge/test_trajectories``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import apbjudge
from tests.support.judging import MODEL, plan_row, verdict, write_rows
from tests.support.server import Answer, ChatServer, in_turn

ROOT = Path(__file__).parent.parent


class Copy:
    """A copy of the package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = shutil.copytree(Path(apbjudge.__file__).parent, folder / "apbjudge")

    def insert(self, file: str, line: str, before: str) -> None:
        """A line in front of another one."""
        path = self.package / file
        head, found, tail = path.read_text().partition(before)
        assert found
        path.write_text(f"{head}{line}{found}{tail}")

    def python(self, *arguments: object, code: int = 0) -> str:
        """Standard output of Python with it."""
        command = [sys.executable, *map(str, arguments)]
        env = {**os.environ, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(command, env=env, capture_output=True, check=False, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


FACT = '    is_loud: Annotated[bool | None, _fact("raises its voice", is_new=True)] = None\n'
SHOWN = """
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


@pytest.mark.slow
def test_a_fact_of_a_judgement_is_in_file_table_frame_and_page(copy: Copy, tmp_path: Path) -> None:
    copy.insert("records/judgements.py", FACT, "    over_refusal: Annotated")
    out = copy.python("-c", SHOWN, tmp_path / "judgements.jsonl")
    assert json.loads(out) == [None, True, 1, True, True]


SETTING = '    tone: str = Field(default="plain", description="Tone of voice.")\n'


@pytest.mark.slow
def test_a_setting_of_a_judge_refuses_no_earlier_run(copy: Copy, tmp_path: Path) -> None:
    rows, answer = (
        write_rows(tmp_path / "rows.jsonl", [plan_row("a")]),
        Answer(json.dumps(verdict())),
    )
    with ChatServer(in_turn([answer])) as server:
        grade = ["grade", rows, "--judge", MODEL, "--api-base", server.address]
        grade += ["--out", tmp_path / "run"]
        copy.python("-m", "apbjudge", *grade)
        copy.insert("judge/config.py", SETTING, "    blind: bool = Field")
        copy.insert("judge/config.py", '    "tone "\n', '    "model temperature seed')
        assert "--tone" in copy.python("-m", "apbjudge", "grade", "--help")
        file = tmp_path / "run" / "judgements.jsonl"
        before = file.read_bytes()
        copy.python("-m", "apbjudge", *grade)
        assert file.read_bytes() == before
        refusal = copy.python("-m", "apbjudge", *grade, "--tone", "loud", code=2)
        assert "tone" in refusal


def test_the_map_names_every_folder() -> None:
    """Of the package, of its agents, of the tests; and every module beside the folders."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "apbjudge"
    names = [path.name for path in package.iterdir() if (path / "__init__.py").exists()]
    names += [path.stem for path in package.glob("[a-z]*.py")]
    for wing in ("agents", "agents/environments"):
        folders = (package / wing).glob("*/__init__.py")
        names += [f"{wing}/{path.parent.name}" for path in folders]
    names += [f"tests/{name}" for name in ("support", "browser", "golden", "real")]
    assert [name for name in names if f"`{name}`" not in page] == []


KIND = 'PERFECT = good("perfect", "grade 1.0")\n'
ESTIMATE = """    if len(graded):
        metrics.append(PERFECT.of(over(c.grade[graded] == 1.0, graded)))
"""


@pytest.mark.slow
def test_a_metric_of_tested_models_is_a_kind_and_its_estimate(copy: Copy, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("a"), plan_row("b")])
    copy.insert("judge/metrics.py", KIND, "UNDECIDED = ")
    copy.insert("judge/metrics.py", ESTIMATE, "    for i, code in enumerate(c.error_codes):")
    with ChatServer(in_turn([Answer(json.dumps(verdict()))])) as server:
        grade = ["grade", rows, "--judge", MODEL, "--api-base", server.address]
        grade += ["--out", tmp_path / "run", "--fail-under"]
        assert "perfect" in copy.python("-m", "apbjudge", *grade, "perfect>=0.9")
    assert '"perfect"' in (tmp_path / "run" / "summary.json").read_text()


PROBE = '''"""Volume."""

from .base import AuditProbe
from .measures import shift


class Volume(AuditProbe):
    name, title, roles = "volume", "Volume", ("base",)
    question = "Is a loud plan graded like another?"

    def values(self):
        yield shift("loud minus quiet", self.asked, lambda plan: 0.0, "within", 0.1)
'''


@pytest.mark.slow
def test_a_probe_of_an_audit_is_two_files(copy: Copy, tmp_path: Path) -> None:
    (copy.package / "audits" / "probes" / "volume.py").write_text(PROBE)
    copy.insert("audits/probes/__init__.py", "from .volume import Volume\n", "\nOF_RESPONSES")
    copy.insert("audits/probes/__init__.py", "    Volume,\n", ')\n"""Probes of')
    audit = ["audit", "static", "--quick", "--bases", "2", "--fail-on", "volume"]
    assert "Volume" in copy.python("-m", "apbjudge", *audit, "--out", tmp_path / "card")
