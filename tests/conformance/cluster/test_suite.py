"""The suite of the controllers (src/controller/suite*.c) where a scheduler and KWOK make the Pods run, and the column of
docs/controller-conformance.md that says so. SILICA_RECORD=1 writes that column from what the run showed."""

import os
import pathlib
import re
import subprocess

import pytest

TREE = pathlib.Path(__file__).resolve().parents[3]
SUITE = TREE / "build/debug/tests/controller/controller_suite"
PAGE = TREE / "docs/controller-conformance.md"
HEAD = "| public test | ours | result | with KWOK |"


def outcomes(said):
    """Name of a test -> OK, FAILED or SKIPPED, as cmocka prints them."""
    return {name: what for what, name in re.findall(r"^\[ +(OK|FAILED|SKIPPED) +\] (\w+)$", said, re.M)}


def named(cell):
    """The tests of the suite that a cell names: what follows `suite`, up to the next file."""
    return [name for part in re.findall(r"`suite` ([^`]*)", cell) for name in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", part)]


def verdict(cell, found):
    """A row without a test of the suite needs no server, or another: then KWOK says nothing of it."""
    results = {found.get(name, "missing") for name in named(cell)}
    if not results:
        return "—"
    return "passes" if results == {"OK"} else "not asked" if results <= {"OK", "SKIPPED"} else "fails"


def with_column(page, found):
    """The page as the run says it should be."""
    lines, is_inside = [], False
    for line in page.splitlines():
        is_inside = line == HEAD or is_inside and line.startswith("|")
        if is_inside and line != HEAD and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            line = f"| {cells[0]} | {cells[1]} | {cells[2]} | {verdict(cells[1], found)} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.timeout(900)
def test_the_controller_suite(cluster):
    if not SUITE.exists():
        pytest.skip("controller_suite is built with the unit tests")
    done = subprocess.run([SUITE, cluster.kubeconfig], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=800,
                          env={**os.environ, "ONE_VERSION": "1", "NODES_PID": str(cluster.pids["kwok"])})
    wrong = [line[:2000] for line in done.stdout.splitlines() if "FAILED" in line or "ERROR" in line or "LINE" in line]
    assert done.returncode == 0, "\n".join(wrong)
    found, page = outcomes(done.stdout), PAGE.read_text()
    assert HEAD in page.splitlines() and len(found) > 50
    if os.environ.get("SILICA_RECORD"):
        PAGE.write_text(with_column(page, found))
    assert with_column(page, found).splitlines() == page.splitlines(), "SILICA_RECORD=1 writes the column"
