/* ws_echo: WebSocket echo, both ends of it.
 *
 *     ws_echo serve PORT                              echoes until it is killed
 *     ws_echo load PORT SANDBOX_PORT CONNECTIONS MS   prints {"rate":..,"p50_us":..,"p99_us":..}
 *
 * Each connection has one message of 100 bytes under way: sent masked, awaited unmasked, compared. The load names a sandbox
 * in the router's fields; to a proxy that knows nothing of these they are fields like any other. */
#include "bench/measure.h"
#include "http/ws_handshake.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PAYLOAD_BYTES 100
#define FRAME_BYTES   (2 + PAYLOAD_BYTES)     /* as a server sends it */
#define MASKED_BYTES  (2 + 4 + PAYLOAD_BYTES) /* as a client does */
#define CONNS_MAX     1024
#define TIMES_MAX     4000000
#define KEY           "dGhlIHNhbXBsZSBub25jZQ=="

struct side {
    int fd;
    bool is_open; /* the handshake is behind it */
    size_t have;
    uint8_t in[4096];
    int64_t sent_ns;
    uint8_t payload[PAYLOAD_BYTES];
};

static int64_t times[TIMES_MAX];

static void send_all(struct side *s, const void *p, size_t n)
{
    must(send(s->fd, p, n, MSG_NOSIGNAL) == (ssize_t)n, "send"); /* small: it fits */
}

static void used(struct side *s, size_t n)
{
    memmove(s->in, s->in + n, s->have - n);
    s->have -= n;
}

/* 0: the peer has gone. */
static size_t read_more(struct side *s)
{
    ssize_t n = recv(s->fd, s->in + s->have, sizeof s->in - s->have - 1, 0);

    if (n > 0)
        s->have += (size_t)n;
    s->in[s->have] = 0;
    return n > 0 ? (size_t)n : 0;
}

/* The bytes of a head with its empty line; 0 while it is not whole. */
static size_t head_bytes(const struct side *s)
{
    const char *end = strstr((const char *)s->in, "\r\n\r\n");

    return end ? (size_t)(end + 4 - (const char *)s->in) : 0;
}

static void watch(int epoll_fd, struct side *s)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
    int on = 1;

    (void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->fd, &event) == 0, "epoll_ctl");
}

static struct sockaddr_in loopback(const char *port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

/* ---- the server ---- */

static void agree(struct side *s)
{
    const char *key = strcasestr((const char *)s->in, "sec-websocket-key:");
    size_t n = head_bytes(s);
    char accept[WS_ACCEPT_BYTES + 1], answer[256];

    if (!n)
        return;
    must(key != NULL, "a request without a key");
    key += strlen("sec-websocket-key:");
    key += strspn(key, " ");
    ws_accept(span_of(key, strcspn(key, "\r")), accept);
    send_all(s, answer,
             (size_t)snprintf(
                 answer, sizeof answer,
                 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Accept: %s\r\n\r\n",
                 accept));
    used(s, n);
    s->is_open = true;
}

static void echo(struct side *s)
{
    uint8_t out[FRAME_BYTES] = { 0x82, PAYLOAD_BYTES };

    while (s->have >= MASKED_BYTES) {
        must(s->in[0] == 0x82 && s->in[1] == (0x80 | PAYLOAD_BYTES), "a frame that was not sent");
        for (size_t i = 0; i < PAYLOAD_BYTES; i++)
            out[2 + i] = s->in[6 + i] ^ s->in[2 + i % 4];
        used(s, MASKED_BYTES);
        send_all(s, out, sizeof out);
    }
}

static _Noreturn void serve(const char *port)
{
    const struct sockaddr_in at = loopback(port);
    int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), epoll_fd = epoll_create1(0);
    struct epoll_event on_listen = { .events = EPOLLIN, .data.ptr = NULL }, got[256];
    int on = 1;

    (void)setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    must(bind(listen_fd, (const void *)&at, sizeof at) == 0 && listen(listen_fd, 1024) == 0,
         "listen");
    must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &on_listen) == 0, "epoll_ctl");
    for (;;) {
        int n = epoll_wait(epoll_fd, got, 256, -1);

        for (int i = 0; i < n; i++) {
            struct side *s = got[i].data.ptr;

            if (!s) {
                s = calloc(1, sizeof *s);
                must(s != NULL, "memory");
                s->fd = accept(listen_fd, NULL, NULL);
                must(s->fd >= 0, "accept");
                watch(epoll_fd, s);
            } else if (!read_more(s)) {
                close(s->fd);
                free(s);
            } else if (s->is_open) {
                echo(s);
            } else {
                agree(s);
            }
        }
    }
}

