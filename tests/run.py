#!/usr/bin/env python3
"""Runs every tier of tests and counts. `make test` calls it; needs nothing beyond Debian's python3.

usage: tests/run.py [--tier NAME]... [-k EXPRESSION] [--lanes N] [--list]

Tiers, in order:
  unit         unit tests and replayed fuzz corpora (meson test in build/debug)
  asan         the same on the sanitizer build, then the `core` tests of every suite against its runtime
  e2e          tests/e2e: the real binary, judged by bytes
  conformance  unmodified foreign clients, each in a virtualenv pinned by version
  security     tests/security: each attempt must fail
  workspace    only when asked for: pydantic-ai's suite of workspaces, by exec

Suites run in two lanes at once, as most of their time is waiting: one for what makes sandboxes and looks at the machine
as a whole, one for what only talks to servers. What a suite prints comes out when it has ended; --lanes=1 runs one after
another and prints at once.

What a machine lacks is skipped with the reason. A skip must match a line of tests/expected-skips.txt, or it
counts as a failure. Where at most three tests of a suite fail, these run once more: one that passes then counts as
passed and is named as UNSTABLE at the end, with what it said first; that is a bug of it or of ours, to be fixed.
The last line is `N passed, N failed, N skipped`; the exit status is 0 when nothing failed.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

TREE = pathlib.Path(__file__).resolve().parents[1]
TESTS = TREE / "tests"
TIERS = ["unit", "asan", "e2e", "conformance", "security"]
SECOND_TRIES = 3  # of a suite; where more fail, it is no accident
SUITE_TIMEOUT_S = int(os.environ.get("SILICA_SUITE_TIMEOUT_S", "1800"))  # soaks take longer

# suite: (virtualenv, what pytest is given below tests/)
SUITES = {
    "e2e": ("e2e", "e2e"),
    "clients": ("e2e", "conformance/clients"),
    "router": ("e2e", "conformance/router"),
    "sdk-1.0.8": ("sdk-1.0.8", "conformance/sdk"),
    "sdk-0.5.6": ("sdk-0.5.6", "conformance/sdk/test_every_release.py"),
    "sdk-0.4.6": ("sdk-0.4.6", "conformance/sdk/test_every_release.py"),
    "up-1.0.8": ("sdk-1.0.8", "conformance/up"),
    "up-1.0.8-kube-36": ("sdk-1.0.8-kube-36", "conformance/up/test_every_release.py"),
    "up-0.5.6": ("sdk-0.5.6", "conformance/up"),
    "up-0.4.6": ("sdk-0.4.6", "conformance/up"),
    "up-0.3.10": ("sdk-0.3.10", "conformance/up"),
    "up-pydantic-0.2.37": ("pydantic-0.2.37", "conformance/up_pydantic"),
    "up-pydantic-0.2.29": ("pydantic-0.2.29", "conformance/up_pydantic"),
    "pydantic-0.2.29": ("pydantic-0.2.29", "conformance/pydantic"),
    "workspace": ("pydantic-0.2.37", "conformance/workspace"),
    "kube": ("kube", "conformance/kube"),
    "kube-36": ("kube-36", "conformance/kube/test_python_client.py"),
    "cluster": ("kube", "conformance/cluster"),
    "streams": ("kube", "conformance/streams"),
    "streams-36": ("kube-36", "conformance/streams/test_python_client.py"),
    "deploy": ("kube", "conformance/deploy"),
    "deploy-1.0.8": ("sdk-1.0.8", "conformance/deploy_sdk"),
    "deploy-0.4.6": ("sdk-0.4.6", "conformance/deploy_sdk"),
    "security": ("e2e", "security"),
}
# suite: what tools/peers makes for it beforehand, with spaces between, as the first time takes longer than a suite may
PEERS = {"router": "sandbox-router", "up-1.0.8": "kubectl go-sdk-basic", "up-1.0.8-kube-36": "kubectl", "up-0.5.6": "kubectl", "up-0.4.6": "kubectl", "up-0.3.10": "kubectl",
         "kube": "control-plane", "kube-36": "control-plane", "cluster": "cluster", "streams": "control-plane", "deploy": "control-plane helm",
         "deploy-1.0.8": "control-plane go-sdk-life", "deploy-0.4.6": "control-plane"}
IN_TIER = {
    "asan": ["e2e", "clients", "sdk-1.0.8", "pydantic-0.2.29", "streams"],
    "e2e": ["e2e"],
    "conformance": ["clients", "router", "sdk-1.0.8", "sdk-0.5.6", "sdk-0.4.6", "up-1.0.8", "up-1.0.8-kube-36", "up-0.5.6", "up-0.4.6", "up-0.3.10",
                    "up-pydantic-0.2.37", "up-pydantic-0.2.29", "pydantic-0.2.29", "kube", "kube-36", "cluster", "streams", "streams-36", "deploy", "deploy-1.0.8", "deploy-0.4.6"],
    "security": ["security"],
    "workspace": ["workspace"],
}
# Only when asked for. pydantic-ai's suite calls kubernetes.stream from several threads, which puts its own function into the
# shared ApiClient while it calls: of two at once, one may send a plain GET, which any server refuses.
ON_REQUEST = ["workspace"]
# Suites that make many sandboxes, or look at the machine as a whole: one after another.
MACHINE = ["e2e", "up-*", "workspace", "security"]


Job = collections.namedtuple("Job", "tier suite runtime marks")
preparing, printing = threading.Lock(), threading.Lock()


class Count:
    """Outcomes as (id, text). An id is tier/suite/file::test."""

    def __init__(self):
        self.passed, self.failed, self.skipped, self.unstable = [], [], [], []
        self.expected = read_expected()

    def skip(self, name, reason):
        reason = " ".join(reason.split())
        if any(fnmatch.fnmatchcase(name, n) and fnmatch.fnmatchcase(reason, r) for n, r in self.expected):
            self.skipped.append((name, reason))
        else:
            self.failed.append((name, f"skipped, and not in expected-skips.txt: {reason}"))

    def again(self, mark, run):
        """Runs the few that failed since `mark` once more; run(count, names) says how."""
        first = dict(self.failed[mark:])
        if not 0 < len(first) <= SECOND_TRIES:
            return
        say(f"once more: {' '.join(first)}")
        second = Count()
        run(second, list(first))
        healed = {name for name, _ in second.passed} & first.keys()
        self.passed += [(name, "") for name in healed]
        self.unstable += [(name, first[name]) for name in healed]
        self.failed[mark:] = [(name, text) for name, text in first.items() if name not in healed]

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.unstable += other.unstable

    def line(self):
        return f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def read_expected():
    """Lines `ID-PATTERN | REASON-PATTERN`, shell patterns both."""
    rows = []
    for line in (TESTS / "expected-skips.txt").read_text().splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            name, _, reason = line.partition("|")
            rows.append((name.strip(), reason.strip() or "*"))
    return rows


def say(text):
    print(text, flush=True)


def run_meson(count, tier, build, pattern):
    name = f"{tier}/meson"
    if shutil.which("meson") is None:
        return count.skip(name, "no meson on this machine")
    if not (build / "build.ninja").exists():
        return count.skip(name, f"{build.relative_to(TREE)} is not set up")
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1", UBSAN_OPTIONS="print_stacktrace=1")
    chosen = [t for t in meson_names(build) if pattern is None or pattern in t]
    if not chosen:
        return None
    mark = len(count.failed)
    run_meson_tests(count, tier, build, env, chosen if pattern else [])
    count.again(mark, lambda second, names: run_meson_tests(
        second, tier, build, env, [t for t in chosen if f"{tier}/{t}" in names]))
    return None


def run_meson_tests(count, tier, build, env, chosen):
    log = build / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    done = subprocess.run(["meson", "test", "-C", str(build), "--print-errorlogs", *chosen], env=env)
    name = f"{tier}/meson"
    if not log.exists():
        return count.failed.append((name, f"meson test ended with {done.returncode} and left no log"))
    for line in log.read_text().splitlines():
        t = json.loads(line)
        test, result = f"{tier}/{t['name'].split(' / ')[-1].split(':', 1)[-1]}", t["result"]
        if result in ("OK", "EXPECTEDFAIL"):
            count.passed.append((test, ""))
        elif result == "SKIP":
            count.skip(test, (t.get("stdout") or "skipped by the test").strip()[-200:])
        else:
            count.failed.append((test, f"{result} {(t.get('stderr') or t.get('stdout') or '')[-2000:]}"))
    return None


def meson_names(build):
    done = subprocess.run(["meson", "introspect", "--tests", str(build)], stdout=subprocess.PIPE, check=True)
    return [t["name"] for t in json.loads(done.stdout)]


def run_pytest(count, job, keyword, out):
    """One suite; `out` is where it prints, None: to our own output."""
    venv, path = SUITES[job.suite]
    name = f"{job.tier}/{job.suite}"
    if not (TESTS / path).exists():
        return count.skip(name, f"tests/{path} does not exist")
    if not pathlib.Path(job.runtime).exists():
        return count.failed.append((name, f"no runtime at {job.runtime}; run `make all asan`"))
    with preparing:  # two lanes may want the same
        made = subprocess.run([str(TREE / "tools" / "venv"), venv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if made.returncode != 0:
            return count.skip(name, f"cannot make the virtualenv: {made.stderr.strip()[-300:]}")
        python = made.stdout.strip().splitlines()[-1]
        if job.suite in PEERS:
            made = subprocess.run([str(TREE / "tools" / "peers"), *PEERS[job.suite].split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if made.returncode != 0:
                return count.skip(name, f"cannot make the peers: {made.stderr.strip()[-300:]}")
    with tempfile.TemporaryDirectory(prefix="silica-junit-") as work:
        argv = [python, "-m", "pytest", path, "--tb=short", "-o", "addopts=-q --strict-markers", "-o", f"cache_dir={work}/cache"]
        argv += ["-m", job.marks] if job.marks else []
        argv += ["-k", keyword] if keyword else []
        env = dict(os.environ, SILICA_RUNTIME=str(job.runtime), PYTHONDONTWRITEBYTECODE="1")
        silica = pathlib.Path(job.runtime).parent.parent / "cli" / "silica"  # of the same build
        if silica.exists():
            env["SILICA"] = str(silica)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        mark = len(count.failed)
        run_pytest_once(count, name, argv, env, work, out)
        count.again(mark, lambda second, _: run_pytest_once(
            second, name, [*argv, "--last-failed", "--last-failed-no-failures=none"], env, work, out))
    return None


def run_pytest_once(count, name, argv, env, work, out):
    report = pathlib.Path(work) / "report.xml"
    report.unlink(missing_ok=True)
    try:
        status = subprocess.run([*argv, f"--junitxml={report}"], cwd=TESTS, env=env, stdout=out, stderr=subprocess.STDOUT,
                                timeout=SUITE_TIMEOUT_S).returncode
    except subprocess.TimeoutExpired:
        return count.failed.append((name, f"did not end within {SUITE_TIMEOUT_S} s"))
    if status == 5:  # nothing selected
        return None
    if not report.exists():
        return count.failed.append((name, f"pytest ended with {status} and left no report"))
    return read_junit(count, name, report, status)


def read_junit(count, name, report, status):
    failed_before = len(count.failed)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        test = f"{name}/{case.get('classname', '').split('.')[-1]}::{case.get('name')}"
        skipped = case.find("skipped")
        broken = [e for kind in ("failure", "error") for e in case.findall(kind)]
        if broken:
            count.failed.append((test, (broken[0].get("message") or "")[:500]))
        elif skipped is not None:
            count.skip(test, skipped.get("message") or "no reason")
        else:
            count.passed.append((test, ""))
    if status not in (0, 1) and len(count.failed) == failed_before:
        count.failed.append((name, f"pytest ended with {status}"))


def jobs_of(tier):
    if tier == "unit":
        return []
    runtime, marks = os.environ.get("SILICA_RUNTIME") or TREE / "build" / "silica-runtime", None
    if tier == "asan":
        runtime, marks = TREE / "build" / "asan" / "src" / "runtime" / "silica-runtime", "core"
    return [Job(tier, suite, runtime, marks) for suite in IN_TIER[tier]]


def run_lane(jobs, keyword, is_alone):
    """One after another; what each counted comes back, as (job, count, seconds)."""
    done = []
    for job in jobs:
        count, began = Count(), time.monotonic()
        with tempfile.TemporaryFile() as out:
            if is_alone:
                say(f"\n== {job.tier}: {job.suite}")
            run_pytest(count, job, keyword, None if is_alone else out)
            out.seek(0)
            with printing:
                if not is_alone:
                    say(f"\n== {job.tier}: {job.suite}\n{out.read().decode(errors='replace')}")
                say(f"-- {job.tier}: {job.suite}: {count.line()} in {time.monotonic() - began:.0f} s")
        done.append((job, count, time.monotonic() - began))
    return done


def run_suites(count, jobs, keyword, lanes):
    """All suites of all tiers; the count gets them in the order of the tiers."""
    machine = [j for j in jobs if any(fnmatch.fnmatchcase(j.suite, m) for m in MACHINE)]
    others = [j for j in jobs if j not in machine]
    if lanes == 1 or not machine or not others:
        done = run_lane(jobs, keyword, True)
    else:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            both = [pool.submit(run_lane, lane, keyword, False) for lane in (machine, others)]
            done = [row for lane in both for row in lane.result()]
    for job, counted, _ in sorted(done, key=lambda row: jobs.index(row[0])):
        count.add(counted)
    for tier in dict.fromkeys(j.tier for j in jobs):
        total = Count()
        for job, counted, _ in done:
            if job.tier == tier:
                total.add(counted)
        say(f"---- {tier}, its suites: {total.line()} in {sum(s for j, _, s in done if j.tier == tier):.0f} s of a lane")


def restore_signals():
    """A shell's & and nohup start us with these ignored. Programs below would inherit that, and tests send them."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", action="append", choices=TIERS + ON_REQUEST, help="run only this tier; may be repeated")
    parser.add_argument("-k", dest="keyword", help="run only tests whose name matches, as pytest's -k")
    parser.add_argument("--lanes", type=int, choices=[1, 2], default=2, help="how many suites may run at once")
    parser.add_argument("--list", action="store_true", help="print the tiers and suites, run nothing")
    args = parser.parse_args()
    if args.list:
        for tier in TIERS + ON_REQUEST:
            say(f"{tier}: {' '.join(IN_TIER.get(tier, ['meson']))}")
        return 0
    restore_signals()
    count = Count()
    tiers = [t for t in TIERS + ON_REQUEST if t in (args.tier or TIERS)]
    for tier in tiers:
        if tier in ("unit", "asan"):  # meson knows itself how many to run at once
            say(f"\n==== {tier}")
            counted, began = Count(), time.monotonic()
            run_meson(counted, tier, TREE / "build" / ("debug" if tier == "unit" else "asan"), args.keyword)
            count.add(counted)
            say(f"---- {tier}, its units: {counted.line()} in {time.monotonic() - began:.0f} s")
    say("\n==== suites")
    run_suites(count, [job for tier in tiers for job in jobs_of(tier)], args.keyword, args.lanes)
    for name, reason in count.skipped:
        say(f"SKIPPED {name}: {reason}")
    for name, text in count.unstable:
        say(f"UNSTABLE {name}: {text}")
    for name, text in count.failed:
        say(f"FAILED {name}: {text}")
    say(count.line())
    return 1 if count.failed else 0


if __name__ == "__main__":
    sys.exit(main())
