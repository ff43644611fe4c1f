#include "trace/trace.h"

#include "base/str.h"
#include "base/time.h"
#include "proto/pb.h"
#include "proto/trace.pb-c.h"
#include "trace/limits.h"
#include "trace/outbox.h"
#include "trace/settings.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Random bytes that are fetched at once: a trace needs 24 of them */
#define DICE_BYTES 480

#define KIND_SERVER  2
#define STATUS_ERROR 2
/* Of a span's flags: whether its parent is another process's is known, and so */
#define FLAG_KNOWS_REMOTE 0x100u
#define FLAG_IS_REMOTE    0x200u

struct tracer {
    struct outbox *outbox;
    enum trace_sampler sampler;
    bool is_parent_heard;
    uint64_t below;
    uint8_t dice[DICE_BYTES];
    size_t dice_used;
};

int tracer_new(struct ev_loop *loop, struct dial_resolver *resolver,
               const struct trace_settings *settings, struct tracer **ret, struct err *e)
{
    struct tracer *t = NEW(struct tracer);

    t->sampler = settings->sampler;
    t->is_parent_heard = settings->is_parent_heard;
    t->below = settings->below;
    t->dice_used = sizeof t->dice;
    if (outbox_new(loop, resolver, settings, &t->outbox, e) < 0) {
        free(t);
        return -1;
    }
    *ret = t;
    return 0;
}

void tracer_flush(struct tracer *t, uint64_t ms, ev_fn done, void *ctx)
{
    outbox_flush(t->outbox, ms, done, ctx);
}

void tracer_free(struct tracer *t)
{
    if (!t)
        return;
    outbox_free(t->outbox);
    free(t);
}

/* ---- the beginning ---- */

/* Never zeros alone. */
static void roll(struct tracer *t, uint8_t *to, size_t n)
{
    if (sizeof t->dice - t->dice_used < n) {
        size_t got = 0;

        while (got < sizeof t->dice) {
            ssize_t r = getrandom(t->dice + got, sizeof t->dice - got, 0);

            if (r > 0)
                got += (size_t)r;
        }
        t->dice_used = 0;
    }
    memcpy(to, t->dice + t->dice_used, n);
    t->dice_used += n;
    to[n - 1] |= to[n - 1] == 0; /* one value in 256 is another's, too */
}

static uint64_t number_of(const uint8_t trace[TRACE_ID_BYTES])
{
    uint64_t n = 0;

    for (size_t i = TRACE_ID_BYTES / 2; i < TRACE_ID_BYTES; i++)
        n = n << 8 | trace[i];
    return n >> 1;
}

static bool is_recorded(const struct tracer *t, const struct trace_span *s, bool has_parent)
{
    if (has_parent && t->is_parent_heard)
        return s->at.flags & TRACE_SAMPLED;
    switch (t->sampler) {
    case TRACE_ALL:
        return true;
    case TRACE_NONE:
        return false;
    case TRACE_RATIO:
        return number_of(s->at.trace) < t->below;
    }
    return false;
}

static bool read_parent(const struct http_head *request, struct trace_context *ret)
{
    size_t iter = 0;
    struct span one = http_head_next(request, "traceparent", &iter);

    return one.p && !http_head_next(request, "traceparent", &iter).p &&
           trace_context_parse(one, ret);
}

/* All of its fields as one; NULL where it is not what it should be, or too long. */
static char *read_state(const struct http_head *request)
{
    OWN(buf_done) struct buf all = BUF_INIT(TRACE_STATE_MAX_BYTES);
    struct span one;
    struct err e;
    size_t iter = 0;

    while ((one = http_head_next(request, "tracestate", &iter)).p)
        if ((all.n && buf_add(&all, SPAN(","), &e) < 0) || buf_add(&all, one, &e) < 0)
            return NULL;
    return trace_state_is_valid(buf_span(&all)) ? span_dup(buf_span(&all)) : NULL;
}

struct trace_span *trace_begin(struct tracer *t, const struct http_head *request)
{
    struct trace_span *s = NEW(struct trace_span);
    bool has_parent = read_parent(request, &s->at);
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    s->began_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    s->began_us = time_mono_us();
    if (has_parent) {
        memcpy(s->parent, s->at.span, sizeof s->parent);
        s->state = read_state(request);
    } else {
        roll(t, s->at.trace, sizeof s->at.trace);
    }
    roll(t, s->at.span, sizeof s->at.span);
    s->at.flags = is_recorded(t, s, has_parent) ? TRACE_SAMPLED : 0;
    return s;
}

