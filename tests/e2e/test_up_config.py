"""`silica up --config FILE`: the same as its options, and what a new directory is given."""

import http.client
import subprocess

import pytest

from lib.up import Up, program

pytestmark = pytest.mark.ours
GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
CONFIG = """
log-level: debug
router-workers: 2
allow-host: [box.example]
images:
- names: ["team/tool:*"]
  root: host
  command: [sleep, "3600"]
templates:
- name: tool
  spec:
    podTemplate:
      spec:
        containers: [{name: tool, image: "team/tool:v2"}]
        terminationGracePeriodSeconds: 0
pools:
- {name: tool-pool, template: tool, replicas: 2}
"""


def silica(*args):
    return subprocess.run([program(), *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=100)


@pytest.fixture
def write(tmp_path):
    def to(text, name="up.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return to


def names(up, plural):
    return sorted(item["metadata"]["name"] for item in up.api.call("GET", f"{GROUP}/{plural}")["items"])


def host_is_served(up, name):
    c = http.client.HTTPConnection(up.ready["router"].removeprefix("http://"), timeout=30)
    try:
        c.request("GET", "/x", headers={"Host": name, "X-Sandbox-ID": "none"})
        return c.getresponse().status
    finally:
        c.close()


def test_a_system_of_ones_own(write):
    with Up("--config", write(CONFIG)) as up:
        assert names(up, "sandboxtemplates") == ["tool"] and names(up, "sandboxwarmpools") == ["tool-pool"]
        up.wait_warm("tool-pool")
        pods = up.api.call("GET", "/api/v1/namespaces/default/pods?labelSelector=app%21%3Dsandbox-router")["items"]
        assert {c["image"] for p in pods for c in p["spec"]["containers"]} == {"team/tool:v2"}
        assert host_is_served(up, "box.example") == 404 and host_is_served(up, "other.example") in (403, 421)
        assert (up.data / "logs" / "router" / "log").read_text().count("event=router.worker ") == 2
        assert "level=debug" in (up.data / "logs" / "control" / "log").read_text()
        # Another file adds; what was given before, and ours whose place it took, are not given again.
        up.kubectl("delete", "sandboxwarmpool", "tool-pool")
        assert up.end() == 0
        up.start("--config", write("pools: [{name: later, template: tool, replicas: 0}, {name: tool-pool, template: tool}]"))
        assert names(up, "sandboxwarmpools") == ["later"] and names(up, "sandboxtemplates") == ["tool"]
        assert not (up.data / "images.json").exists()
        assert up.end() == 0
        up.start()
        assert names(up, "sandboxwarmpools") == ["later"] and names(up, "sandboxtemplates") == ["tool"]


def test_what_holds_is_printed(write):
    first = silica("up", "--print-config")
    assert first.returncode == 0 and "log-level: info\n" in first.stdout and "- name: python-sandbox-pool\n" in first.stdout
    assert silica("up", "--config", write(first.stdout), "--print-config").stdout == first.stdout
    shown = silica("up", "--config", write(CONFIG), "--print-config", "--log-level", "warn").stdout
    assert "log-level: warn\n" in shown, "a flag wins"
    assert "\nrouter-workers: \"2\"\n" in shown
    assert "allow-host:\n- box.example\n" in shown and "- team/tool:*\n" in shown and "python-sandbox-pool" not in shown


@pytest.mark.parametrize("text, said, hint", [
    ("log-level: info\nrouter_listen: 127.0.0.1:0\n", "line 2: 'router_listen' is nothing that is known here", "did you mean 'router-listen'?"),
    ("listen: [a, b]\n", "line 1: 'listen' is one value, not a list", ""),
    ("images:\n- {names: [a], root: host}\n- {name: [a], root: host}\n", "line 3: 'name' is nothing that is known here", ""),
    ("pools:\n- {name: p, template: t, replicas: many}\n", "line 2: replicas is no number", ""),
    ("router-workers: many\n", "--router-workers: 'many' is neither auto nor a number up to 64", ""),
    ("verbose: loud\n", "line 1: verbose: 'loud' is not true or false", ""),
    ("log-level: loud\n", "--log-level: 'loud' is not debug, info, warn or error", ""),
])
def test_what_is_wrong(write, tmp_path, text, said, hint):
    done = silica("up", "--config", write(text), "--data", tmp_path / "data")
    assert done.returncode == 2 and said in done.stderr and hint in done.stderr and not (tmp_path / "data").exists()


def test_what_the_api_refuses(write, tmp_path):
    """It ends with the API's own words, and nothing is left running."""
    text = "templates: [{name: t, spec: {podTemplate: {spec: {containers: 5}}}}]"
    done = silica("up", "--config", write(text), "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--router-listen", "127.0.0.1:0")
    assert done.returncode == 125 and "cannot make what a new directory has" in done.stderr, done.stderr


def test_images_in_two_places(write, tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "images.yaml").write_text("images: []\n")
    done = silica("up", "--config", write(CONFIG), "--data", data)
    assert done.returncode == 125 and "says images" in done.stderr and "hint: keep them in one" in done.stderr
    assert [p.name for p in data.glob("images*")] == ["images.yaml"]
