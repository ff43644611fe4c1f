/* Any text as a Host: what is taken for ours has a form in which no attacker can own the name. */
#include "http/guard.h"

#include "net/addr.h"

#include <ctype.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text without a port and the last dot, in small letters. */
static void normal_of(const char *host, char *to, size_t size)
{
    char *colon;
    size_t n = MIN(strlen(host), size - 1);

    for (size_t i = 0; i < n; i++)
        to[i] = (char)tolower((unsigned char)host[i]);
    to[n] = '\0';
    colon = strrchr(to, ':');
    if (colon && strspn(colon + 1, "0123456789") == strlen(colon + 1))
        *colon = '\0';
    n = strlen(to);
    if (n > 1 && to[n - 1] == '.')
        to[n - 1] = '\0';
}

static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);

    return n >= m && strcmp(text + n - m, with) == 0;
}

static void check(const char *host, bool is_router)
{
    char text[400];
    size_t dots = 0;

    normal_of(host, text, sizeof text);
    if (!*host || net_host_is_ip(span_cstr(host)) || net_host_is_ip(span_cstr(text)))
        return;
    assert(strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(text));
    assert(text[0] != '.' && text[0] != '-' && !strstr(text, ".."));
    if (strcmp(text, "localhost") == 0 || ends(text, ".localhost"))
        return;
    assert(!is_router || strncmp(text, "router.", 7) == 0);
    if (ends(text, ".cluster.test"))
        text[strlen(text) - strlen(".cluster.test")] = '\0';
    for (const char *p = text; *p; p++)
        dots += *p == '.';
    assert(dots == 2 && ends(text, ".svc"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct opt_list nothing;
    struct guard_names names = { size & 1 ? "router" : NULL, "cluster.test", &nothing };
    OWN(http_head_done) struct http_head head;
    char host[400];
    struct err e;

    size = MIN(size, sizeof host - 1);
    memcpy(host, data, size);
    host[size] = '\0';
    http_head_init(&head, 4096, 10);
    if (http_head_set_authority(&head, span_cstr(host), &e) == 0 &&
        guard_is_local_host(&head, &names))
        check(host, names.service);
    return 0;
}
