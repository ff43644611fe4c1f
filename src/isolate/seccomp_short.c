#include "isolate/seccomp_short.h"

#include "isolate/seccomp_calls.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define CALLS_MAX 512
#define JUMP_MAX  255 /* of a condition */

/* ---- lines, and where their jumps lead ---- */

enum label {
    NEXT = -1, /* the line below */
    ALLOW,
    NOT_THERE, /* ENOSYS */
    REFUSE,
    NO_FAMILY,
    NO_PROTOCOL,
    PRETEND, /* nothing is done, and the caller hears that it was */
    RULES,   /* for calls that no stretch of numbers allows */
    PROTOCOLS_OF_IP,
    PROTOCOLS_OF_NETLINK,
    LIMITS_OF_INIT,
    BLOCKS, /* one for each call that is looked at */
    TREE = BLOCKS + 32,
    LABELS = TREE + 2 * CALLS_MAX,
};

static struct {
    unsigned code;
    uint32_t k;
    int yes, no;
} lines[SECCOMP_LINES_MAX];
static size_t line_count;
static size_t at[LABELS];

static void put(unsigned code, uint32_t k, int yes, int no)
{
    assert(line_count < LEN(lines));
    lines[line_count].code = code;
    lines[line_count].k = k;
    lines[line_count].yes = yes;
    lines[line_count++].no = no;
}

static void label(int l)
{
    at[l] = line_count;
}

static void load(size_t offset)
{
    put(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, NEXT, NEXT);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half of an argument is first");

static void load_low(unsigned arg)
{
    load(offsetof(struct seccomp_data, args) + 8 * arg);
}

static void load_high(unsigned arg)
{
    load(offsetof(struct seccomp_data, args) + 8 * arg + 4);
}

static void if_is(uint32_t k, int yes, int no)
{
    put(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no);
}

static void if_has(uint32_t bits, int yes, int no)
{
    put(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no);
}

static void answer(int l, uint32_t k)
{
    label(l);
    put(BPF_RET | BPF_K, k, NEXT, NEXT);
}

/* ---- calls whose arguments decide ---- */

/* Typing into the terminal of whoever reads it, and the console's own tricks. */
static void rule_ioctl(int pass)
{
    load_low(1);
    if_is(TIOCSTI, REFUSE, NEXT);
    if_is(TIOCLINUX, REFUSE, pass);
}

static void rule_clone(int pass)
{
    load_low(0);
    if_has(NEW_NAMESPACES, REFUSE, pass);
}

/* Refusing may look at all 64 bits: a program that leaves something above the 32 means no family of ours. */
static void rule_socket(int pass)
{
    static const uint32_t tried[] = { IPPROTO_MPTCP, IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE };
    static const uint32_t common[] = { 0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6 };

    load_low(2);
    EACH(p, tried)
        if_is(*p, NO_PROTOCOL, NEXT);
    load_low(0);
    if_is(AF_NETLINK, PROTOCOLS_OF_NETLINK, NEXT);
    load_high(0);
    if_is(0, NEXT, NO_FAMILY);
    load_low(0);
    if_is(AF_UNIX, pass, NEXT);
    if_is(AF_INET, PROTOCOLS_OF_IP, NEXT);
    if_is(AF_INET6, PROTOCOLS_OF_IP, NO_FAMILY);
    label(PROTOCOLS_OF_IP);
    load_low(2);
    EACH(p, common)
        if_is(*p, pass, p + 1 < common + LEN(common) ? NEXT : NOT_THERE);
    label(PROTOCOLS_OF_NETLINK);
    load_high(2);
    if_is(0, NEXT, NO_PROTOCOL);
    load_low(2);
    if_is(NETLINK_ROUTE, NEXT, NO_PROTOCOL);
    load_high(0);
    if_is(0, pass, NO_FAMILY);
}

static void rule_socketpair(int pass)
{
    load_high(0);
    if_is(0, NEXT, NO_FAMILY);
    load_low(0);
    if_is(AF_UNIX, pass, NO_FAMILY);
}

static void rule_personality(int pass)
{
    load_low(0);
    if_is(PER_LINUX, pass, NEXT);
    if_is(0xffffffffu, pass, NOT_THERE);
}

static void rule_mode_second(int pass)
{
    load_low(1);
    if_has(S_ISUID, REFUSE, pass);
}

static void rule_mode_third(int pass)
{
    load_low(2);
    if_has(S_ISUID, REFUSE, pass);
}

static void rule_setrlimit(int pass)
{
    load_low(0);
    if_is(RLIMIT_CORE, PRETEND, pass);
}

static void rule_prlimit(int pass)
{
    load_low(1);
    if_is(RLIMIT_CORE, NEXT, LIMITS_OF_INIT);
    load_high(2);
    if_is(0, NEXT, PRETEND);
    load_low(2);
    if_is(0, NEXT, PRETEND);
    label(LIMITS_OF_INIT);
    load_low(0);
    if_is(1, REFUSE, pass);
}

static const struct ruled {
    const char *name;
    void (*rule)(int pass);
    bool is_listed; /* in seccomp_calls: it is allowed but for what the rule refuses */
} ruled[] = {
    { "ioctl", rule_ioctl, true },
    { "clone", rule_clone, false },
    { "socket", rule_socket, false },
    { "socketpair", rule_socketpair, false },
    { "personality", rule_personality, false },
    { "chmod", rule_mode_second, true },
    { "fchmod", rule_mode_second, true },
    { "fchmodat", rule_mode_third, true },
    { "fchmodat2", rule_mode_third, true },
    { "setrlimit", rule_setrlimit, true },
    { "prlimit64", rule_prlimit, true },
};

bool seccomp_short_ruled(size_t i, const char **ret_name)
{
    if (i < LEN(ruled))
        *ret_name = ruled[i].name;
    return i < LEN(ruled);
}

/* -1: this architecture, or this libseccomp, does not know it; so nobody may call it. */
static int number_of(const char *name)
{
    int call = seccomp_syscall_resolve_name(name);

    return call < 0 ? -1 : call;
}

static bool is_ruled(const char *name)
{
    EACH(r, ruled)
        if (strcmp(r->name, name) == 0)
            return true;
    return false;
}

static bool is_listed(const char *name)
{
    EACH(c, seccomp_calls)
        if (strcmp(c->name, name) == 0)
            return true;
    return false;
}

static void put_rules(void)
{
    label(RULES);
    for (size_t i = 0; i < LEN(ruled); i++)
        if (number_of(ruled[i].name) >= 0)
            if_is((uint32_t)number_of(ruled[i].name), BLOCKS + (int)i, NEXT);
    lines[line_count - 1].no = NOT_THERE;
    for (size_t i = 0; i < LEN(ruled); i++) {
        if (number_of(ruled[i].name) < 0)
            continue;
        label(BLOCKS + (int)i);
        ruled[i].rule(!ruled[i].is_listed || is_listed(ruled[i].name) ? ALLOW : NOT_THERE);
    }
}

/* ---- calls that may be made with any arguments ---- */

/* Stretches of numbers: each begins where the last one ends, and the last one never ends. */
static struct stretch {
    uint32_t from;
    int leads_to;
} stretches[2 * CALLS_MAX];
static size_t stretch_count;

static int compare_calls(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void add_stretch(int from, int leads_to)
{
    stretches[stretch_count++] = (struct stretch){ (uint32_t)from, leads_to };
}

static void find_stretches(void)
{
    int calls[CALLS_MAX];
    size_t n = 0;

    EACH(c, seccomp_calls)
        if (number_of(c->name) >= 0 && !is_ruled(c->name) && n < CALLS_MAX)
            calls[n++] = number_of(c->name);
    qsort(calls, n, sizeof *calls, compare_calls);
    if (n == 0 || calls[0] > 0)
        add_stretch(0, RULES);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || calls[i] > calls[i - 1] + 1)
            add_stretch(calls[i], ALLOW);
        if (i + 1 == n || calls[i + 1] > calls[i] + 1)
            add_stretch(calls[i] + 1, RULES);
    }
}

