#!/usr/bin/env python3
"""`make soak-cluster`: five minutes of kills of two replicas of the controller, and of kube-apiserver, under claims on a real
control plane. Prints the figures.

usage: tests/soak/cluster.py [SECONDS [SEED]]
"""
import os
import pathlib
import random
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))


def main():
    made = subprocess.run([str(TESTS.parent / "tools/venv"), "kube"], stdout=subprocess.PIPE, text=True, check=True)
    python = made.stdout.strip().splitlines()[-1]
    if os.path.realpath(sys.prefix) != os.path.realpath(pathlib.Path(python).parents[1]):
        os.execv(python, [python, *sys.argv])  # the definitions are YAML, which that virtualenv can read
    from lib import chaos
    from lib.cluster import Cluster
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    with Cluster() as cluster:
        print(f"== {seconds} s of kills under {chaos.CLUSTER_CLAIMS} claims on a cluster, seed {seed}", flush=True)
        try:
            for name, figure in chaos.run_cluster(cluster, seconds, seed).items():
                print(f"{name}: {figure}", flush=True)
        except AssertionError as e:
            sys.exit(f"FAULT {e}")


if __name__ == "__main__":
    main()
