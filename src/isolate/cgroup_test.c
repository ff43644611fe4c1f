#include "isolate/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define V1(name)                                                                                   \
    "33 24 0:29 / /sys/fs/cgroup/" name " rw,relatime shared:9 - cgroup cgroup rw," name "\n"

static void hosts(void **state)
{
    static const struct row {
        const char *name, *mounts, *own;
        const char *want[CGROUP_KINDS]; /* v2, memory, pids, cpu, freezer */
    } rows[] = {
        { "pure v2",
          "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
          "0::/user.slice/a.scope\n",
          { "/sys/fs/cgroup/user.slice/a.scope", "", "", "", "" } },
        { "hybrid",
          V1("memory") V1("pids") V1(
              "freezer") "34 24 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                         "35 24 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
          "8:pids:/\n6:freezer:/\n4:memory:/box/1\n1:cpu,cpuacct:/c\n0::/\n",
          { "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory/box/1", "/sys/fs/cgroup/pids",
            "/sys/fs/cgroup/cpu,cpuacct/c", "/sys/fs/cgroup/freezer" } },
        { "v1 only", V1("memory"), "4:memory:/\n", { "", "/sys/fs/cgroup/memory", "", "", "" } },
        { "a part of a hierarchy",
          "33 24 0:29 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
          "4:memory:/docker/x\n",
          { "", "", "", "", "" } },
        { "mounted, but we are nowhere in it", V1("memory"), "0::/\n", { "", "", "", "", "" } },
        { "nothing", "22 1 0:20 / / rw - ext4 /dev/vda rw\n", "", { "", "", "", "", "" } },
        { "nonsense", "a b\n - \n\n", ":\n::\n", { "", "", "", "", "" } },
    };

    (void)state;
    EACH(r, rows) {
        struct cgroup_host host;

        cgroup_host_parse(span_cstr(r->mounts), span_cstr(r->own), &host);
        for (int kind = 0; kind < CGROUP_KINDS; kind++)
            if (strcmp(host.dirs[kind], r->want[kind]) != 0)
                fail_msg("%s: got '%s', want '%s'", r->name, host.dirs[kind], r->want[kind]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(hosts) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
