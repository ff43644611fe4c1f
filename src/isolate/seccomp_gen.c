/* seccomp_gen: runs at build time and prints the sandbox's filters as C tables, one for each set of enum seccomp_variant, so
 * that no start pays for building one (1.3-1.6 ms) and the programs need no libseccomp; here it knows the calls' numbers.
 *
 * What is not listed is ENOSYS, other architectures (i386, x32) too, so programs take the way they have for older kernels.
 * Some calls are refused by an argument, with the error programs expect for it.
 *
 * Loading takes the kernel half a microsecond for each instruction (it compiles them), and 20 for each filter, in every
 * sandbox. So a sandbox has one filter, a tree of ranges of numbers whose leaves allow, refuse, or look at arguments:
 *
 *     arch -> nr -> tree -+-> allow
 *                         +-> ENOSYS
 *                         +-> rule of clone, socket, ioctl ... -+-> allow
 *                                                               +-> EPERM, EAFNOSUPPORT ...
 */
#include "base/own.h"
#include "isolate/seccomp_calls.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

_Noreturn static void give_up(const char *why)
{
    fprintf(stderr, "seccomp_gen: %s\n", why);
    exit(1);
}

/* ---- a program whose jumps lead to places further on ---- */

#define LINES_MAX  512
#define PLACES_MAX 256
#define JUMP_MAX   255 /* of a condition */

enum { ON = -1 }; /* the next line, as a place */

static struct line {
    uint16_t code;
    uint32_t k;
    int yes, no; /* places */
} lines[LINES_MAX];
static int line_count;

static struct place {
    int at;         /* its line; -1: not there yet */
    bool is_return; /* of `action`; these stand at the end */
    uint32_t action;
} places[PLACES_MAX];
static int place_count;

static int new_place(void)
{
    if (place_count == PLACES_MAX)
        give_up("too many places");
    places[place_count] = (struct place){ .at = -1 };
    return place_count++;
}

static void stand(int place)
{
    places[place].at = line_count;
}

static void add(unsigned code, uint32_t k, int yes, int no)
{
    if (line_count == LINES_MAX)
        give_up("too many lines");
    lines[line_count++] = (struct line){ (uint16_t)code, k, yes, no };
}

static int returns(uint32_t action)
{
    int place;

    for (int i = 0; i < place_count; i++)
        if (places[i].is_return && places[i].action == action)
            return i;
    place = new_place();
    places[place].is_return = true;
    places[place].action = action;
    return place;
}

static int allows(void)
{
    return returns(SECCOMP_RET_ALLOW);
}

static int refuses(int sys)
{
    return returns(SECCOMP_RET_ERRNO | ((uint32_t)sys & SECCOMP_RET_DATA));
}

static void load(size_t offset)
{
    add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, ON, ON);
}

/* The kernel's own type of most arguments is an int, so the upper half is nothing; where it is looked at, a program that
 * leaves something there means no value of ours. */
static void load_low(size_t argument)
{
    load(offsetof(struct seccomp_data, args) + argument * 8 +
         (__BYTE_ORDER == __LITTLE_ENDIAN ? 0 : 4));
}

static void load_high(size_t argument)
{
    load(offsetof(struct seccomp_data, args) + argument * 8 +
         (__BYTE_ORDER == __LITTLE_ENDIAN ? 4 : 0));
}

