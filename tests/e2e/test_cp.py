"""silica cp, both ways: what comes back, what is refused, and what happens when either side breaks or lies."""

import io
import os
import pathlib
import signal
import stat
import subprocess
import tarfile
import threading
import time
import uuid

import pytest

from harness.caller import NOBODY, caller_or_skip
from harness.server import wait_until
from harness.talker import Talker
from harness.terminal import Terminal

pytestmark = [pytest.mark.ours, pytest.mark.core]


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    owner = caller_or_skip(request.param, Talker)
    yield owner
    owner.remove()


@pytest.fixture(scope="module")
def box(who):
    return who.up()


@pytest.fixture
def here(who):
    """A directory of the caller's on the host."""
    path = who.home / f"here-{uuid.uuid4().hex[:8]}"
    path.mkdir()
    give(who, path)
    return path


def give(who, *paths):
    """They become the caller's."""
    if who.prefix:
        for path in paths:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def sample(who, root):
    (root / "sub/deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "big").write_bytes(os.urandom(3_000_000))
    (root / "none").write_bytes(b"")
    (root / "sub/run").write_text("#!/bin/sh\n")
    (root / "sub/deep/n\new \udcff\N{SNOWMAN}").write_text("odd")
    (root / ("l" * 200)).write_text("long")
    (root / "up").symlink_to("../../../../etc/shadow")
    (root / "sub/dangling").symlink_to("nowhere")
    (root / "sub/run").chmod(0o751)
    (root / "sub/deep").chmod(0o750)
    os.utime(root / "none", (1_000_000_000, 1_000_000_000))
    for at, dirs, files in os.walk(root):
        give(who, at, *(os.path.join(at, name) for name in dirs + files))


def seen(root):
    """Everything below it: what it is, its mode, its content."""
    found = {}
    for at, dirs, files in os.walk(root):
        for name in dirs + files:
            path = pathlib.Path(at, name)
            st = path.lstat()
            found[str(path.relative_to(root))] = (
                stat.filemode(st.st_mode) if not path.is_symlink() else "l",
                os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None,
                int(st.st_mtime) if path.is_file() and not path.is_symlink() else None)
    return found


def leftovers(who, box):
    return who.sh(box, "find / -xdev -name '.silica-cp-*' 2>/dev/null || true") + who.sh(box, "find /workspace /tmp -name '.silica-cp-*'")


# ---- what is copied ----


def test_a_tree_there_and_back(who, box, here):
    (here / "t").mkdir()
    sample(who, here / "t")
    who.ok("cp", here / "t", f"{box}:/workspace/copy")
    assert who.sh(box, "cat /workspace/copy/sub/run; readlink /workspace/copy/up; stat -c %a /workspace/copy/sub/run") == \
        "#!/bin/sh\n../../../../etc/shadow\n751\n"
    who.ok("cp", f"{box}:copy", here / "back")  # relative to the home
    assert seen(here / "back") == seen(here / "t")
    assert leftovers(who, box) == ""
    who.sh(box, "rm -rf /workspace/copy")


def test_where_things_land(who, box, here):
    (here / "f").write_text("f")
    (here / "d").mkdir()
    (here / "d/x").write_text("x")
    who.sh(box, "rm -rf /tmp/w; mkdir -p /tmp/w/dir; echo old > /tmp/w/old")
    for source, target, path in [("f", "/tmp/w/dir", "dir/f"), ("f", "/tmp/w/dir/", "dir/f"), ("f", "/tmp/w/g", "g"), ("f", "/tmp/w/old", "old"),
                                 ("d", "/tmp/w/dir", "dir/d/x"), ("d", "/tmp/w/e", "e/x"), ("d/.", "/tmp/w/c", "c/x"), ("d/.", "/tmp/w/dir", "dir/x")]:
        who.ok("cp", f"{here}/{source}", f"{box}:{target}")
        assert who.sh(box, f"cat /tmp/w/{path}") == source[0].replace("d", "x"), (source, target)
    for target, text in [("/tmp/none/x", "in the sandbox: cannot write to '/tmp/none/x'"), ("/tmp/w/new/", "in the sandbox: cannot write to"),
                         ("/tmp/w/old/x", "in the sandbox: cannot write to '/tmp/w/old/x'"), ("/usr/x", "in the sandbox: cannot write")]:
        who.says(text, 125, "cp", here / "f", f"{box}:{target}")
    who.ok("cp", f"{box}:/tmp/w/dir/d", f"{here}/new")
    assert (here / "new/x").read_text() == "x"
    who.ok("cp", f"{box}:/tmp/w/dir/d/.", here)
    assert (here / "x").read_text() == "x"


def test_names_here_with_a_colon(who, box, here):
    (here / "a:b").write_text("colon")
    done = subprocess.run([*who.prefix, who.silica, "cp", "./a:b", f"{box}:/tmp/colon"], env=who.env, cwd=here, capture_output=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*who.prefix, who.silica, "cp", f"{box}:/tmp/colon", "./c:d"], env=who.env, cwd=here, capture_output=True)
    assert (done.returncode, (here / "c:d").read_text()) == (0, "colon")