/* Halves the stretches until one is left; a half of one stretch is where that leads. A node's lines are where its label is,
 * the lower half's right below it. */
static void plant(size_t from, size_t to, int *next_node)
{
    size_t middle = (from + to) / 2;
    bool is_leaf_below = middle - from == 1, is_leaf_above = to - middle == 1;
    int above = is_leaf_above ? stretches[middle].leads_to : TREE + (*next_node)++;

    if (to - from < 2)
        return;
    put(BPF_JMP | BPF_JGE | BPF_K, stretches[middle].from, above,
        is_leaf_below ? stretches[from].leads_to : NEXT);
    if (!is_leaf_below)
        plant(from, middle, next_node);
    if (is_leaf_above)
        return;
    label(above);
    plant(middle, to, next_node);
}

/* ---- the whole ---- */

static unsigned distance(size_t from, int to)
{
    return to == NEXT ? 0 : (unsigned)(at[to] - from - 1);
}

static bool link_lines(struct seccomp_program *p)
{
    for (size_t i = 0; i < line_count; i++) {
        unsigned yes = distance(i, lines[i].yes), no = distance(i, lines[i].no);

        if (yes > JUMP_MAX || no > JUMP_MAX)
            return false;
        p->lines[i] = (struct sock_filter){ (unsigned short)lines[i].code, (uint8_t)yes,
                                            (uint8_t)no, lines[i].k };
    }
    p->n = line_count;
    return true;
}

bool seccomp_short_make(struct seccomp_program *p)
{
    int next_node = 0;

    line_count = 0;
    load(offsetof(struct seccomp_data, arch));
    if_is(seccomp_arch_native(), NEXT, NOT_THERE);
    load(offsetof(struct seccomp_data, nr));
    find_stretches();
    plant(0, stretch_count, &next_node);
    put_rules();
    answer(NOT_THERE, SECCOMP_RET_ERRNO | ENOSYS);
    answer(REFUSE, SECCOMP_RET_ERRNO | EPERM);
    answer(NO_FAMILY, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    answer(NO_PROTOCOL, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    answer(PRETEND, SECCOMP_RET_ERRNO | 0);
    answer(ALLOW, SECCOMP_RET_ALLOW);
    return link_lines(p);
}

/* ---- the machine ---- */

uint32_t seccomp_run(const struct seccomp_program *p, const struct seccomp_data *data)
{
    uint32_t a = 0;

    for (size_t pc = 0; pc < p->n; pc++) {
        const struct sock_filter *l = &p->lines[pc];
        bool is_so = false;

        switch (l->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const uint8_t *)data + MIN(l->k, sizeof *data - sizeof a), sizeof a);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= l->k;
            continue;
        case BPF_RET | BPF_K:
            return l->k;
        case BPF_JMP | BPF_JA:
            pc += l->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            is_so = a == l->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            is_so = a > l->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            is_so = a >= l->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            is_so = a & l->k;
            break;
        default:
            return SECCOMP_RET_KILL_PROCESS;
        }
        pc += is_so ? l->jt : l->jf;
    }
    return SECCOMP_RET_KILL_PROCESS;
}
