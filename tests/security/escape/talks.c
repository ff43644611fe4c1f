/* Attempts on sockets, terminals, capabilities and odd calls. */
#define _GNU_SOURCE
#include "attempts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <linux/io_uring.h>
#include <linux/ipv6.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HIGH_BIT (1ul << 40) /* the kernel reads 32 bits of these arguments */

/* ---- sockets ---- */

static const char *connect_unix(const char *name, int type)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    bool is_abstract = name[0] == '@';

    strncpy(at.sun_path, name, sizeof at.sun_path - 1);
    if (is_abstract)
        at.sun_path[0] = '\0';
    return result(
        connect(fd, (void *)&at,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + !is_abstract)));
}

const char *docker_socket(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/run/docker.sock" };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (is_outside && (mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0 ||
                       bind(fd, (void *)&at, sizeof at) < 0 || listen(fd, 1) < 0))
        return "cannot-prepare";
    return connect_unix("/run/docker.sock", SOCK_STREAM);
}

const char *host_unix_socket(void)
{
    return connect_unix(given("E_SOCKET"), SOCK_STREAM);
}

const char *host_abstract_socket(void)
{
    return connect_unix(given("E_ABSTRACT"), SOCK_STREAM);
}

const char *host_abstract_datagram(void)
{
    char name[100];

    snprintf(name, sizeof name, "%s-datagram", given("E_ABSTRACT"));
    return connect_unix(name, SOCK_DGRAM);
}

static int connect_ipv4(const char *address, int port, int type)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, address, &at.sin_addr);
    return connect(fd, (void *)&at, sizeof at) < 0 ? -1 : fd;
}

const char *host_loopback(void)
{
    return result(connect_ipv4("127.0.0.1", atoi(given("E_PORT")), SOCK_STREAM));
}

/* Where nobody listens the second send learns of it; where somebody does there is an echo. */
const char *host_loopback_udp(void)
{
    int fd = connect_ipv4("127.0.0.1", atoi(given("E_UDP")), SOCK_DGRAM);
    char byte = 'x';

    return fd < 0 || send(fd, &byte, 1, 0) < 0 ? result(-1) : result(recv(fd, &byte, 1, 0));
}

/* Outside, in a namespace of our own, the loopback interface gets an address of that network. */
static bool give_address(const char *address)
{
    struct ifreq request = { .ifr_name = "lo" };
    struct sockaddr_in *at = (void *)&request.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    at->sin_family = AF_INET;
    inet_pton(AF_INET, address, &at->sin_addr);
    if (ioctl(fd, SIOCSIFADDR, &request) < 0)
        return false;
    request.ifr_flags = IFF_UP;
    return ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

/* Connecting a UDP socket asks for a route and sends nothing. */
const char *out_by_ipv4(void)
{
    if (is_outside && !give_address("192.0.2.2"))
        return "cannot-prepare";
    return result(connect_ipv4("192.0.2.1", 9, SOCK_DGRAM));
}

const char *metadata_service(void)
{
    if (is_outside && !give_address("169.254.169.1"))
        return "cannot-prepare";
    return result(connect_ipv4("169.254.169.254", 80, SOCK_DGRAM));
}

const char *out_by_ipv6(void)
{
    struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
    struct in6_ifreq request = { .ifr6_prefixlen = 64, .ifr6_ifindex = 1 };
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return result(-1);
    inet_pton(AF_INET6, "2001:db8::1", &at.sin6_addr);
    inet_pton(AF_INET6, "2001:db8::2", &request.ifr6_addr);
    if (is_outside && (!give_address("127.0.0.1") || ioctl(fd, SIOCSIFADDR, &request) < 0))
        return "cannot-prepare";
    return result(connect(fd, (void *)&at, sizeof at));
}

const char *socket_high_bits(void)
{
    return result(syscall(SYS_socket, HIGH_BIT | AF_VSOCK, SOCK_STREAM, 0));
}

const char *change_link(void)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg info;
    } ask = {
        .head = { .nlmsg_len = sizeof ask,
                  .nlmsg_type = RTM_NEWLINK,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
        .info = { .ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP },
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0 ||
        recv(fd, &answer, sizeof answer, 0) < (ssize_t)sizeof answer)
        return "cannot-prepare";
    errno = -answer.error.error;
    return result(errno ? -1 : 0);
}

const char *lower_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo" };

    return result(ioctl(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), SIOCSIFFLAGS, &request));
}

