"""A network of the test's own: whichever port it wants of all addresses is free there, and what it takes is in nobody's way."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct

import pytest

CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x40000000, 0x8914, 1
libc = ctypes.CDLL(None, use_errno=True)


def check(status, what):
    if status != 0:
        raise OSError(ctypes.get_errno(), what)


@contextlib.contextmanager
def own_network():
    """For this thread, and for the processes that it starts meanwhile. Skips where the tests may not have one."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        check(libc.unshare(CLONE_NEWNET), "unshare")
        try:
            with socket.socket() as s:
                fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
            yield
        finally:
            check(libc.setns(before, CLONE_NEWNET), "setns")
    finally:
        os.close(before)
