/* kube_load: load on a Kubernetes API from many clients on one loop; what came of it as one JSON line.
 *
 *     kube_load HOST PORT CA-FILE PATH BODY-FILE VERB CLIENTS COUNT
 *
 * PATH is a collection. BODY-FILE holds an object with @NAME@ for its name and @N@ for a number that differs each time.
 * The token is in KUBE_TOKEN; KUBE_CERT and KUBE_KEY name a client certificate. COUNT requests in all, each client one
 * at a time on a connection of its own:
 *   create, update, get   objects n0, n1, ...; update and get want them created before
 *   list                  the whole collection
 *   watch                 CLIENTS watches (of label app=bench) and one writer that creates COUNT objects one after
 *                         the other; timed from the start of a create to each watch's event. Each must come to each
 *                         watch once, in order
 *   mixed                 one client creates COUNT objects, half of them while another lists without pause, half of
 *                         them alone (alone_p50_us, alone_p99_us), in turns. The one that lists is a process of its
 *                         own: what it reads is not to delay the clock of the other
 * HTTP/1.1 on purpose: a stream of HTTP/2 is no client of its own, its neighbours' bytes come first. KUBE_HTTP=2 asks for
 * HTTP/2 all the same, on as many connections as the server wants for so many streams. */
#include "bench/measure.h"
#include "ev/loop.h"
#include "http/client.h"
#include "net/tls.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_MAX      1000000
#define CLIENTS_MAX    20000
#define LINE_MAX_BYTES (64 * 1024) /* an event */
#define WATCHES_AT_ONCE                                                                            \
    64 /* that begin: a server is not asked for thousands of handshakes together */
#define BODY_MAX_BYTES (1024 * 1024)
#define TURN                                                                                       \
    20 /* creates of mixed between two changes: a slow moment of the disk meets both kinds */
#define LOOK_US 200 /* how often the two of mixed look for each other's word */

enum verb { VERB_CREATE, VERB_UPDATE, VERB_GET, VERB_LIST, VERB_WATCH, VERB_MIXED };
static const char *const verb_names[] = { "create", "update", "get", "list", "watch", "mixed" };

/* One client: it asks, waits, asks again. */
struct lane {
    struct load *load;
    enum verb verb;
    long index; /* of the object it asks for; for a watch: events seen */
    int64_t began;
    int status;
    struct buf line; /* of a watch: the event that is on its way */
};

/* What the two processes of mixed tell each other. */
struct word {
    atomic_bool is_wanted;  /* that lists are asked for */
    atomic_bool is_listing; /* the answer: one is on its way */
};

struct load {
    struct ev_loop *loop;
    struct http_client *client;
    struct http_target target;
    const char *path, *token;
    char *before, *middle, *after; /* the body, cut at its marks */
    enum verb verb;
    long clients, count;
    long next, done, failed, started, watching, complete;
    uint64_t bytes;
    bool is_over;
    int64_t began, *took, *sent;
    size_t taken;
    int64_t *alone; /* of mixed: those made while nobody lists */
    size_t taken_alone;
    struct word *word;
    pid_t lister;
    struct lane lanes[CLIENTS_MAX + 1];
};

static void ask(struct lane *l);

static void fail(const struct err *e)
{
    fprintf(stderr, "kube_load: %s\n", e->msg);
    exit(1);
}

static void note(struct load *x, int64_t began)
{
    int64_t took = now_ns() - began;

    if (x->verb == VERB_MIXED && !atomic_load(&x->word->is_wanted))
        x->alone[x->taken_alone++] = took;
    else
        x->took[x->taken++] = took;
}

/* The writer of mixed, at the end of a turn: lists are stopped or begun, and it waits until that is so. */
static void change_turn(struct load *x)
{
    bool is_wanted = !atomic_load(&x->word->is_wanted);

    atomic_store(&x->word->is_wanted, is_wanted);
    while (atomic_load(&x->word->is_listing) != is_wanted) {
        must(waitpid(x->lister, NULL, WNOHANG) == 0, "the process that lists");
        usleep(LOOK_US);
    }
}

