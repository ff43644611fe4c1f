"""The bench's rows of sandboxes: what one costs as a command, as calls of a program that stays up, and by the thousand."""

import json
import os
import shlex
import shutil
import subprocess

import load
from harness import server

SILICA = server.TREE / "build" / "silica"
RUNTIME = server.TREE / "build" / "silica-runtime"

# As much as bubblewrap can be told to do of what silica does without being told. It has no seccomp filter, no Landlock
# and no PID 1 of this kind.
BWRAP = ["/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL",
         "--tmpfs", "/", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
         "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/workspace",
         "--chdir", "/workspace"]

# The same for OCI runtimes; these add cgroups, and have no user namespace here.
OCI = {
    "ociVersion": "1.0.2",
    "process": {"user": {"uid": 1000, "gid": 1000}, "args": ["/bin/true"], "env": ["PATH=/usr/bin:/bin"], "cwd": "/workspace",
                "noNewPrivileges": True,
                "capabilities": {k: [] for k in ("bounding", "effective", "permitted", "inheritable", "ambient")}},
    "root": {"path": "rootfs", "readonly": True},
    "hostname": "bench",
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
               {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
               {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
               {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro", "nosuid"]}],
    "linux": {"namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
              "maskedPaths": ["/proc/kcore", "/proc/keys"], "readonlyPaths": ["/proc/sys"]},
}


def make_bundle(bench):
    bundle = bench.work / "bundle"
    if bundle.exists():
        return bundle
    for name in ("usr", "proc", "dev", "tmp", "workspace"):
        (bundle / "rootfs" / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (bundle / "rootfs" / name).symlink_to(f"usr/{name}")
    (bundle / "config.json").write_text(json.dumps(OCI))
    return bundle


def exited(bench, *argv):
    """The median time to the end of argv, in us."""
    return lambda: bench.helper("start", 20, "exit", "--", *argv)["median_us"]


def oci(bench, program):
    """An OCI runtime; crun refuses the hybrid layout of cgroups, so the v2 part is hidden from it."""
    def once():
        path = shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")
        if not path:
            raise load.Failed(f"no {program} on this machine")
        if os.geteuid() != 0:
            raise load.Failed("needs root here")
        helper = [str(bench.tools / "start"), "20", "exit", "--", path, "run", "--bundle", str(make_bundle(bench)),
                  f"silica-bench-{os.getpid()}"]
        hide = "if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi"
        out = load.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", f"{hide}; exec {shlex.join(helper)}"])
        return json.loads(out)["median_us"]
    return once


def boxes(bench, mode, runs, key="median_us"):
    return lambda: bench.helper("boxes", mode, runs, RUNTIME)[key]


def run(bench, servers, interleave, ratio):
    contestants = [("silica run", exited(bench, SILICA, "run", "--", "/bin/true")),
                   ("engine calls", boxes(bench, "run", 20)),
                   ("bubblewrap", exited(bench, *BWRAP, "/bin/true")),
                   ("crun", oci(bench, "crun")), ("runc", oci(bench, "runc")),
                   ("bare", exited(bench, "/bin/true"))]
    rounds = interleave(bench, "run", contestants, "us median of 20", bench.many)
    bench.goal("run", "silica run over bubblewrap, wall time", ratio(rounds, "silica run", "bubblewrap"), 0.9, at_most=True)
    bench.goal("run", "engine calls over bubblewrap, wall time", ratio(rounds, "engine calls", "bubblewrap"), 0.6, at_most=True)


def first(bench, servers, interleave, ratio):
    contestants = [("engine: made", boxes(bench, "run", 20, "made_us")),
                   ("engine: first output", boxes(bench, "run", 20, "output_us")),
                   ("bubblewrap, to its end", exited(bench, *BWRAP, "/bin/echo", "x"))]
    interleave(bench, "first", contestants, "us median of 20")


def inside(bench, servers, interleave, ratio):
    contestants = [("bare spawn+wait", lambda: 1e6 / bench.helper("ceiling", 1, 1000, "bare")["rate"]),
                   ("exec in a sandbox", boxes(bench, "exec", 500))]
    rounds = interleave(bench, "inside", contestants, "us", bench.many)
    bench.goal("inside", "exec in a running sandbox over the bare spawn+wait",
               ratio(rounds, "exec in a sandbox", "bare spawn+wait"), 1.3, at_most=True)


def pause(bench, servers, interleave, ratio):
    interleave(bench, "pause", [("pause", boxes(bench, "pause", 100, "pause_us")),
                                ("resume", boxes(bench, "pause", 100, "resume_us"))], "us median")


def clean(data):
    """Whatever a bench that was stopped left."""
    if (data / "sandboxes").exists():
        subprocess.run([SILICA, "rm", "--force", "--all", "--data", data], capture_output=True)


def density(bench, servers, interleave, ratio):
    for count in (200,) if bench.quick else (1000, 5000):
        data = bench.work / f"many-{count}"
        try:
            got = json.loads(load.run([bench.tools / "boxes", "density", count, SILICA, data], 1800))
        except load.Failed as e:
            bench.add("density", f"{count} idle", None, "KiB each", str(e))
            continue
        finally:
            clean(data)
            load.settle()
        bench.add("density", f"{count} idle", got["kib_each"], "KiB each",
                  f"created in {got['first_us']:.0f} us at first, {got['last_us']:.0f} at last; "
                  f"{got['descriptors_each']:.2f} descriptors and {got['tasks_each']:.2f} tasks each")
        bench.goal("density", f"{count} idle: KiB each", got["kib_each"], 1000, at_most=True)
        bench.goal("density", f"{count} idle: the last creation over the first", got["last_us"] / got["first_us"], 3, at_most=True)
        bench.goal("density", f"{count} idle: descriptors each", got["descriptors_each"], 2, at_most=True)
        bench.goal("density", f"{count} idle: tasks each", got["tasks_each"], 2, at_most=True)


ROWS = {"run": run, "first": first, "inside": inside, "pause": pause, "density": density}
TITLES = {"run": "/bin/true in a new sandbox, to its exit", "first": "a new sandbox, from a program that stays up",
          "inside": "/bin/true in a sandbox that runs", "pause": "a sandbox held and let go",
          "density": "idle sandboxes, kept"}
