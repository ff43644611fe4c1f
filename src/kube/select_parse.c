/* Label selectors. The grammar has its quirks ("in ()" is "in the empty text", "a in (,b)" too), and
 * clients show its errors, so scanner and parser follow the public one's order of looking. */
#include "kube/select_impl.h"

enum token {
    TOKEN_CLOSE,
    TOKEN_COMMA,
    TOKEN_NOT,
    TOKEN_DOUBLE_EQUALS,
    TOKEN_EQUALS,
    TOKEN_GREATER,
    TOKEN_IN,
    TOKEN_LESS,
    TOKEN_NOT_IN,
    TOKEN_OPEN,
    TOKEN_NOT_EQUALS,
    TOKEN_WORD,
    TOKEN_END,
};

struct scanner {
    struct span rest; /* behind the token that is looked at */
    enum token token;
    struct span literal;
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_symbol(uint8_t c)
{
    return c && strchr("=!(),><", c);
}

static enum token word_token(struct span word)
{
    return span_is(word, "in") ? TOKEN_IN : span_is(word, "notin") ? TOKEN_NOT_IN : TOKEN_WORD;
}

static enum token symbol_token(struct span s, size_t *ret_n)
{
    bool has_equals = s.n > 1 && s.p[1] == '=';

    *ret_n = 1;
    switch (s.p[0]) {
    case '=':
        *ret_n += has_equals;
        return has_equals ? TOKEN_DOUBLE_EQUALS : TOKEN_EQUALS;
    case '!':
        *ret_n += has_equals;
        return has_equals ? TOKEN_NOT_EQUALS : TOKEN_NOT;
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case '>':
        return TOKEN_GREATER;
    case '<':
        return TOKEN_LESS;
    default:
        return TOKEN_COMMA;
    }
}

/* Looks at the next token. */
static void scan(struct scanner *sc)
{
    size_t n = 0;

    while (sc->rest.n && is_blank(sc->rest.p[0]))
        sc->rest = span_skip(sc->rest, 1);
    if (sc->rest.n == 0 || sc->rest.p[0] == '\0') {
        sc->token = TOKEN_END;
        sc->literal = SPAN("");
        return;
    }
    if (is_symbol(sc->rest.p[0])) {
        sc->token = symbol_token(sc->rest, &n);
    } else {
        while (n < sc->rest.n && sc->rest.p[n] && !is_symbol(sc->rest.p[n]) &&
               !is_blank(sc->rest.p[n]))
            n++;
        sc->token = word_token(span_slice(sc->rest, 0, n));
    }
    sc->literal = span_slice(sc->rest, 0, n);
    sc->rest = span_skip(sc->rest, n);
}

/* Where a value may stand, "in" and "notin" are words. */
static enum token as_value(const struct scanner *sc)
{
    return sc->token == TOKEN_IN || sc->token == TOKEN_NOT_IN ? TOKEN_WORD : sc->token;
}

static int unexpected(const struct scanner *sc, const char *wanted, struct err *e)
{
    return err_set(e, ERR_PROTOCOL, "found '%.*s'%s", SPAN_ARG(span_slice(sc->literal, 0, 128)),
                   wanted);
}

/* "(a, b)", with nothing between commas meaning the empty text. The scanner is at what follows "in". */
static int parse_values(struct scanner *sc, struct selector_req *r, struct err *e)
{
    if (sc->token != TOKEN_OPEN)
        return unexpected(sc, " expected: '('", e);
    scan(sc);
    if (sc->token == TOKEN_CLOSE) {
        selector_add_value(r, SPAN(""));
        scan(sc);
        return 0;
    }
    if (as_value(sc) != TOKEN_WORD && sc->token != TOKEN_COMMA)
        return unexpected(sc, ", expected: ',', ')' or identifier", e);
    for (;;) {
        if (as_value(sc) == TOKEN_WORD) {
            selector_add_value(r, sc->literal);
            scan(sc);
            if (sc->token == TOKEN_CLOSE)
                break;
            if (sc->token != TOKEN_COMMA)
                return unexpected(sc, ", expected: ',' or ')'", e);
        } else if (sc->token == TOKEN_COMMA) {
            scan(sc);
            if (r->n == 0)
                selector_add_value(r, SPAN(""));
            if (sc->token == TOKEN_CLOSE || sc->token == TOKEN_COMMA)
                selector_add_value(r, SPAN(""));
            if (sc->token == TOKEN_CLOSE)
                break;
            if (sc->token == TOKEN_COMMA)
                scan(sc);
        } else {
            return unexpected(sc, ", expected: ',', or identifier", e);
        }
    }
    scan(sc);
    return 0;
}

static int parse_value(struct scanner *sc, struct selector_req *r, struct err *e)
{
    if (sc->token == TOKEN_END || sc->token == TOKEN_COMMA) {
        selector_add_value(r, SPAN(""));
        return 0;
    }
    if (as_value(sc) != TOKEN_WORD)
        return unexpected(sc, ", expected: identifier", e);
    selector_add_value(r, sc->literal);
    scan(sc);
    return 0;
}

static int parse_operator(struct scanner *sc, struct selector_req *r, struct err *e)
{
    static const struct {
        enum token token;
        enum selector_op op;
    } ops[] = {
        { TOKEN_IN, OP_IN },
        { TOKEN_NOT_IN, OP_NOT_IN },
        { TOKEN_EQUALS, OP_EQUALS },
        { TOKEN_DOUBLE_EQUALS, OP_DOUBLE_EQUALS },
        { TOKEN_NOT_EQUALS, OP_NOT_EQUALS },
        { TOKEN_GREATER, OP_GREATER },
        { TOKEN_LESS, OP_LESS },
    };

    EACH(o, ops) {
        if (o->token != sc->token)
            continue;
        r->op = o->op;
        scan(sc);
        return 0;
    }
    return unexpected(sc, ", expected: in, notin, =, ==, !=, gt, lt", e);
}

static int parse_requirement(struct scanner *sc, struct selector *s, struct err *e)
{
    struct selector_req *r = selector_add(s);
    bool is_negated = sc->token == TOKEN_NOT;
    struct names_faults f;

    if (is_negated)
        scan(sc);
    if (as_value(sc) != TOKEN_WORD)
        return unexpected(sc, ", expected: identifier", e);
    r->key = sc->literal;
    if (!names_check(NAMES_LABEL_KEY, r->key, &f))
        return selector_invalid("<nil>", r->key, &f, e);
    scan(sc);
    if (is_negated || sc->token == TOKEN_END || sc->token == TOKEN_COMMA) {
        r->op = is_negated ? OP_NOT_EXISTS : OP_EXISTS;
        return 0;
    }
    if (parse_operator(sc, r, e) < 0 ||
        (r->op == OP_IN || r->op == OP_NOT_IN ? parse_values(sc, r, e) : parse_value(sc, r, e)) < 0)
        return -1;
    return selector_judge(r, e);
}

static int parse(struct scanner *sc, struct selector *s, struct err *e)
{
    scan(sc);
    while (sc->token != TOKEN_END) {
        if (as_value(sc) != TOKEN_WORD && sc->token != TOKEN_NOT)
            return unexpected(sc, ", expected: !, identifier, or 'end of string'", e);
        if (parse_requirement(sc, s, e) < 0)
            return err_wrap(e, "unable to parse requirement");
        if (sc->token == TOKEN_END)
            break;
        if (sc->token != TOKEN_COMMA)
            return unexpected(sc, ", expected: ',' or 'end of string'", e);
        scan(sc);
        if (as_value(sc) != TOKEN_WORD && sc->token != TOKEN_NOT)
            return unexpected(sc, ", expected: identifier after ','", e);
    }
    return 0;
}

int selector_parse(struct span text, struct selector **ret, struct err *e)
{
    OWN(selector_done) struct selector *s = NULL;
    struct scanner sc = { 0 };

    if (text.n > SELECT_TEXT_MAX_BYTES)
        return err_set(e, ERR_LIMIT, "a selector of %zu bytes; at most %d", text.n,
                       SELECT_TEXT_MAX_BYTES);
    s = NEW(struct selector);
    s->text = span_dup(text);
    sc.rest = span_of(s->text, text.n);
    if (parse(&sc, s, e) < 0)
        return -1;
    *ret = take_ptr(&s);
    return 0;
}
