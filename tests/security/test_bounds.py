"""What a sandbox can do to its machine has an end: processes, memory, files; and no option of its caller's, with links or
descriptors in its way, leads out."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import pytest

from harness.caller import caller_or_skip

pytestmark = pytest.mark.ours
PYTHON = "/usr/bin/python3"
LEAK = "exec 9</"  # the caller's root directory, open for whoever inherits it

FORK_BOMB = """
import errno, os, time
made = 0
try:
    while made < 400:
        if os.fork() == 0:
            os.closerange(0, 3)  # who reads our output need not wait for these
            time.sleep(30)
            os._exit(0)
        made += 1
    print('all', made)
except OSError as e:
    print(errno.errorcode[e.errno], made)
"""


@pytest.fixture(scope="module", params=["root", "user"])
def who(request):
    caller = caller_or_skip(request.param)
    yield caller
    caller.remove()


@pytest.fixture
def place(who):
    """A directory of the host that the caller may write to."""
    made = who.home / "place"
    made.mkdir()
    shutil.chown(made, *[os.stat(who.home).st_uid] * 2)
    yield made
    shutil.rmtree(made)


def test_a_fork_bomb_ends_at_the_limit(who):
    done = who.run("--pids", 32, "--", PYTHON, "-c", FORK_BOMB)
    assert done.returncode == 0, done.stderr
    error, made = done.stdout.split()
    assert error == "EAGAIN" and 8 <= int(made) < 32


def test_without_a_limit_the_same_code_goes_on(who):
    assert who.run("--", PYTHON, "-c", FORK_BOMB).stdout == "all 400\n"


def test_a_fork_bomb_ends_without_asking(who):
    """1,024 of them, the server and the command itself among them."""
    error, made = who.run("--", PYTHON, "-c", FORK_BOMB.replace("400", "3000")).stdout.split()
    assert error == "EAGAIN" and 1000 < int(made) < 1024


def has_cgroups(who):
    """A user has none of its own; in a container root may have none either."""
    return who.name == "root" and os.path.ismount("/sys/fs/cgroup")


def test_memory_ends_at_the_limit(who):
    grab = "x = bytearray(200 << 20); print(len(x))"
    assert who.run("--", PYTHON, "-c", grab).stdout == f"{200 << 20}\n"
    done = who.run("--memory", "64M", "--", PYTHON, "-c", grab)
    if has_cgroups(who):
        assert (done.returncode, done.stdout) == (137, "")
    else:  # refused rather than ignored
        assert done.returncode == 125 and "memory cannot be enforced" in done.stderr and "hint: " in done.stderr


def test_files_in_memory_count(who):
    if not has_cgroups(who):
        pytest.skip("needs root and a mounted cgroup tree")
    fill = "exec head -c 200M /dev/zero >/tmp/f"
    assert who.run("--", "sh", "-c", fill).returncode == 0
    assert who.run("--memory", "64M", "--", "sh", "-c", fill).returncode == 137


def test_a_neighbour_goes_on(who):
    """While one sandbox forks and writes all it can, another works."""
    bad = subprocess.Popen([*who.prefix, str(who.silica), "run", "--pids", "32", "--timeout", "20s", "--", "sh", "-c",
                            "while :; do (sleep 1 &) 2>/dev/null; echo flood; done"], env=who.env, cwd="/",
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        for _ in range(3):
            assert who.run("--pids", 32, "--", "sh", "-c", "echo a | cat").stdout == "a\n"
        assert bad.poll() is None
    finally:
        bad.kill()
        bad.wait()


def test_a_full_file_system_is_an_error_inside(who):
    done = who.run("--", "sh", "-c", "head -c 2G /dev/zero >/dev/shm/f; echo $?; stat -c %s /dev/shm/f")
    code, size = done.stdout.split()
    assert code == "1" and "No space left" in done.stderr and int(size) <= 256 << 20


def test_descriptors_end(who):
    take = "import os\nn = 0\ntry:\n  while n < 2000000: os.open('/dev/null', 0); n += 1\nexcept OSError as e: print(e.errno)"
    assert who.run("--", PYTHON, "-c", take).stdout == "24\n"  # EMFILE


@pytest.mark.parametrize("path", ["/proc/self/fd/9", "/proc/self/fd/9/../..", "/proc/self/cwd", "/proc/1/root"])
def test_a_working_directory_through_a_descriptor(who, path):
    """CVE-2024-21626: the caller's descriptors are there while PID 1 starts."""
    outside = subprocess.run(["sh", "-c", f"{LEAK}; cd -P /proc/self/fd/9 && pwd"], capture_output=True, text=True)
    assert outside.stdout == "/\n"
    done = who.run("-w", path, "--", "true", shell_first=LEAK)
    assert done.returncode == 125 and f"cannot enter '{path}' inside" in done.stderr, done


