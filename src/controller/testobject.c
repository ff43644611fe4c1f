#include "controller/testobject.h"

#include "controller/limits.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define KEPT_MAX (1 << 18)

static struct object *objects[KEPT_MAX];
static char *texts[KEPT_MAX];
static struct json_edit *edits[KEPT_MAX];
static size_t object_count, text_count, edit_count;

static void swap(char *text, char from, char to)
{
    for (char *c = text; *c; c++)
        if (*c == from)
            *c = to;
}

struct object *test_keep(struct object *o)
{
    assert_true(object_count < KEPT_MAX);
    return objects[object_count++] = o;
}

struct object *test_object(const struct kind *kind, const char *fmt, ...)
{
    OWN(json_doc_done) struct json_doc *doc = NULL;
    OWN(buf_done) struct buf text = BUF_INIT(BODY_MAX_BYTES);
    struct object *o = NULL;
    struct err e;
    va_list ap;

    va_start(ap, fmt);
    assert_int_equal(buf_vaddf(&text, &e, fmt, ap), 0);
    va_end(ap);
    swap((char *)text.p, '\'', '"');
    if (json_parse(buf_span(&text), NULL, &doc, &e) < 0 ||
        object_parse(kind, json_doc_root(doc), &o, &e) < 0)
        fail_msg("%s: %s", e.msg, buf_cstr(&text));
    return test_keep(o);
}

static const char *keep(char *text)
{
    assert_true(text_count < KEPT_MAX);
    texts[text_count++] = text;
    return text;
}

const char *test_quoted(const char *text)
{
    char *copy = own_strdup(text);

    swap(copy, '\'', '"');
    return keep(copy);
}

const char *test_text(struct json_node *node)
{
    OWN(buf_done) struct buf text = BUF_INIT(BODY_MAX_BYTES);
    struct err e;

    if (!node)
        return "";
    if (json_node_write(node, &text, &e) < 0)
        fail_msg("%s", e.msg);
    swap((char *)text.p, '"', '\'');
    return keep(span_dup(buf_span(&text)));
}

const char *test_step(const struct step *step)
{
    OWN(buf_done) struct buf text = BUF_INIT(BODY_MAX_BYTES);
    char head[512];
    struct err e;

    if (step->verb == STEP_NONE)
        return "";
    (void)step_text(step, head, sizeof head);
    assert_int_equal(buf_add(&text, span_cstr(head), &e), 0);
    if (step->body)
        assert_int_equal(buf_addf(&text, &e, " %s", test_text(step->body)), 0);
    if (step->uid)
        assert_int_equal(buf_addf(&text, &e, " uid=%s", step->uid), 0);
    if (step->version)
        assert_int_equal(buf_addf(&text, &e, " version=%" PRIu64, step->version), 0);
    return keep(span_dup(buf_span(&text)));
}

void test_same(const char *row, const char *what, const char *got, const char *want)
{
    got = got ? got : "(none)";
    want = want ? want : "(none)";
    if (strcmp(got, want) != 0)
        fail_msg("%s: the %s is\n  %s\nnot\n  %s", row, what, got, want);
}

struct json_edit *test_edit(void)
{
    assert_true(edit_count < KEPT_MAX);
    return edits[edit_count++] = json_edit_new(PASS_MAX_BYTES);
}

void test_objects_free(void)
{
    while (edit_count)
        json_edit_free(edits[--edit_count]);
    while (object_count)
        object_unref(objects[--object_count]);
    while (text_count)
        free(texts[--text_count]);
}