/* Answered by rtnetlink before it reads what follows the head, where the right to change is missing. */
const char *route_message(int type)
{
    struct {
        struct nlmsghdr head;
        char body[64];
    } ask = { .head = { .nlmsg_len = sizeof ask,
                        .nlmsg_type = (uint16_t)type,
                        .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK } };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char more[4096];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0 ||
        recv(fd, &answer, sizeof answer, 0) < (ssize_t)NLMSG_LENGTH(sizeof answer.error) ||
        answer.head.nlmsg_type != NLMSG_ERROR)
        return "cannot-prepare";
    errno = -answer.error.error;
    return result(errno ? -1 : 0);
}

const char *socket_option(int family, int level, int name, int value)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd < 0 ? "cannot-prepare" : result(setsockopt(fd, level, name, &value, sizeof value));
}

const char *change_interface(unsigned long request)
{
    struct ifreq of = { .ifr_name = "lo" };

    return result(ioctl(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), request, &of));
}

/* ---- terminals ---- */

/* A terminal of our own, ours to control. */
static int terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return -1;
    return open(ptsname(master), O_RDWR); /* the leader of a session gets it */
}

const char *type_into_terminal(void)
{
    int fd = terminal();

    return fd < 0 ? "cannot-prepare" : result(ioctl(fd, TIOCSTI, "x"));
}

const char *type_high_bits(void)
{
    int fd = terminal();

    return fd < 0 ? "cannot-prepare" : result(syscall(SYS_ioctl, fd, HIGH_BIT | TIOCSTI, "x"));
}

const char *console_tricks(void)
{
    char code = 6; /* asks for the state of the shift key */
    int fd = terminal();

    return fd < 0 ? "cannot-prepare" : result(ioctl(fd, TIOCLINUX, &code));
}

const char *callers_terminal(void)
{
    if (is_outside && terminal() < 0)
        return "cannot-prepare";
    return result(open("/dev/tty", O_RDWR | O_CLOEXEC));
}

/* ---- calls under other names ---- */

#if defined(__x86_64__)
const char *i386_call(void)
{
    long got;

    __asm__ volatile("int $0x80"
                     : "=a"(got)
                     : "0"(20L /* getpid */)
                     : "memory", "r8", "r9", "r10", "r11");
    errno = (int)-got;
    return result(got == getpid() ? 0 : -1);
}

const char *x32_call(void)
{
    return result(syscall(0x40000000L + SYS_getpid));
}
#else
const char *i386_call(void)
{
    errno = ENOSYS;
    return result(-1);
}

const char *x32_call(void)
{
    return i386_call();
}
#endif

const char *clone3_user(void)
{
    struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
    long pid = syscall(SYS_clone3, &args, sizeof args);

    if (pid == 0)
        _exit(0);
    return result(pid);
}

const char *clone_high_bits(void)
{
    long pid = syscall(SYS_clone, HIGH_BIT | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(0);
    return result(pid);
}

const char *ring(void)
{
    struct io_uring_params params = { 0 };

    return result(syscall(SYS_io_uring_setup, 1, &params));
}

const char *bpf_map(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
    };

    return result(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}

const char *perf_counter(void)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof attr,
                                    .config = PERF_COUNT_SW_PAGE_FAULTS };

    return result(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

/* ---- capabilities and ids ---- */

const char *all_capabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct all[2] = { { ~0u, ~0u, 0 }, { 0x1ff, 0x1ff, 0 } };

    return result(syscall(SYS_capset, &head, all));
}

const char *ambient_capability(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct own[2];

    if (is_outside) {
        syscall(SYS_capget, &head, own);
        own[0].inheritable = own[0].permitted;
        own[1].inheritable = own[1].permitted;
        if (syscall(SYS_capset, &head, own) < 0)
            return "cannot-prepare";
    }
    return result(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0));
}

const char *other_uid(void)
{
    return result(setuid(getuid() + 1));
}

const char *other_gid(void)
{
    return result(setgid(getgid() + 1));
}

const char *drop_groups(void)
{
    return result(syscall(SYS_setgroups, 0, NULL));
}

static const char *own_file(void)
{
    static char name[] = "/tmp/attempt-XXXXXX";
    int fd = mkstemp(name);

    return fd < 0 ? NULL : name;
}

const char *give_file_away(void)
{
    const char *file = own_file();
    struct stat st;

    if (!file)
        return "cannot-prepare";
    if (chown(file, getuid() + 1, getgid() + 1) < 0 || stat(file, &st) < 0)
        return result(-1);
    return st.st_uid == getuid() && st.st_gid == getgid() ? "UNCHANGED" : "ok";
}