static void if_is(uint32_t value, int yes, int no)
{
    add(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

static void if_any_bit(uint32_t bits, int yes, int no)
{
    add(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no);
}

static unsigned jump(int from, int place)
{
    int to = place == ON ? from + 1 : places[place].at;

    if (to <= from || to - from - 1 > JUMP_MAX)
        give_up("a jump that is too long, or leads back");
    return (unsigned)(to - from - 1);
}

static void print_program(void)
{
    for (int i = 0; i < place_count; i++) {
        if (!places[i].is_return)
            continue;
        stand(i);
        add(BPF_RET | BPF_K, places[i].action, ON, ON);
    }
    for (int i = 0; i < line_count; i++) {
        const struct line *l = &lines[i];
        bool is_condition = BPF_CLASS(l->code) == BPF_JMP;

        printf("    { 0x%04x, %u, %u, 0x%08x },\n", l->code, is_condition ? jump(i, l->yes) : 0,
               is_condition ? jump(i, l->no) : 0, l->k);
    }
}

/* ---- calls with an argument that decides ---- */

static void rule_clone(void)
{
    load_low(0);
    if_any_bit(NEW_NAMESPACES, refuses(EPERM), allows());
}

static void rule_socket(void)
{
    /* What is common over IP. The rest (SCTP, MPTCP, L2TP and their like) is code that tenants have no business in; programs
     * that try some of it first want to hear that it is not there. */
    static const uint32_t protocols[] = { 0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP,
                                          IPPROTO_ICMPV6 };
    static const uint32_t protocols_tried[] = { IPPROTO_MPTCP, IPPROTO_SCTP, IPPROTO_DCCP,
                                                IPPROTO_UDPLITE };
    int no_family = refuses(EAFNOSUPPORT), no_protocol = refuses(EPROTONOSUPPORT);
    int ip = new_place(), netlink = new_place();

    load_high(0);
    if_is(0, ON, no_family);
    load_low(0);
    if_is(AF_UNIX, allows(), ON);
    if_is(AF_INET, ip, ON);
    if_is(AF_INET6, ip, ON);
    if_is(AF_NETLINK, netlink, no_family);
    /* Of netlink only ROUTE, which without capabilities only reads (node and Go ask it for interfaces). */
    stand(netlink);
    load_high(2);
    if_is(0, ON, no_protocol);
    load_low(2);
    if_is(NETLINK_ROUTE, allows(), no_protocol);
    stand(ip);
    load_low(2);
    EACH(p, protocols)
        if_is(*p, allows(), ON);
    EACH(p, protocols_tried)
        if_is(*p, no_protocol,
              p == &protocols_tried[LEN(protocols_tried) - 1] ? refuses(ENOSYS) : ON);
}

/* It makes both sockets before it finds that they cannot be paired. */
static void rule_socketpair(void)
{
    load_high(0);
    if_is(0, ON, refuses(EAFNOSUPPORT));
    load_low(0);
    if_is(AF_UNIX, allows(), refuses(EAFNOSUPPORT));
}

static void rule_personality(void)
{
    load_low(0);
    if_is(PER_LINUX, allows(), ON);
    if_is(0xffffffffu, allows(), refuses(ENOSYS)); /* asks, changes nothing */
}

/* Typing into the terminal of whoever reads it, and the console's own tricks. */
static void rule_ioctl(void)
{
    load_low(1);
    if_is(TIOCSTI, refuses(EPERM), ON);
    if_is(TIOCLINUX, refuses(EPERM), allows());
}

/* A set-user-ID file in a volume would outlive the sandbox and work for any account that runs it outside. So no mode is
 * changed to one with the bit, and no file is made with it: that one is empty, and what fills it takes the bit away, but each
 * of the ways to fill a file would have to do so in every kernel and file system. */
static void rule_mode(void)
{
    load_low(1);
    if_any_bit(S_ISUID, refuses(EPERM), allows());
}

static void rule_mode_at(void)
{
    load_low(2);
    if_any_bit(S_ISUID, refuses(EPERM), allows());
}

/* The mode is only read where a file may be made; in other calls it is whatever the register had. */
static void rule_open_in(size_t flags, size_t mode)
{
    load_low(flags);
    if_any_bit(O_CREAT | (O_TMPFILE & ~O_DIRECTORY), ON, allows());
    load_low(mode);
    if_any_bit(S_ISUID, refuses(EPERM), allows());
}

static void rule_open(void)
{
    rule_open_in(1, 2);
}

static void rule_open_at(void)
{
    rule_open_in(2, 3);
}

/* Its mode is in memory, which no filter sees. Programs that know the call know kernels without it. */
static void rule_absent(void)
{
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, ON, ON);
}

/* No process in a sandbox has CAP_CHOWN. Programs that are uid 0 give files away all the same (tar, cp -a), and take a refusal
 * for a failure: there it succeeds and changes nothing. What asks for the ids that the process has, or for none, is the
 * kernel's to answer. */
static void rule_owner_in(size_t owner, size_t group)
{
    int as_if = refuses(0), next = new_place();

    load_low(owner);
    if_is(0, next, ON);
    if_is(0xffffffffu, next, as_if);
    stand(next);
    load_low(group);
    if_is(0, allows(), ON);
    if_is(0xffffffffu, allows(), as_if);
}

static void rule_owner(void)
{
    rule_owner_in(1, 2);
}

static void rule_owner_at(void)
{
    rule_owner_in(2, 3);
}

/* The limit of core files stays what confine.c made it; who sets it to 0 hears that it worked. */
static void rule_setrlimit(void)
{
    load_low(0);
    if_is(RLIMIT_CORE, refuses(0), allows());
}

/* PID 1 has the user's id, so its limits would be the user's to lower. */
static void rule_prlimit(void)
{
    load_low(0);
    if_is(1, refuses(EPERM), ON);
    load_low(1);
    if_is(RLIMIT_CORE, ON, allows());
    load_low(2); /* the new limit: none, and it only asks */
    if_is(0, ON, refuses(0));
    load_high(2);
    if_is(0, allows(), refuses(0));
}

/* The first SECCOMP_RULED_CALLS stand here alone; the others are listed with the calls, and simply allowed in a filter
 * whose set lacks `variant`. */
static struct rule {
    const char *name;
    void (*print)(void);
    unsigned variant;
    int place;
} rules[] = {
    { .name = "clone", .print = rule_clone },
    { .name = "socket", .print = rule_socket },
    { .name = "socketpair", .print = rule_socketpair },
    { .name = "personality", .print = rule_personality },
    { .name = "ioctl", .print = rule_ioctl },
    { .name = "chmod", .print = rule_mode, .variant = SECCOMP_ON_SHARED },
    { .name = "fchmod", .print = rule_mode, .variant = SECCOMP_ON_SHARED },
    { .name = "creat", .print = rule_mode, .variant = SECCOMP_ON_SHARED },
    { .name = "mknod", .print = rule_mode, .variant = SECCOMP_ON_SHARED },
    { .name = "fchmodat", .print = rule_mode_at, .variant = SECCOMP_ON_SHARED },
    { .name = "fchmodat2", .print = rule_mode_at, .variant = SECCOMP_ON_SHARED },
    { .name = "mknodat", .print = rule_mode_at, .variant = SECCOMP_ON_SHARED },
    { .name = "open", .print = rule_open, .variant = SECCOMP_ON_SHARED },
    { .name = "openat", .print = rule_open_at, .variant = SECCOMP_ON_SHARED },
    { .name = "openat2", .print = rule_absent, .variant = SECCOMP_ON_SHARED },
    { .name = "chown", .print = rule_owner, .variant = SECCOMP_OF_ROOT },
    { .name = "fchown", .print = rule_owner, .variant = SECCOMP_OF_ROOT },
    { .name = "lchown", .print = rule_owner, .variant = SECCOMP_OF_ROOT },
    { .name = "fchownat", .print = rule_owner_at, .variant = SECCOMP_OF_ROOT },
    { .name = "setrlimit", .print = rule_setrlimit },
    { .name = "prlimit64", .print = rule_prlimit },
};

/* Who has the same rule as another goes to the same place. */
static int place_of(struct rule *r)
{
    EACH(other, rules)
        if (other->print == r->print && other->place != ON)
            r->place = other->place;
    if (r->place == ON)
        r->place = new_place();
    return r->place;
}

static void add_rules(void)
{
    for (size_t i = 0; i < LEN(rules); i++) {
        if (rules[i].place == ON || places[rules[i].place].at >= 0)
            continue; /* no such call here, or it is the rule of another */
        stand(rules[i].place);
        rules[i].print();
    }
}

/* ---- the tree ---- */

#define CALLS_MAX 512

struct leaf {
    int call, place;
};

/* Stretches of numbers: each begins where the last one ends, and the last one never ends. */
static struct stretch {
    uint32_t from;
    int place;
} stretches[2 * CALLS_MAX + 1];
static size_t stretch_count;

static int compare_leaves(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;

    return (x->call > y->call) - (x->call < y->call);
}

static void add_stretch(int from, int place)
{
    if (stretch_count && stretches[stretch_count - 1].place == place)
        return;
    stretches[stretch_count++] = (struct stretch){ (uint32_t)from, place };
}

static struct rule *rule_of(const char *name, unsigned variant)
{
    EACH(r, rules)
        if (strcmp(r->name, name) == 0 && (r->variant & variant) == r->variant)
            return r;
    return NULL;
}

static void add_leaf(struct leaf *leaves, size_t *n, const char *name, unsigned variant)
{
    int call = seccomp_syscall_resolve_name(name);
    struct rule *r = rule_of(name, variant);

    if (call < 0)
        return; /* this architecture, or this libseccomp, does not know it: so it is not allowed */
    if (*n == CALLS_MAX)
        give_up("too many calls");
    leaves[(*n)++] = (struct leaf){ call, r ? place_of(r) : allows() };
}

static void find_stretches(unsigned variant)
{
    static struct leaf leaves[CALLS_MAX];
    int none = refuses(ENOSYS), next = 0;
    size_t n = 0;

    for (size_t i = 0; i < SECCOMP_RULED_CALLS; i++)
        add_leaf(leaves, &n, rules[i].name, variant);
    EACH(c, seccomp_calls)
        add_leaf(leaves, &n, c->name, variant);
    qsort(leaves, n, sizeof *leaves, compare_leaves);
    for (size_t i = 0; i < n; i++) {
        if (leaves[i].call > next)
            add_stretch(next, none);
        add_stretch(leaves[i].call, leaves[i].place);
        next = leaves[i].call + 1;
    }
    add_stretch(next, none);
}

/* Halves the stretches until one is left. Returns its place, or that of what halves them. */
static int plant(size_t from, size_t to)
{
    size_t middle = (from + to) / 2;
    int place, line;

    if (to - from == 1)
        return stretches[from].place;
    place = new_place();
    stand(place);
    line = line_count;
    add(BPF_JMP | BPF_JGE | BPF_K, stretches[middle].from, ON, ON);
    lines[line].no = plant(from, middle);
    lines[line].yes = plant(middle, to);
    return place;
}

static void print_filter(unsigned variant)
{
    line_count = place_count = 0;
    stretch_count = 0;
    EACH(r, rules)
        r->place = ON;
    find_stretches(variant);
    load(offsetof(struct seccomp_data, arch));
    if_is(seccomp_arch_native(), ON, refuses(ENOSYS));
    load(offsetof(struct seccomp_data, nr));
    (void)plant(0, stretch_count);
    add_rules();
    printf("static const struct sock_filter seccomp_filter_%u[] = {\n", variant);
    print_program();
    printf("};\n\n");
}

int main(void)
{
    printf("/* Made by seccomp_gen at build time. */\n#include <linux/filter.h>\n\n");
    for (unsigned variant = 0; variant < SECCOMP_VARIANTS; variant++)
        print_filter(variant);
    printf("static const struct sock_fprog seccomp_filters[] = {\n");
    for (unsigned variant = 0; variant < SECCOMP_VARIANTS; variant++)
        printf("    { .len = LEN(seccomp_filter_%u),\n"
               "      .filter = (struct sock_filter *)(uintptr_t)seccomp_filter_%u },\n",
               variant, variant);
    printf("};\n");
    return ferror(stdout) != 0;
}
