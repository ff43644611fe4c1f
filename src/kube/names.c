#include "kube/names.h"

#include <stdio.h>

#define LABEL_RE     "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define SUBDOMAIN_RE LABEL_RE "(\\." LABEL_RE ")*"
#define QUALIFIED_RE "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

#define LABEL_SAYS                                                                                 \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '" LABEL_RE "')"
#define SUBDOMAIN_SAYS                                                                             \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '" SUBDOMAIN_RE "')"
#define DNS_1035_SAYS                                                                              \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "   \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123'," \
    " regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define QUALIFIED_SAYS                                                                             \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '" QUALIFIED_RE "')"
#define VALUE_SAYS                                                                                  \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "     \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  " \
    "or '12345', regex used for validation is '(" QUALIFIED_RE ")?')"
#define CONFIG_KEY_SAYS                                                                            \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "           \
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
#define ENV_SAYS                                                                                   \
    "a valid environment variable name must consist only of printable ASCII characters other "     \
    "than '='"
#define C_IDENTIFIER_SAYS                                                                          \
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "   \
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for " \
    "validation is '[A-Za-z_][A-Za-z0-9_]*')"

static void fault(struct names_faults *f, const char *prefix, const char *text)
{
    if (f->n < NAMES_FAULTS_MAX)
        (void)snprintf(f->text[f->n++], sizeof f->text[0], "%s%s", prefix, text);
}

static void too_long(struct names_faults *f, const char *prefix, unsigned max, const char *unit)
{
    char text[64];

    (void)snprintf(text, sizeof text, "must be no more than %u %s", max, unit);
    fault(f, prefix, text);
}

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(uint8_t c)
{
    return is_lower((uint8_t)(c | 0x20)) || is_digit(c);
}

static bool is_dns_label(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_lower(s.p[i]) && !is_digit(s.p[i]) && s.p[i] != '-')
            return false;
    return s.n && s.p[0] != '-' && s.p[s.n - 1] != '-';
}

static bool is_dns_subdomain(struct span s)
{
    size_t dot;

    while ((dot = span_find(s, '.')) != SIZE_MAX) {
        if (!is_dns_label(span_slice(s, 0, dot)))
            return false;
        s = span_skip(s, dot + 1);
    }
    return is_dns_label(s);
}

static bool is_qualified(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return s.n && is_alnum(s.p[0]) && is_alnum(s.p[s.n - 1]);
}

static void check_subdomain(struct span s, const char *prefix, const char *unit,
                            struct names_faults *f)
{
    if (s.n > 253)
        too_long(f, prefix, 253, unit);
    if (!is_dns_subdomain(s))
        fault(f, prefix, SUBDOMAIN_SAYS);
}

static void check_dns_label(struct span s, struct names_faults *f)
{
    if (s.n > 63)
        too_long(f, "", 63, "characters");
    if (is_dns_label(s))
        return;
    fault(f, "", is_dns_subdomain(s) ? "must not contain dots" : LABEL_SAYS);
}

static void check_dns_1035(struct span s, struct names_faults *f)
{
    if (s.n > 63)
        too_long(f, "", 63, "characters");
    if (!is_dns_label(s) || !is_lower(s.p[0]))
        fault(f, "", DNS_1035_SAYS);
}

static void check_path_segment(struct span s, struct names_faults *f)
{
    if (span_is(s, "."))
        fault(f, "", "may not be '.'");
    else if (span_is(s, ".."))
        fault(f, "", "may not be '..'");
    if (span_find(s, '/') != SIZE_MAX)
        fault(f, "", "may not contain '/'");
    if (span_find(s, '%') != SIZE_MAX)
        fault(f, "", "may not contain '%'");
}

static void check_label_key(struct span s, struct names_faults *f)
{
    size_t slash = span_find(s, '/');

    if (slash != SIZE_MAX) {
        struct span prefix = span_slice(s, 0, slash);

        s = span_skip(s, slash + 1);
        if (span_find(s, '/') != SIZE_MAX) {
            fault(f, "a valid label key ",
                  QUALIFIED_SAYS " with an optional DNS subdomain prefix and '/' (e.g. "
                                 "'example.com/MyName')");
            return;
        }
        if (prefix.n == 0)
            fault(f, "prefix part ", "must be non-empty");
        else
            check_subdomain(prefix, "prefix part ", "bytes", f);
    }
    if (s.n == 0)
        fault(f, "name part ", "must be non-empty");
    else if (s.n > 63)
        too_long(f, "name part ", 63, "bytes");
    if (!is_qualified(s))
        fault(f, "name part ", QUALIFIED_SAYS);
}

