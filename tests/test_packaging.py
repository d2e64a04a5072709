"""What is published: the wheel and the source archive, and the wheel without the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import yaml

from apbjudge.version import VERSION

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DATA = {".toml", ".j2", ".js", ".css", ".html", ".jsonl", ".yml", ".sh"}
"""Kinds of files that the package has besides Python: its rubrics, templates, page, audit cases."""
MIB = 1 << 20


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel"]
    done = subprocess.run(
        [*command, "-d", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "warning" in done.stderr.lower()) == (0, False), done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    return dist / f"apbjudge-{VERSION}-py3-none-any.whl"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    info = f"apbjudge-{VERSION}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        sizes = {each.filename: each.file_size for each in archive.infolist()}
    own = {name for name in sizes if not name.startswith(f"{info}/")}
    expected = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "apbjudge").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert own == expected
    assert {name.removeprefix(f"{info}/") for name in sizes.keys() - own} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }
    assert {Path(name).suffix for name in own} <= {".py", ".pyi", ".typed", *DATA}
    assert not [name for name in own if "test" in Path(name).parts]
    assert max(size for name, size in sizes.items() if name in own) < 0.6 * MIB
    assert wheel.stat().st_size < 2.5 * MIB


def test_the_source_archive_holds_what_it_is_built_and_tested_from(dist: Path) -> None:
    path = dist / f"apbjudge-{VERSION}.tar.gz"
    with tarfile.open(path) as archive:
        parts = [Path(name).parts for name in archive.getnames()]
    assert {part[1] for part in parts if len(part) > 1} == {
        *("PKG-INFO", "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", ".gitignore"),
        *("pyproject.toml", "action.yml", "src", "tests", "examples", "benchmarks"),
    }
    assert path.stat().st_size < 5 * MIB


def test_the_metadata_are_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"apbjudge-{VERSION}.dist-info/METADATA").decode()
    fields = Counter(line.partition(":")[0] for line in metadata.partition("\n\n")[0].splitlines())
    needed = "Version Summary Author Keywords Requires-Python License-Expression Project-URL"
    assert set(needed.split()) <= fields.keys()
    assert fields["Project-URL"] == len(PROJECT["urls"])
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    names = [{"name": author["name"]} for author in PROJECT["authors"]]
    assert (citation["version"], citation["authors"]) == (VERSION, names)


@pytest.mark.slow
def test_the_readmes_first_command_runs_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"pip install \. && \S*apbjudge grade (\S+) (.*)", readme)
    assert match is not None
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes((ROOT / match[1]).read_bytes())
    code = "import apbjudge; from apbjudge.__main__ import main; print(apbjudge.__file__); main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "grade", rows.name, *match[2].split(), "--out", "run"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "site"))
    assert (tmp_path / "run" / "summary.json").exists()


OWNERS = {
    "pyproject.toml",
    "docs/contributing.md",
    "docs/construct.md",
    "docs/gates.md",
    "src/apbjudge/judge/starter/plans.yml",
}


def test_the_places_that_wait_for_the_owner_are_those_of_the_checklist() -> None:
    listed = ["pyproject.toml", "action.yml", "README.md", "CITATION.cff", ".pre-commit-hooks.yaml"]
    paths = [ROOT / name for name in listed]
    paths += [*(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("*.yml")]
    found = {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if re.search(r"\bOWNER\b", path.read_text(encoding="utf-8"))
    }
    assert found == OWNERS
    checklist = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in checklist for name in OWNERS - {"docs/contributing.md"})


@pytest.mark.slow
def test_the_hook_of_pre_commit_checks_files_of_cases() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    pattern = re.compile(hook["files"])
    names = ("cases.jsonl", "data/cases.jsonl", "old_cases.jsonl", "cases.jsonl.gz")
    assert [bool(pattern.search(name)) for name in names] == [True, True, False, False]
    command = [sys.executable, "-m", *hook["entry"].split()]
    one = ROOT / "examples" / "asked" / "cases.jsonl"
    done = subprocess.run([*command, one], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