/* ---- the load ---- */

static void say(struct side *s, uint32_t number)
{
    uint8_t out[MASKED_BYTES] = { 0x82, 0x80 | PAYLOAD_BYTES, 1, 2, 3, 4 };

    for (size_t i = 0; i < PAYLOAD_BYTES; i++) {
        s->payload[i] = (uint8_t)(number >> 8 * (i % 4));
        out[6 + i] = s->payload[i] ^ out[2 + i % 4];
    }
    s->sent_ns = now_ns();
    send_all(s, out, sizeof out);
}

static void shake_hands(struct side *s, const struct sockaddr_in *to, const char *sandbox_port)
{
    char request[512];

    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(s->fd >= 0 && connect(s->fd, (const void *)to, sizeof *to) == 0, "connect");
    send_all(
        s, request,
        (size_t)snprintf(
            request, sizeof request,
            "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Sandbox-ID: box\r\nX-Sandbox-Port: %s\r\n"
            "X-Sandbox-Pod-IP: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " KEY "\r\n\r\n",
            sandbox_port));
    while (!head_bytes(s))
        must(read_more(s) > 0, "no answer to the handshake");
    must(memcmp(s->in, "HTTP/1.1 101", 12) == 0, (const char *)s->in);
    used(s, head_bytes(s));
}

static int load(const char *port, const char *sandbox_port, size_t count, int64_t ms)
{
    static struct side sides[CONNS_MAX];
    const struct sockaddr_in to = loopback(port);
    int epoll_fd = epoll_create1(0);
    struct epoll_event got[256];
    int64_t began, end;
    size_t done = 0;

    must(count > 0 && count <= CONNS_MAX, "too many connections");
    for (size_t i = 0; i < count; i++) {
        shake_hands(&sides[i], &to, sandbox_port);
        watch(epoll_fd, &sides[i]);
    }
    began = now_ns();
    end = began + ms * 1000000;
    for (size_t i = 0; i < count; i++)
        say(&sides[i], (uint32_t)i);
    while (now_ns() < end && done < TIMES_MAX - 256) {
        int n = epoll_wait(epoll_fd, got, 256, 1000);

        must(n > 0, "nothing came for a second");
        for (int i = 0; i < n; i++) {
            struct side *s = got[i].data.ptr;

            must(read_more(s) > 0, "the connection ended");
            if (s->have < FRAME_BYTES)
                continue;
            must(s->have == FRAME_BYTES && s->in[0] == 0x82 && s->in[1] == PAYLOAD_BYTES &&
                     memcmp(s->in + 2, s->payload, PAYLOAD_BYTES) == 0,
                 "not what was sent");
            used(s, FRAME_BYTES);
            times[done++] = now_ns() - s->sent_ns;
            say(s, (uint32_t)done);
        }
    }
    end = now_ns();
    sort_values(times, done);
    printf("{\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
           (double)done * 1e9 / (double)(end - began), (double)times[done / 2] / 1000,
           (double)times[done * 99 / 100] / 1000);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        serve(argv[2]);
    if (argc == 6 && strcmp(argv[1], "load") == 0)
        return load(argv[2], argv[3], strtoul(argv[4], NULL, 10),
                    (int64_t)strtoul(argv[5], NULL, 10));
    fprintf(stderr, "usage: ws_echo serve PORT | load PORT SANDBOX_PORT CONNECTIONS MS\n");
    return 2;
}
