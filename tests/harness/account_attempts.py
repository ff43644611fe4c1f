"""What an account tries at the processes and files of another's `silica up`; prints {name: "ok", or the errno's name}. Run as any account.

    python3 - '{"data": ..., "files": [...], "sockets": [...], "pids": {"node": 1, "inside": 2}}' < account_attempts.py
"""

import ctypes
import errno
import json
import os
import socket
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
SEIZE = 0x4206
TGKILL, IOPRIO_SET, ROBUST_LIST, MOVE_PAGES, PROCESS_VM_READV, KCMP = 234, 251, 274, 279, 310, 312
SEND_SIGNAL, PIDFD_OPEN, PIDFD_GETFD = 424, 434, 438
READS = ["environ", "mem", "maps", "smaps", "numa_maps", "auxv", "io", "stack", "syscall", "pagemap", "personality", "timerslack_ns", "fdinfo/0", "mountstats"]
FOLLOWS = ["root", "cwd", "exe", "fd/0", "ns/mnt", "ns/net", "ns/pid", "ns/user", "ns/ipc", "ns/cgroup"]
LISTS = ["fd", "map_files", "root/", "cwd/"]
WRITES = ["mem", "oom_score_adj", "coredump_filter", "clear_refs", "autogroup", "sched", "comm", "uid_map", "setgroups"]


def call(number, *args):
    got = LIBC.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if got < 0:
        raise OSError(ctypes.get_errno(), "")
    return got


def libc(name, *args):
    if getattr(LIBC, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), name)


def read(path, flags=os.O_RDONLY):
    fd = os.open(path, flags)
    if path.startswith("/proc/") and flags == os.O_RDONLY and not path.endswith("/mem"):
        os.read(fd, 8)


def connect(path):
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(path)
            return
        except OSError as e:
            if e.errno != errno.EPROTOTYPE:
                raise


def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(path)


class Iovec(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def code_of(pid):
    """An address of the process's program."""
    with open(f"/proc/{pid}/maps") as maps:
        return int(maps.readline().split("-")[0], 16)


def read_memory(pid):
    room = ctypes.create_string_buffer(8)
    call(PROCESS_VM_READV, pid, ctypes.byref(Iovec(ctypes.cast(room, ctypes.c_void_p), 8)), 1, ctypes.byref(Iovec(code_of(pid), 8)), 1, 0)


def seize(pid):
    libc("ptrace", SEIZE, pid, None, None)


def join(pid, what):
    libc("setns", os.open(f"/proc/{pid}/ns/{what}", os.O_RDONLY), 0)


def of_process(who, pid):
    at = f"/proc/{pid}"
    rows = {f"read-{f}": lambda f=f: read(f"{at}/{f}") for f in READS}
    rows |= {f"follow-{f}": lambda f=f: os.readlink(f"{at}/{f}") for f in FOLLOWS}
    rows |= {f"list-{f}": lambda f=f: os.listdir(f"{at}/{f}") for f in LISTS}
    rows |= {f"write-{f}": lambda f=f: read(f"{at}/{f}", os.O_WRONLY) for f in WRITES}
    rows |= {"signal": lambda: os.kill(pid, 0), "signal-thread": lambda: call(TGKILL, pid, pid, 0),
             "signal-by-descriptor": lambda: call(SEND_SIGNAL, call(PIDFD_OPEN, pid, 0), 0, 0, 0),
             "trace": lambda: seize(pid), "read-memory": lambda: read_memory(pid),
             "descriptor": lambda: call(PIDFD_GETFD, call(PIDFD_OPEN, pid, 0), 0, 0),
             "compare": lambda: call(KCMP, pid, pid, 0, 0, 0),
             "robust-list": lambda: call(ROBUST_LIST, pid, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)),
             "move-pages": lambda: call(MOVE_PAGES, pid, 0, 0, 0, 0, 0),
             "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)),
             "affinity": lambda: os.sched_setaffinity(pid, os.sched_getaffinity(pid)),
             "class": lambda: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0)),
             "disk-priority": lambda: call(IOPRIO_SET, 1, pid, 2 << 13 | 4),
             "join-net": lambda: join(pid, "net"), "join-mnt": lambda: join(pid, "mnt"), "join-ipc": lambda: join(pid, "ipc"),
             "join-uts": lambda: join(pid, "uts"), "join-pid": lambda: join(pid, "pid")}
    return {f"{who}-{n}": do for n, do in rows.items()}


def of_files(what):
    data = what["data"]
    rows = {"list-data": lambda: os.listdir(data), "enter-data": lambda: os.chdir(data), "make-in-data": lambda: create(f"{data}/mine"),
            "mode-of-data": lambda: os.chmod(data, os.stat(data).st_mode & 0o7777)}
    for path in what["files"]:
        name = os.path.basename(path)
        rows |= {f"read-{name}": lambda p=path: read(p), f"write-{name}": lambda p=path: read(p, os.O_WRONLY | os.O_APPEND)}
    return rows | {f"connect-{os.path.basename(p)}": lambda p=p: connect(p) for p in what["sockets"]}


def attempt(do):
    """In a process of its own: some change who they are."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            do()
            said = "ok"
        except OSError as e:
            said = errno.errorcode.get(e.errno, str(e.errno))
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as answer:
        return answer.read()


def main():
    what = json.loads(sys.argv[1])
    rows = of_files(what)
    for who, pid in what["pids"].items():
        rows |= of_process(who, pid)
    print(json.dumps({name: attempt(do) for name, do in rows.items()}))


main()
