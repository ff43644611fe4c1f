"""`silica-runtime --install FILE`: how it gets into a container of an image that nobody changed."""

import os
import subprocess

import pytest

from harness.server import binary

pytestmark = pytest.mark.core


def install(file, **kw):
    return subprocess.run([binary(), "--install", file], capture_output=True, text=True, timeout=60, **kw)


def test_the_copy_serves(tmp_path):
    done = install(tmp_path / "runtime", umask=0o077)  # that of an init container: another user runs it
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.listdir(tmp_path) == ["runtime"] and (tmp_path / "runtime").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "runtime").read_bytes() == open(binary(), "rb").read()


def test_it_replaces_one_that_runs(tmp_path):
    assert install(tmp_path / "runtime").returncode == 0
    old = (tmp_path / "runtime").stat().st_ino
    running = subprocess.Popen([tmp_path / "runtime", "--listen", "127.0.0.1:0", "--root", tmp_path], stderr=subprocess.DEVNULL)
    try:
        assert install(tmp_path / "runtime").returncode == 0
        assert (tmp_path / "runtime").stat().st_ino != old and running.poll() is None
    finally:
        running.kill()
        running.wait()


@pytest.mark.parametrize("where, why", [
    ("missing/runtime", "cannot create '{}/missing/runtime.new': No such file or directory"),
    ("taken", "cannot rename '{0}/taken.new' to '{0}/taken': Is a directory"),
])
def test_what_cannot_be_written(tmp_path, where, why):
    (tmp_path / "taken").mkdir()
    done = install(tmp_path / where)
    assert done.returncode == 1 and done.stderr == f"silica-runtime: {why.format(tmp_path)}\n"
    assert os.listdir(tmp_path) == ["taken"], "nothing half-done is left"
