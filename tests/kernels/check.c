/* check.c: the walk over the kernel table.
 *
 * A variant is installed over the reference alone, and every entry that it changes is checked
 * against the reference, bit by bit, on inputs that end at a page without access. The saboteurs
 * are variants too: there every check has to fail, or it would prove nothing. */
#include "tests/kernels/check.h"
#include "tests/kernels/saboteur.h"

#include "platform/cpu/live_check.h"
#include "platform/os/host.h"

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint32_t seed, rng;

uint32_t rnd(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return rng;
}

float rnd_float(void)
{
    const float mantissa = (float)(int32_t)rnd() / 2147483648.0f;
    const int exponent = (int)(rnd() % 24) - 12;
    if (rnd() % 16 == 0)
        return 0.0f;
    return exponent < 0 ? mantissa / (float)(1 << -exponent) : mantissa * (float)(1 << exponent);
}

void assert_same_bits(const void *ref, const void *got, size_t size, const char *what)
{
    const uint8_t *r = ref, *g = got;
    if (memcmp(ref, got, size) == 0)
        return;
    size_t i = 0;
    while (r[i] == g[i])
        i++;
    fail_msg("%s differs at byte %zu: reference %02x, variant %02x, seed %u", what, i, r[i], g[i],
             seed);
}

void assert_same_floats(const float *ref, const float *got, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(ref + i, got + i, sizeof *ref) != 0 && !(ref[i] != ref[i] && got[i] != got[i]))
            fail_msg("%s differs at %zu: reference %a, variant %a, seed %u", what, i,
                     (double)ref[i], (double)got[i], seed);
}

/* Every entry of the table, by offset; the assert makes a new entry without a check fail to
 * compile. */
#define ENTRY(kernel, check) {#kernel, offsetof(struct tern_kernels, kernel), check}
static const struct { const char *name; size_t offset; CMUnitTestFunction check; } entries[] = {
    ENTRY(matmul_f32, check_matmul),
    ENTRY(matmul_f16, check_matmul),
    ENTRY(matmul_bf16, check_matmul),
    ENTRY(matmul_q4_0, check_matmul),
    ENTRY(matmul_q4_1, check_matmul),
    ENTRY(matmul_q5_0, check_matmul),
    ENTRY(matmul_q5_1, check_matmul),
    ENTRY(matmul_q8_0, check_matmul),
    ENTRY(matmul_q2_k, check_matmul),
    ENTRY(matmul_q3_k, check_matmul),
    ENTRY(matmul_q4_k, check_matmul),
    ENTRY(matmul_q5_k, check_matmul),
    ENTRY(matmul_q6_k, check_matmul),
    ENTRY(matmul_iq2_xxs, check_matmul),
    ENTRY(matmul_iq2_xs, check_matmul),
    ENTRY(matmul_iq2_s, check_matmul),
    ENTRY(matmul_iq3_xxs, check_matmul),
    ENTRY(matmul_iq3_s, check_matmul),
    ENTRY(matmul_iq1_s, check_matmul),
    ENTRY(matmul_iq1_m, check_matmul),
    ENTRY(matmul_iq4_nl, check_matmul),
    ENTRY(matmul_iq4_xs, check_matmul),
    ENTRY(matmul_mxfp4, check_matmul),
    ENTRY(matmul_tq1_0, check_matmul),
    ENTRY(matmul_tq2_0, check_matmul),
    ENTRY(matmul_codes, check_matmul),
    ENTRY(matmul_exact, check_matmul),
    ENTRY(rms_norm, check_rms_norm),
    ENTRY(quantize, check_quantize),
    ENTRY(halves, check_halves),
    ENTRY(hadamard, check_hadamard),
    ENTRY(rope_norm, check_rope),
    ENTRY(rope_neox, check_rope),
    ENTRY(silu_mul, check_mul_act),
    ENTRY(gelu_mul, check_mul_act),
    ENTRY(add, check_add),
    ENTRY(scale, check_scale),
    ENTRY(softcap, check_scale),
    ENTRY(scores_f32, check_scores),
    ENTRY(scores_f16, check_scores),
    ENTRY(scores_q8_0, check_scores),
    ENTRY(scores_q4_0, check_scores),
    ENTRY(softmax, check_softmax),
    ENTRY(values_f32, check_values),
    ENTRY(values_f16, check_values),
    ENTRY(values_q8_0, check_values),
    ENTRY(values_q4_0, check_values),
    ENTRY(merge, check_merge),
    ENTRY(finish, check_finish),
    ENTRY(highest, check_highest),
    ENTRY(exp_row, check_exp_row),
};
enum { N_ENTRIES = sizeof entries / sizeof *entries };
_Static_assert(sizeof(struct tern_kernels) == N_ENTRIES * sizeof(void (*)(void)),
               "a kernel has no check");

