/* Limits of a box, and holding it. */
#include "isolate/box_rig.h"

#include <fcntl.h>
#include <poll.h>

static void process_limit(void **state)
{
    struct box_spec spec = box_rig_spec(NULL);

    (void)state;
    box_rig_need_user_namespaces();
    spec.limits.pids = 12;
    box_rig_expect(
        "processes", spec,
        "python3 - <<'E'\nimport os, time\nn = 0\ntry:\n while n < 50:\n  if os.fork() == 0: time.sleep(30)\n"
        "  n += 1\nexcept OSError as e: print(e.errno, 5 < n < 12)\nE",
        "11 True\n");
}

/* Where no cgroup is ours to use, a limit is refused, or left out when that is what the caller said. */
static void memory_limit(void **state)
{
    static const char eat[] =
        "python3 -c 'x = bytearray(200 << 20); print(len(x) >> 20)' || echo $?";
    struct box_spec spec = box_rig_spec(NULL);
    struct box *b;
    struct err e;

    (void)state;
    box_rig_need_user_namespaces();
    spec.limits.memory_bytes = 64 << 20;
    if (box_rig.has_cgroups) {
        box_rig_expect("memory", spec, eat, "Killed\n137\n");
        return;
    }
    assert_int_equal(box_start(&spec, &b, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "a limit of memory cannot be enforced: "));
    assert_non_null(strstr(e.hint, "--limits=best-effort"));
    spec.is_best_effort = true;
    box_rig_expect("memory, best effort", spec, eat, "200\n");
}

static void cpu_limit(void **state)
{
    static const char burn[] =
        "python3 -c \"import time\nend = time.monotonic() + 0.6\n"
        "while time.monotonic() < end: pass\nprint(time.process_time() < 0.3)\"";
    struct box_spec spec = box_rig_spec(NULL);
    struct box *b;
    struct err e;

    (void)state;
    box_rig_need_user_namespaces();
    spec.limits.cpu_milli = 250;
    if (box_rig.has_cgroups) {
        box_rig_expect("cpu", spec, burn, "True\n");
        return;
    }
    assert_int_equal(box_start(&spec, &b, &e), -1);
    assert_non_null(strstr(e.msg, "a limit of cpu cannot be enforced: "));
    spec.is_best_effort = true;
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(box_unenforced(b), "cpu");
    box_free(b);
}

/* What can be read within `ms`: how much a box that prints all the time has printed. */
static size_t drain(int fd, int ms)
{
    char some[4096];
    size_t n = 0;
    ssize_t got = 1;

    while (got > 0 && poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 1) {
        got = read(fd, some, sizeof some);
        n += (size_t)MAX(got, 0);
    }
    return n;
}

static void pause_and_resume(void **state)
{
    static const char *const args[] = {
        "--log-level",
        "off",
        "--",
        "sh",
        "-c",
        "(while :; do echo a; sleep 0.01; done) & (while :; do echo b; sleep 0.01; done)",
        NULL
    };
    struct box_spec spec = box_rig_spec(args);
    struct box_stats stats = { 0 };
    struct box *b;
    struct err e;
    char byte;
    int out[2];

    (void)state;
    box_rig_need_user_namespaces();
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    spec.log_fd = out[1];
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    (void)close(out[1]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(read(out[0], &byte, 1), 1); /* it runs */
        if (box_pause(b, &e) < 0)
            fail_msg("%s", e.msg);
        (void)drain(out[0], 0); /* what it said before */
        assert_int_equal(drain(out[0], 100), 0);
        assert_int_equal(box_stats(b, &stats, &e), 0);
        assert_true(stats.has_cpu && stats.has_memory && stats.has_pids);
        assert_in_range(stats.pids, 3, 8);
        assert_in_range(stats.memory_bytes, 100 << 10, 100 << 20);
        assert_true(i == 0 || stats.cpu_us > 0 || !box_rig.has_cgroups);
        if (box_resume(b, &e) < 0)
            fail_msg("%s", e.msg);
    }
    assert_int_equal(read(out[0], &byte, 1), 1);
    assert_int_equal(box_pause(b, &e), 0);
    box_free(b); /* the paused die too */
    (void)drain(out[0], 0);
    assert_int_equal(read(out[0], &byte, 1), 0);
    (void)close(out[0]);
}

int main(void)
{
    static const struct CMUnitTest all[] = { cmocka_unit_test(process_limit),
                                             cmocka_unit_test(memory_limit),
                                             cmocka_unit_test(cpu_limit),
                                             cmocka_unit_test(pause_and_resume) };
    static const struct CMUnitTest handed[] = { cmocka_unit_test(memory_limit),
                                                cmocka_unit_test(cpu_limit),
                                                cmocka_unit_test(process_limit),
                                                cmocka_unit_test(pause_and_resume) };

    return box_rig_run(&(struct box_rig_plan){
        .all = BOX_RIG_CASES(all),
        .handed = BOX_RIG_CASES(handed),
    });
}
