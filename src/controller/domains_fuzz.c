/* Any bytes are a list of domains, or too many. Names have no blanks around them, no separators in them and no capitals; what
 * they are joined to is the same list again. */
#include "controller/domains.h"

#include "controller/limits.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void check_name(const char *name)
{
    size_t n = strlen(name);

    assert(!strpbrk(name, ",\n"));
    assert(!n || !is_blank(name[0]));
    for (size_t i = 0; i < n; i++)
        assert(name[i] < 'A' || name[i] > 'Z');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    OWN(buf_done) struct buf text = BUF_INIT(1u << 22);
    struct domains d, again;
    struct err e;
    size_t n = 0;

    if (domains_parse(span_of(data, size), &d, &e) < 0) {
        assert(e.code == ERR_LIMIT);
        return 0;
    }
    for (; d.names[n]; n++) {
        check_name(d.names[n]);
        assert(buf_addf(&text, &e, "%s,\n", d.names[n]) == 0);
    }
    assert(n <= DOMAINS_MAX);
    /* A NUL ends a name early: then it may be empty, or end in blanks, which a second reading takes away. */
    if (!size || !memchr(data, '\0', size)) {
        assert(domains_parse(buf_span(&text), &again, &e) == 0);
        for (size_t i = 0; i <= n; i++)
            assert(i == n ? !again.names[i] : strcmp(again.names[i], d.names[i]) == 0);
        domains_done(&again);
    }
    domains_done(&d);
    return 0;
}
