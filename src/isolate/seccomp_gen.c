/* seccomp_gen: runs at build time and prints the sandbox's filter as a C table, so that no start pays for building it
 * (1.3-1.6 ms) and the programs need no libseccomp.
 *
 * What the filter says is said to libseccomp, in two filters. The first lists what may be called: the rest is ENOSYS, other
 * architectures (i386, x32) too, so programs take the way they have for older kernels. The second refuses single arguments
 * with the error programs expect for them. Two, because the kernel reads some arguments as 32 bits, and to allow "anything
 * but this value" can only be said of 64.
 *
 * Loading takes the kernel half a microsecond for each instruction (it compiles them), in every sandbox, and libseccomp
 * writes 500. So what is loaded is one short program that says the same: calls that may be made with any arguments as a tree
 * of ranges, then the few that are looked at (seccomp_short.c). Both are run here over every call and whatever arguments a rule
 * speaks of, and where their answers differ there is no filter and no build.
 */
#include "base/own.h"
#include "isolate/seccomp_calls.h"
#include "isolate/seccomp_short.h"

#include <errno.h>
#include <linux/sched.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define LOW32 0xffffffffu

#define CALLS_SEEN                                                                                 \
    512 /* every architecture's numbers end below this, but for those with a bit of their own */
#define X32_BIT 0x40000000u

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
    EACH(c, seccomp_calls) {
        int call = seccomp_syscall_resolve_name(c->name);

        if (call >= 0) /* or this architecture, or this libseccomp, does not know it */
            need(seccomp_rule_add(f, SCMP_ACT_ALLOW, call, 0), c->name);
    }
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

/* ---- the short program, and whether it says the same ---- */

static void export(scmp_filter_ctx f, struct seccomp_program *p)
{
    OWN_FD int fd = memfd_create("filter", MFD_CLOEXEC);
    ssize_t n;

    need(seccomp_export_bpf(f, fd), "export");
    n = pread(fd, p->lines, sizeof p->lines, 0);
    need(n > 0 && (size_t)n < sizeof p->lines ? 0 : -E2BIG, "a filter");
    p->n = (size_t)n / sizeof p->lines[0];
    seccomp_release(f);
}

static struct seccomp_program allowed, refused, short_one;
static uint64_t compared;

/* Of two filters that refuse, the word of the one that was loaded last counts. */
static void compare(uint32_t arch, uint32_t call, uint64_t a0, uint64_t a1, uint64_t a2)
{
    struct seccomp_data data = { .nr = (int)call, .arch = arch, .args = { a0, a1, a2 } };
    uint32_t want = seccomp_run(&refused, &data), got = seccomp_run(&short_one, &data);

    if (want == SECCOMP_RET_ALLOW)
        want = seccomp_run(&allowed, &data);
    compared++;
    if (got == want)
        return;
    fprintf(stderr, "seccomp_gen: call %u(%#llx, %#llx, %#llx): %#x, but the rules say %#x\n", call,
            (unsigned long long)a0, (unsigned long long)a1, (unsigned long long)a2, got, want);
    exit(1);
}

#define VALUES_MAX 512

struct values {
    uint64_t all[VALUES_MAX];
    size_t n;
};

static void add_value(struct values *v, uint64_t value)
{
    need(v->n + 3 <= VALUES_MAX ? 0 : -ERANGE, "values");
    v->all[v->n++] = value;
    v->all[v->n++] = value | 1ull << 32;
    v->all[v->n++] = value | 1ull << 63;
}

/* What rules speak of, and its neighbours. */
static void find_values(struct values *few, struct values *many)
{
    static const uint64_t named[] = { TIOCSTI,        TIOCLINUX,       LOW32,
                                      NEW_NAMESPACES, S_ISUID,         S_ISUID | 0755,
                                      0755,           SIGCHLD,         IPPROTO_MPTCP,
                                      IPPROTO_SCTP,   IPPROTO_DCCP,    IPPROTO_UDPLITE,
                                      IPPROTO_ICMPV6, CLONE_NEWCGROUP, AF_NETLINK,
                                      AF_NETLINK + 1 };

    for (uint64_t i = 0; i < 12; i++)
        add_value(few, i);
    EACH(value, named)
        add_value(few, *value);
    for (size_t i = 0; i < few->n; i += 3)
        add_value(many, few->all[i]);
    for (uint64_t i = 12; i < 64; i++)
        add_value(many, i);
    for (unsigned bit = 6; bit < 32; bit++)
        add_value(many, 1ull << bit);
}

static void compare_ruled(uint32_t call)
{
    static struct values few, many;

    if (!few.n)
        find_values(&few, &many);
    for (size_t i = 0; i < few.n; i++)
        for (size_t j = 0; j < few.n; j++)
            for (size_t k = 0; k < few.n; k++)
                compare(seccomp_arch_native(), call, few.all[i], few.all[j], few.all[k]);
    for (size_t i = 0; i < many.n; i++)
        for (size_t j = 0; j < few.n; j++) {
            compare(seccomp_arch_native(), call, many.all[i], few.all[j], 0);
            compare(seccomp_arch_native(), call, few.all[j], many.all[i], 0);
            compare(seccomp_arch_native(), call, few.all[j], 0, many.all[i]);
        }
}

static void compare_all(void)
{
    static const uint64_t args[] = { 0, 1, 2, 17, LOW32, UINT64_MAX, NEW_NAMESPACES, S_ISUID };
    const uint32_t archs[] = { seccomp_arch_native(), SCMP_ARCH_X86, SCMP_ARCH_ARM, 0 };
    const char *name;

    for (size_t i = 0; seccomp_short_ruled(i, &name); i++)
        if (seccomp_syscall_resolve_name(name) >= 0)
            compare_ruled((uint32_t)seccomp_syscall_resolve_name(name));
    EACH(arch, archs)
        EACH(arg, args)
            for (uint32_t call = 0; call < 4 * CALLS_SEEN; call++) {
                compare(*arch, call, *arg, *arg, *arg);
                compare(*arch, call | X32_BIT, *arg, *arg, *arg);
                compare(*arch, UINT32_MAX - call, *arg, *arg, *arg);
            }
    need(compared > 1000000 ? 0 : -ERANGE, "too little was compared");
}

int main(void)
{
    export(make_allowed(), &allowed);
    export(make_refused(), &refused);
    need(seccomp_short_make(&short_one) ? 0 : -ERANGE, "a jump");
    compare_all();
    printf("/* Made by seccomp_gen at build time. */\n#include <linux/filter.h>\n\n");
    printf("static const struct sock_filter seccomp_filter[] = {\n");
    for (size_t i = 0; i < short_one.n; i++)
        printf("    { 0x%04x, %u, %u, 0x%08x },\n", short_one.lines[i].code, short_one.lines[i].jt,
               short_one.lines[i].jf, short_one.lines[i].k);
    printf("};\n");
    return ferror(stdout) != 0;
}