/* The one that lists, before each list. */
static void await_want(struct word *w)
{
    if (!atomic_load(&w->is_wanted))
        atomic_store(&w->is_listing, false);
    while (!atomic_load(&w->is_wanted))
        usleep(LOOK_US);
    atomic_store(&w->is_listing, true);
}

static void on_head(void *ctx, const struct http_head *head)
{
    struct lane *l = ctx;
    struct load *x = l->load;

    l->status = head->status;
    if (l->verb != VERB_WATCH)
        return;
    if (x->started < x->clients)
        ask(&x->lanes[x->started++]);
    if (++x->watching == x->clients) {
        x->began = now_ns(); /* connecting is not what is measured */
        ask(&x->lanes[x->clients]);
    }
}

/* Whether the line is the next event of its watch. */
static void on_line(struct lane *l)
{
    struct load *x = l->load;
    char name[32];

    (void)snprintf(name, sizeof name, "\"name\":\"n%ld\"", l->index);
    if (l->index >= x->count || !strstr(buf_cstr(&l->line), name)) {
        if (x->failed++ == 0)
            fprintf(stderr, "kube_load: event %ld of a watch is %.200s\n", l->index,
                    buf_cstr(&l->line));
        return;
    }
    note(x, x->sent[l->index++]);
    if (l->index == x->count && ++x->complete == x->clients) {
        x->is_over = true;
        ev_loop_stop(x->loop);
    }
}

static void on_data(void *ctx, struct span bytes)
{
    struct lane *l = ctx;
    struct load *x = l->load;
    struct err e;

    x->bytes += bytes.n;
    if (l->verb != VERB_WATCH)
        return;
    l->line.max = LINE_MAX_BYTES;
    for (size_t at; !x->is_over && (at = span_find(bytes, '\n')) != SIZE_MAX;
         bytes = span_skip(bytes, at + 1)) {
        must(buf_add(&l->line, span_slice(bytes, 0, at), &e) == 0, "a line of an event");
        on_line(l);
        buf_done(&l->line); /* thousands of watches would keep theirs */
    }
    must(x->is_over || buf_add(&l->line, bytes, &e) == 0, "a line of an event");
}

static void finish_lane(struct load *x)
{
    if (++x->done < (x->verb == VERB_MIXED ? 1 : x->clients) || x->verb == VERB_WATCH)
        return;
    x->is_over = true;
    ev_loop_stop(x->loop);
}

static void on_done(void *ctx, const struct http_head *trailers, const struct err *e)
{
    struct lane *l = ctx;
    struct load *x = l->load;

    (void)trailers;
    if (x->is_over)
        return;
    if (e || l->status / 100 != 2) {
        if (x->failed++ == 0)
            fprintf(stderr, "kube_load: %s: status %d %s\n", verb_names[l->verb], l->status,
                    e ? e->msg : "");
        must(l->verb != VERB_WATCH, "a watch ended");
        must(l->verb != VERB_LIST || x->verb != VERB_MIXED, "a list beside creates");
    } else if (x->verb != VERB_WATCH && (x->verb != VERB_MIXED || l->verb == VERB_CREATE)) {
        note(x, l->began);
    }
    ask(l);
}

static const struct http_call_events events = { .on_head = on_head,
                                                .on_data = on_data,
                                                .on_done = on_done };

/* The number is a clock: an update that changes nothing would not be written. */
static void write_body(const struct load *x, long i, struct buf *body, struct err *e)
{
    if (buf_addf(body, e, "%sn%ld%s%lld%s", x->before, i, x->middle, (long long)now_ns(),
                 x->after) < 0)
        fail(e);
}

