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
OF_ROOT, ON_SHARED = 1, 2  # enum seccomp_variant
NAMES = {OF_ROOT: "of-root", ON_SHARED: "on-shared"}
VARIANTS = range(4)
TABLE = (TREE / "src/isolate/seccomp_calls.h").read_text()


def built():
    for kind in ("debug", "release", "asan"):
        path = TREE / "build" / kind / "src/isolate/seccomp_filter.h"
        if path.exists():
            return path
    pytest.skip("no build directory with the filter")


def filter_of(variant):
    """As (code, jt, jf, k)."""
    table = re.search(rf"sock_filter seccomp_filter_{variant}\[\] = \{{(.*?)\}};", built().read_text(), re.S)
    return [tuple(int(v, 0) for v in row) for row in re.findall(r"\{ (0x\w+), (\d+), (\d+), (0x\w+) \}", table[1])]


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda v: "+".join(n for b, n in NAMES.items() if v & b) or "plain")
def variant(request):
    return request.param


@pytest.fixture(scope="module")
def program(variant):
    return filter_of(variant)


@pytest.fixture(scope="module")
def names():
    for path in map(pathlib.Path, HEADERS):
        if path.exists():
            return NEWER | {m[1]: int(m[2]) for m in re.finditer(r"#define __NR_(\w+) (\d+)", path.read_text())}
    pytest.skip("no list of this architecture's calls")


def run(program, data):
    """Classic BPF, as far as the filter goes: an accumulator, absolute loads, jumps and returns."""
    a, pc = 0, 0
    while True:
        code, jt, jf, k = program[pc]
        pc += 1
        if code == 0x20:  # load a word
            a = struct.unpack_from("<I", data, k)[0]
        elif code in (0x15, 0x35, 0x45):
            took = {0x15: a == k, 0x35: a >= k, 0x45: bool(a & k)}[code]
            pc += jt if took else jf
        elif code == 0x06:
            return k
        else:
            raise AssertionError(f"an instruction this test does not know: {code:#x}")


def verdict(program, number, args=(), arch=X86_64):
    """None when the call goes through, else the errno it gets."""
    data = struct.pack("<iIQ6Q", number, arch, 0, *(list(args) + [0] * 6)[:6])
    said = run(program, data)
    assert said == ALLOW or said >> 16 == 0x0005  # SECCOMP_RET_ERRNO
    return None if said == ALLOW else said & 0xFFFF


def is_reachable(program, number, arch=X86_64):
    """With any first argument that matters: families, flags of clone, personalities."""
    return any(verdict(program, number, [first], arch) is None for first in (0, AF_UNIX, AF_INET, 17, 0xFFFFFFFF))


def test_how_many_calls(program):
    reachable = [n for n in NUMBERS if is_reachable(program, n)]
    assert 150 < len(reachable) <= CALLS_MAX


def test_each_is_in_the_table_with_what_needs_it(program, names):
    rows = dict(re.findall(r'\{ "(\w+)", "([^"]+)" \}', TABLE))
    ruled = {"clone", "socket", "socketpair", "personality"}
    listed = {names[n] for n in set(rows) | ruled if n in names}
    assert {n for n in NUMBERS if is_reachable(program, n)} <= listed
    assert int(re.search(r"SECCOMP_RULED_CALLS (\d+)", TABLE)[1]) == len(ruled)
    assert len(rows) + len(ruled) <= CALLS_MAX


def test_socket_families(program, names):
    reachable = {f for f in range(0, 256) for p in (0, 6, 17) if verdict(program, names["socket"], [f, 1, p]) is None}
    assert reachable == {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}


def test_netlink_is_route_only(program, names):
    assert [p for p in range(0, 256) if verdict(program, names["socket"], [AF_NETLINK, 3, p]) is None] == [0]


@pytest.mark.parametrize("family", [AF_INET, AF_INET6])
def test_protocols_over_ip(program, names, family):
    assert [p for p in range(0, 512) if verdict(program, names["socket"], [family, 1, p]) is None] == [0, 1, 6, 17, 58]


