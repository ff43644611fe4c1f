#include "router/match.h"

#include "base/str.h"
#include "kube/names.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PORT_DEFAULT 8888

void refusal_set(struct refusal *r, int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    r->status = status;
    (void)vsnprintf(r->detail, sizeof r->detail, fmt, ap);
    va_end(ap);
}

static bool refuse(struct refusal *why, const char *text)
{
    refusal_set(why, 400, "%s", text);
    return false;
}

enum ours { ID, NAMESPACE, PORT, POD_IP, TIMEOUT, UID, OURS_COUNT };

/* What the request says of itself; p NULL: nothing. */
struct said {
    struct span value; /* the first */
    bool is_twice;
};

/* OURS_COUNT: none of them. No two names are of one length. */
static enum ours which(struct span name)
{
    static const char *const names[] = {
        [ID] = "id",         [NAMESPACE] = "namespace", [PORT] = "port",
        [POD_IP] = "pod-ip", [TIMEOUT] = "timeout",     [UID] = "uid",
    };
    static const uint8_t by_length[] = { [2] = ID + 1,     [3] = UID + 1,     [4] = PORT + 1,
                                         [6] = POD_IP + 1, [7] = TIMEOUT + 1, [9] = NAMESPACE + 1 };
    struct span rest = span_skip(name, sizeof "x-sandbox-" - 1);
    unsigned found = rest.n < LEN(by_length) ? by_length[rest.n] : 0;

    return found && memcmp(name.p, "x-sandbox-", sizeof "x-sandbox-" - 1) == 0 &&
                   memcmp(rest.p, names[found - 1], rest.n) == 0
               ? found - 1
               : OURS_COUNT;
}

static void read_ours(const struct http_head *head, struct said said[OURS_COUNT])
{
    struct span name, value;
    enum ours o;

    for (size_t i = 0; i < http_head_count(head); i++) {
        http_head_field(head, i, &name, &value);
        o = which(name);
        if (o == OURS_COUNT)
            continue;
        if (said[o].value.p)
            said[o].is_twice = true;
        else
            said[o].value = value;
    }
}

static bool read_label(struct span s, char ret[TARGET_NAME_BYTES])
{
    if (s.n >= TARGET_NAME_BYTES || !names_check(NAMES_DNS_LABEL, s, NULL))
        return false;
    memcpy(ret, s.p, s.n);
    ret[s.n] = '\0';
    return true;
}

static bool read_names(const struct said *said, struct target *t, struct refusal *why)
{
    struct span id = said[ID].value, namespace = said[NAMESPACE].value;

    if (said[ID].is_twice)
        return refuse(why, "Invalid sandbox ID format.");
    if (id.n == 0)
        return refuse(why, "X-Sandbox-ID header is required.");
    if (!read_label(id, t->id))
        return refuse(why, "Invalid sandbox ID format.");
    if (said[NAMESPACE].is_twice)
        return refuse(why, "Invalid namespace format.");
    if (!read_label(namespace.n ? namespace : SPAN("default"), t->namespace))
        return refuse(why, "Invalid namespace format.");
    return true;
}

static bool read_port(const struct said *said, struct target *t)
{
    struct span port = said[PORT].value;
    uint64_t n = PORT_DEFAULT;

    if (said[PORT].is_twice || (port.n && (port.n > 5 || !str_u64(port, 65535, &n) || n == 0)))
        return false;
    t->port = (uint16_t)n;
    return true;
}

static bool read_ip(const struct said *said, bool is_loopback_allowed, struct target *t)
{
    struct span ip = said[POD_IP].value;

    if (said[POD_IP].is_twice)
        return false;
    if (ip.n == 0)
        return true;
    if (!net_addr_of_ip(ip, t->port, &t->ip))
        return false;
    net_addr_unmap(&t->ip);
    t->has_ip = net_addr_is_loopback(&t->ip) ? is_loopback_allowed : net_addr_is_unicast(&t->ip);
    return t->has_ip;
}

/* What cannot be read is as if it were not there: the contract's, as clients send "inf" and the like. */
static uint64_t read_timeout(const struct said *said, uint64_t most_ms)
{
    struct span text = span_trim(said[TIMEOUT].value);
    double seconds;

    if (!text.n || !str_double(text, &seconds) || !(seconds > 0) ||
        seconds * 1000 >= (double)most_ms)
        return most_ms;
    return MAX((uint64_t)(seconds * 1000), (uint64_t)1);
}

bool match_read(const struct http_head *head, const struct match_rules *rules, struct target *ret,
                struct refusal *why)
{
    struct said said[OURS_COUNT] = { 0 };
    struct span uid;
    bool is_right;

    read_ours(head, said);
    *ret = (struct target){ .timeout_ms = read_timeout(said, rules->timeout_ms) };
    is_right = read_names(said, ret, why);
    if (is_right && !read_port(said, ret))
        is_right = refuse(why, "Invalid port format.");
    if (is_right && !read_ip(said, rules->is_loopback_allowed, ret))
        is_right = refuse(why, "Invalid target IP address.");
    uid = said[UID].value;
    if (uid.n && uid.n < sizeof ret->uid)
        memcpy(ret->uid, uid.p, uid.n);
    return is_right;
}

bool match_is_ours(struct span name)
{
    return which(name) != OURS_COUNT;
}