static void send_call(struct lane *l, const char *method, const char *query, bool is_named)
{
    struct load *x = l->load;
    struct err e = { 0 };
    OWN(buf_done) struct buf body = BUF_INIT(BODY_MAX_BYTES), target = BUF_INIT(4096);
    struct http_head head;

    if (method[0] == 'P')
        write_body(x, l->index, &body, &e);
    if ((is_named ? buf_addf(&target, &e, "%s/n%ld", x->path, l->index)
                  : buf_addf(&target, &e, "%s%s", x->path, query)) < 0)
        fail(&e);
    http_head_init(&head, 8192, 16);
    if (http_head_set_request(&head, span_cstr(method), buf_span(&target), &e) < 0 ||
        (x->token && http_head_addf(&head, "authorization", &e, "Bearer %s", x->token) < 0) ||
        http_head_add(&head, SPAN("accept"), SPAN("application/json"), &e) < 0 ||
        http_head_add(&head, SPAN("content-type"), SPAN("application/json"), &e) < 0)
        fail(&e);
    l->began = now_ns();
    http_call_start(
        x->client,
        &(struct http_call_spec){
            .to = x->target, .head = &head, .body = buf_span(&body), .events = &events, .ctx = l });
    http_head_done(&head);
}

/* What a lane does next. */
static void ask(struct lane *l)
{
    struct load *x = l->load;

    if (x->is_over)
        return;
    switch (l->verb) {
    case VERB_WATCH:
        /* By label: a namespace may be born with objects of its own. */
        send_call(l, "GET", "?watch=1&resourceVersion=0&labelSelector=app%3Dbench", false);
        return;
    case VERB_LIST:
        if (x->verb == VERB_MIXED) { /* until the writer is done */
            await_want(x->word);
            send_call(l, "GET", "", false);
            return;
        }
        break;
    case VERB_CREATE:
    case VERB_UPDATE:
    case VERB_GET:
    case VERB_MIXED:
        break;
    }
    if (x->next == x->count) {
        finish_lane(x);
        return;
    }
    if (x->verb == VERB_MIXED && x->next % TURN == 0)
        change_turn(x);
    l->index = x->next++;
    x->sent[l->index] = now_ns();
    if (l->verb == VERB_LIST)
        send_call(l, "GET", "", false);
    else if (l->verb == VERB_GET)
        send_call(l, "GET", "", true);
    else
        send_call(l, l->verb == VERB_UPDATE ? "PUT" : "POST", "", l->verb == VERB_UPDATE);
}

static void start(struct load *x)
{
    static const enum verb of_lane[] = {
        [VERB_CREATE] = VERB_CREATE, [VERB_UPDATE] = VERB_UPDATE, [VERB_GET] = VERB_GET,
        [VERB_LIST] = VERB_LIST,     [VERB_WATCH] = VERB_WATCH,   [VERB_MIXED] = VERB_LIST,
    };

    for (long i = 0; i <= x->clients; i++)
        x->lanes[i] =
            (struct lane){ .load = x, .verb = i < x->clients ? of_lane[x->verb] : VERB_CREATE };
    if (x->verb == VERB_MIXED) {
        ask(&x->lanes[x->lister ? x->clients : 0]);
        return;
    }
    while (x->started < x->clients && (x->verb != VERB_WATCH || x->started < WATCHES_AT_ONCE))
        ask(&x->lanes[x->started++]);
}

/* Makes the process that lists; each of the two then connects for itself. */
static void part(struct load *x)
{
    x->alone = calloc((size_t)x->count, sizeof *x->alone);
    x->word =
        mmap(NULL, sizeof *x->word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(x->alone && x->word != MAP_FAILED, "memory");
    x->lister = fork();
    must(x->lister >= 0, "fork");
    if (x->lister == 0)
        must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "prctl");
}