/* The mode of a file of our own. */
static const char *set_id_bit(long call)
{
    const char *file = own_file(), *got;
    unsigned long mode = S_ISUID | 0755;

    if (!file)
        return "cannot-prepare";
    if (call == SYS_chmod)
        got = result(syscall(call, file, mode));
    else if (call == SYS_fchmod)
        got = result(syscall(call, open(file, O_RDONLY | O_CLOEXEC), mode));
    else
        got = result(syscall(call, AT_FDCWD, file, HIGH_BIT | mode, 0));
    unlink(file);
    return got;
}

const char *chmod_setuid(void)
{
    return set_id_bit(SYS_chmod);
}

const char *fchmod_setuid(void)
{
    return set_id_bit(SYS_fchmod);
}

const char *fchmodat_setuid(void)
{
    return set_id_bit(SYS_fchmodat);
}

const char *fchmodat2_setuid(void)
{
    return set_id_bit(452);
}

/* A file that was made with the bit has it: what `got` is the descriptor of, or else the one at that path. */
static const char *made_with_bit(long got, const char *path)
{
    struct stat st;
    const char *said = result(got);
    bool has_bit =
        got >= 0 && (path ? stat(path, &st) : fstat((int)got, &st)) == 0 && (st.st_mode & S_ISUID);

    if (got > 0)
        close((int)got);
    if (path)
        unlink(path);
    return got >= 0 && !has_bit ? "UNCHANGED" : said;
}

#define NEW_FILE "/tmp/attempt-new"

const char *open_setuid(void)
{
    unlink(NEW_FILE);
    return made_with_bit(syscall(SYS_openat, AT_FDCWD, NEW_FILE, O_CREAT | O_RDWR, S_ISUID | 0755),
                         NEW_FILE);
}

const char *open_setuid_high_bits(void)
{
    unlink(NEW_FILE);
    return made_with_bit(syscall(SYS_openat, AT_FDCWD, NEW_FILE, O_CREAT | O_RDWR | 1L << 40,
                                 (S_ISUID | 0755) | 1L << 40),
                         NEW_FILE);
}

const char *creat_setuid(void)
{
    unlink(NEW_FILE);
    return made_with_bit(creat(NEW_FILE, S_ISUID | 0755), NEW_FILE);
}

const char *temporary_setuid(void)
{
    return made_with_bit(syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, S_ISUID | 0755),
                         NULL);
}

const char *openat2_setuid(void)
{
    struct open_how how = { .flags = O_CREAT | O_RDWR, .mode = S_ISUID | 0755 };

    unlink(NEW_FILE);
    return made_with_bit(syscall(SYS_openat2, AT_FDCWD, NEW_FILE, &how, sizeof how), NEW_FILE);
}

const char *mknod_setuid(void)
{
    unlink(NEW_FILE);
    return made_with_bit(syscall(SYS_mknodat, AT_FDCWD, NEW_FILE, S_IFREG | S_ISUID | 0755, 0),
                         NEW_FILE);
}

/* struct vfs_cap_data, revision 2: CAP_NET_RAW. */
const char *label_capable(void)
{
    static const unsigned data[5] = { 0x02000001, 1 << 13, 0, 0, 0 };
    const char *file = own_file();

    return file ? result(setxattr(file, "security.capability", data, sizeof data, 0))
                : "cannot-prepare";
}

/* At 1 nobody gets the memory of a crashed process. At 0 a handler of the host does. */
const char *core_limit(void)
{
    struct rlimit none = { 0, 0 }, now;

    if (setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_CORE, &now) < 0)
        return result(-1);
    return now.rlim_cur == 1 && now.rlim_max == 1 ? "UNCHANGED" : "ok";
}

const char *char_device(void)
{
    return result(mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)));
}

const char *block_device(void)
{
    return result(mknod("/tmp/disk", S_IFBLK | 0600, makedev(254, 0)));
}

const char *lock_memory(void)
{
    size_t n = 64 << 20;
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? "cannot-prepare" : result(mlock(p, n));
}

const char *real_time(void)
{
    struct sched_param first = { .sched_priority = 1 };

    return result(sched_setscheduler(0, SCHED_FIFO, &first));
}

/* A handle of the root directory, as if guessed: its inode is 2 on most disks. */
struct handle {
    struct file_handle head;
    char bytes[128];
};

static int get_handle(struct handle *h)
{
    int mount_id;

    h->head.handle_bytes = sizeof h->bytes;
    return name_to_handle_at(AT_FDCWD, is_outside ? "/" : "/tmp", &h->head, &mount_id, 0);
}

const char *handle_of_root(void)
{
    static struct handle h;

    return result(get_handle(&h));
}

const char *open_by_handle(void)
{
    static struct handle h;

    if (is_outside && get_handle(&h) < 0)
        return "cannot-prepare";
    return result(open_by_handle_at(open("/", O_RDONLY | O_CLOEXEC), &h.head, O_RDONLY));
}
