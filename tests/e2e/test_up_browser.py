"""`silica up` and browsers: its own page, and what pages of others reach of it: nothing. Judged by Chromium."""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading

import pytest

from harness.server import wait_until
from lib.up import Up

pytestmark = pytest.mark.ours
GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default"
HTML = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def up():
    with Up("--pod-addresses") as started:
        started.wait_warm()
        yield started


def claim(up, name, **spec):
    up.api.call("POST", f"{GROUP}/sandboxclaims", {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim",
                                                   "metadata": {"name": name}, "spec": spec})


def get(up, path="/", **fields):
    c = http.client.HTTPConnection(up.ready["router"].removeprefix("http://"), timeout=30)
    c.request("GET", path, headers={k.replace("_", "-"): v for k, v in fields.items()})
    answer = c.getresponse()
    body = answer.read().decode()
    c.close()
    return answer, body


def chromium(*args):
    """What Chromium prints of a page, once what the page began has ended."""
    if not shutil.which("chromium"):
        pytest.skip("no chromium on this machine")
    with tempfile.TemporaryDirectory(prefix="silica-chromium-") as profile:
        return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}",
                               *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=100).stdout


@contextlib.contextmanager
def browsing(url):
    """Chromium shows that page, until the block ends."""
    if not shutil.which("chromium"):
        pytest.skip("no chromium on this machine")
    with tempfile.TemporaryDirectory(prefix="silica-chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
                                    f"--user-data-dir={profile}", url], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_the_page(up):
    claim(up, "fine", warmPoolRef={"name": "python-sandbox-pool"})
    claim(up, "stuck", warmPoolRef={"name": "no-such-pool"})
    wait_until(lambda: up.api.call("GET", f"{GROUP}/sandboxclaims/stuck").get("status", {}).get("conditions"), 60)
    wait_until(lambda: ">fine</td>" in get(up, **HTML)[1], 30)
    answer, body = get(up, **HTML)
    assert answer.status == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY" and answer.headers["cache-control"] == "no-store"
    reason = next(c for c in up.api.call("GET", f"{GROUP}/sandboxclaims/stuck")["status"]["conditions"] if c["type"] == "Ready")
    shown = chromium("--dump-dom", up.ready["router"] + "/")
    for page in (body, shown):
        assert "python-sandbox-pool" in page and "python-sandbox-template" in page and "stuck" in page
        assert reason["reason"] in page and reason["message"][:40].split("<")[0].split('"')[0] in page
        assert "heals: <code>kubectl apply what it names, or kubectl delete sandboxclaim -n default stuck</code>" in page
        assert "<script" not in page
    assert re.search(r"\d+ of the pools, claims and sandboxes (is|are) not full, or not ready", shown)
    with tempfile.TemporaryDirectory() as d:
        picture = pathlib.Path(d) / "page.png"
        chromium(f"--screenshot={picture}", "--window-size=1100,900", up.ready["router"] + "/")
        assert picture.stat().st_size > 5000  # text was drawn
    up.api.call("DELETE", f"{GROUP}/sandboxclaims/stuck")


def test_who_gets_the_page(up):
    assert get(up)[0].status == 400  # no browser: what a sandbox's client hears
    assert get(up, x_sandbox_id="nobody", **HTML)[0].status == 404
    assert get(up, "/other", **HTML)[0].status == 400
    assert get(up, host="evil.example", **HTML)[0].status == 403
    assert get(up, origin="http://evil.example", **HTML)[0].status == 403


class Page(http.server.BaseHTTPRequestHandler):
    """A page of somebody else, on another origin of this machine."""

    def do_GET(self):
        said = self.server.page if self.path == "/" else b"own"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def do_POST(self):
        self.server.told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.do_GET()

    def log_message(self, *_):
        pass


