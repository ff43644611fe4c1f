/* Namespaces are made for real, in a child: by root, and by an account in a user namespace of its own. */
#include "isolate/netpool.h"

#include "isolate/testwho.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static ino_t inode_of(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static ino_t own_inode(void)
{
    struct stat st;

    return stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

static bool is_loopback_up(void)
{
    OWN_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = { .ifr_name = "lo" };

    return ioctl(fd, SIOCGIFFLAGS, &lo) == 0 && (lo.ifr_flags & IFF_UP);
}

/* 0, or the line that was not as it should be. */
static int use_pool(void)
{
    ino_t host = own_inode(), home, seen[NETPOOL_MAX];
    struct netpool p;
    size_t n = 0;

    netpool_open(&p);
    home = own_inode();
    if (!p.is_on || home == host || netpool_take(&p) != -1)
        return __LINE__;
    while (netpool_fill(&p))
        n++;
    if (n != NETPOOL_MAX || own_inode() != home)
        return __LINE__;
    for (size_t i = 0; i < n; i++) {
        OWN_FD int fd = netpool_take(&p);

        seen[i] = inode_of(fd);
        for (size_t j = 0; j < i; j++)
            if (seen[j] == seen[i])
                return __LINE__;
        if (fd < 0 || seen[i] == home || setns(fd, CLONE_NEWNET) < 0 || !is_loopback_up())
            return __LINE__;
        netpool_leave(&p);
        if (own_inode() != home)
            return __LINE__;
    }
    if (netpool_take(&p) != -1 || !netpool_fill(&p))
        return __LINE__;
    netpool_done(&p);
    return 0;
}

/* 255: user namespaces are not allowed; 254: the pool was to stay empty, and did. */
static int in_child(bool has_rights)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct netpool p;

        if (geteuid() == 0 && !has_rights && !testwho_be(TESTWHO_NOBODY))
            _exit(1);
        if (!has_rights) {
            netpool_open(&p);
            _exit(!p.is_on && !netpool_fill(&p) && netpool_take(&p) < 0 ? 254 : 1);
        }
        if (unshare(CLONE_NEWUSER) < 0)
            _exit(255);
        _exit(use_pool() ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_pool_of_networks(void **state)
{
    int result = in_child(true);

    (void)state;
    if (result == 255)
        skip();
    assert_int_equal(result, 0);
}

static void without_the_right_it_stays_empty(void **state)
{
    (void)state;
    assert_int_equal(in_child(false), 254);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_of_networks),
        cmocka_unit_test(without_the_right_it_stays_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
