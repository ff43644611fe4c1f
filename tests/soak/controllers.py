#!/usr/bin/env python3
"""`make soak-controllers`: five minutes of kills of controller and API server under 200 claims, then leaders that are killed and
stand still. Prints the figures.

usage: tests/soak/controllers.py [SECONDS [SEED]]
"""
import pathlib
import random
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from lib import chaos  # noqa: E402


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"== {seconds} s of kills under {chaos.CLAIMS} claims, seed {seed}", flush=True)
    try:
        for name, figure in chaos.run(seconds, seed).items():
            print(f"{name}: {figure}", flush=True)
    except AssertionError as e:
        sys.exit(f"FAULT {e}")
    print("== failover", flush=True)
    sys.exit(subprocess.run([sys.executable, "tests/run.py", "--tier", "e2e", "-k", "takes_over or stood_still"], cwd=TESTS.parent).returncode)


if __name__ == "__main__":
    main()
