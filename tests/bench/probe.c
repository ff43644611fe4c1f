/* probe: a readiness probe as the kubelet does it, many times at a steady pace.
 *
 *     probe PORT PATH COUNT INTERVAL_US
 *
 * Each probe is a new connection, one GET and the whole answer, timed from connect to EOF. A probe that is not
 * answered 200 within a second has failed, as it would for the kubelet. The prober asks for real-time priority so
 * that its own wait for a core is not taken for the server's; "realtime" says whether it got it. */
#include "bench/measure.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define COUNT_MAX  100000
#define TIMEOUT_US 1000000

static bool probe_once(const struct sockaddr_in *to, const char *request, size_t n)
{
    char answer[4096];
    size_t have = 0;
    const struct timeval limit = { TIMEOUT_US / 1000000, TIMEOUT_US % 1000000 };
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(s >= 0, "socket");
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    bool is_fine = connect(s, (const struct sockaddr *)to, sizeof *to) == 0 &&
                   send(s, request, n, MSG_NOSIGNAL) == (ssize_t)n;
    ssize_t got = 1;

    while (is_fine && got > 0 && have < sizeof answer) {
        got = recv(s, answer + have, sizeof answer - have, 0);
        have += got > 0 ? (size_t)got : 0;
    }
    close(s);
    return is_fine && got == 0 && have > 12 && memcmp(answer + 9, "200", 3) == 0;
}

static void sleep_until(int64_t when_ns)
{
    const struct timespec t = { when_ns / 1000000000, when_ns % 1000000000 };

    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char **argv)
{
    static int64_t took[COUNT_MAX];
    char request[512];
    long failed = 0;

    if (argc != 5) {
        fprintf(stderr, "usage: probe PORT PATH COUNT INTERVAL_US\n");
        return 2;
    }
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)number(argv[1], "port")),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    long count = number(argv[3], "count");
    int64_t interval_ns = number(argv[4], "interval") * 1000;
    int n = snprintf(request, sizeof request,
                     "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", argv[2]);
    const struct sched_param priority = { .sched_priority = 1 };
    bool is_realtime = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;

    must(count > 0 && count <= COUNT_MAX && n > 0 && (size_t)n < sizeof request, "arguments");
    int64_t next = now_ns();

    for (long i = 0; i < count; i++) {
        int64_t began = now_ns();

        failed += !probe_once(&to, request, (size_t)n);
        took[i] = now_ns() - began;
        next += interval_ns;
        /* After a slow probe go on from now: probes are not owed, and a burst would be another test. */
        next = next < now_ns() ? now_ns() : next;
        sleep_until(next);
    }
    sort_values(took, (size_t)count);
    printf(
        "{\"count\":%ld,\"failed\":%ld,\"p50_us\":%.0f,\"p90_us\":%.0f,\"p99_us\":%.0f,\"max_us\":%.0f,"
        "\"realtime\":%s}\n",
        count, failed, percentile_us(took, (size_t)count, 0.5),
        percentile_us(took, (size_t)count, 0.9), percentile_us(took, (size_t)count, 0.99),
        percentile_us(took, (size_t)count, 1), is_realtime ? "true" : "false");
    return 0;
}
