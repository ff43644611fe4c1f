#!/usr/bin/env python3
"""`make soak-apiserver`: what the API server's tests do, for longer: 300 kills under write load, 30,000 power cuts of its disk,
10,000 watches with a connection each.

usage: tests/soak/apiserver.py
"""
import os
import pathlib
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]


def run(what, argv, **env):
    print(f"== {what}", flush=True)
    status = subprocess.run(argv, cwd=TREE, env={**os.environ, **env}).returncode
    if status:
        print(f"FAULT {what}: status {status}", flush=True)
    return status != 0


def main():
    cuts = TREE / "build" / "debug" / "apiserver_store_disk_test"
    faults = run("power cuts", [str(cuts)], SILICA_CUT_SEEDS="1-5000")
    faults += run("kills and watches", [sys.executable, "tests/run.py", "--tier", "e2e", "-k", "test_api_"],
                  SILICA_API_KILLS="300", SILICA_API_CONNECTIONS="10000", SILICA_SUITE_TIMEOUT_S="7200")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
