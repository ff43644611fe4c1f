"""What `silica controller` shows of its inside: profiles that `go tool pprof` opens, the same as text, and logs that change while it runs."""

import concurrent.futures
import gzip
import http.client
import os
import pathlib
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from harness.server import wait_until
from lib import controlplane
from lib.controllers import Controller

pytestmark = pytest.mark.ours
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"


@pytest.fixture(scope="module")
def api():
    with controlplane.Silica("--log-level", "warn") as server:
        yield server


@pytest.fixture(scope="module")
def shown(api):
    with Controller(api, "--leader-elect=false", "--enable-webhook=false", "--enable-pprof-debug") as c:
        c.wait_for("controller.working")
        yield c


def get(c, path):
    try:
        with urllib.request.urlopen(f"http://{c.ready['metrics']}{path}", timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def pprof(profile, tmp_path, *options):
    go = shutil.which("go")
    if not go:
        pytest.skip("no Go on this machine")
    file = tmp_path / "profile.pb.gz"
    file.write_bytes(profile)
    done = subprocess.run([go, "tool", "pprof", "-top", *options, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          env={**os.environ, "PPROF_TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def busy(api, c, path):
    """The profile, taken while there is something to do."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        taken = pool.submit(get, c, path)
        i = 0
        while not taken.done():
            i += 1
            with urllib.request.urlopen(f"http://{c.ready['metrics']}/metrics", timeout=30) as answer:
                answer.read()
            if i % 20 == 0:
                name = f"busy-{os.urandom(4).hex()}"
                api.call("POST", SANDBOXES, {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": name},
                                             "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}})
        return taken.result()


def test_processor_time_for_go_tool_pprof(api, shown, tmp_path):
    status, profile = busy(api, shown, "/debug/pprof/profile?seconds=2")
    assert status == 200 and gzip.decompress(profile)
    top = pprof(profile, tmp_path)
    assert "Type: cpu" in top and "Duration: 2" in top and "Total samples = 0 " not in top
    status, text = busy(api, shown, "/debug/pprof/profile?seconds=1&debug=1")
    assert status == 200 and text.startswith(b"samples: ") and b"#\t0x" in text


@pytest.mark.parametrize("is_shipped", [True, False])
def test_names(api, tmp_path, is_shipped):
    """`silica` as it is shipped has no symbols, but the names of its functions; a program with its symbols has them there."""
    program = pathlib.Path(os.environ.get("SILICA", controlplane.TREE / "build" / "silica"))
    full = next((p for p in (program.parent / "silica-full", controlplane.TREE / "build" / "debug" / "src" / "cli" / "silica-full") if p.exists()), None)
    if not is_shipped and not full:
        pytest.skip("no program with symbols was built")
    with Controller(api, "--leader-elect=false", "--enable-webhook=false", "--enable-pprof", program=str(program if is_shipped else full)) as c:
        c.wait_for("controller.working")
        top = pprof(busy(api, c, "/debug/pprof/profile?seconds=2")[1], tmp_path, "-cum")
        assert "ev_loop_run" in top and "controller_command" in top
        assert get(c, "/debug/pprof/heap")[0] == 404  # --enable-pprof alone is the profile alone


def test_wall_time_and_one_at_a_time(shown, tmp_path):
    host, _, port = shown.ready["metrics"].rpartition(":")
    first = http.client.HTTPConnection(host, int(port), timeout=60)
    first.request("GET", "/debug/fgprof?seconds=3")  # it is there before the others connect, so it is the first
    assert get(shown, "/debug/pprof/profile?seconds=1") == (500, b"another profile is being taken")
    assert get(shown, "/debug/fgprof?seconds=1") == (500, b"another profile is being taken")
    answer = first.getresponse()
    profile = answer.read()
    assert answer.status == 200 and "Type: time" in pprof(profile, tmp_path)
    assert get(shown, "/debug/pprof/profile?seconds=0")[0] == 400
    assert get(shown, "/debug/pprof/profile?seconds=1&debug=1")[0] == 200  # free again


def test_a_reader_who_leaves_ends_it(shown):
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://{shown.ready['metrics']}/debug/pprof/profile?seconds=200", timeout=0.5)
    wait_until(lambda: get(shown, "/debug/pprof/profile?seconds=1&debug=1")[0] == 200, 90)


def test_memory_and_work_by_room(api, shown, tmp_path):
    api.call("POST", SANDBOXES, {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "memory"},
                                 "spec": {"podTemplate": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}})
    wait_until(lambda: api.exists("/api/v1/namespaces/default/pods/memory"), 30)
    text = get(shown, "/debug/pprof/heap?debug=1")[1].decode()
    rows = {line.split(None, 2)[2]: tuple(map(int, line.split()[:2])) for line in text.splitlines()[1:]}
    assert rows["copies/Sandbox"][0] >= 1 and rows["copies/Sandbox"][1] > 100 and rows["process/everything else"][1] > 10000
    assert "copies/Sandbox" in pprof(get(shown, "/debug/pprof/heap")[1], tmp_path)
    assert "queue/sandbox/waiting" in get(shown, "/debug/pprof/goroutine?debug=1")[1].decode()
    for name in ("goroutine", "allocs", "block", "mutex"):
        assert gzip.decompress(get(shown, f"/debug/pprof/{name}")[1])
    assert b"--enable-pprof-debug" in get(shown, "/debug/pprof/cmdline")[1]
    assert get(shown, "/debug/pprof/symbol")[1].startswith(b"num_symbols: ")
    assert b"/debug/fgprof" in get(shown, "/debug/pprof/")[1]
    assert get(shown, "/debug/pprof/trace")[0] == 501 and get(shown, "/debug/other")[0] == 404


def test_nothing_without_the_flag(api):
    with Controller(api, "--leader-elect=false", "--enable-webhook=false") as c:
        assert get(c, "/debug/pprof/profile?seconds=1")[0] == 404 and get(c, "/debug/pprof/")[0] == 404


def test_debug_logs_by_signal(api):
    with Controller(api, "--leader-elect=false", "--zap-log-level=error", "--manage-webhook-certs", "--webhook-cert-check=100ms") as c:
        c.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: c.said("controller.log") and c.said("controller.log")[-1]["is_debug"], 20)
        c.process.send_signal(signal.SIGUSR1)
        c.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: get(c, "/metrics")[0] == 200, 20)
        c.end()