int trace_pass(const struct trace_span *s, struct http_head *to, struct err *e)
{
    char text[TRACE_TEXT_BYTES];

    (void)http_head_remove(to, "tracestate");
    if (http_head_set(to, SPAN("traceparent"), span_cstr(trace_context_format(text, &s->at)), e) <
        0)
        return -1;
    return s->state ? http_head_add(to, SPAN("tracestate"), span_cstr(s->state), e) : 0;
}

/* ---- the end ---- */

/* An attribute as the message has it, with its text: clients choose those, so they are cut, and made UTF-8. */
struct packed_attribute {
    Silica__Trace__Attribute a;
    Silica__Trace__Value v;
    char text[3 * TRACE_TEXT_MAX + 1]; /* a byte that is no text becomes three */
};

static void put_attribute(struct packed_attribute *to, const struct trace_attribute *from)
{
    OWN(buf_done) struct buf text = BUF_INIT(sizeof to->text - 1);
    struct err e;

    silica__trace__attribute__init(&to->a);
    silica__trace__value__init(&to->v);
    to->a.key = (char *)from->key;
    to->a.value = &to->v;
    if (!from->text.p) {
        to->v.kind_case = SILICA__TRACE__VALUE__KIND_NUMBER;
        to->v.number = from->number;
        return;
    }
    if (str_utf8_lossy(span_slice(from->text, 0, TRACE_TEXT_MAX), &text, &e) < 0)
        buf_clear(&text);
    memcpy(to->text, buf_cstr(&text), text.n);
    to->text[text.n] = '\0';
    to->v.kind_case = SILICA__TRACE__VALUE__KIND_TEXT;
    to->v.text = to->text;
}

static void pack(struct tracer *t, const struct trace_span *s, const char *name,
                 const struct trace_attribute *attributes, size_t count, bool is_error)
{
    OWN_MEM struct packed_attribute *packed = own_array(count, sizeof *packed);
    Silica__Trace__Attribute *list[TRACE_ATTRIBUTES_MAX];
    Silica__Trace__Status status = SILICA__TRACE__STATUS__INIT;
    Silica__Trace__Span m = SILICA__TRACE__SPAN__INIT;
    OWN(buf_done) struct buf out = BUF_INIT(TRACE_SPAN_MAX_BYTES);
    static const uint8_t none[TRACE_SPAN_BYTES];
    struct err e;

    for (size_t i = 0; i < count; i++) {
        put_attribute(&packed[i], &attributes[i]);
        list[i] = &packed[i].a;
    }
    m.trace_id = (ProtobufCBinaryData){ sizeof s->at.trace, (uint8_t *)s->at.trace };
    m.span_id = (ProtobufCBinaryData){ sizeof s->at.span, (uint8_t *)s->at.span };
    m.flags = s->at.flags | FLAG_KNOWS_REMOTE;
    if (memcmp(s->parent, none, sizeof none) != 0) {
        m.parent_span_id = (ProtobufCBinaryData){ sizeof s->parent, (uint8_t *)s->parent };
        m.flags |= FLAG_IS_REMOTE;
    }
    if (s->state)
        m.trace_state = s->state;
    m.name = (char *)name;
    m.kind = KIND_SERVER;
    m.start_unix_ns = s->began_ns;
    m.end_unix_ns = s->began_ns + (time_mono_us() - s->began_us) * 1000;
    m.attributes = list;
    m.n_attributes = count;
    if (is_error) {
        status.code = STATUS_ERROR;
        m.status = &status;
    }
    if (pb_pack(&m.base, &out, &e) == 0)
        outbox_put(t->outbox, buf_span(&out));
}

void trace_end(struct tracer *t, struct trace_span *s, const char *name,
               const struct trace_attribute *attributes, size_t count, bool is_error)
{
    assert(count <= TRACE_ATTRIBUTES_MAX);
    if (s->at.flags & TRACE_SAMPLED)
        pack(t, s, name, attributes, count, is_error);
    free(s->state);
    free(s);
}
