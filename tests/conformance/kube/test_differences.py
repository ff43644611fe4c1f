"""docs/kubernetes-api.md tells every difference that the tests allow."""

import json

from differences import DIFFERENCES
from lib.controlplane import TREE
from transcript import GOLDEN


def test_manual_tells_them():
    manual = " ".join((TREE / "docs" / "kubernetes-api.md").read_text().split())
    untold = {reason for *_, reason in DIFFERENCES if " ".join(reason.split()) not in manual}
    assert not untold


def test_an_error_stays_one():
    """Where the status may differ, the real one is a 500: ours is asked for a refusal by its own tests, not for success."""
    for scenario, step, path, reason in DIFFERENCES:
        if path == "status":
            steps = [s for s in json.loads((GOLDEN / f"{scenario}.json").read_text()) if s["step"] == step]
            assert [s["status"] for s in steps] == [500], (scenario, step)


def test_scenarios_are_there():
    names = {path.stem for path in GOLDEN.glob("*.json")}
    assert not {scenario for scenario, *_ in DIFFERENCES if "*" not in scenario} - names
