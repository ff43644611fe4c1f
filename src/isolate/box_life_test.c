/* How boxes end, what is left of them, and how they are reached while they live. */
#include "isolate/box_rig.h"

#include "base/fd.h"
#include "isolate/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* How many lines a file has, or entries a directory. */
static size_t count_lines(const char *path)
{
    OWN(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct span rest, line;
    struct err e;
    size_t n = 0;

    if (fd_read_file(path, &text, &e) < 0)
        fail_msg("%s", e.msg);
    for (rest = buf_span(&text); span_cut(&rest, '\n', &line);)
        n++;
    return n;
}

static size_t count_entries(const char *path)
{
    DIR *d = opendir(path);
    size_t n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        (void)closedir(d);
    return n;
}

/* A box in the middle of its life is killed with everything in it; then nothing of it is left. */
static void nothing_is_left(void **state)
{
    static const char *const args[] = {
        "--log-level", "off", "--",
        "sh",          "-c",  "for i in 1 2 3; do setsid sleep 98765 & done; wait",
        NULL
    };
    size_t mounts = count_lines("/proc/self/mountinfo"), fds = count_entries("/proc/self/fd");
    struct box_spec spec = box_rig_spec(args);
    struct err e;

    (void)state;
    box_rig_need_user_namespaces();
    for (int i = 0; i < 5; i++) {
        struct box *b;
        int status, control;
        char path[64];
        pid_t pid;

        if (box_start(&spec, &b, &e) < 0)
            fail_msg("%s", e.msg);
        pid = box_pid(b);
        control = box_take_control(b);
        assert_true(control >= 0);
        assert_int_equal(box_take_control(b), -1);
        if (i % 2)
            assert_int_equal(box_kill(b, &status, &e), 0);
        box_free(b);
        (void)close(control);
        (void)snprintf(path, sizeof path, "/proc/%d", pid);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
    }
    assert_int_equal(count_lines("/proc/self/mountinfo"), mounts);
    assert_int_equal(count_entries("/proc/self/fd"), fds);
}

/* The owner closes its end: PID 1 ends by itself. */
static void ends_with_its_owner(void **state)
{
    static const char *const args[] = { "--log-level", "off", NULL };
    struct box_spec spec = box_rig_spec(args);
    struct box *b;
    struct err e;
    int status, control;

    (void)state;
    box_rig_need_user_namespaces();
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    control = box_take_control(b);
    (void)close(control);
    assert_int_equal(poll(&(struct pollfd){ .fd = box_pidfd(b), .events = POLLIN }, 1, 10000), 1);
    assert_int_equal(box_kill(b, &status, &e), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    box_free(b);
}

/* Is there a cgroup that this process made? */
static bool has_group_of(pid_t maker)
{
    const char *above = cgroup_host()->dirs[CGROUP_V2];
    DIR *dir = *above ? opendir(above) : NULL;
    struct dirent *entry;
    char prefix[32];
    bool is_found = false;

    (void)snprintf(prefix, sizeof prefix, "silica-%d-", maker);
    while (dir && (entry = readdir(dir)))
        is_found |= strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        (void)closedir(dir);
    return is_found;
}

/* And when its owner dies without a word, everything in it is killed. */
static void dies_with_its_parent(void **state)
{
    static const char *const args[] = { "--log-level", "off", "--", "sleep", "98766", NULL };
    struct box_spec spec = box_rig_spec(args);
    int tell[2], inside_pid = 0;
    char path[64];
    pid_t parent;

    (void)state;
    box_rig_need_user_namespaces();
    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    parent = fork();
    if (parent == 0) {
        struct box *b;
        struct err e;

        if (box_start(&spec, &b, &e) == 0)
            (void)!write(tell[1], &(int){ box_pid(b) }, sizeof(int));
        (void)raise(SIGKILL);
    }
    assert_int_equal(read(tell[0], &inside_pid, sizeof inside_pid), sizeof inside_pid);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    (void)snprintf(path, sizeof path, "/proc/%d/ns", inside_pid);
    for (int i = 0; i < 500 && count_entries(path); i++)
        (void)poll(NULL, 0, 10);
    assert_int_equal(count_entries(path), 0);
    /* The last task leaves its group after its entry in /proc is gone. Another sweeper of this host may be faster. */
    (void)box_sweep();
    for (int i = 0; has_group_of(parent); i++) {
        assert_true(i < 500);
        (void)poll(NULL, 0, 10);
        (void)box_sweep();
    }
    (void)close(tell[0]);
    (void)close(tell[1]);
}

/* A server inside is reached through a socket made inside, and through no other. */
static void reach(void **state)
{
    static const char *const args[] = {
        "--log-level",
        "off",
        "--",
        "python3",
        "-c",
        "import socket\ns = socket.create_server(('127.0.0.1', 47113))\nprint('listening', flush=True)\n"
        "while True: s.accept()[0].sendall(b'from inside')",
        NULL
    };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(47113),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct box_spec spec = box_rig_spec(args);
    OWN_FD int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct box *b;
    struct err e;
    char text[16] = "";
    int out[2], fd;

    (void)state;
    box_rig_need_user_namespaces();
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    spec.log_fd = out[1];
    if (box_start(&spec, &b, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(read(out[0], text, sizeof text) > 0);
    for (int i = 0; i < 20; i++) {
        if (box_socket(b, AF_INET, SOCK_STREAM, &fd, &e) < 0)
            fail_msg("%s", e.msg);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        assert_int_equal(recv(fd, text, 11, MSG_WAITALL), 11);
        assert_memory_equal(text, "from inside", 11);
        (void)close(fd);
    }
    assert_int_equal(connect(plain, (struct sockaddr *)&to, sizeof to), -1);
    assert_int_equal(box_socket(b, AF_PACKET, SOCK_RAW, &fd, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(box_kill(b, NULL, &e), 0);
    assert_int_equal(box_socket(b, AF_INET, SOCK_STREAM, &fd, &e), -1);
    assert_int_equal(e.code, ERR_CLOSED);
    box_free(b);
    (void)close(out[0]);
    (void)close(out[1]);
}

int main(void)
{
    static const struct CMUnitTest all[] = { cmocka_unit_test(nothing_is_left),
                                             cmocka_unit_test(ends_with_its_owner),
                                             cmocka_unit_test(dies_with_its_parent),
                                             cmocka_unit_test(reach) };
    static const struct CMUnitTest beside[] = { cmocka_unit_test(nothing_is_left),
                                                cmocka_unit_test(reach) };
    static const struct CMUnitTest ranged[] = { cmocka_unit_test(reach) };
    static const struct CMUnitTest handed[] = { cmocka_unit_test(nothing_is_left) };

    return box_rig_run(&(struct box_rig_plan){
        .all = BOX_RIG_CASES(all),
        .beside_a_yard = BOX_RIG_CASES(beside),
        .ranged = BOX_RIG_CASES(ranged),
        .handed = BOX_RIG_CASES(handed),
    });
}
