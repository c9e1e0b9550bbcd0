/* Models whose keys, vocabulary or tensors are missing, wrong, or contradict each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/open_model.h"
#include "tests/unit/tiny_model.h"

static struct opened *open_tiny(const struct tiny *t, enum open_how how, tern_model_parts what)
{
    struct gguf_writer w = tiny_make(t);
    struct opened *o = open_bytes(how, what, w.file.data, w.file.n);
    gw_free(&w);
    return o;
}

static const char *const architectures[] = {"llama", "qwen2", "qwen3", "gemma3"};
enum { N_ARCHITECTURES = sizeof architectures / sizeof *architectures };

static void whole_model_opens_in_the_memory_measured(void **state)
{
    (void)state;
    for (int a = 0; a < N_ARCHITECTURES; a++)
        for (int how = 0; how < N_OPEN_HOWS; how++)
            for (int tied = 0; tied < 2; tied++) {
                struct tiny t = tiny_of(architectures[a]);
                t.has_output = !tied;
                struct opened *o = open_tiny(&t, (enum open_how)how, TERN_MODEL_WHOLE);
                if (o->status)
                    print_message("%s: %s\n", architectures[a], o->error.text);
                assert_int_equal(o->status, TERN_OK);
                assert_int_equal(o->model->memory_bytes, o->need);
                tern_model_info info;
                tern_model_describe(o->model, &info);
                assert_true(info.runnable);
                assert_int_equal(info.n_layers, 2);
                assert_int_equal(info.n_vocab, TINY_VOCAB);
                assert_int_equal(info.bos, 1);
                assert_int_equal(info.eos, 2);
                assert_int_equal(info.head_dim, 4);
                assert_int_equal(info.n_kv_heads, 1);
                assert_int_equal(info.name.size, 4);
                open_close(o);
            }
}

static void parts_of_a_model_need_less(void **state)
{
    (void)state;
    const struct tiny t = tiny_of("llama");
    size_t need[3];
    for (int what = 0; what < 3; what++) {
        struct opened *o = open_tiny(&t, OPEN_READ, (tern_model_parts)what);
        assert_int_equal(o->status, TERN_OK);
        need[what] = o->need;
        tern_model_info info;
        tern_model_describe(o->model, &info);
        assert_int_equal(info.runnable, what == TERN_MODEL_WHOLE);
        assert_int_equal(info.n_embd, 8);
        assert_int_equal(info.n_vocab, TINY_VOCAB);
        assert_int_equal(info.bos, 1);
        open_close(o);
    }
    assert_true(need[TERN_MODEL_WHOLE] > need[TERN_MODEL_TEXT]);
    assert_true(need[TERN_MODEL_TEXT] > need[TERN_MODEL_HEADER]);
}

/* What must come of a change: '-' a refusal, '+' it opens. In the order of enum change:
 * same, deleted, zero, most, negative, one less, one more, text, f32, f64, u8, i32, bool, list,
 * NaN, infinite. '.' is not tried. */
static const struct { const char *key, *outcome; } changes[] = {
    {".block_count",                      "+----+----++----"},
    {".context_length",                   "+----++---++----"},
    {".embedding_length",                 "+---------------"},
    {".feed_forward_length",              "+---------------"},
    {".attention.head_count",             "+---------++----"},
    {".attention.head_count_kv",          "+---------------"},
    {".attention.key_length",             "++--------------"},
    {".attention.value_length",           "++--------------"},
    {".rope.dimension_count",             "++--------++----"},
    {".rope.freq_base",                   "++---..-++------"},
    {".attention.layer_norm_rms_epsilon", "+----..---------"},
    {"general.architecture",              "+-----.---------"},
    {"tokenizer.ggml.model",              "+-----.---------"},
    {"tokenizer.ggml.tokens",             "+--..--+-----.-."},
    {"tokenizer.ggml.scores",             "+.-..---+---..-."},
    {"tokenizer.ggml.token_type",         "++-..-----.+-.-."},
    {"tokenizer.ggml.bos_token_id",       "++.+.....-.....-"},
    {"tokenizer.ggml.eos_token_id",       "++.+.....-.....-"},
};

