"""A terminal that a program is started on, and that must be afterwards as it was."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Terminal:
    """size is (rows, columns)."""

    def __init__(self, argv, env, size=(33, 101)):
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.p = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def until(self, text, timeout_s=20):
        end = time.monotonic() + timeout_s
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {text} in {self.seen}"
            self.seen += os.read(self.master, 4096)
        return self.seen

    def type(self, text):
        os.write(self.master, text)

    def end(self):
        status = self.p.wait(20)
        after = termios.tcgetattr(self.slave)
        os.close(self.master), os.close(self.slave)
        assert after == self.before, "the terminal is not as it was"
        return status
