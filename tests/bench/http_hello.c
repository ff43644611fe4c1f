/* http_hello: the smallest server on our HTTP stack, to see what the stack itself costs per request.
 * Says its address on the first line and serves until stdin ends or it is killed. When stdin is a
 * pipe, any line there is answered with the CPU time used so far and what the heap holds.
 *
 *     build/release/tests/bench/http_hello & wrk -t1 -c64 -d5s http://127.0.0.1:PORT/
 */
#include "ev/io.h"
#include "http/serve.h"
#include "net/listen.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct hello {
    struct ev_loop *loop;
    struct http_server *server;
    struct ev_io stdin_io;
};

static void on_request(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    http_answer(x, 200, "text/plain", SPAN("hello\n"));
}

static void on_line(void *ctx, unsigned ready)
{
    struct hello *h = ctx;
    struct mallinfo2 heap = mallinfo2();
    struct rusage use;
    char text[64];

    (void)ready;
    if (read(STDIN_FILENO, text, sizeof text) <= 0) {
        ev_loop_stop(h->loop);
        return;
    }
    (void)getrusage(RUSAGE_SELF, &use);
    printf("cpu_us=%lld heap_bytes=%zu connections=%zu\n",
           (long long)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 + use.ru_utime.tv_usec +
               use.ru_stime.tv_usec,
           heap.uordblks + heap.hblkhd, http_server_connections(h->server));
    (void)fflush(stdout);
}

static bool is_pipe(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

int main(void)
{
    const struct http_server_config config = { .on_request = on_request, .server_name = "hello" };
    struct hello h = { 0 };
    struct net_listener *listener;
    struct net_addr addr;
    char text[NET_ADDR_TEXT_BYTES];
    struct err e;

    if (ev_loop_new(&h.loop, &e) < 0 || net_addr_parse("127.0.0.1:0", &addr, &e) < 0) {
        fprintf(stderr, "http_hello: %s\n", e.msg);
        return 1;
    }
    h.server = http_server_new(h.loop, &config);
    if (net_listen(h.loop, &addr, http_server_accept, h.server, &listener, &e) < 0 ||
        (is_pipe(STDIN_FILENO) &&
         ev_io_open(&h.stdin_io, h.loop, STDIN_FILENO, on_line, &h, &e) < 0)) {
        fprintf(stderr, "http_hello: %s\n", e.msg);
        return 1;
    }
    ev_io_want(&h.stdin_io, EV_READ);
    printf("%s\n", net_addr_text(net_listener_addr(listener), text));
    (void)fflush(stdout);
    ev_loop_run(h.loop);
    ev_io_close(&h.stdin_io);
    net_listener_close(listener);
    http_server_free(h.server);
    ev_loop_free(h.loop);
    return 0;
}
