"""Recipes of ``docs/contributing.md`` that change the package, each carried out in a copy of it.

Of the others an example is run: a protocol (``protocols/test_own_protocol``), a log format
(``trajectories/test_reading``), an environment (``agents/environments/execution/test_command``), a
function as a judge (``judge/test_function``).
"""

from __future__ import annotations

import json
import os
import re
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


def test_the_map_has_a_row_for_every_folder_and_no_other() -> None:
    """Of the package, its agents, tests, benchmarks; and every module next to the folders."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    rows = page.partition("## Map")[2].partition("## Recipes")[0].splitlines()
    cells = [row.split(" | ")[0] for row in rows if row.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`([\w./]+)`", cell)}
    package = ROOT / "src" / "apbjudge"
    exist = {path.stem for path in package.glob("*.py")} - {"__init__"}
    for folder in (package, package / "agents", package / "agents" / "environments"):
        inits = folder.glob("*/__init__.py")
        exist |= {path.parent.relative_to(package).as_posix() for path in inits}
    for top in ("tests", "benchmarks", "docs", ".ci", "examples"):
        exist.add(top)
    own = [
        path for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name[0] not in "_."
    ]
    exist |= {f"tests/{path.name}" for path in own if path.name not in exist}
    assert named == exist | {"benchmarks/peers"}


def test_set_up_is_by_the_commands_of_the_readme() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line for line in readme if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert "\n".join(commands) in page


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


CHECK = '''"""Volume."""

from .rules import finding


def shouts(item, rubric):
    """E3, proven: the name of a tool in capitals."""
    for call in item.prediction.calls:
        if call.name.isupper():
            yield finding("shouts", "E3", "proven", call.where, "a name in capitals")
'''


@pytest.mark.slow
def test_a_static_check_is_a_function_a_sentence_and_its_place(copy: Copy, tmp_path: Path) -> None:
    (copy.package / "protocols" / "checks" / "volume.py").write_text(CHECK)
    copy.insert("protocols/table.py", "from .checks.volume import shouts\n", "from .images")
    copy.insert("protocols/table.py", "    shouts,\n", "    used_before_made,\n")
    copy.insert("protocols/checks/rules.py", '    "shouts": "the plan shouts",\n', '    "format": ')
    loud = plan_row("a")["model_response"].replace("find_train", "FIND_TRAIN")
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("a", model_response=loud)])
    copy.python("-m", "apbjudge", "grade", rows, "--out", tmp_path / "run")
    judgement = json.loads((tmp_path / "run" / "judgements.jsonl").read_text())
    assert (judgement["errors"]["E3"], judgement["is_correct"]) == (True, False)


OPTION = '    is_loud: bool = Field(default=False, description="Raise the voice.")\n'


@pytest.mark.slow
def test_an_option_of_a_command_is_a_field(copy: Copy) -> None:
    copy.insert("calibration/config.py", OPTION, '    cluster: Cluster = "case_id"')
    assert "--is-loud" in copy.python("-m", "apbjudge", "calibrate", "--help")


ADAPTER = '''"""An adapter to a tool that hands over texts."""

from .judging import check_options, results_of, row_of


def score(output, example, **options):
    check_options(options, "another tool")
    [result] = results_of([row_of(output, example)], **options)
    return result.score
'''


@pytest.mark.slow
def test_an_adapter_is_one_file(copy: Copy) -> None:
    (copy.package / "integrations" / "another.py").write_text(ADAPTER)
    row = plan_row("a")
    code = (
        "from apbjudge.integrations.another import score; import json, sys;"
        "row = json.loads(sys.argv[1]); print(score(row.pop('model_response'), row))"
    )
    assert copy.python("-c", code, json.dumps(row)).startswith("1.0")


STRICT = '''"""A judge that passes nothing."""

from .static import StaticJudge


class StrictJudge(StaticJudge):
    name = "rules/strict"

    def judge(self, task, fingerprint):
        return super().judge(task, fingerprint).model_copy(update={"is_correct": False})
'''
CHOICE = """    if first.spec.model == "rules/strict":
        return [StrictJudge() for _ in configs]
"""


@pytest.mark.slow
def test_a_kind_of_judge_is_a_class_and_its_name(copy: Copy, tmp_path: Path) -> None:
    (copy.package / "judge" / "strict.py").write_text(STRICT)
    copy.insert("judge/session.py", "from .strict import StrictJudge\n", "from .summary ")
    copy.insert("judge/session.py", CHOICE, "    if first.spec.is_static:\n        return")
    rows = write_rows(tmp_path / "rows.jsonl", [plan_row("a")])
    grade = ["grade", rows, "--judge", "rules/strict", "--out", tmp_path / "run"]
    copy.python("-m", "apbjudge", *grade)
    judgement = json.loads((tmp_path / "run" / "judgements.jsonl").read_text())
    assert (judgement["judge"], judgement["is_correct"]) == ("rules/strict", False)
