#!/usr/bin/env python3
"""Measures our runtime and its peers side by side, in one run, and prints figures, ratios and goals.

usage: tests/bench/run.py [--quick] [--only ROW,...] [-o json] [--build DIR]

Rows: exec64 exec1 probe transfer memory start; run first inside pause density of sandboxes; json informer binary kube local claims cluster router; up-memory up up-many of the whole system.
Throughput rows are interleaved: every contestant once per round, and a ratio is the median of the rounds' own ratios.
Absolute times belong to this machine and this hour; nothing asserts them. A peer that cannot be had (no network, no package) leaves a gap and its reason.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import load  # noqa: E402
import rows  # noqa: E402
from harness import server  # noqa: E402

SHM_BYTES = 1 << 30  # room for five copies of the transferred file, with some to spare


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(),
            "load_before": round(os.getloadavg()[0], 2), "scratch": tempfile.gettempdir()}


def show(bench, about):
    print(f"{about['cores']} cores of {about['cpu']}, kernel {about['kernel']}, load {about['load_before']}, "
          f"files in {about['scratch']}")
    if about["load_before"] > 1:
        print("note: the machine was busy before this began; compare ratios, not figures")
    for row in dict.fromkeys(f["row"] for f in bench.figures):
        print(f"\n{rows.TITLES[row]}")
        for f in (f for f in bench.figures if f["row"] == row):
            value = "-" if f["value"] is None else f"{f['value']:,.1f}" if f["value"] < 100 else f"{f['value']:,.0f}"
            print(f"  {f['who']:<26}{value:>12} {f['unit']:<10} {f['note']}".rstrip())
        for g in (g for g in bench.goals if g["row"] == row):
            verdict = {True: "met", False: "MISSED", None: "not measured"}[g["met"]]
            value = "-" if g["value"] is None else f"{g['value']:.2f}" if g["value"] < 100 else f"{g['value']:.0f}"
            print(f"  goal: {g['goal']}: {value} ({'at most' if g['at_most'] else 'at least'} {g['want']}) {verdict}")
    met = sum(g["met"] is True for g in bench.goals)
    missed = sum(g["met"] is False for g in bench.goals)
    print(f"\n{met} goals met, {missed} missed, {len(bench.goals) - met - missed} not measured")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute or two: fewer and shorter rounds")
    parser.add_argument("--only", help="comma-separated rows")
    parser.add_argument("-o", dest="output", choices=["table", "json"], default="table")
    parser.add_argument("--build", default=str(server.TREE / "build" / "release"), help="where the helpers were built")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else list(rows.ROWS)
    unknown = [w for w in wanted if w not in rows.ROWS]
    if unknown:
        print(f"run.py: no row '{unknown[0]}'; rows: {' '.join(rows.ROWS)}", file=sys.stderr)
        return 2
    # Files in memory: the disk of a shared machine would be what is measured.
    if shutil.disk_usage("/dev/shm").free > SHM_BYTES:
        tempfile.tempdir = "/dev/shm"
    about = machine()
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="silica-bench-")))
        bench = rows.Bench(pathlib.Path(args.build) / "tests" / "bench", args.quick, work)
        servers, failed, taken = rows.Started(stack), {}, {}
        for name in wanted:
            began, neighbours = time.monotonic(), load.Neighbours()
            print(f"run.py: {name} ...", end="", file=sys.stderr, flush=True)
            try:
                rows.ROWS[name](bench, servers)
            except load.Failed as e:  # the others are worth having all the same
                failed[name] = str(e)
            taken[name] = neighbours.share()
            print(f" {time.monotonic() - began:.0f} s{': ' + failed[name] if name in failed else ''}", file=sys.stderr, flush=True)
    if args.output == "json":
        print(json.dumps({"machine": about, "taken": taken, "figures": bench.figures, "goals": bench.goals,
                          "missing": servers.why, "failed": failed}, indent=1))
    else:
        show(bench, about)
        print("of the processors others on the host took: " + ", ".join(f"{share:.1%} during {name}" for name, share in taken.items()))
        for name, why in failed.items():
            print(f"row {name} failed: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
