"""An owner of long-lived sandboxes who talks to them, in bytes."""

import subprocess

from harness.owner import Owner


class Talker(Owner):
    def argv(self, *args):
        return [*self.prefix, str(self.silica), *map(str, args)]

    def call(self, *args, timeout=60, **kwargs):
        if "input" not in kwargs:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.argv(*args), capture_output=True, env=self.env, timeout=timeout, cwd="/", **kwargs)

    def start(self, *args, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.argv(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, cwd="/", **kwargs)

    def ok(self, *args, **kwargs):
        return super().ok(*args, **kwargs).decode()

    def says(self, text, code, *args, **kwargs):
        """It fails with this code and says this first."""
        done = self.call(*args, **kwargs)
        said = done.stderr.decode()
        assert done.returncode == code and said.startswith(f"silica: {text}"), (args, done.returncode, said[-500:])
        return said

    def sh(self, name, script, **kwargs):
        """A script in the sandbox, its output."""
        return self.ok("exec", name, "--", "sh", "-c", script, **kwargs)

    def up(self, *args, **kwargs):
        return super().up("--keep", *args, **kwargs)

    def remove(self):
        self.call("rm", "-f", "--all")
        super().remove()