@pytest.mark.parametrize("target", ["/", "/..", "/../x", "/proc", "/proc/1", "/a/../../b"])
def test_a_volume_at_a_place_that_is_not_the_callers(who, place, target):
    done = who.run("-v", f"{place}:{target}", "--", "true")
    assert done.returncode == 125 and re.search("cannot show|nothing can be shown", done.stderr), done


def test_a_volume_on_a_link_that_leads_out(who, place):
    """A volume may hold a link to a directory of the host. Mounting below it must find nothing there."""
    outside, volume = place / "outside", place / "volume"
    outside.mkdir(), volume.mkdir()
    (volume / "sub").symlink_to(outside)
    done = who.run("-v", f"{volume}:/vol:ro", "-v", f"{place}:/vol/sub/new:ro", "--", "ls", "/vol/sub/new")
    assert done.returncode == 125 and "inside" in done.stderr, done
    assert list(outside.iterdir()) == []


def test_a_volume_whose_links_change_meanwhile(who, place):
    """A directory that turns into a link to the host and back while sandboxes are made on it."""
    outside, volume, shown = place / "outside", place / "volume", place / "shown"
    for made in (outside, volume, shown, volume / "real"):
        made.mkdir()
        os.chmod(made, 0o777)
    (volume / "link").symlink_to(outside)
    is_over = threading.Event()

    def move(source, target):
        try:
            os.rename(volume / source, volume / target)
        except OSError:  # between two of ours the sandbox made a directory of that name
            shutil.rmtree(volume / target, ignore_errors=True)

    def swap():
        while not is_over.is_set():
            for name in ("real", "link"):
                if (volume / name).exists():
                    move(name, "sub")
                    move("sub", name)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        codes = {who.run("-v", f"{volume}:/vol", "-v", f"{shown}:/vol/sub/new", "--", "true").returncode for _ in range(20)}
    finally:
        is_over.set()
        swapper.join()
    assert codes <= {0, 125}
    assert list(outside.iterdir()) == []


def test_a_volume_gives_no_rights(who, place):
    """What the caller shows is read with the rights of who runs inside."""
    if os.geteuid() != 0:
        pytest.skip("needs root")  # for a file that is not the caller's own
    secret = place / "secret"
    secret.write_text("x\n")
    secret.chmod(0o600)
    shutil.chown(secret, "root")
    assert secret.read_text() == "x\n"
    done = who.run("-v", f"{secret}:/s:ro", "--", "cat", "/s")
    assert done.returncode == 1 and "Permission denied" in done.stderr, done


def test_a_volume_takes_no_mask_away(who, place):
    """Directories of /proc are covered with one of ours in /run; a volume there must not come before."""
    masked = [d for d in ("/proc/acpi", "/proc/asound", "/proc/scsi") if os.path.isdir(d)]
    if not masked:
        pytest.skip("this kernel's /proc has no directory to hide")
    (place / ".void").symlink_to("/nonexistent")
    done = who.run("-v", f"{place}:/run", "--", "stat", "-f", "-c", "%T", *masked)
    assert done.stdout == "tmpfs\n" * len(masked), done
    outside = subprocess.run(["stat", "-f", "-c", "%T", *masked], capture_output=True, text=True)
    assert outside.stdout == "proc\n" * len(masked)


@pytest.mark.parametrize("user", ["0", "1000"])
def test_no_set_user_id_file_stays_on_a_volume(who, place, user):
    """It would be there when the sandbox is gone, and work for whoever runs it."""
    place.chmod(0o777)
    done = who.run("--user", user, "-v", f"{place}:/vol", "--", "sh", "-c", "cp /bin/true /vol/t && chmod 755 /vol/t && chmod 4755 /vol/t")
    assert done.returncode == 1 and "Operation not permitted" in done.stderr, done
    assert oct(os.stat(place / "t").st_mode & 0o7777) == "0o755"