def test_what_cannot_be_read(who, box, here):
    who.says(f"cannot read '{here}/none': No such file or directory\n", 125, "cp", here / "none", f"{box}:")
    who.says("in the sandbox: cannot read '/none': No such file or directory\n", 125, "cp", f"{box}:/none", here)
    who.says("cannot read '/etc/shadow': Permission denied\n" if who.prefix else "in the sandbox: cannot write", 125,
             "cp", "/etc/shadow", f"{box}:/proc/x")
    who.says("'/dev/null' is neither a file nor a directory nor a link\n", 125, "cp", "/dev/null", f"{box}:")
    who.says("in the sandbox: '/dev/null' is neither", 125, "cp", f"{box}:/dev/null", here)
    assert list(here.iterdir()) == []


def test_devices_and_pipes_are_passed_over(who, box, here):
    who.sh(box, "rm -rf /tmp/k; mkdir /tmp/k; mkfifo /tmp/k/pipe; echo x > /tmp/k/x")
    done = who.call("cp", f"{box}:/tmp/k", here)
    assert (done.returncode, done.stderr) == (0, b"silica: passed over 1 that is no file, directory or link\n")
    assert os.listdir(here / "k") == ["x"]


def test_set_user_id_does_not_come_along(who, box, here):
    (here / "suid").write_text("x")
    (here / "suid").chmod(0o6755)
    give(who, here / "suid")
    (here / "suid").chmod(0o6755)
    who.ok("cp", here / "suid", f"{box}:/tmp/suid")
    assert who.sh(box, "stat -c %a /tmp/suid") == "755\n"


# ---- archives on our streams ----


def test_an_archive_out(who, box, here):
    who.sh(box, "rm -rf /tmp/a; mkdir -p /tmp/a/b; echo x > /tmp/a/b/x; ln -s b /tmp/a/l")
    out = who.call("cp", f"{box}:/tmp/a", "-").stdout
    with tarfile.open(fileobj=io.BytesIO(out)) as tar:
        assert sorted(tar.getnames()) == ["a", "a/b", "a/b/x", "a/l"]
        assert tar.extractfile("a/b/x").read() == b"x\n" and tar.getmember("a/l").linkname == "b"
    assert who.call("cp", f"{box}:/tmp/none", "-").returncode == 125


