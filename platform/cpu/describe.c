/* describe.c: what this build and this CPU have, in words. */
#include "platform/cpu/kernels.h"
#include "runtime/text.h"

static const struct { uint32_t bit; const char *name; } features[] = {
    {TERN_CPU_AVX2, "avx2+fma+f16c"}, {TERN_CPU_AVX_VNNI, "avx-vnni"},
    {TERN_CPU_AVX512, "avx512f+bw+dq+vl"}, {TERN_CPU_AVX512_VNNI, "avx512-vnni"},
    {TERN_CPU_AMX_INT8, "amx-int8"},
    {TERN_CPU_NEON, "neon"}, {TERN_CPU_DOTPROD, "dotprod"}, {TERN_CPU_I8MM, "i8mm"},
};

const char *tern_cpu_variant_at(size_t i, uint32_t cpu_has, bool *this_cpu_has_it)
{
    if (i == 0) {
        *this_cpu_has_it = true;
        return "reference";
    }
    for (size_t n = 0; n < i; n++)
        if (!tern_cpu_variants[n].name)
            return NULL;
    const struct tern_cpu_variant *v = &tern_cpu_variants[i - 1];
    *this_cpu_has_it = v->name && (v->needs & tern_cpu_features(cpu_has)) == v->needs;
    return v->name;
}

const char *tern_cpu_variant_chosen(const char *limit, uint32_t cpu_has)
{
    struct tern_kernels k;
    return tern_kernels_select(&k, tern_cpu_features(cpu_has), limit);
}

size_t tern_cpu_features_text(uint32_t cpu_has, char *out, size_t cap)
{
    struct tern_writer w = {out, cap, 0};
    const uint32_t found = tern_cpu_features(cpu_has);
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (found & features[i].bit)
            tern_write(&w, "%s%s", w.n ? " " : "", features[i].name);
    return w.n;
}
