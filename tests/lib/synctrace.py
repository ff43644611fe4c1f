"""Reads what strace saw of an API server, and says whether an answer left before the disk had what it is about.

For each answer to a client: after the request had come, the log was written; after that write had ended, a sync of the log
began; and that sync had ended before the answer's first byte was sent. A sync that strace made up (INJECTED) is none.
"""

import re

CALLS = "pwrite64,write,writev,sendto,sendmsg,fdatasync,fsync,read,recvfrom,recvmsg"
STRACE = ["strace", "-f", "-yy", "-qq", "-s", "0", "-e", f"trace={CALLS}"]

FILE = r"(?:\d+<((?:->|[^<>])*)>)?"
WHOLE = re.compile(rf"^(\d+) +(\w+)\({FILE}.*\) += (-?\d+)(.*)$")
BEGIN = re.compile(rf"^(\d+) +(\w+)\({FILE}.*<unfinished \.\.\.>$")
END = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>.*\) += (-?\d+)(.*)$")


class Call:
    """One system call: begin and end are line numbers."""

    def __init__(self, name, file, begin):
        self.name, self.file, self.begin, self.end, self.result, self.is_real = name, file or "", begin, None, -1, True

    def finish(self, end, result, rest):
        self.end, self.result, self.is_real = end, int(result), "INJECTED" not in rest


def read(lines):
    calls, unfinished = [], {}
    for number, line in enumerate(lines):
        if found := BEGIN.match(line):
            pid, name, file = found.groups()
            unfinished[pid] = Call(name, file, number)
            calls.append(unfinished[pid])
        elif found := END.match(line):
            pid, _, result, rest = found.groups()
            if pid in unfinished:
                unfinished.pop(pid).finish(number, result, rest)
        elif found := WHOLE.match(line):
            _, name, file, result, rest = found.groups()
            calls.append(Call(name, file, number))
            calls[-1].finish(number, result, rest)
    return [c for c in calls if c.end is not None]


def exchanges(calls, port):
    """(request's last byte, answer's first byte) of the connection from this port, by line number."""
    peer, came, found = f":{port}]", None, []
    for c in calls:
        if not c.file.startswith("TCP") or not c.file.endswith(peer) or c.result <= 0:
            continue
        if c.name in ("read", "recvfrom", "recvmsg"):
            came = c.end
        elif came is not None:
            found.append((came, c.begin))
            came = None
    return found


def is_covered(calls, came, left):
    log = [c for c in calls if c.file.endswith("store.db-wal") and came < c.begin < left and c.end < left]
    writes = [c for c in log if c.name in ("pwrite64", "write", "writev") and c.result > 0]
    syncs = [c for c in log if c.name in ("fdatasync", "fsync") and c.result == 0 and c.is_real]
    return bool(writes) and any(s.begin > writes[-1].end for s in syncs)


def judge(lines, port, count):
    """The last `count` exchanges of the connection were writes: the numbers of those whose answer left too early."""
    calls = read(lines)
    found = exchanges(calls, port)[-count:]
    assert len(found) == count, f"{len(found)} exchanges were seen, not {count}"
    return [i for i, (came, left) in enumerate(found) if not is_covered(calls, came, left)]