def test_pairs_are_of_unix_only(program, names):
    assert [f for f in range(0, 256) if verdict(program, names["socketpair"], [f, 1, 0]) is None] == [AF_UNIX]


def test_bits_the_kernel_does_not_read(program, names):
    """It looks at 32 bits of these; a filter that looked at 64 would be walked around."""
    for high, (call, bad) in itertools.product([1 << 32, 1 << 40, 1 << 63], [("socket", 38), ("socketpair", 30), ("clone", 0x10000000)]):
        assert verdict(program, names[call], [high | bad]) is not None
    for high in (1 << 32, 1 << 63):
        assert verdict(program, names["ioctl"], [0, high | 0x5412]) == 1  # TIOCSTI, EPERM


def test_no_other_architecture(program):
    assert not any(is_reachable(program, n, I386) for n in NUMBERS)
    assert not any(is_reachable(program, n | X32_BIT) for n in NUMBERS)


def test_clone_makes_no_namespace(program, names):
    for bit in range(0, 32):
        is_namespace = (1 << bit) & 0x7E020000  # what CLONE_NEWNS to CLONE_NEWNET have set
        assert (verdict(program, names["clone"], [1 << bit | 17]) is None) == (not is_namespace)


def test_every_variant_was_read():
    assert [int(v) for v in re.findall(r"seccomp_filter_(\d+)\[\]", built().read_text())] == list(VARIANTS)


ME, NONE = 0, 0xFFFFFFFF  # of owners


@pytest.mark.parametrize("call, at", [("chown", 1), ("fchown", 1), ("lchown", 1), ("fchownat", 2)])
def test_owners(program, variant, names, call, at):
    """As uid 0 they are the kernel's where both ids are 0 or none, and else succeed at once; for others they are the kernel's."""
    for owner, group in itertools.product([ME, NONE, 1, 1000, 65534, 0x7FFFFFFF, 0xFFFFFFFE], repeat=2):
        for high in (0, 1 << 32, 1 << 63):  # bits the kernel does not read
            args = [0xFFFFFFFF] * at + [owner | high, group | high]
            is_kernels = not variant & OF_ROOT or {owner, group} <= {ME, NONE}
            assert verdict(program, names[call], args) == (None if is_kernels else 0), (owner, group)


SUID, CREATES = 0o4000, [0o100, 0o20000000]  # O_CREAT; what of O_TMPFILE is no O_DIRECTORY


@pytest.mark.parametrize("call, mode", [("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("creat", 1), ("mknod", 1), ("mknodat", 2)])
def test_modes(program, variant, names, call, mode):
    """No set-user-ID where others of the host may reach the file, whatever else is in the mode."""
    for other, high in itertools.product([0, 0o777, 0o1777, 0o2755, 0o100644, 0o10000], [0, 1 << 32, 1 << 63]):
        for bit in (0, SUID):
            said = verdict(program, names[call], [0] * mode + [high | other | bit])
            assert said == (1 if bit and variant & ON_SHARED else None), (oct(other), high)


@pytest.mark.parametrize("call, flags", [("open", 1), ("openat", 2)])
def test_modes_of_files_that_are_made(program, variant, names, call, flags):
    """The mode counts where a file may be made; else it is what the register had."""
    for creating, other, high in itertools.product([0, *CREATES, sum(CREATES)], [0, 0o2, 0o200000, 0o2000000], [0, 1 << 32, 1 << 63]):
        for mode in (0, 0o777, 0o2777, SUID, SUID | 0o755):
            said = verdict(program, names[call], [0] * flags + [high | creating | other, high | mode])
            assert said == (1 if creating and mode & SUID and variant & ON_SHARED else None), (oct(creating), oct(mode))


def test_a_mode_in_memory_is_not_there(program, variant, names):
    assert verdict(program, names["openat2"]) == (38 if variant & ON_SHARED else None)  # ENOSYS
