/* sampling.c: the parameters of sampling, their defaults and ranges. See sampler.h. */
#include "runtime/error.h"
#include "runtime/sampler.h"

#include <float.h>

void tern_sampling_default(tern_sampling *out)
{
    *out = (tern_sampling){
        .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .typical_p = 1.0f,
        .repeat_penalty = 1.0f, .repeat_last_n = 64,
    };
}

static bool within(float x, float low, float high)
{
    return x >= low && x <= high; /* false for NaN */
}

static tern_status check_biases(const tern_sampling *how, uint32_t n_vocab, tern_error *err)
{
    if (how->n_biases > TERN_MAX_BIASES)
        return tern_fail(err, TERN_BAD_ARGUMENT, "n_biases: %u, at most %u",
                         (uint64_t)how->n_biases, (uint64_t)TERN_MAX_BIASES);
    if (how->n_biases && !how->biases)
        return tern_fail(err, TERN_BAD_ARGUMENT, "biases: none given, n_biases is %u",
                         (uint64_t)how->n_biases);
    for (uint32_t i = 0; i < how->n_biases; i++) {
        const tern_bias b = how->biases[i];
        if (b.token < 0 || (uint32_t)b.token >= n_vocab)
            return tern_fail(err, TERN_BAD_ARGUMENT, "bias: token %i, below %u", (int64_t)b.token,
                             (uint64_t)n_vocab);
        if (!(b.bias <= FLT_MAX)) /* -infinity bans a token */
            return tern_fail(err, TERN_BAD_ARGUMENT, "bias: %f of token %i, a number or -infinity",
                             (double)b.bias, (int64_t)b.token);
        for (uint32_t j = 0; j < i; j++)
            if (how->biases[j].token == b.token)
                return tern_fail(err, TERN_BAD_ARGUMENT, "bias: token %i, named twice",
                                 (int64_t)b.token);
    }
    return TERN_OK;
}

tern_status tern_sampling_check(const tern_sampling *how, uint32_t n_vocab, tern_error *err)
{
    const struct { const char *name; float value, low, high; const char *range; } fields[] = {
        {"temperature", how->temperature, -FLT_MAX, FLT_MAX, "finite"},
        {"top_p", how->top_p, 0.0f, 1.0f, "0 to 1"},
        {"min_p", how->min_p, 0.0f, 1.0f, "0 to 1"},
        {"typical_p", how->typical_p, 0.0f, 1.0f, "0 to 1"},
        {"repeat_penalty", how->repeat_penalty, FLT_MIN, FLT_MAX, "above 0 and finite"},
        {"presence_penalty", how->presence_penalty, -100.0f, 100.0f, "-100 to 100"},
        {"frequency_penalty", how->frequency_penalty, -100.0f, 100.0f, "-100 to 100"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!within(fields[i].value, fields[i].low, fields[i].high))
            return tern_fail(err, TERN_BAD_ARGUMENT, "%s: %f, %s", fields[i].name,
                             (double)fields[i].value, fields[i].range);
    if (how->repeat_last_n < -1)
        return tern_fail(err, TERN_BAD_ARGUMENT, "repeat_last_n: %i, -1 or more",
                         (int64_t)how->repeat_last_n);
    return check_biases(how, n_vocab, err);
}
