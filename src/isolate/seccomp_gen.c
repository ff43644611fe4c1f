/* seccomp_gen: runs at build time and prints the sandbox's two filters as C tables, so that no start pays for building
 * them (1.3-1.6 ms) and the programs need no libseccomp.
 *
 * The first lists what may be called: the rest is ENOSYS, other architectures (i386, x32) too, so programs take the way
 * they have for older kernels. The second refuses single arguments with the error programs expect for them. Two, because
 * the kernel reads some arguments as 32 bits, and to allow "anything but this value" can only be said of 64.
 *
 * Loading takes the kernel half a microsecond for each instruction (it compiles them), in every sandbox. So calls that may
 * be made with any arguments stand before libseccomp's program as a tree of ranges, a fourth of what it would write.
 */
#include "base/own.h"
#include "isolate/seccomp_calls.h"

#include <errno.h>
#include <linux/sched.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#define LOW32 0xffffffffu

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

static void need(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "seccomp_gen: %s: %s\n", what, strerror(-rc));
    exit(1);
}

static scmp_filter_ctx begin(uint32_t otherwise)
{
    scmp_filter_ctx f = seccomp_init(otherwise);

    if (!f)
        exit(1);
    need(seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), "bad architecture");
    need(seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree");
    return f;
}

static void allow_low32(scmp_filter_ctx f, int call, unsigned arg, uint64_t value)
{
    need(seccomp_rule_add(f, SCMP_ACT_ALLOW, call, 1,
                          SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, LOW32, value)),
         "allow by argument");
}

static void allow_protocol(scmp_filter_ctx f, int family, int protocol)
{
    need(seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, (uint64_t)family),
                          SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, (uint64_t)protocol)),
         "allow a protocol");
}

static scmp_filter_ctx make_allowed(void)
{
    /* What is common over IP. The rest (SCTP, MPTCP, L2TP and their like) is code that tenants have no business in. */
    static const int protocols[] = { 0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6 };
    scmp_filter_ctx f = begin(SCMP_ACT_ERRNO(ENOSYS));

    need(seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES, 0)),
         "clone");
    allow_low32(f, SCMP_SYS(socket), 0, AF_UNIX);
    allow_low32(f, SCMP_SYS(socket), 0, AF_NETLINK);
    for (size_t i = 0; i < LEN(protocols); i++) {
        allow_protocol(f, AF_INET, protocols[i]);
        allow_protocol(f, AF_INET6, protocols[i]);
    }
    allow_low32(f, SCMP_SYS(socketpair), 0, AF_UNIX);
    allow_low32(f, SCMP_SYS(personality), 0, PER_LINUX);
    allow_low32(f, SCMP_SYS(personality), 0, LOW32); /* asks, changes nothing */
    return f;
}

static void refuse_low32(scmp_filter_ctx f, int call, unsigned arg, uint64_t value, int sys)
{
    need(seccomp_rule_add(f, SCMP_ACT_ERRNO((uint32_t)sys), call, 1,
                          SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, LOW32, value)),
         "refuse by argument");
}

static void refuse_bit(scmp_filter_ctx f, const char *name, unsigned arg, uint64_t bit)
{
    int call = seccomp_syscall_resolve_name(name);

    if (call < 0)
        return; /* not known, so not allowed either */
    need(seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), call, 1,
                          SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bit, bit)),
         "refuse by bit");
}

static scmp_filter_ctx make_refused(void)
{
    static const int protocols_tried[] = { IPPROTO_MPTCP, IPPROTO_SCTP, IPPROTO_DCCP,
                                           IPPROTO_UDPLITE };
    scmp_filter_ctx f = begin(SCMP_ACT_ALLOW);

    /* Typing into the terminal of whoever reads it, and the console's own tricks. */
    refuse_low32(f, SCMP_SYS(ioctl), 1, TIOCSTI, EPERM);
    refuse_low32(f, SCMP_SYS(ioctl), 1, TIOCLINUX, EPERM);
    for (unsigned bit = 0; bit < 32; bit++) {
        uint64_t flag = 1ull << bit;

        if (flag & NEW_NAMESPACES)
            need(seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)),
                 "clone");
    }
    /* Refusing may look at all 64 bits: a program that leaves something above the 32 means no family of ours. */
    for (unsigned family = 0; family < AF_NETLINK; family++)
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
            refuse_low32(f, SCMP_SYS(socket), 0, family, EAFNOSUPPORT);
    need(seccomp_rule_add(f, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                          SCMP_A0(SCMP_CMP_GT, AF_NETLINK)),
         "families");
    /* It makes both sockets before it finds that they cannot be paired. */
    need(seccomp_rule_add(f, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socketpair), 1,
                          SCMP_A0(SCMP_CMP_NE, AF_UNIX)),
         "pairs");
    /* Not allowed above either; programs that try these first want to hear that they are not there. */
    for (size_t i = 0; i < LEN(protocols_tried); i++)
        refuse_low32(f, SCMP_SYS(socket), 2, (uint64_t)protocols_tried[i], EPROTONOSUPPORT);
    /* A set-user-ID file in a volume would outlive the sandbox and work for whoever runs it outside. Made with the bit a
     * file is empty, and what fills it takes the bit away; so changing the mode is the only way to one. */
    refuse_bit(f, "chmod", 1, S_ISUID);
    refuse_bit(f, "fchmod", 1, S_ISUID);
    refuse_bit(f, "fchmodat", 2, S_ISUID);
    refuse_bit(f, "fchmodat2", 2, S_ISUID);
    /* The limit of core files stays what confine.c made it; who sets it to 0 hears that it worked. */
    need(seccomp_rule_add(f, SCMP_ACT_ERRNO(0), SCMP_SYS(setrlimit), 1,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, RLIMIT_CORE)),
         "setrlimit");
    need(seccomp_rule_add(f, SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), 2,
                          SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, RLIMIT_CORE), SCMP_A2(SCMP_CMP_NE, 0)),
         "prlimit64");
    /* PID 1 has the user's id, so its limits would be the user's to lower. */
    refuse_low32(f, SCMP_SYS(prlimit64), 0, 1, EPERM);
    /* Of netlink only ROUTE, which without capabilities only reads (node and Go ask it for interfaces). */
    need(seccomp_rule_add(f, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, AF_NETLINK),
                          SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE)),
         "netlink");
    return f;
}

