/* Handlers and clients that do anything they may, in any order, many times over: each exchange ends exactly once, no
 * event runs inside a verb or after the end. Worth most under the address sanitizer. A seed that fails is printed;
 * CHAOS_SEED=N runs it alone, CHAOS_SEEDS=N that many. */
#include "http/testcaller.h"

#include "base/log.h"

#include <stdio.h>
#include <sys/mman.h>

#define GUESTS_MAX 4096
#define STEPS      400
#define FILE_BYTES 300000

/* One exchange, in the hands of a handler without a plan. */
struct guest {
    struct http_exchange *x; /* NULL once over */
    bool has_reader, has_end, is_paused, has_begun, is_filed, is_too_late;
    uint64_t left; /* of a known length */
};

static struct desk desk;
static struct guest guests[GUESTS_MAX];
static size_t guest_count, answered, gone, events;
static uint64_t rng;
static int file_fd;
static uint8_t noise[100000];

static uint32_t dice(uint32_t sides)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % sides;
}

static void act(struct guest *g);

static void over(struct guest *g)
{
    g->x = NULL;
    answered++;
}

static void check_event(struct guest *g)
{
    assert_false(desk.is_in_verb);
    assert_non_null(g->x);
    events++;
}

static void on_data(void *ctx, struct span bytes)
{
    struct guest *g = ctx;

    check_event(g);
    assert_true(bytes.n > 0 && !g->has_end);
    if (dice(3) == 0)
        act(g);
}

static void on_end(void *ctx, const struct err *e)
{
    struct guest *g = ctx;

    (void)e;
    check_event(g);
    assert_false(g->has_end || g->is_paused);
    g->has_end = true;
    if (dice(2))
        act(g);
}

static void on_collected(void *ctx, struct span body, const struct err *e)
{
    struct guest *g = ctx;

    check_event(g);
    assert_false(g->has_end);
    assert_true(!e || body.n == 0);
    g->has_end = true;
    if (dice(2))
        act(g);
}

static void on_drain(void *ctx)
{
    struct guest *g = ctx;

    check_event(g);
    act(g);
}

static void on_gone(void *ctx)
{
    struct guest *g = ctx;

    check_event(g);
    g->x = NULL;
    gone++;
}

/* ---- the handler ---- */

static void read_body(struct guest *g)
{
    static const struct http_body_events body_events = { on_data, on_end };

    if (g->has_reader)
        return;
    g->has_reader = true;
    if (dice(2))
        VERB(&desk, http_body_read(g->x, &body_events, g));
    else
        VERB(&desk, http_body_collect(g->x, dice(20000), on_collected, g));
}

static void begin_answer(struct guest *g)
{
    g->has_begun = true;
    g->left = dice(2) ? UINT64_MAX : dice(200000);
    VERB(&desk, http_answer_begin(g->x, dice(8) ? 200 : 204, g->left));
}

static void answer_whole(struct guest *g)
{
    struct http_exchange *x = g->x;

    over(g);
    if (dice(10) == 0)
        VERB(&desk, http_answer_head(x, 200));
    else
        VERB(&desk, http_answer(x, dice(5) ? 200 : 304, "text/plain",
                                span_of(noise, dice(4) ? dice(100) : dice(sizeof noise))));
}

static void write_some(struct guest *g)
{
    size_t n = dice(3) ? dice(1000) : dice(sizeof noise);

    if (g->left != UINT64_MAX) {
        n = (size_t)MIN((uint64_t)n, g->left);
        g->left -= n;
    }
    if (!http_answer_is_full(g->x))
        VERB(&desk, http_answer_write(g->x, span_of(noise, n)));
    else if (g->left != UINT64_MAX)
        g->left += n;
}

/* The file may be shorter than what was announced. */
static void send_file(struct guest *g)
{
    struct http_exchange *x = g->x;

    if (g->left == UINT64_MAX)
        return;
    VERB(&desk, http_answer_file(x, dup(file_fd), dice(FILE_BYTES), g->left));
    over(g);
    VERB(&desk, http_answer_end(x, NULL));
}

static void end_answer(struct guest *g)
{
    struct http_exchange *x = g->x;

    over(g);
    VERB(&desk, http_answer_end(x, NULL)); /* perhaps short of its length */
}

static void act(struct guest *g)
{
    struct http_exchange *x = g->x;

    if (!x)
        return;
    switch (dice(12)) {
    case 0:
    case 1:
        read_body(g);
        break;
    case 2:
        g->is_paused = !g->is_paused;
        VERB(&desk, http_body_pause(x, g->is_paused));
        break;
    case 3:
        if (dice(4) == 0) {
            over(g);
            VERB(&desk, http_answer_abort(x));
        }
        break;
    case 4:
        if (dice(4) == 0)
            VERB(&desk, http_eof_is_gone(x));
        else if (dice(2))
            VERB(&desk, http_body_may_rest(x));
        break;
    case 5:
    case 6:
        if (!g->has_begun)
            answer_whole(g);
        else
            end_answer(g);
        break;
    case 7:
        if (g->has_begun)
            send_file(g);
        break;
    default:
        if (!g->has_begun)
            begin_answer(g);
        else
            write_some(g);
    }
}

static void serve(struct desk *d, struct http_exchange *x)
{
    struct guest *g = &guests[guest_count++];

    (void)d;
    assert_true(guest_count < GUESTS_MAX);
    *g = (struct guest){ .x = x };
    http_on_gone(x, on_gone, g);
    http_on_drain(x, on_drain, g);
    for (uint32_t i = dice(4); i > 0; i--)
        act(g);
}

/* ---- clients ---- */

