#include "node/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define FIRST 0x7f400000u /* 127.64.0.0 */
#define COUNT 0x00400000u

void addresses_done(struct addresses *a)
{
    free(a->v);
    *a = (struct addresses){ 0 };
}

/* Where it is, or would be. */
static size_t place(const struct addresses *a, uint32_t ip)
{
    size_t low = 0, high = a->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (a->v[middle] < ip)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_taken(const struct addresses *a, uint32_t ip)
{
    size_t at = place(a, ip);

    return at < a->n && a->v[at] == ip;
}

static void add(struct addresses *a, uint32_t ip)
{
    size_t at = place(a, ip);

    if (a->n == a->room) {
        a->room = a->room ? a->room * 2 : 64;
        a->v = own_resize(a->v, a->room, sizeof *a->v);
    }
    memmove(a->v + at + 1, a->v + at, (a->n - at) * sizeof *a->v);
    a->v[at] = ip;
    a->n++;
}

static bool read_ip(const char *text, uint32_t *ret)
{
    struct in_addr in;

    if (inet_pton(AF_INET, text, &in) != 1)
        return false;
    *ret = ntohl(in.s_addr);
    return *ret - FIRST < COUNT;
}

bool address_is_given(const char *text)
{
    uint32_t ip;

    return read_ip(text, &ip);
}

static uint32_t hash_on(uint32_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

void addresses_take(struct addresses *a, const char *namespace, const char *name,
                    char text[ADDRESS_TEXT_BYTES])
{
    uint32_t hash = hash_on(hash_on(hash_on(2166136261u, namespace), "/"), name);
    struct in_addr in;

    assert(a->n < COUNT / 2);
    /* None ends in 0 or 255: some programs take these for networks. */
    for (uint32_t i = hash;; i++) {
        uint32_t ip = FIRST + i % COUNT;

        if ((ip & 0xff) == 0 || (ip & 0xff) == 0xff || is_taken(a, ip))
            continue;
        add(a, ip);
        in.s_addr = htonl(ip);
        (void)inet_ntop(AF_INET, &in, text, ADDRESS_TEXT_BYTES);
        return;
    }
}

bool addresses_claim(struct addresses *a, const char *text)
{
    uint32_t ip;

    if (!read_ip(text, &ip) || is_taken(a, ip))
        return false;
    add(a, ip);
    return true;
}

void addresses_give(struct addresses *a, const char *text)
{
    uint32_t ip;
    size_t at;

    if (!read_ip(text, &ip) || !is_taken(a, ip))
        return;
    at = place(a, ip);
    memmove(a->v + at, a->v + at + 1, (a->n - at - 1) * sizeof *a->v);
    a->n--;
}
