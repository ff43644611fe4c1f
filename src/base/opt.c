#include "base/opt.h"

#include "base/str.h"

#include <limits.h>

#define HELP_FLAG_COLUMNS 34

static const struct opt *find_letter(const struct opt_program *prog, uint8_t letter)
{
    for (size_t i = 0; i < prog->opt_count; i++)
        if (prog->opts[i].letter && prog->opts[i].letter == (char)letter)
            return &prog->opts[i];
    return NULL;
}

/* "--x", "-x" and "--no-x" name the row "--x". A single letter is never taken for a long flag. */
static const struct opt *find(const struct opt_program *prog, struct span name,
                              bool *ret_is_negated)
{
    *ret_is_negated = false;
    if (span_starts(name, "--"))
        name = span_skip(name, 2);
    else if (span_starts(name, "-") && name.n > 2)
        name = span_skip(name, 1);
    else
        return name.n == 2 ? find_letter(prog, name.p[1]) : NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < prog->opt_count; i++) {
            const struct opt *o = &prog->opts[i];

            if (span_is(name, o->flag + 2) && (pass == 0 || o->kind == OPT_BOOL)) {
                *ret_is_negated = pass == 1;
                return o;
            }
        }
        if (!span_starts(name, "no-"))
            return NULL;
        name = span_skip(name, 3);
    }
    return NULL;
}

static int bad(struct err *e, const char *source, const char *text, const char *want)
{
    return err_set(e, ERR_USAGE, "%s: '%s' is not %s", source, text, want);
}

static int check_range(const struct opt *o, const char *source, const char *text, uint64_t v,
                       struct err *e)
{
    uint64_t max = o->max ? o->max : UINT64_MAX;
    const char *unit = o->kind == OPT_MS ? " ms" : o->kind == OPT_BYTES ? " bytes" : "";

    if (v >= o->min && v <= max)
        return 0;
    if (!o->max)
        return err_set(e, ERR_USAGE, "%s: '%s' is too small: at least %llu%s", source, text,
                       (unsigned long long)o->min, unit);
    return err_set(e, ERR_USAGE, "%s: '%s' is out of range: %llu to %llu%s", source, text,
                   (unsigned long long)o->min, (unsigned long long)max, unit);
}

int opt_set(const struct opt *o, const char *source, const char *text, void *into, struct err *e)
{
    char *field = (char *)into + o->offset;
    struct span s = span_cstr(text);
    struct opt_list *list;
    uint64_t v = 0;

    switch (o->kind) {
    case OPT_BOOL:
        if (!str_bool(s, (bool *)field))
            return bad(e, source, text, "true or false");
        return 0;
    case OPT_U64:
        if (!str_u64(s, UINT64_MAX, &v))
            return bad(e, source, text, "a whole number");
        break;
    case OPT_MS:
        if (!str_duration_ms(s, UINT64_MAX / 2, &v))
            return bad(e, source, text, "a duration such as 500ms, 2m or 1.5 (seconds)");
        break;
    case OPT_BYTES:
        if (!str_bytes(s, UINT64_MAX, &v))
            return bad(e, source, text, "a size such as 4096, 64KiB or 10M");
        break;
    case OPT_FD:
        if (!str_u64(s, INT_MAX, &v))
            return bad(e, source, text, "the number of a descriptor");
        break;
    case OPT_STR:
        *(const char **)(void *)field = text;
        return 0;
    case OPT_LIST:
        list = (struct opt_list *)(void *)field;
        if (list->n == OPT_LIST_MAX)
            return err_set(e, ERR_USAGE, "%s: given more than %d times", source, OPT_LIST_MAX);
        list->v[list->n++] = text;
        return 0;
    }
    if (check_range(o, source, text, v, e) < 0)
        return -1;
    *(uint64_t *)(void *)field = v;
    return 0;
}

/* A list starts anew with its first value from a stronger source: flags, then environment, then default. An
 * alias is the same field, so seeing one row is seeing all that share its offset. */