static const struct span scripts[] = {
    BYTES("GET / HTTP/1.1\r\nhost: x\r\n\r\n"),
    BYTES(
        "GET / HTTP/1.1\r\nhost: x\r\n\r\nHEAD /b HTTP/1.1\r\nhost: x\r\n\r\nGET /c HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"),
    BYTES("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\n\r\nhello, world"),
    BYTES(
        "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n"),
    BYTES("POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\nhello"),
    BYTES("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    BYTES("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 70000\r\n\r\nnot all of it"),
    BYTES("GET / HTTP/1.0\r\n\r\n"),
};

static void step_h1(struct side *c)
{
    struct span script = scripts[dice(LEN(scripts))];
    size_t cut = dice((uint32_t)script.n + 1);

    if (c->is_closed)
        return;
    c->in.n = 0;
    switch (dice(24)) {
    case 0:
        conn_close(c->conn);
        break;
    case 1:
        (void)shutdown(conn_fd(c->conn), SHUT_WR);
        break;
    case 2:
    case 3:
        conn_want_read(c->conn, dice(3));
        break;
    case 4:
        conn_write(c->conn, span_of(noise, dice(100000))); /* a body, or nonsense */
        break;
    case 5:
        conn_write(c->conn, span_slice(script, 0, cut));
        break;
    default:
        conn_write(c->conn, span_slice(script, 0, cut));
        ev_loop_turn(desk.loop);
        if (!c->is_closed)
            conn_write(c->conn, span_skip(script, cut));
    }
}

static void step_h2(struct caller *c)
{
    struct reply *r = c->n ? c->replies[dice((uint32_t)c->n)] : NULL;

    if (!c->conn)
        return;
    switch (dice(10)) {
    case 0:
        if (dice(8) == 0)
            conn_close(c->conn);
        break;
    case 1:
        conn_want_read(c->conn, dice(3));
        break;
    case 2:
        if (r && r->stream)
            caller_reset(r);
        break;
    case 3:
    case 4:
        if (r && r->stream && !r->is_ended)
            caller_send(r, span_of(noise, dice(2) ? dice(100) : dice(sizeof noise)), dice(3) == 0);
        break;
    default:
        if (!c->has_goaway && h2_request_room(c->h2) > 0 && c->n < CALLER_REPLIES_MAX - 1) {
            r = caller_ask(c, dice(4) ? "POST" : "HEAD", "/h2",
                           dice(3) ? NULL : "expect: 100-continue", dice(2));
            r->holds = dice(4) == 0;
        }
    }
}

static void some_turns(void)
{
    for (uint32_t i = dice(4); i > 0; i--)
        ev_loop_turn(desk.loop);
    if (dice(40) == 0)
        side_idle(desk.loop, dice(12)); /* deadlines pass */
}

static void drained(void *ctx)
{
    (void)ctx;
    assert_false(desk.is_in_verb);
    desk.is_drained = true;
}

static void party(uint64_t seed)
{
    const struct http_server_config config = { .head_timeout_ms = 15,
                                               .idle_timeout_ms = 20,
                                               .stall_timeout_ms = 10 };
    static struct side h1[4];
    static struct caller h2[2];

    rng = seed * 2654435761u + 1;
    guest_count = answered = gone = 0;
    desk_open(&desk, dice(3) ? NULL : &config);
    desk.serve = serve;
    EACH(c, h1) {
        desk_connect(&desk, c);
    }
    EACH(c, h2) {
        caller_open(c, &desk);
    }
    for (int i = 0; i < STEPS; i++) {
        step_h1(&h1[dice(LEN(h1))]);
        step_h2(&h2[dice(LEN(h2))]);
        if (guest_count)
            act(&guests[guest_count - 1 - dice((uint32_t)MIN(guest_count, (size_t)20))]);
        some_turns();
        if (i == STEPS - 60 && dice(3) == 0)
            VERB(&desk, http_server_drain(desk.server, drained, &desk));
        EACH(c, h1) {
            if (c->is_closed && dice(4) == 0) {
                side_done(c);
                desk_connect(&desk, c);
            }
        }
    }
    http_server_free(take_ptr(&desk.server));
    for (size_t i = 0; i < guest_count; i++)
        assert_null(guests[i].x);
    assert_int_equal(answered + gone, guest_count);
    EACH(c, h1) {
        side_done(c);
    }
    EACH(c, h2) {
        caller_close(c);
    }
    desk_close(&desk);
}

static void test_anything_goes(void **state)
{
    const char *one = getenv("CHAOS_SEED"), *many = getenv("CHAOS_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, count = one    ? 1
                                                                : many ? strtoull(many, NULL, 10)
                                                                       : 20;
    size_t total = 0, ends = 0, goners = 0;
    OWN(buf_done) struct buf content = BUF_INIT(SIDE_MAX_BYTES);

    (void)state;
    file_fd = memfd_create("silica-test", MFD_CLOEXEC);
    side_fill(&content, FILE_BYTES);
    assert_int_equal(write(file_fd, content.p, content.n), content.n);
    for (uint64_t seed = first; seed < first + count; seed++) {
        print_message("# seed %llu\n", (unsigned long long)seed);
        party(seed);
        total += guest_count, ends += answered, goners += gone;
    }
    print_message("# %zu exchanges, %zu answered, %zu gone, %zu events\n", total, ends, goners,
                  events);
    assert_true(ends > 0 && goners > 0 && events > 0);
    (void)close(file_fd);
}

int main(void)
{
    const struct CMUnitTest all[] = { cmocka_unit_test(test_anything_goes) };

    log_set_level(LOG_OFF); /* short files and the like are on purpose */
    return cmocka_run_group_tests(all, NULL, NULL);
}
