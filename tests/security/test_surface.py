"""How much of the kernel a sandbox can ask for: the filter that was built is run here, instruction by instruction, over every call
number and socket family, and counted. Whatever src/isolate/seccomp_calls.h says, this is what holds."""

import itertools
import pathlib
import re
import struct

import pytest

from harness.server import TREE

pytestmark = pytest.mark.ours
CALLS_MAX = 260
X86_64, I386, X32_BIT = 0xC000003E, 0x40000003, 0x40000000
NUMBERS = range(0, 1024)
ALLOW = 0x7FFF0000
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
NEWER = {"fchmodat2": 452, "mseal": 462}  # than Debian 12's headers
HEADERS = ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"]
TABLE = (TREE / "src/isolate/seccomp_calls.h").read_text()


def built():
    for kind in ("debug", "release", "asan"):
        path = TREE / "build" / kind / "src/isolate/seccomp_filter.h"
        if path.exists():
            return path
    pytest.skip("no build directory with the filter")


@pytest.fixture(scope="module")
def programs():
    """The filters by name, as (code, jt, jf, k)."""
    found = {}
    for m in re.finditer(r"sock_filter (\w+)\[\] = \{(.*?)\};", built().read_text(), re.S):
        found[m[1]] = [tuple(int(v, 0) for v in row) for row in
                       re.findall(r"\{ (0x\w+), (\d+), (\d+), (0x\w+) \}", m[2])]
    assert set(found) == {"seccomp_allowed", "seccomp_refused"} and all(found.values())
    return found


@pytest.fixture(scope="module")
def names():
    for path in map(pathlib.Path, HEADERS):
        if path.exists():
            return NEWER | {m[1]: int(m[2]) for m in re.finditer(r"#define __NR_(\w+) (\d+)", path.read_text())}
    pytest.skip("no list of this architecture's calls")


def run(program, data):
    """Classic BPF, as far as these filters go: an accumulator, absolute loads, jumps, masks and returns."""
    a, pc = 0, 0
    while True:
        code, jt, jf, k = program[pc]
        pc += 1
        if code == 0x20:  # load a word
            a = struct.unpack_from("<I", data, k)[0]
        elif code == 0x54:
            a &= k
        elif code == 0x05:
            pc += k
        elif code in (0x15, 0x25, 0x35, 0x45):
            took = {0x15: a == k, 0x25: a > k, 0x35: a >= k, 0x45: bool(a & k)}[code]
            pc += jt if took else jf
        elif code == 0x06:
            return k
        else:
            raise AssertionError(f"an instruction this test does not know: {code:#x}")


def verdict(programs, number, args=(), arch=X86_64):
    """None when the call goes through, else the errno it gets; the later filter's word counts where both refuse."""
    data = struct.pack("<iIQ6Q", number, arch, 0, *(list(args) + [0] * 6)[:6])
    refusals = [v for v in (run(programs[n], data) for n in ("seccomp_refused", "seccomp_allowed")) if v != ALLOW]
    assert all(v >> 16 == 0x0005 for v in refusals)  # SECCOMP_RET_ERRNO
    return refusals[0] & 0xFFFF if refusals else None


def is_reachable(programs, number, arch=X86_64):
    """With any first argument that matters: families, flags of clone, personalities."""
    return any(verdict(programs, number, [first], arch) is None for first in (0, AF_UNIX, AF_INET, 17, 0xFFFFFFFF))


def test_how_many_calls(programs):
    reachable = [n for n in NUMBERS if is_reachable(programs, n)]
    assert 150 < len(reachable) <= CALLS_MAX


def test_each_is_in_the_table_with_what_needs_it(programs, names):
    rows = dict(re.findall(r'\{ "(\w+)", "([^"]+)" \}', TABLE))
    ruled = {"clone", "socket", "socketpair", "personality"}
    listed = {names[n] for n in set(rows) | ruled if n in names}
    assert {n for n in NUMBERS if is_reachable(programs, n)} <= listed
    assert int(re.search(r"SECCOMP_RULED_CALLS (\d+)", TABLE)[1]) == len(ruled)
    assert len(rows) + len(ruled) <= CALLS_MAX


def test_socket_families(programs, names):
    reachable = {f for f in range(0, 256) for p in (0, 6, 17) if verdict(programs, names["socket"], [f, 1, p]) is None}
    assert reachable == {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}


def test_netlink_is_route_only(programs, names):
    assert [p for p in range(0, 256) if verdict(programs, names["socket"], [AF_NETLINK, 3, p]) is None] == [0]


@pytest.mark.parametrize("family", [AF_INET, AF_INET6])
def test_protocols_over_ip(programs, names, family):
    assert [p for p in range(0, 512) if verdict(programs, names["socket"], [family, 1, p]) is None] == [0, 1, 6, 17, 58]


def test_pairs_are_of_unix_only(programs, names):
    assert [f for f in range(0, 256) if verdict(programs, names["socketpair"], [f, 1, 0]) is None] == [AF_UNIX]


def test_bits_the_kernel_does_not_read(programs, names):
    """It looks at 32 bits of these; a filter that looked at 64 would be walked around."""
    for high, (call, bad) in itertools.product([1 << 32, 1 << 40, 1 << 63], [("socket", 38), ("socketpair", 30), ("clone", 0x10000000)]):
        assert verdict(programs, names[call], [high | bad]) is not None
    for high in (1 << 32, 1 << 63):
        assert verdict(programs, names["ioctl"], [0, high | 0x5412]) == 1  # TIOCSTI, EPERM


def test_no_other_architecture(programs):
    assert not any(is_reachable(programs, n, I386) for n in NUMBERS)
    assert not any(is_reachable(programs, n | X32_BIT) for n in NUMBERS)


def test_clone_makes_no_namespace(programs, names):
    for bit in range(0, 32):
        is_namespace = (1 << bit) & 0x7E020000  # what CLONE_NEWNS to CLONE_NEWNET have set
        assert (verdict(programs, names["clone"], [1 << bit | 17]) is None) == (not is_namespace)
