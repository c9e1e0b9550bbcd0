/* test_features.c: what a host's word about the CPU does, and to whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "platform/cpu/kernels.h"
#include "runtime/tern.h"

#include <string.h>

#ifdef __aarch64__
static void a_hosts_word_adds_what_it_names(void **state)
{
    (void)state;
    const uint32_t own = tern_cpu_features(0);
    assert_true(own & TERN_CPU_NEON);
    assert_int_equal(tern_cpu_features(TERN_ARM_DOTPROD), own | TERN_CPU_DOTPROD);
    assert_int_equal(tern_cpu_features(TERN_ARM_I8MM), own | TERN_CPU_I8MM);
}

static void i8mm_without_dotprod_is_not_enough_for_its_variant(void **state)
{
    (void)state;
    struct tern_kernels k;
    assert_string_equal(tern_kernels_select(&k, TERN_CPU_NEON | TERN_CPU_I8MM, NULL), "neon");
    assert_string_equal(tern_kernels_select(&k, TERN_CPU_NEON | TERN_CPU_DOTPROD, NULL), "dotprod");
}
#else
static void a_cpu_that_can_be_asked_needs_no_word(void **state)
{
    (void)state;
    assert_int_equal(tern_cpu_features(TERN_ARM_DOTPROD | TERN_ARM_I8MM), tern_cpu_features(0));
}
#endif

static void the_text_names_what_was_found(void **state)
{
    (void)state;
    char text[256] = "";
    const size_t n = tern_cpu_features_text(TERN_ARM_DOTPROD, text, sizeof text - 1);
    assert_true(n < sizeof text);
    assert_int_equal(strstr(text, "dotprod") != NULL,
                     (tern_cpu_features(TERN_ARM_DOTPROD) & TERN_CPU_DOTPROD) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef __aarch64__
        cmocka_unit_test(a_hosts_word_adds_what_it_names),
        cmocka_unit_test(i8mm_without_dotprod_is_not_enough_for_its_variant),
#else
        cmocka_unit_test(a_cpu_that_can_be_asked_needs_no_word),
#endif
        cmocka_unit_test(the_text_names_what_was_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