/* The body's text up to a mark, between the marks, and behind. Both must be there; the name comes first. */
static void read_body(struct load *x, const char *file)
{
    static char text[BODY_MAX_BYTES];
    FILE *f = fopen(file, "re");

    must(f != NULL, file);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    char *name = strstr(text, "@NAME@"), *number_at = strstr(text, "@N@");

    errno = 0;
    must(name && number_at && name < number_at, "a body with @NAME@ and then @N@");
    *name = *number_at = '\0';
    x->before = text;
    x->middle = name + strlen("@NAME@");
    x->after = number_at + strlen("@N@");
}

static void connect_to(struct load *x, char **argv)
{
    const char *version = getenv("KUBE_HTTP");
    bool is_h2 = version && strcmp(version, "2") == 0;
    struct err e = { 0 };
    struct tls *tls = NULL;
    const struct tls_config config = { .role = TLS_CLIENT,
                                       .ca_file = argv[3],
                                       .cert_file = getenv("KUBE_CERT"),
                                       .key_file = getenv("KUBE_KEY"),
                                       .alpn = is_h2 ? "h2" : "http/1.1" };

    if (ev_loop_new(&x->loop, &e) < 0 || tls_new(&config, &tls, &e) < 0)
        fail(&e);
    x->client = http_client_new(
        x->loop, &(struct http_client_config){ .idle_max = CLIENTS_MAX + 1,
                                               .idle_per_target_max = CLIENTS_MAX + 1 });
    x->target = (struct http_target){ .host = argv[1],
                                      .port = (uint16_t)number(argv[2], "port"),
                                      .maker = tls_maker(tls),
                                      .version = is_h2 ? HTTP_V2 : HTTP_V1 };
    x->token = getenv("KUBE_TOKEN");
}

static void report(struct load *x, int64_t ns)
{
    double seconds = (double)ns / 1e9;

    sort_values(x->took, x->taken);
    sort_values(x->alone, x->taken_alone);
    printf("{\"done\":%zu,\"failed\":%ld,\"seconds\":%.3f,\"rate\":%.1f,\"bytes\":%llu,"
           "\"p50_us\":%.0f,\"p90_us\":%.0f,\"p99_us\":%.0f,\"max_us\":%.0f,"
           "\"alone_p50_us\":%.0f,\"alone_p99_us\":%.0f}\n",
           x->taken, x->failed, seconds, (double)x->taken / seconds, (unsigned long long)x->bytes,
           percentile_us(x->took, x->taken, 0.5), percentile_us(x->took, x->taken, 0.9),
           percentile_us(x->took, x->taken, 0.99), percentile_us(x->took, x->taken, 1),
           percentile_us(x->alone, x->taken_alone, 0.5),
           percentile_us(x->alone, x->taken_alone, 0.99));
}

int main(int argc, char **argv)
{
    static struct load x;

    if (argc != 9) {
        fprintf(stderr, "usage: kube_load HOST PORT CA-FILE PATH BODY-FILE VERB CLIENTS COUNT\n");
        return 2;
    }
    x.path = argv[4];
    x.clients = number(argv[7], "clients");
    x.count = number(argv[8], "count");
    while (strcmp(verb_names[x.verb], argv[6]) != 0)
        must(++x.verb <= VERB_MIXED, "verb");
    must(x.clients > 0 && x.clients <= CLIENTS_MAX && x.count > 0 && x.count <= COUNT_MAX,
         "clients and count");
    if (x.verb == VERB_MIXED)
        part(&x);
    size_t room = (size_t)x.count * (size_t)(x.verb == VERB_WATCH ? x.clients : 1);

    x.took = calloc(room, sizeof *x.took);
    x.sent = calloc((size_t)x.count, sizeof *x.sent);
    must(x.took && x.sent, "memory");
    read_body(&x, argv[5]);
    connect_to(&x, argv);
    x.began = now_ns();
    start(&x);
    ev_loop_run(x.loop);
    if (x.lister)
        kill(x.lister, SIGKILL);
    report(&x, now_ns() - x.began);
    return x.failed ? 1 : 0;
}
