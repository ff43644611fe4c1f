"""What a person sees with kubectl when a claim does not get its sandbox: the commands of the public troubleshooting guide, on a real
server and on ours, with `silica controller` at work on both. Columns, conditions and Events name the cause; once that is put right
they say so, too."""

import pytest

from conftest import kubectl_of
from harness.server import wait_until
from lib.controllers import Controller, ready_pods
from things import CLAIMS, POOLS, SANDBOXES, TEMPLATES, claim, pool, sandbox, template

ENV = [{"name": "A", "value": "1"}]


@pytest.fixture(scope="module")
def controller(target):
    with Controller(target, "--leader-elect=false") as c:
        c.wait_for("controller.working")
        yield c


class Person:
    """Somebody with kubectl in one namespace."""

    def __init__(self, api, ns):
        self.api, self.ns, self.tool = api, ns, kubectl_of("kubectl", api, ns)

    def make(self, path, thing):
        answer = self.api.request("POST", path.format(ns=self.ns), json=thing)
        assert answer.status_code == 201, answer.text

    def see(self, *line):
        done = self.tool.run(*line)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def until(self, text, *line):
        """Until the command shows it; returns everything that it shows then."""
        shown = []

        def is_there():
            shown.append(self.see(*line))
            return text in shown[-1]

        try:
            wait_until(is_there, 60, text)
        except AssertionError:
            raise AssertionError(f"no '{text}' in:\n{shown[-1]}") from None
        return shown[-1]

    def until_row(self, cells):
        """`kubectl get sandboxclaims` shows one claim so."""
        wait_until(lambda: self.row() == cells, 60, f"{cells}")

    def row(self):
        head, line = self.see("get", "sandboxclaims").splitlines()
        assert head.split() == ["NAME", "READY", "SANDBOX", "REASON", "AGE"]
        at = [head.index(name) for name in head.split()] + [None]
        return [line[a:b].strip() for a, b in zip(at, at[1:])][:4]


@pytest.fixture
def person(api, ns, controller):
    return Person(api, ns)


def warnings(text):
    """The lines of Events of a description that are warnings: (reason, from, message)."""
    lines = text.split("Events:")[1].splitlines()
    return [(w[1], w[-2], w[-1]) for w in ([cell for cell in line.strip().split("  ") if cell] for line in lines) if w and w[0].strip() == "Warning"]


def told(person, reason, message):
    """The description of the claim c has the condition and exactly one Event of it."""
    shown = person.until(f"Warning  {reason}", "describe", "sandboxclaim", "c")
    conditions = shown.split("Conditions:")[1].split("Events:")[0]
    assert f"Reason:                {reason}" in conditions and message in conditions, shown
    assert "Status:                False" in conditions and "Type:                  Ready" in conditions, shown
    found = [w for w in warnings(shown) if w[0].strip() == reason]
    assert len(found) == 1 and found[0][1].strip() == "sandboxclaim-controller" and message in found[0][2], shown


def test_a_claim_without_pool_and_template(person):
    person.make(CLAIMS, claim("c", pool="p"))
    person.until_row(["c", "False", "", "WarmPoolNotFound"])
    told(person, "WarmPoolNotFound", 'SandboxWarmPool "p" not found')
    person.make(POOLS, pool("p", replicas=0))
    person.until_row(["c", "False", "", "TemplateNotFound"])
    told(person, "TemplateNotFound", 'SandboxTemplate "template" not found')
    assert 'SandboxTemplate "template" not found' in person.until("TemplateNotFound", "describe", "sandboxwarmpool", "p")
    assert person.see("get", "sandboxtemplates") == ""
    person.make(TEMPLATES, template("template"))
    assert [line.split()[0] for line in person.see("get", "sandboxtemplates").splitlines()] == ["NAME", "template"]
    wait_until(lambda: ready_pods(person.api.target, person.ns), 60, "a Pod")
    person.until_row(["c", "True", "c", "DependenciesReady"])
    assert "Normal   SandboxProvisioned" in person.until("SandboxProvisioned", "describe", "sandboxclaim", "c")
    assert person.see("wait", "sandboxclaim/c", "--for=condition=Ready", "--timeout=30s").strip().endswith("condition met")
    shown = person.see("events", "--for", "sandboxclaim/c")
    assert [reason in shown for reason in ("WarmPoolNotFound", "TemplateNotFound", "SandboxProvisioned")] == [True] * 3
    head, *rows = person.see("get", "sandboxes").splitlines()
    assert head.split() == ["NAME", "READY", "REASON", "AGE"] and rows[0].split()[:3] == ["c", "True", "DependenciesReady"]
    head, *rows = person.see("get", "sandboxwarmpools").splitlines()
    assert head.split() == ["NAME", "READY", "DESIRED", "AGE"] and rows[0].split()[:3] == ["p", "0", "0"]


@pytest.mark.parametrize("reason, message, spec", [
    ("EnvVarsInjectionRejected", 'SandboxTemplate "template" does not allow it', {"env": ENV}),
    ("InvalidMetadata", 'label "team"', {"additionalPodMetadata": {"labels": {"team": "x"}}}),
])
def test_a_claim_that_asks_for_too_much(person, reason, message, spec):
    person.make(TEMPLATES, template("template"))
    person.make(POOLS, pool("p", replicas=0))
    person.make(CLAIMS, claim("c", pool="p", **spec))
    person.until_row(["c", "False", "", reason])
    told(person, reason, message)


def test_a_claim_whose_name_is_taken(person):
    person.make(TEMPLATES, template("template"))
    person.make(POOLS, pool("p", replicas=0))
    person.make(SANDBOXES, sandbox("c"))
    person.make(CLAIMS, claim("c", pool="p"))
    person.until_row(["c", "False", "", "ReconcilerError"])
    told(person, "ReconcilerError", "Please use a different claim name or delete the sandbox manually")
    person.see("delete", "sandbox", "c")
    wait_until(lambda: ready_pods(person.api.target, person.ns), 60, "a Pod")
    person.until_row(["c", "True", "c", "DependenciesReady"])


def test_a_sandbox_that_can_never_run(person):
    bad = sandbox("s")
    bad["spec"] = {"podTemplate": {"spec": {"containers": [{"name": "Not A Name", "image": "i"}]}}}
    person.make(SANDBOXES, bad)
    shown = person.until("Warning  InvalidConfiguration", "describe", "sandbox", "s")
    assert "Not A Name" in shown.split("Events:")[1] and "Reason:                InvalidConfiguration" in shown, shown