static void check_label_value(struct span s, struct names_faults *f)
{
    if (s.n > 63)
        too_long(f, "", 63, "bytes");
    if (s.n && !is_qualified(s))
        fault(f, "", VALUE_SAYS);
}

static void check_config_key(struct span s, struct names_faults *f)
{
    bool is_fine = s.n > 0;

    for (size_t i = 0; i < s.n; i++)
        is_fine = is_fine && (is_alnum(s.p[i]) || memchr("-._", s.p[i], 3));
    if (s.n > 253)
        too_long(f, "", 253, "characters");
    if (!is_fine)
        fault(f, "", CONFIG_KEY_SAYS);
    if (span_is(s, "."))
        fault(f, "", "must not be '.'");
    else if (span_is(s, ".."))
        fault(f, "", "must not be '..'");
    else if (span_starts(s, ".."))
        fault(f, "", "must not start with '..'");
}

static void check_env_var(struct span s, struct names_faults *f)
{
    if (s.n == 0)
        fault(f, "environment variable name ", "must be non-empty");
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < ' ' || s.p[i] > '~' || s.p[i] == '=') {
            fault(f, "", ENV_SAYS);
            return;
        }
}

static void check_c_identifier(struct span s, struct names_faults *f)
{
    bool is_fine = s.n && !is_digit(s.p[0]);

    for (size_t i = 0; i < s.n; i++)
        is_fine = is_fine && (is_alnum(s.p[i]) || s.p[i] == '_');
    if (!is_fine)
        fault(f, "", C_IDENTIFIER_SAYS);
}

static void check_port(struct span s, struct names_faults *f)
{
    bool is_fine = s.n > 0, has_letter = false;

    for (size_t i = 0; i < s.n; i++) {
        is_fine = is_fine && (is_lower(s.p[i]) || is_digit(s.p[i]) || s.p[i] == '-');
        has_letter = has_letter || is_lower(s.p[i]);
    }
    if (s.n > 15)
        too_long(f, "", 15, "characters");
    if (!is_fine)
        fault(f, "", "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    if (!has_letter)
        fault(f, "", "must contain at least one letter (a-z)");
    if (span_find_str(s, SPAN("--")) != SIZE_MAX)
        fault(f, "", "must not contain consecutive hyphens");
    if (s.n && (s.p[0] == '-' || s.p[s.n - 1] == '-'))
        fault(f, "", "must not begin or end with a hyphen");
}

static void check(enum names_rule rule, struct span s, struct names_faults *f)
{
    switch (rule) {
    case NAMES_DNS_LABEL:
        check_dns_label(s, f);
        break;
    case NAMES_DNS_SUBDOMAIN:
        check_subdomain(s, "", "characters", f);
        break;
    case NAMES_DNS_1035:
        check_dns_1035(s, f);
        break;
    case NAMES_PATH_SEGMENT:
        check_path_segment(s, f);
        break;
    case NAMES_LABEL_KEY:
        check_label_key(s, f);
        break;
    case NAMES_LABEL_VALUE:
        check_label_value(s, f);
        break;
    case NAMES_CONFIG_KEY:
        check_config_key(s, f);
        break;
    case NAMES_ENV_VAR:
        check_env_var(s, f);
        break;
    case NAMES_C_IDENTIFIER:
        check_c_identifier(s, f);
        break;
    case NAMES_PORT:
        check_port(s, f);
        break;
    }
}

bool names_check(enum names_rule rule, struct span text, struct names_faults *f)
{
    struct names_faults own;

    f = f ? f : &own;
    f->n = 0;
    check(rule, text, f);
    return f->n == 0;
}

bool names_check_prefix(enum names_rule rule, struct span text, struct names_faults *f)
{
    uint8_t last[256];

    if (rule == NAMES_PATH_SEGMENT && (span_is(text, ".") || span_is(text, "..")))
        return true; /* what follows makes it another name */
    if (text.n < 2 || text.p[text.n - 1] != '-' || text.n > sizeof last)
        return names_check(rule, text, f);
    /* The public server puts an 'a' in the place of the last two, so the one before is free too. */
    memcpy(last, text.p, text.n - 2);
    last[text.n - 2] = 'a';
    return names_check(rule, span_of(last, text.n - 1), f);
}

const char *names_join(const struct names_faults *f, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < f->n; i++) {
        int n = snprintf(text + at, size - at, "%s%s", i ? "; " : "", f->text[i]);

        if (n < 0 || (size_t)n >= size - at) {
            memcpy(text + size - 4, "...", 4);
            break;
        }
        at += (size_t)n;
    }
    return text;
}