SCRIPT = """<!doctype html><title>evil</title><iframe id=f src="%(router)s/"></iframe><script>
const told = {};
async function attempt(name, url, init) {
  try {
    const answer = await fetch(url, {signal: AbortSignal.timeout(15000), ...init});
    told[name] = answer.type + ' ' + answer.status + ' ' + (await answer.text()).slice(0, 40);
  } catch (e) { told[name] = 'failed'; }
}
const run = JSON.stringify({command: 'touch /tmp/owned'});
const to = {'x-sandbox-id': '%(sandbox)s', 'x-sandbox-namespace': 'default'};
function socket(name, url) {
  return new Promise(done => {
    const s = new WebSocket(url);
    s.onopen = () => { told[name] = 'open'; done(); };
    s.onerror = () => { told[name] = 'failed'; done(); };
  });
}
(async () => {
  await attempt('own', '/own');
  await attempt('router page', '%(router)s/', {headers: {accept: 'text/html'}});
  await attempt('router', '%(router)s/', {headers: to});
  await attempt('router execute', '%(router)s/execute', {method: 'POST', headers: {...to, 'content-type': 'application/json'}, body: run});
  await attempt('router blind', '%(router)s/execute', {method: 'POST', mode: 'no-cors', body: run});
  await attempt('pod', '%(pod)s/');
  await attempt('pod execute', '%(pod)s/execute', {method: 'POST', headers: {'content-type': 'application/json'}, body: run});
  await attempt('pod blind', '%(pod)s/execute', {method: 'POST', mode: 'no-cors', headers: {'content-type': 'text/plain'}, body: run});
  await attempt('api', '%(api)s/api/v1/pods');
  await socket('router socket', '%(router)s/ws'.replace('http', 'ws'));
  await socket('pod socket', '%(pod)s/ws'.replace('http', 'ws'));
  let framed = 'none';
  try { framed = document.getElementById('f').contentDocument.body.innerText; } catch (e) { framed = 'failed'; }
  told['frame'] = framed;
  await fetch('/told', {method: 'POST', body: JSON.stringify(told)});
  document.body.append('over');
})();
</script><body></body>"""


def test_a_page_of_somebody_else(up):
    """It reads nothing and makes nothing happen: at the router, at a Pod's address, at the API server."""
    claim(up, "target", warmPoolRef={"name": "python-sandbox-pool"})
    box = wait_until(lambda: (s := up.api.call("GET", f"{GROUP}/sandboxclaims/target").get("status", {}).get("sandbox", {})).get("podIPs") and s, 60)
    execute = {"command": "ls /tmp"}

    def files():
        c = http.client.HTTPConnection(up.ready["router"].removeprefix("http://"), timeout=30)
        c.request("POST", "/execute", json.dumps(execute), {"content-type": "application/json", "x-sandbox-id": box["name"]})
        answer = c.getresponse()
        return answer.status == 200 and json.loads(answer.read())["stdout"] + "\n"

    assert "owned" not in wait_until(files, 30)
    pod = f"http://{box['podIPs'][0]}:8888"
    # The Pod does answer, if not to that page.
    c = http.client.HTTPConnection(pod.removeprefix("http://"), timeout=30)
    c.request("GET", "/")
    assert c.getresponse().status == 200
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.told = None
    server.page = (SCRIPT % {"router": up.ready["router"], "pod": pod, "sandbox": box["name"],
                             "api": f"https://{up.ready['listen'][0]}"}).encode()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for origin in ("127.0.0.1", "localhost"):
            server.told = None
            with browsing(f"http://{origin}:{server.server_port}/"):
                told = wait_until(lambda: server.told, 60, "the page has tried everything")
            assert told.pop("own") == "basic 200 own"  # it could have
            for blind in ("router blind", "pod blind"):
                assert told.pop(blind) in ("opaque 0 ", "failed")  # it cannot know; what follows does
            assert set(told.values()) <= {"failed", "", "none"}, told
            assert "owned" not in files()
    finally:
        server.shutdown()
        server.server_close()
