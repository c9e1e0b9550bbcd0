#include "runtime/hash.h"

#include <string.h>

static const uint64_t P1 = 0x9e3779b185ebca87, P2 = 0xc2b2ae3d27d4eb4f, P3 = 0x165667b19e3779f9,
                      P4 = 0x85ebca77c2b2ae63, P5 = 0x27d4eb2f165667c5;

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static uint64_t load64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, 8); /* hosts are little-endian */
    return x;
}

static uint64_t round_of(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * P2, 31) * P1;
}

static uint64_t merge(uint64_t hash, uint64_t lane)
{
    return (hash ^ round_of(0, lane)) * P1 + P4;
}

struct tern_hash tern_hash_begin(void)
{
    return (struct tern_hash){.lanes = {P1 + P2, P2, 0, 0 - P1}};
}

/* Whole stripes of 32 bytes. */
static void add_stripes(struct tern_hash *h, const uint8_t *p, size_t n)
{
    uint64_t a = h->lanes[0], b = h->lanes[1], c = h->lanes[2], d = h->lanes[3];
    for (; n; p += 32, n--) {
        a = round_of(a, load64(p));
        b = round_of(b, load64(p + 8));
        c = round_of(c, load64(p + 16));
        d = round_of(d, load64(p + 24));
    }
    h->lanes[0] = a;
    h->lanes[1] = b;
    h->lanes[2] = c;
    h->lanes[3] = d;
}

void tern_hash_add(struct tern_hash *h, const void *data, size_t n)
{
    const uint8_t *p = data;
    const size_t held = (size_t)(h->total % 32);
    h->total += n;
    if (held) {
        const size_t take = n < 32 - held ? n : 32 - held;
        if (take)
            memcpy(h->held + held, p, take);
        if (held + take < 32)
            return;
        add_stripes(h, h->held, 1);
        p += take;
        n -= take;
    }
    add_stripes(h, p, n / 32);
    if (n % 32)
        memcpy(h->held, p + n / 32 * 32, n % 32);
}

uint64_t tern_hash_end(const struct tern_hash *h)
{
    uint64_t x = P5;
    if (h->total >= 32) {
        x = rotate(h->lanes[0], 1) + rotate(h->lanes[1], 7) + rotate(h->lanes[2], 12) +
            rotate(h->lanes[3], 18);
        for (int i = 0; i < 4; i++)
            x = merge(x, h->lanes[i]);
    }
    x += h->total;
    const uint8_t *p = h->held;
    size_t n = (size_t)(h->total % 32);
    for (; n >= 8; p += 8, n -= 8)
        x = rotate(x ^ round_of(0, load64(p)), 27) * P1 + P4;
    if (n >= 4) {
        uint32_t word;
        memcpy(&word, p, 4);
        x = rotate(x ^ word * P1, 23) * P2 + P3;
        p += 4;
        n -= 4;
    }
    for (; n; p++, n--)
        x = rotate(x ^ *p * P5, 11) * P1;
    x = (x ^ x >> 33) * P2;
    x = (x ^ x >> 29) * P3;
    return x ^ x >> 32;
}

uint64_t tern_hash_of(const void *data, size_t n)
{
    struct tern_hash h = tern_hash_begin();
    tern_hash_add(&h, data, n);
    return tern_hash_end(&h);
}
