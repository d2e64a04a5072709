"""Makes the example report: two judges on all example files, next to the humans' labels.

One judge is the static one. The other is ``scripted_judge.py``, asked five times an item, which
answers from the labels and wavers on purpose: figures of it say nothing about any model.

    python examples/make_report.py examples/report/report.html
"""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from pathlib import Path

from scripted_judge import Handler, read_labels

import apbjudge

HERE = Path(__file__).parent
FILES = "holistic step_wise tool_extraneous tool_broken unsolvable efficiency".split()


def graded(name: str, folder: Path, judge: apbjudge.JudgeSpec | None) -> Path:
    """The run of one judge on one example file."""
    out = folder / name
    apbjudge.grade(HERE / f"{name}.jsonl", judge=judge or "static", out=out)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the example report.")
    parser.add_argument("page", type=Path, help="file to write")
    page = parser.parse_args().page
    Handler.labels = read_labels(HERE)
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        pool.submit(server.serve_forever)
        address = f"http://127.0.0.1:{server.server_port}/v1"
        wavering = apbjudge.JudgeSpec(
            model="hosted_vllm/scripted-wavering", api_base=[address], samples=5
        )
        runs = [graded(name, Path(folder, "static"), None) for name in FILES]
        runs += [graded(name, Path(folder, "scripted"), wavering) for name in FILES]
        server.shutdown()
        labels = [HERE / "labels" / f"{name}.jsonl" for name in FILES]
        size = apbjudge.report(runs, labels=labels).write_page(page)
    print(f"{size.entries} items, {size.bytes / 2**20:.1f} MiB: {page}")


if __name__ == "__main__":
    main()
