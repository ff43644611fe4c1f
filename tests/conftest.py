"""Fixtures shared by every pytest tier.

runtime        a server of the target program with default settings, shared by the tests of one file
start_runtime  starts one with arguments of the test's own: start_runtime("--flag", token=..., env=...)
Marks: contract("A") names the contract a test is about; a peer that does not serve it skips the test.
A failing test carries the log of every server it touched.
"""

import os
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import server as servers  # noqa: E402

for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
    os.environ.pop(name, None)  # clients here speak to 127.0.0.1; a proxy would be what is judged

SANITIZER = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")
alive = []  # every server the tests have started and not stopped


def pytest_configure(config):
    config.addinivalue_line("markers", "contract(letter): the contract of docs/runtime.md that the test is about")
    config.addinivalue_line("markers", "ours: asks for more than the peer gives, so only our runtime is judged")
    config.addinivalue_line("markers", "core: part of the short selection that also runs on the sanitizer build")


def pytest_collection_modifyitems(config, items):
    target = servers.target()
    peer = os.environ.get("SILICA_TARGET", "silica")
    if peer == "silica":
        return
    for item in items:
        letters = [m.args[0] for m in item.iter_markers("contract")]
        if any(letter not in target.contracts for letter in letters):
            item.add_marker(pytest.mark.skip(reason=f"{peer} does not serve contract {letters}"))
        elif item.get_closest_marker("ours"):
            item.add_marker(pytest.mark.skip(reason=f"more than {peer} promises"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for s in alive:
            report.sections.append((f"log of pid {s.pid} {' '.join(map(str, s.process.args))}", s.log[-20000:]))


def begin(*args, **kwargs):
    s = servers.target()(*args, **kwargs)
    alive.append(s)
    return s


def end(s):
    s.stop()
    alive.remove(s)
    log = s.log
    s.remove()
    if SANITIZER.search(log):
        pytest.fail(f"a sanitizer spoke:\n{log[-20000:]}", pytrace=False)


@pytest.fixture(scope="module")
def runtime():
    s = begin()
    yield s
    was_alive = s.is_alive()
    status, log = s.process.returncode, s.log
    end(s)
    assert was_alive, f"the server died during these tests, status {status}:\n{log[-20000:]}"


@pytest.fixture
def start_runtime():
    mine = []

    def start(*args, **kwargs):
        s = begin(*args, **kwargs)
        mine.append(s)
        return s

    yield start
    for s in mine:
        end(s)