MAKING = """
import ctypes, errno, json, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
OPEN, CREAT, MKNOD, OPENAT, MKNODAT, OPENAT2 = (2, 85, 133, 257, 259, 437) if platform.machine() == 'x86_64' else (0, 0, 0, 56, 33, 437)
HERE, SUID, HIGH, FILE, TEMP = -100, 0o4755, 1 << 32, 0o100000, os.O_TMPFILE | os.O_RDWR
MADE = os.O_CREAT | os.O_RDWR
how = ctypes.create_string_buffer(struct.pack('QQQ', MADE, SUID, 0))
bare = ctypes.create_string_buffer(struct.pack('QQQ', MADE, 0o755, 0))
os.umask(0)
os.chdir(sys.argv[1])
ways = {'open': (OPEN, b'open', MADE, SUID), 'open high': (OPEN, b'high', MADE | HIGH, SUID | HIGH), 'creat': (CREAT, b'creat', SUID),
        'mknod': (MKNOD, b'mknod', FILE | SUID, 0), 'openat': (OPENAT, HERE, b'openat', MADE, SUID), 'exclusive': (OPENAT, HERE, b'excl', MADE | os.O_EXCL, SUID),
        'temporary': (OPENAT, HERE, b'.', TEMP, SUID), 'temporary open': (OPEN, b'.', TEMP, SUID), 'mknodat': (MKNODAT, HERE, b'mknodat', FILE | SUID, 0),
        'fifo': (MKNODAT, HERE, b'fifo', 0o010000 | SUID, 0), 'bit alone': (OPENAT, HERE, b'alone', MADE, 0o4000), 'openat2': (OPENAT2, HERE, b'two', how, 24),
        'openat2 without': (OPENAT2, HERE, b'twice', bare, 24)}
right = {'directory': (OPENAT, HERE, b'.', os.O_RDONLY, 0o7777), 'to read': (OPENAT, HERE, b'right', os.O_RDONLY, 0o4755), 'set-group-ID': (OPENAT, HERE, b'right', MADE, 0o2755)}
open('right', 'w').close()
said = {}
for name, (number, *args) in {**ways, **right}.items():
    if not number:
        continue
    ctypes.set_errno(0)
    got = libc.syscall(number, *[a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in args])
    said[name] = 'ok' if got >= 0 else errno.errorcode[ctypes.get_errno()]
    if got > 0:
        try:
            os.link(f'/proc/self/fd/{got}', name.replace(' ', '-'))
        except OSError:
            pass
print(json.dumps([said, list(ways)]))
"""


@pytest.mark.parametrize("life", [[], ["--keep"]], ids=["run", "kept"])
@pytest.mark.parametrize("user", ["0", "1000"])
def test_no_file_is_made_with_the_set_user_id_bit_on_a_volume(who, place, user, life):
    """Empty as it is then; and a call whose mode no filter sees is not there. What reads is not held up."""
    place.chmod(0o777)
    name = ["--name", f"t-{os.urandom(4).hex()}"] if life else []
    done = who.run(*life, *name, "--user", user, "-v", f"{place}:/vol", "--", PYTHON, "-c", MAKING, "/vol")
    try:
        assert done.returncode == 0, done.stderr
        said, ways = json.loads(done.stdout)
        assert {n: v for n, v in said.items() if n in ways} == {n: "ENOSYS" if "openat2" in n else "EPERM" for n in said if n in ways}
        assert {v for n, v in said.items() if n not in ways} == {"ok"}
        assert [p.name for p in place.iterdir()] == ["right"] and not (place / "right").stat().st_mode & 0o4000
    finally:
        if life:
            subprocess.run([*who.prefix, str(who.silica), "rm", "-f", name[1]], env=who.env, check=True, capture_output=True)


@pytest.mark.parametrize("volume", [[], ["ro"]], ids=["none", "read-only"])
def test_where_nothing_of_the_host_can_be_written_the_bit_may_be_set(who, place, volume):
    """As dpkg and tar do; such files go with the sandbox."""
    options = ["-v", f"{place}:/vol:ro"] if volume else []
    done = who.run("--user", "0", *options, "--", "sh", "-c",
                   f"cp /bin/true /tmp/t && chmod 4755 /tmp/t && stat -c %a /tmp/t && mkdir /tmp/made && {PYTHON} -c '{chr(10)}{MAKING.replace(chr(39), chr(34))}' /tmp/made")
    assert done.returncode == 0, done.stderr
    mode, said = done.stdout.splitlines()
    assert mode == "4755" and set(json.loads(said)[0].values()) == {"ok"}, said


def test_devices_of_a_volume_are_closed(who):
    done = who.run("-v", "/dev:/d", "--", "sh", "-c", "cat /d/zero")
    assert done.returncode != 0 and "Permission denied" in done.stderr, done
    assert pathlib.Path("/dev/zero").open("rb").read(1) == b"\0"
