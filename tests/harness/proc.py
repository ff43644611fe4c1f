"""Looking at processes through /proc."""

import os
import pathlib


def with_argument(text):
    """Pids of the live (not zombie) processes that have exactly this argument."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
            if text.encode() in argv and state(int(entry.name)) not in ("Z", "X"):
                found.append(int(entry.name))
        except OSError:
            pass  # gone while we looked
    return found


def state(pid):
    """The one-letter state, "" when there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def children(pid):
    try:
        return [int(p) for t in os.listdir(f"/proc/{pid}/task")
                for p in pathlib.Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    except OSError:
        return []


def memory(pid):
    """RSS, private bytes (clean and dirty) and threads of a process. The runtime is undumpable, so only root may see
    which pages are private; for a user the anonymous ones stand for them."""
    rss = threads = private = anonymous = 0
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            rss = int(line.split()[1]) * 1024
        elif line.startswith("Threads:"):
            threads = int(line.split()[1])
        elif line.startswith("RssAnon:"):
            anonymous = int(line.split()[1]) * 1024
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_"):
                private += int(line.split()[1]) * 1024
    except PermissionError:
        private = anonymous
    return {"rss": rss, "private": private, "threads": threads}


def open_fds(pid):
    """How many descriptors it has. A user may not list those of an undumpable process; kernels from 6.2 tell the number."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        import pytest  # the bench uses this file without it

        return os.stat(f"/proc/{pid}/fd").st_size or pytest.skip("only root may count descriptors here")


_counter = 0


def unique_sleep():
    """A duration no other process sleeps for, so that the sleeper can be found by its argument."""
    global _counter
    _counter += 1
    return f"{1000 + os.getpid() % 1000}.{os.getpid()}{_counter:04d}"