static bool overrides(const struct tern_kernels *k, size_t offset)
{
    return memcmp((const char *)k + offset, (const char *)&tern_kernels_ref + offset,
                  sizeof(void (*)(void))) != 0;
}

static int reset_seed(void **state)
{
    (void)state;
    rng = seed;
    return 0;
}

static int free_guards(void **state)
{
    (void)state;
    guarded_free();
    return 0;
}

static void install_nothing(struct tern_kernels *k)
{
    (void)k;
}

/* To be measured; it has nothing to check. */
static const struct tern_cpu_variant reference = {"reference", 0, install_nothing};

static const struct tern_cpu_variant *find_variant(const char *name)
{
    for (const struct tern_cpu_variant *v = tern_cpu_variants; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    static const struct tern_cpu_variant *const others[] = {
        &saboteur, &reference,
#if TERN_X86
        &emulated_vnni, &emulated_amx,
#endif
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]->name) == 0)
            return others[i];
    return NULL;
}

/* Where kernels are wrapped to be compared with the reference as they run, the report must say
 * the same as the checks: each was compared, and the saboteurs alone differ. */
static bool live_check_agrees(const struct candidate *candidates, size_t n, bool differ)
{
    bool agrees = true;
#if TERN_LIVE_CHECK
    struct tern_live_check c;
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; tern_live_check_report(e, &c); e++)
            if (strcmp(c.name, candidates[i].kernel) == 0 &&
                (c.n_compared == 0 || (c.n_differ > 0) != differ)) {
                fprintf(stderr, "live check: %s: %llu calls compared, %llu differ\n", c.name,
                        (unsigned long long)c.n_compared, (unsigned long long)c.n_differ);
                agrees = false;
            }
#else
    (void)candidates, (void)n, (void)differ;
#endif
    return agrees;
}

static int run_checks(const struct tern_cpu_variant *v, struct tern_kernels *table,
                      const char *only)
{
    static struct candidate candidates[N_ENTRIES];
    struct CMUnitTest tests[N_ENTRIES];
    size_t n = 0;
    for (size_t e = 0; e < N_ENTRIES; e++) {
        const char *name = entries[e].name;
        if (!overrides(table, entries[e].offset) || (only && strcmp(only, name) != 0))
            continue;
        candidates[n] = (struct candidate){name, v->name, entries[e].offset, &tern_kernels_ref,
                                           table};
        tests[n] = (struct CMUnitTest){name, entries[e].check, reset_seed, free_guards,
                                       &candidates[n]};
        n++;
    }
    if (n == 0) {
        fprintf(stderr, "%s overrides nothing that was asked for\n", v->name);
        return 1;
    }
#if TERN_LIVE_CHECK
    tern_live_check_wrap(table);
#endif
    const size_t failed = (size_t)_cmocka_run_group_tests(v->name, tests, n, NULL, NULL);
    if (!live_check_agrees(candidates, n, v == &saboteur))
        return 1;
    if (v != &saboteur)
        return failed != 0;
    return !(failed == n && (only || n == N_ENTRIES)); /* every check must catch it */
}

/* Usage: check_kernels VARIANT [KERNEL | --bench | --bench-read]. Exits 77 when this machine
 * cannot run it. */
int main(int argc, char **argv)
{
    const struct tern_cpu_variant *v = argc == 2 || argc == 3 ? find_variant(argv[1]) : NULL;
    if (!v) {
        fprintf(stderr, "usage: %s VARIANT [KERNEL | --bench | --bench-read], "
                        "a variant that was built\n", argv[0]);
        return 2;
    }
    if ((tern_cpu_features(tern_os_cpu_has()) & v->needs) != v->needs) {
        printf("SKIPPED: this CPU lacks what the variant %s needs\n", v->name);
        return 77;
    }

    const char *given = getenv("TERN_SEED");
    seed = given ? (uint32_t)strtoul(given, NULL, 0) : (uint32_t)time(NULL);
    seed += seed == 0;
    rng = seed;
    fprintf(stderr, "seed %u\n", seed);

    struct tern_kernels table = tern_kernels_ref;
    v->install(&table);
    const bool read = argc == 3 && strcmp(argv[2], "--bench-read") == 0;
    if (read || (argc == 3 && strcmp(argv[2], "--bench") == 0)) {
        bench_matmul(&table, read);
        if (!read && !getenv("TERN_BENCH_TYPE"))
            bench_rows(&table);
        return 0;
    }
    return run_checks(v, &table, argc == 3 ? argv[2] : NULL);
}