static void changed_key_is_refused_or_followed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        for (int change = 0; change < N_CHANGES && changes[i].outcome[change]; change++) {
            const char want = changes[i].outcome[change];
            if (want == '.')
                continue;
            struct tiny t = tiny_of("llama");
            t.key = changes[i].key;
            t.change = (enum change)change;
            const enum open_how how = (enum open_how)(change % N_OPEN_HOWS);
            struct opened *o = open_tiny(&t, how, TERN_MODEL_WHOLE);
            if ((o->status == TERN_OK) != (want == '+'))
                print_message("%s, change %d: %s \"%s\"\n", t.key, change,
                              tern_status_name(o->status), o->error.text);
            assert_int_equal(o->status == TERN_OK, want == '+');
            if (o->status) {
                assert_true(o->status == TERN_BAD_MODEL || o->status == TERN_UNSUPPORTED);
                assert_true(strlen(o->error.text) > 10);
            }
            open_close(o);
        }
}

static void tensor_missing_or_of_another_shape_is_named(void **state)
{
    (void)state;
    static const char *const names[] = {
        "token_embd.weight", "output_norm.weight", "attn_norm.weight", "attn_q.weight",
        "attn_k.weight", "attn_v.weight", "attn_output.weight", "ffn_norm.weight",
        "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight", "attn_q.bias",
        "attn_k_norm.weight", "post_attention_norm.weight", "post_ffw_norm.weight",
    };
    static const enum change how[] = {DELETED, ONE_LESS, ONE_MORE, ROW_MORE};
    int tried = 0;
    for (int a = 0; a < N_ARCHITECTURES; a++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (size_t c = 0; c < 4; c++) {
                struct tiny t = tiny_of(architectures[a]);
                t.key = names[i];
                t.change = how[c];
                struct opened *o = open_tiny(&t, OPEN_MAPPED, TERN_MODEL_WHOLE);
                if (o->status) {
                    assert_int_equal(o->status, TERN_BAD_MODEL);
                    assert_non_null(strstr(o->error.text, names[i]));
                    tried++;
                }
                open_close(o);
            }
    /* 11 of every architecture; one bias and three norms that only some have. */
    assert_int_equal(tried, 4 * (4 * 11 + 1 + 2 + 2));
}

static void fewer_tokens_than_rows(struct gguf_writer *w)
{
    const uint64_t dims[2] = {8, TINY_VOCAB + 1};
    gw_tensor_raw(w, "token_embd.weight", 0, 2, dims, 0);
    gw_put(&w->data, NULL, 8 * (TINY_VOCAB + 1) * 4);
}

static void vocabulary_that_contradicts_the_embedding_is_refused(void **state)
{
    (void)state;
    struct tiny t = tiny_of("llama");
    t.key = "token_embd.weight";
    t.change = DELETED;
    t.more = fewer_tokens_than_rows;
    struct opened *o = open_tiny(&t, OPEN_MAPPED, TERN_MODEL_WHOLE);
    assert_int_equal(o->status, TERN_BAD_MODEL);
    assert_non_null(strstr(o->error.text, "the vocabulary has 7 tokens"));
    assert_non_null(strstr(o->error.text, "token_embd.weight has 8 rows"));
    open_close(o);
}

static void architecture_that_is_not_known_is_named_with_those_that_are(void **state)
{
    (void)state;
    const struct tiny t = tiny_of("mamba");
    struct opened *o = open_tiny(&t, OPEN_READ, TERN_MODEL_WHOLE);
    assert_int_equal(o->status, TERN_UNSUPPORTED);
    assert_string_equal(o->error.text,
                        "architecture mamba is not known; these are: llama, qwen2, qwen3, gemma3");
    open_close(o);
    o = open_tiny(&t, OPEN_READ, TERN_MODEL_TEXT);
    assert_int_equal(o->status, TERN_OK); /* its text can be read all the same */
    open_close(o);
}

static void heads(struct gguf_writer *w)
{
    gw_array(w, "llama.attention.head_count_kv", TERN_META_U32, 2);
    gw_put_int(&w->keys, 1, 4);
    gw_put_int(&w->keys, 1, 4);
}

static void uneven_heads(struct gguf_writer *w)
{
    gw_array(w, "llama.attention.head_count_kv", TERN_META_U32, 2);
    gw_put_int(&w->keys, 1, 4);
    gw_put_int(&w->keys, 2, 4);
}

static void few_heads(struct gguf_writer *w)
{
    gw_array(w, "llama.attention.head_count_kv", TERN_META_U32, 1);
    gw_put_int(&w->keys, 1, 4);
}

static void sizes_layer_by_layer_must_be_alike(void **state)
{
    (void)state;
    static const struct { void (*more)(struct gguf_writer *); tern_status status; } cases[] = {
        {heads, TERN_OK}, {uneven_heads, TERN_UNSUPPORTED}, {few_heads, TERN_BAD_MODEL},
    };
    for (int i = 0; i < 3; i++)
        for (int how = 0; how < N_OPEN_HOWS; how++) {
            struct tiny t = tiny_of("llama");
            t.key = ".attention.head_count_kv";
            t.change = DELETED;
            t.more = cases[i].more;
            struct opened *o = open_tiny(&t, (enum open_how)how, TERN_MODEL_WHOLE);
            assert_int_equal(o->status, cases[i].status);
            open_close(o);
        }
}

static void experts(struct gguf_writer *w) { gw_u32(w, "llama.expert_count", 8); }

static void experts_are_refused(void **state)
{
    (void)state;
    struct tiny t = tiny_of("llama");
    t.more = experts;
    struct opened *o = open_tiny(&t, OPEN_MAPPED, TERN_MODEL_WHOLE);
    assert_int_equal(o->status, TERN_UNSUPPORTED);
    assert_non_null(strstr(o->error.text, "llama.expert_count"));
    open_close(o);
}

static void memory_one_byte_short_or_askew_is_refused(void **state)
{
    (void)state;
    const struct tiny t = tiny_of("gemma3");
    struct opened *o = open_tiny(&t, OPEN_READ, TERN_MODEL_WHOLE);
    tern_error e = {0};
    tern_model *m;
    unsigned char *memory = malloc(o->need + 16);
    assert_int_equal(tern_model_init((tern_memory){memory, o->need - 1}, o->sources, 1,
                                     TERN_MODEL_WHOLE, &m, &e), TERN_NO_MEMORY);
    assert_non_null(strstr(e.text, "model arena"));
    e.status = TERN_OK;
    assert_int_equal(tern_model_init((tern_memory){memory + 4, o->need}, o->sources, 1,
                                     TERN_MODEL_WHOLE, &m, &e), TERN_BAD_ARGUMENT);
    assert_non_null(strstr(e.text, "aligned"));
    free(memory);
    open_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_model_opens_in_the_memory_measured),
        cmocka_unit_test(parts_of_a_model_need_less),
        cmocka_unit_test(changed_key_is_refused_or_followed),
        cmocka_unit_test(tensor_missing_or_of_another_shape_is_named),
        cmocka_unit_test(vocabulary_that_contradicts_the_embedding_is_refused),
        cmocka_unit_test(architecture_that_is_not_known_is_named_with_those_that_are),
        cmocka_unit_test(sizes_layer_by_layer_must_be_alike),
        cmocka_unit_test(experts_are_refused),
        cmocka_unit_test(memory_one_byte_short_or_askew_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
