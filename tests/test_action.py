"""The GitHub action: its steps are run here, as a runner would run them."""

from __future__ import annotations

import json
import os
import re
import site
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the command of this checkout, which pip installs without a network."""
    path = tmp_path_factory.mktemp("wheel") / "apbjudge-0-py3-none-any.whl"
    paths = [str(ROOT / "src"), sysconfig.get_path("purelib"), *site.getsitepackages()]
    info = {
        "METADATA": "Metadata-Version: 2.1\nName: apbjudge\nVersion: 0\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": "[console_scripts]\napbjudge = apbjudge.__main__:main\n",
    }
    files = {f"apbjudge-0.dist-info/{name}": text for name, text in info.items()}
    files["checkout.pth"] = "\n".join(dict.fromkeys(paths)) + "\n"
    files["apbjudge-0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


class Runner:
    """Runs the steps in an empty folder, each with an environment of its own."""

    def __init__(self, folder: Path, runner_temp: Path) -> None:
        self.folder = folder
        self.runner_temp = runner_temp
        self.summary = folder / "summary.md"
        self.outputs = folder / "outputs"

    def step(self, at: int, **inputs: str) -> subprocess.CompletedProcess[str]:
        step = ACTION["runs"]["steps"][at]
        given = {f"inputs.{name}": spec.get("default", "") for name, spec in self.specs.items()}
        given |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        given["github.action_path"] = str(ROOT)

        def value(match: re.Match[str]) -> str:
            return next(filter(None, (given[name] for name in match[1].split(" || "))), "")

        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an input is pasted into a script"
        env = {name: EXPRESSION.sub(value, text) for name, text in step["env"].items()}
        self.summary.touch()
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "PIP_NO_INDEX": "1",
                "RUNNER_TEMP": str(self.runner_temp),
                "GITHUB_OUTPUT": str(self.outputs),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                **env,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def specs(self) -> dict[str, Any]:
        return ACTION["inputs"]

    @property
    def output(self) -> dict[str, str]:
        lines = self.outputs.read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def runner_temp(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first step of the action leaves: an environment with the command."""
    folder = tmp_path_factory.mktemp("runner")
    done = Runner(folder, folder).step(0, package=str(package), python=sys.executable)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def runner(tmp_path: Path, runner_temp: Path) -> Runner:
    return Runner(tmp_path, runner_temp)


PREDICTIONS = str(ROOT / "examples" / "holistic.jsonl")


@pytest.mark.slow
def test_a_job_passes_where_all_gates_do(runner: Runner) -> None:
    done = runner.step(
        1, predictions=PREDICTIONS, fail_under="alder-large: no provable fault >= 0.8\n\nE1=0.1"
    )
    assert done.returncode == 0, done.stderr
    assert runner.output == {
        "exit-code": "0",
        "junit": "apbjudge-run/junit.xml",
        "run": "apbjudge-run",
    }
    assert runner.summary.read_text(encoding="utf-8").startswith("## all 4 gates passed\n")
    suites = ET.parse(runner.folder / runner.output["junit"]).getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("4", "0")


@pytest.mark.slow
def test_a_job_fails_with_a_gate_and_its_page_says_which(runner: Runner) -> None:
    inputs = {"predictions": PREDICTIONS, "fail_under": "E6<=0.1", "by": "modality"}
    for _ in range(2):  # the same job again, in the same folder
        done = runner.step(1, **inputs)
        assert done.returncode == 3, done.stderr
    assert runner.output["exit-code"] == "3"
    page = runner.summary.read_text("utf-8")
    assert "### E6 \\<= 0.1\n" in page
    assert "| failed | holistic, cress-small |" in page
    summary = json.loads((runner.folder / runner.output["run"] / "summary.json").read_bytes())
    outcomes = {gate["outcome"] for gate in summary["gates"] if "modality" in gate["group"]}
    assert outcomes == {"passed", "failed"}


@pytest.mark.slow
def test_an_input_with_a_command_in_it_is_only_a_name(runner: Runner) -> None:
    done = runner.step(1, predictions='x"; touch broken; $(touch broken) `touch broken`')
    assert done.returncode == 2
    assert not (runner.folder / "broken").exists()
    assert "exit code 2 and no results" in runner.summary.read_text(encoding="utf-8")


def test_pinned_versions_are_those_that_the_project_allows() -> None:
    pinned = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8")
    versions = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", pinned, re.MULTILINE))
    assert pinned.count("--hash=sha256:") >= len(versions)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for needed in map(Requirement, project["dependencies"]):
        assert versions[needed.name] in needed.specifier