/* ---- calls that may be made with any arguments ---- */

#define CALLS_MAX 512
#define JUMP_MAX  255 /* of a condition */

enum { ALLOW = -1, NEXT = -2 }; /* where a condition leads: here, or to an instruction */

/* Stretches of numbers: each begins where the last one ends, and the last one never ends. */
struct stretch {
    uint32_t from;
    int leads_to;
};

struct tree {
    struct stretch stretches[2 * CALLS_MAX];
    size_t stretch_count;
    struct {
        uint32_t number;
        int above, below; /* at the number or above it; below it */
    } nodes[2 * CALLS_MAX];
    int n;
};

static int compare_calls(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void find_stretches(struct tree *t)
{
    int calls[CALLS_MAX];
    size_t n = 0;

    EACH(c, seccomp_calls) {
        int call = seccomp_syscall_resolve_name(c->name);

        if (call >= 0 &&
            n < CALLS_MAX) /* or this architecture, or this libseccomp, does not know it */
            calls[n++] = call;
    }
    qsort(calls, n, sizeof *calls, compare_calls);
    if (n == 0 || calls[0] > 0)
        t->stretches[t->stretch_count++] = (struct stretch){ 0, NEXT };
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || calls[i] > calls[i - 1] + 1)
            t->stretches[t->stretch_count++] = (struct stretch){ (uint32_t)calls[i], ALLOW };
        if (i + 1 == n || calls[i + 1] > calls[i] + 1)
            t->stretches[t->stretch_count++] = (struct stretch){ (uint32_t)calls[i] + 1, NEXT };
    }
}

/* Halves the stretches until one is left. Returns where that begins. */
static int plant(struct tree *t, size_t from, size_t to)
{
    size_t middle = (from + to) / 2;
    int at;

    if (to - from == 1)
        return t->stretches[from].leads_to;
    at = t->n++;
    t->nodes[at].number = t->stretches[middle].from;
    t->nodes[at].below = plant(t, from, middle);
    t->nodes[at].above = plant(t, middle, to);
    return at;
}

static void print_line(unsigned code, unsigned jt, unsigned jf, unsigned k)
{
    if (jt > JUMP_MAX || jf > JUMP_MAX)
        need(-ERANGE, "a jump");
    printf("    { 0x%04x, %u, %u, 0x%08x },\n", code, jt, jf, k);
}

/* Of an instruction to where it leads. Behind the tree stands the one that allows, then libseccomp's program. */
static unsigned jump(const struct tree *t, int at, int to)
{
    if (to == ALLOW)
        to = t->n;
    else if (to == NEXT)
        to = t->n + 1;
    return (unsigned)(to - at - 1);
}

static void print_tree(void)
{
    static struct tree t;

    find_stretches(&t);
    (void)plant(&t, 0, t.stretch_count);
    print_line(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    print_line(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, seccomp_arch_native());
    print_line(BPF_JMP | BPF_JA, 0, 0, (unsigned)t.n + 2); /* what libseccomp says of the others */
    print_line(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < t.n; i++)
        print_line(BPF_JMP | BPF_JGE | BPF_K, jump(&t, i, t.nodes[i].above),
                   jump(&t, i, t.nodes[i].below), t.nodes[i].number);
    print_line(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

static void print_rules(scmp_filter_ctx f)
{
    OWN_FD int fd = memfd_create("filter", MFD_CLOEXEC);
    struct sock_filter line;

    need(seccomp_export_bpf(f, fd), "export");
    if (lseek(fd, 0, SEEK_SET) < 0)
        exit(1);
    while (read(fd, &line, sizeof line) == sizeof line)
        print_line(line.code, line.jt, line.jf, line.k);
    seccomp_release(f);
}

int main(void)
{
    printf("/* Made by seccomp_gen at build time. */\n#include <linux/filter.h>\n\n");
    printf("static const struct sock_filter seccomp_allowed[] = {\n");
    print_tree();
    print_rules(make_allowed());
    printf("};\nstatic const struct sock_filter seccomp_refused[] = {\n");
    print_rules(make_refused());
    printf("};\n");
    return ferror(stdout) != 0;
}