@pytest.mark.parametrize("form", ["gnu", "pax", "ustar"])
def test_an_archive_in(who, box, here, form):
    (here / "t").mkdir()
    sample(who, here / "t")
    if form == "ustar":
        (here / "t" / ("l" * 200)).rename(here / "t/short")
    made = subprocess.run(["tar", "-C", here / "t", f"--format={form}", "-cf", "-", "."], stdout=subprocess.PIPE, check=True).stdout
    who.sh(box, "rm -rf /tmp/tar; mkdir /tmp/tar")
    assert who.call("cp", "-", f"{box}:/tmp/tar", input=made).returncode == 0
    who.ok("cp", f"{box}:/tmp/tar/.", here / "back")
    assert seen(here / "back") == seen(here / "t")
    done = who.call("cp", "-", f"{box}:/tmp/tar", input=made[:len(made) // 2])
    assert done.returncode == 125 and b"cut off" in done.stderr
    done = who.call("cp", "-", f"{box}:/tmp/nowhere", input=made)
    assert done.returncode == 125 and b"/tmp/nowhere" in done.stderr
    done = who.call("cp", "-", f"{box}:/tmp/tar", input=b"this is no archive" * 100)
    assert done.returncode == 125 and b"no archive" in done.stderr


# ---- races, and what planted links cannot do ----


class Swapper(threading.Thread):
    """Swaps a directory and a link that leads elsewhere, as fast as it can."""

    def __init__(self, directory, target):
        super().__init__(daemon=True)
        self.directory, self.is_over, self.swaps = directory, False, 0
        self.link = directory.with_name("swap-link")
        self.aside = directory.with_name("swap-aside")
        self.link.symlink_to(target)

    def run(self):
        while not self.is_over:
            for a, b in [(self.directory, self.aside), (self.link, self.directory), (self.directory, self.link), (self.aside, self.directory)]:
                try:
                    os.rename(a, b)
                except OSError:
                    pass
            self.swaps += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.join()


def test_links_swapped_in_on_the_way_in(who, box, here):
    """A directory of ours becomes a link to a secret while it is copied: the secret never arrives."""
    secret = who.dir / f"secret-{uuid.uuid4().hex[:8]}"
    secret.mkdir()
    (secret / "file").write_text("TOP SECRET")
    (here / "t/d").mkdir(parents=True)
    (here / "t/d/file").write_text("plain")
    for i in range(40):
        (here / f"t/{i}").write_text("x" * 1000)
    results = []
    with Swapper(here / "t/d", secret) as swapper:
        for i in range(25):
            who.sh(box, "rm -rf /tmp/swapped")
            results.append(who.call("cp", here / "t", f"{box}:/tmp/swapped").returncode)
            assert who.sh(box, "grep -rl 'TOP SECRET' /tmp/swapped || true") == ""
    assert swapper.swaps > 25 and 0 in results and set(results) <= {0, 125}


def test_links_swapped_in_on_the_way_out(who, box, here):
    """A directory that is being filled here becomes a link: nothing is written where it leads."""
    away = here / "away"
    (here / "out/t/d").mkdir(parents=True)
    away.mkdir()
    give(who, away, here / "out", here / "out/t", here / "out/t/d")
    who.sh(box, "rm -rf /tmp/t; mkdir -p /tmp/t/d; for i in $(seq 200); do echo $i > /tmp/t/d/$i; done")
    results = []
    with Swapper(here / "out/t/d", away) as swapper:
        for i in range(25):
            results.append(who.call("cp", f"{box}:/tmp/t", here / "out").returncode)
            assert list(away.iterdir()) == []
    assert swapper.swaps > 25 and set(results) <= {0, 125}


def test_a_link_at_the_destination_is_replaced(who, box, here):
    """Not followed: a sandbox's file cannot overwrite what a link here leads to."""
    (here / "precious").write_text("precious")
    (here / "f").symlink_to("precious")
    give(who, here / "f", here / "precious")
    who.sh(box, "echo new > /tmp/f")
    who.ok("cp", f"{box}:/tmp/f", here / "f")
    assert (here / "precious").read_text() == "precious" and not (here / "f").is_symlink()
    (here / "t").mkdir()
    (here / "t/d").symlink_to(here)
    give(who, here / "t", here / "t/d")
    who.sh(box, "rm -rf /tmp/t; mkdir -p /tmp/t/d; echo x > /tmp/t/d/planted")
    assert "link" in who.says("cannot write 't/d", 125, "cp", f"{box}:/tmp/t", here)
    assert not (here / "planted").exists()


# ---- when it breaks ----


ENDLESS = "truncate -s 1T /tmp/endless"  # of zeroes: reading it takes longer than any test


def test_a_sandbox_that_dies_meanwhile(who, here):
    name = who.up()
    who.sh(name, ENDLESS)
    p = who.start("cp", "--max-size", "2TiB", f"{name}:/tmp/endless", here / "out")
    wait_until(lambda: any(path.stat().st_size > 1_000_000 for path in here.iterdir()), what="it is under way")
    assert [path.name.startswith(".silica-cp-") for path in here.iterdir()] == [True]
    who.ok("rm", "-f", name)
    assert p.wait(30) == 125 and p.stderr.read().startswith(b"silica: ")
    assert list(here.iterdir()) == []


def test_one_that_dies_while_it_takes(who, here):
    name = who.up()
    (here / "endless").touch()
    os.truncate(here / "endless", 1 << 40)
    p = who.start("cp", here / "endless", f"{name}:/tmp/in")
    wait_until(lambda: who.call("exec", name, "--", "sh", "-c", "ls -A /tmp/.silica-cp-*").returncode == 0, what="it is under way")
    who.ok("rm", "-f", name)
    assert p.wait(30) == 125 and p.stderr.read().startswith(b"silica: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_calls_it_off(who, box, here, number):
    who.sh(box, ENDLESS)
    p = who.start("cp", "--max-size", "2TiB", f"{box}:/tmp/endless", here / "out")
    wait_until(lambda: any(here.iterdir()), what="it is under way")
    p.send_signal(number)
    assert p.wait(30) == 128 + number and list(here.iterdir()) == []
    (here / "endless").touch()
    os.truncate(here / "endless", 1 << 40)
    p = who.start("cp", here / "endless", f"{box}:/tmp/in")
    wait_until(lambda: leftovers(who, box) != "", what="it is under way")
    p.send_signal(number)
    assert p.wait(30) == 128 + number
    assert leftovers(who, box) == "" and who.call("exec", box, "--", "ls", "/tmp/in").returncode == 2


def test_a_killed_copy_leaves_nothing_under_its_name(who, box, here):
    who.sh(box, ENDLESS)
    p = who.start("cp", "--max-size", "2TiB", f"{box}:/tmp/endless", here / "out")
    wait_until(lambda: any(here.iterdir()), what="it is under way")
    p.kill()
    p.wait(20)
    assert not (here / "out").exists()
    wait_until(lambda: who.sh(box, "grep -lzx '[p]ack' /proc/[0-9]*/cmdline 2>/dev/null | grep -v self || true") == "", what="the other side ended")


def test_ceilings(who, box, here):
    who.sh(box, "rm -rf /tmp/c; mkdir /tmp/c; for i in 1 2 3; do head -c 1000000 /dev/zero > /tmp/c/$i; done")
    who.says("the archive has more than 2097152 bytes\n", 125, "cp", "--max-size", "2MiB", f"{box}:/tmp/c", here / "a")
    who.says("the archive has more than 2 entries\n", 125, "cp", "--max-files", "2", f"{box}:/tmp/c", here / "b")
    who.ok("cp", "--max-size", "3MB", "--max-files", "4", f"{box}:/tmp/c", here / "d")


@pytest.fixture
def small_disk(who):
    """A file system of 1 MiB, for the caller."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    path = who.dir / f"small-{uuid.uuid4().hex[:8]}"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "none", path], capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_full_disk_here(who, box, small_disk):
    who.sh(box, "head -c 5000000 /dev/zero > /tmp/five")
    assert "No space left" in who.says("cannot write 'five' in ", 125, "cp", f"{box}:/tmp/five", small_disk)
    assert list(small_disk.iterdir()) == []
    (small_disk / "old").write_text("old")
    give(who, small_disk / "old")
    who.says("cannot write", 125, "cp", f"{box}:/tmp/five", small_disk / "old")
    assert (small_disk / "old").read_text() == "old"


def test_a_full_disk_inside(who, small_disk, here):
    name = who.up("-v", f"{small_disk}:/small")
    (here / "five").write_bytes(bytes(5_000_000))
    assert "No space left" in who.says("in the sandbox: cannot write 'five' in ", 125, "cp", here / "five", f"{name}:/small")
    assert list(small_disk.iterdir()) == []
    assert who.sh(name, "echo alive") == "alive\n"
    who.ok("rm", "-f", name)


def test_progress_is_for_terminals(who, box, here):
    (here / "endless").touch()
    os.truncate(here / "endless", 1 << 40)
    t = Terminal(who.argv("cp", here / "endless", f"{box}:/tmp/in"), who.env)
    t.until(b"copied ")
    t.type(b"\x03")
    assert t.end() == 130
    p = who.start("cp", "-q", here / "endless", f"{box}:/tmp/in")
    time.sleep(1.5)
    p.terminate()
    assert (p.wait(30), p.stderr.read()) == (143, b"")