static void begin_list(const struct opt_program *prog, const struct opt *o, void *into, bool *seen)
{
    if (o->kind != OPT_LIST || seen[o - prog->opts])
        return;
    ((struct opt_list *)(void *)((char *)into + o->offset))->n = 0;
    for (size_t i = 0; i < prog->opt_count; i++)
        seen[i] |= prog->opts[i].offset == o->offset;
}

static int defaults_and_env(const struct opt_program *prog, void *into, struct err *e)
{
    OWN_MEM bool *seen = own_array(prog->opt_count, sizeof *seen);

    for (size_t i = 0; i < prog->opt_count; i++) {
        const struct opt *o = &prog->opts[i];

        if (o->kind == OPT_FD)
            *(uint64_t *)(void *)((char *)into + o->offset) = OPT_NO_FD;
        if (o->text && opt_set(o, o->flag, o->text, into, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < prog->opt_count; i++) {
        const struct opt *o = &prog->opts[i];
        const char *given = o->env ? getenv(o->env) : NULL;

        if (!given || !*given)
            continue;
        begin_list(prog, o, into, seen);
        if (opt_set(o, o->env, given, into, e) < 0)
            return -1;
    }
    return 0;
}

/* "-it": every letter is a boolean's, and none of them is what the argument means otherwise. */
static bool take_letters(const struct opt_program *prog, struct span arg, void *into)
{
    if (arg.n < 3 || arg.p[0] != '-' || arg.p[1] == '-')
        return false;
    for (size_t i = 1; i < arg.n; i++) {
        const struct opt *o = find_letter(prog, arg.p[i]);

        if (!o || o->kind != OPT_BOOL)
            return false;
    }
    for (size_t i = 1; i < arg.n; i++)
        *(bool *)((char *)into + find_letter(prog, arg.p[i])->offset) = true;
    return true;
}

static int one_flag(const struct opt_program *prog, char **argv, int *at, int argc, void *into,
                    bool *seen, struct err *e)
{
    struct span arg = span_cstr(argv[*at]);
    size_t eq = span_find(arg, '=');
    struct span name = eq == SIZE_MAX ? arg : span_slice(arg, 0, eq);
    const char *value = eq == SIZE_MAX ? NULL : argv[*at] + eq + 1;
    bool is_negated;
    const struct opt *o = find(prog, name, &is_negated);

    if (!o && take_letters(prog, arg, into))
        return 0;
    if (!o) {
        (void)err_set(e, ERR_USAGE, "unknown option '%s'", argv[*at]);
        err_hint(e, "see `%s --help`", prog->name);
        return -1;
    }
    if (is_negated && value)
        return err_set(e, ERR_USAGE, "'%s' takes no value", argv[*at]);
    if (o->kind == OPT_BOOL && !value)
        value = is_negated ? "false" : "true";
    if (!value) {
        if (*at + 1 >= argc)
            return err_set(e, ERR_USAGE, "%s needs a value (%s)", o->flag,
                           o->arg ? o->arg : "VALUE");
        value = argv[++*at];
    }
    begin_list(prog, o, into, seen);
    return opt_set(o, o->flag, value, into, e);
}

int opt_parse(const struct opt_program *prog, int argc, char **argv, void *into, int *ret_rest,
              struct err *e)
{
    OWN_MEM bool *seen = own_array(prog->opt_count, sizeof *seen);
    int at;

    if (defaults_and_env(prog, into, e) < 0)
        return -1;
    for (at = 1; at < argc; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (argv[at][0] != '-' || argv[at][1] == '\0')
            break;
        if (one_flag(prog, argv, &at, argc, into, seen, e) < 0)
            return -1;
    }
    *ret_rest = at;
    return 0;
}

static bool is_in_env(const struct opt_program *prog, const struct opt *want)
{
    for (size_t i = 0; i < prog->opt_count; i++) {
        const struct opt *o = &prog->opts[i];
        const char *env = o->env && o->offset == want->offset ? getenv(o->env) : NULL;

        if (env && *env)
            return true;
    }
    return false;
}

bool opt_was_given(const struct opt_program *prog, int argc, char **argv, const char *flag)
{
    bool is_negated;
    const struct opt *want = find(prog, span_cstr(flag), &is_negated);

    if (!want)
        return false;
    for (int at = 1; at < argc && argv[at][0] == '-' && argv[at][1] && strcmp(argv[at], "--") != 0;
         at++) {
        struct span arg = span_cstr(argv[at]);
        size_t eq = span_find(arg, '=');
        const struct opt *o = find(prog, span_slice(arg, 0, eq), &is_negated);

        if (o && o->offset == want->offset)
            return true;
        if (o && o->kind != OPT_BOOL && eq == SIZE_MAX)
            at++;
    }
    return is_in_env(prog, want);
}

static void help_row(const struct opt *o, struct buf *out)
{
    OWN(buf_done) struct buf left = BUF_INIT(256);

    if (o->letter)
        buf_addf_capped(&left, "  -%c, ", o->letter);
    buf_addf_capped(&left, "%s%s%s%s", o->letter ? "" : "  ", o->flag,
                    o->kind == OPT_BOOL ? "" : " ",
                    o->kind == OPT_BOOL ? ""
                    : o->arg            ? o->arg
                                        : "N");
    if (left.n >= HELP_FLAG_COLUMNS)
        buf_addf_capped(out, "%s\n%*s", buf_cstr(&left), HELP_FLAG_COLUMNS, "");
    else
        buf_addf_capped(out, "%-*s", HELP_FLAG_COLUMNS, buf_cstr(&left));
    buf_addf_capped(out, "%s", o->help);
    if (o->text && o->kind != OPT_BOOL)
        buf_addf_capped(out, " (%s)", o->text);
    buf_addf_capped(out, "\n");
}

void opt_help(const struct opt_program *prog, struct buf *out)
{
    bool has_groups = prog->opt_count && prog->opts[0].group;

    buf_addf_capped(out, "%s\n\nUsage: %s %s\n", prog->example, prog->name, prog->usage);
    if (!has_groups)
        buf_addf_capped(out, "\nOptions:\n");
    for (size_t i = 0; i < prog->opt_count; i++) {
        const struct opt *o = &prog->opts[i];

        if (o->group)
            buf_addf_capped(out, "\n%s:\n", o->group);
        if (o->help)
            help_row(o, out);
    }
    if (prog->epilog)
        buf_addf_capped(out, "\n%s\n", prog->epilog);
}

/* A text as roff shows it: nothing in it is a request, an escape or a hyphen that may be broken at. */
static void roff_text(struct buf *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        buf_addf_capped(out, "\\&");
    for (const char *c = text; *c; c++) {
        if (*c == '\\')
            buf_addf_capped(out, "\\e");
        else if (*c == '-')
            buf_addf_capped(out, "\\-");
        else
            buf_addc_capped(out, (uint8_t)*c);
    }
}

static void roff_row(const struct opt *o, struct buf *out)
{
    char first[2] = { (char)(*o->help >= 'a' && *o->help <= 'z' ? *o->help - 'a' + 'A'
                                                                : *o->help) };

    buf_addf_capped(out, ".TP\n\\fB");
    if (o->letter)
        buf_addf_capped(out, "\\-%c\\fR, \\fB", o->letter);
    roff_text(out, o->flag);
    buf_addf_capped(out, "\\fR");
    if (o->kind != OPT_BOOL)
        buf_addf_capped(out, " \\fI%s\\fR", o->arg ? o->arg : "N");
    buf_addf_capped(out, "\n");
    roff_text(out, first);
    roff_text(out, o->help + 1);
    buf_addf_capped(out, ".");
    if (o->text && o->kind != OPT_BOOL) {
        buf_addf_capped(out, "\nDefault: ");
        roff_text(out, o->text);
        buf_addf_capped(out, ".");
    }
    if (o->env)
        buf_addf_capped(out, "\nEnvironment: \\fB%s\\fR.", o->env);
    buf_addf_capped(out, "\n");
}

void opt_roff(const struct opt_program *prog, struct buf *out)
{
    for (size_t i = 0; i < prog->opt_count; i++) {
        if (prog->opts[i].group)
            buf_addf_capped(out, ".SS %s\n", prog->opts[i].group);
        if (prog->opts[i].help)
            roff_row(&prog->opts[i], out);
    }
}
