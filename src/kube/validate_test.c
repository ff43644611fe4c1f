#include "kube/validate.h"

#include "base/fd.h"
#include "kube/default.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct object *stored(const struct kind *k, const struct kind_version *v,
                             const struct json *body)
{
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = json_edit_view(ed, body);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    struct object *o = NULL;
    struct err e;

    assert_int_equal(default_object(k, v, root, &e), 0);
    assert_int_equal(json_node_freeze(root, &doc, &e), 0);
    assert_int_equal(object_parse(k, json_doc_root(doc), &o, &e), 0);
    return o;
}

static bool has_cause(const struct causes *c, const struct json *want)
{
    for (size_t i = 0; i < c->n; i++)
        if (span_is(json_str(json_at(want, 0)), cause_reason(c->rows[i].type)) &&
            span_is(json_str(json_at(want, 1)), cause_field(c, i)) &&
            span_is(json_str(json_at(want, 2)), cause_message(c, i)))
            return true;
    return false;
}

/* One body and the causes a public server of release 1.36 gave for it; the order is not compared. */
static size_t check_row(const struct json *row)
{
    const struct kind *k =
        kind_find(json_cstr(json_get(row, "group")), json_cstr(json_get(row, "version")),
                  json_cstr(json_get(row, "plural")));
    const struct kind_version *version = kind_version(k, json_cstr(json_get(row, "version")));
    const struct json *want = json_get(row, "causes");
    OWN(object_done) struct object *o = stored(k, version, json_get(row, "body"));
    OWN(object_done)
    struct object *old = json_get(row, "old") ? stored(k, version, json_get(row, "old")) : NULL;
    OWN(causes_done) struct causes c = CAUSES_INIT;
    size_t wrong = 0;

    validate_object(&(struct validation){ k, version, o, old, NULL }, &c);
    JSON_EACH(cause, want)
    {
        if (!has_cause(&c, cause)) {
            printf("%s: missing %s: %s\n", json_cstr(json_get(row, "name")),
                   json_cstr(json_at(cause, 1)), json_cstr(json_at(cause, 2)));
            wrong++;
        }
    }
    for (size_t i = 0; i < c.n; i++) {
        bool is_wanted = false;

        JSON_EACH(cause, want)
        {
            is_wanted = is_wanted || (span_is(json_str(json_at(cause, 1)), cause_field(&c, i)) &&
                                      span_is(json_str(json_at(cause, 2)), cause_message(&c, i)));
        }
        if (!is_wanted) {
            printf("%s: not wanted %s: %s\n", json_cstr(json_get(row, "name")), cause_field(&c, i),
                   cause_message(&c, i));
            wrong++;
        }
    }
    return wrong;
}

static void recorded_answers(void **state)
{
    OWN_FD int fd = open("src/kube/validate_vectors.txt", O_RDONLY | O_CLOEXEC);
    OWN(buf_done) struct buf lines = BUF_INIT(1 << 20);
    struct span rest, line;
    size_t wrong = 0, rows = 0;
    struct err e;

    assert_true(fd >= 0 && fd_read_all(fd, &lines, &e) == 0);
    for (rest = buf_span(&lines); span_cut(&rest, '\n', &line); rows++) {
        OWN(json_doc_done) struct json_doc *doc = NULL;

        assert_int_equal(json_parse(line, NULL, &doc, &e), 0);
        wrong += check_row(json_doc_root(doc));
    }
    assert_true(rows > 80);
    assert_int_equal(wrong, 0);
}

static struct object *big_map(const char *member, size_t n)
{
    const struct kind *k = kind_find("", "v1", "configmaps");
    OWN(json_edit_done) struct json_edit *ed = json_edit_new(0);
    struct json_node *root = json_edit_object(ed), *meta = json_edit_object(ed),
                     *map = json_edit_object(ed);
    OWN_MEM char *text = own_new(n + 1);
    struct object *o = NULL;
    struct err e;

    memset(text, 'x', n);
    json_node_set(map, "z", json_edit_str(ed, span_of(text, n)));
    json_node_set(meta, "name", json_edit_cstr(ed, "x"));
    json_node_set(meta, "namespace", json_edit_cstr(ed, "default"));
    json_node_set(root, "metadata", meta);
    json_node_set(strcmp(member, "data") == 0 ? root : meta, member, map);
    assert_int_equal(object_freeze(k, NULL, root, &o, &e), 0);
    return o;
}

static void sizes_have_an_end(void **state)
{
    static const struct {
        const char *member;
        size_t n;
        const char *want;
    } rows[] = {
        { "data", 1048576, NULL },
        { "data", 1048577, "Too long: may not be more than 1048576 bytes" },
        { "annotations", 262143, NULL },
        { "annotations", 262144, "Too long: may not be more than 262144 bytes" },
    };
    const struct kind *k = kind_find("", "v1", "configmaps");

    EACH(r, rows) {
        OWN(object_done) struct object *o = big_map(r->member, r->n);
        OWN(causes_done) struct causes c = CAUSES_INIT;

        validate_object(&(struct validation){ k, &k->versions[0], o, NULL, NULL }, &c);
        assert_int_equal(c.n, r->want ? 1 : 0);
        if (r->want)
            assert_string_equal(cause_message(&c, 0), r->want);
    }
}

/* A hostile pod: each list is compared with itself, so its length is bounded. */
static void long_lists_cost_nothing(void **state)
{
    const struct kind *k = kind_find("", "v1", "pods");
    OWN(buf_done) struct buf body = BUF_INIT(8 << 20);
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(causes_done) struct causes c = CAUSES_INIT;
    OWN(object_done) struct object *o = NULL;
    struct err e;

    (void)buf_addf(&body, &e,
                   "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"},\"spec\":{\"containers\":[");
    for (int i = 0; i < 100000; i++)
        (void)buf_addf(&body, &e, "%s{\"name\":\"c%d\"}", i ? "," : "", i);
    (void)buf_addf(&body, &e, "]}}");
    assert_int_equal(json_parse(buf_span(&body), NULL, &doc, &e), 0);
    assert_int_equal(object_parse(k, json_doc_root(doc), &o, &e), 0);
    validate_object(&(struct validation){ k, &k->versions[0], o, NULL, NULL }, &c);
    assert_int_equal(c.n, 1);
    assert_string_equal(cause_message(&c, 0), "Too many: 100000: must have at most 2000 items");
}

/* The document of a member that did not change passed when it was written. */
static void only_changes_are_judged(void **state)
{
    static const char body[] = "{\"metadata\":{\"name\":\"x\",\"namespace\":\"n\"},\"spec\":{}}";
    static const struct {
        const char *group, *plural;
        size_t causes; /* of an empty spec */
    } rows[] = { { "", "pods", 1 }, { "agents.x-k8s.io", "sandboxes", 1 } };

    EACH(r, rows) {
        const struct kind *k = kind_find(r->group, NULL, r->plural);
        OWN(json_doc_done) struct json_doc *doc = NULL, *status = NULL;
        OWN(object_done) struct object *old = NULL, *same = NULL, *other = NULL;
        OWN(causes_done) struct causes kept = CAUSES_INIT, changed = CAUSES_INIT;
        struct err e;

        assert_int_equal(json_parse(SPAN(body), NULL, &doc, &e), 0);
        assert_int_equal(json_parse(SPAN("{}"), NULL, &status, &e), 0);
        assert_int_equal(object_parse(k, json_doc_root(doc), &old, &e), 0);
        assert_int_equal(object_parse(k, json_doc_root(doc), &other, &e), 0);
        assert_int_equal(object_with(old, "status", status, &same, &e), 0);
        validate_object(&(struct validation){ k, &k->versions[0], same, old, NULL }, &kept);
        assert_int_equal(kept.n, 0);
        validate_object(&(struct validation){ k, &k->versions[0], other, old, NULL }, &changed);
        assert_true(changed.n >= r->causes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_answers),
        cmocka_unit_test(sizes_have_an_end),
        cmocka_unit_test(long_lists_cost_nothing),
        cmocka_unit_test(only_changes_are_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
