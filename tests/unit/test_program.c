/* Programs: what recipes emit, how it prints, and how long slots live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/arena.h"
#include "runtime/real.h"
#include "tests/unit/open_model.h"
#include "tests/unit/tiny_model.h"

static struct opened *open_tiny(struct tiny t)
{
    struct gguf_writer w = tiny_make(&t);
    struct opened *o = open_bytes(OPEN_MAPPED, TERN_MODEL_WHOLE, w.file.data, w.file.n);
    gw_free(&w);
    return o;
}

/* The lines of a layer (UINT32_MAX: outside) against those expected. */
static void expect_lines(const tern_model *m, uint32_t layer, const char *const *want, size_t n)
{
    size_t found = 0;
    for (uint32_t i = 0; i < m->program.n_ops; i++) {
        char text[200];
        size_t size;
        uint32_t of;
        assert_int_equal(tern_model_op(m, i, text, sizeof text - 1, &size, &of), TERN_OK);
        text[size] = '\0';
        if (of != layer)
            continue;
        assert_in_range(found, 0, n - 1);
        assert_string_equal(text, want[found]);
        found++;
    }
    assert_int_equal(found, n);
}

static void llama_reads_like_its_paper(void **state)
{
    (void)state;
    static const char *const layer[] = {
        "x = rms_norm(h, blk.1.attn_norm.weight F32 8, eps 0.00001)",
        "q = matmul(x, blk.1.attn_q.weight F32 8x8)",
        "k = matmul(x, blk.1.attn_k.weight F32 8x4)",
        "v = matmul(x, blk.1.attn_v.weight F32 8x4)",
        "q = rope(q, 4 of 2 heads of 4, pairs, base 10000)",
        "k = rope(k, 4 of 1 heads of 4, pairs, base 10000)",
        "kv_store(k, v, kv 1)",
        "o = attention(q, kv 1, 2 heads of 4 over 1, scale 0.5)",
        "y = matmul(o, blk.1.attn_output.weight F32 8x8)",
        "h = add(h, y)",
        "last = logit_rows(h)", /* the last layer: the rest serves these rows alone */
        "x = rms_norm(last, blk.1.ffn_norm.weight F32 8, eps 0.00001)",
        "gate = matmul(x, blk.1.ffn_gate.weight F32 8x12)",
        "up = matmul(x, blk.1.ffn_up.weight F32 8x12)",
        "gate = silu_mul(gate, up)",
        "y = matmul(gate, blk.1.ffn_down.weight F32 12x8)",
        "last = add(last, y)",
    };
    static const char *const outside[] = {
        "h = embed(token, token_embd.weight F32 8x7)",
        "x = rms_norm(last, output_norm.weight F32 8, eps 0.00001)",
        "logits = matmul(x, token_embd.weight F32 8x7)",
    };
    struct opened *o = open_tiny(tiny_of("llama"));
    expect_lines(o->model, 1, layer, sizeof layer / sizeof *layer);
    expect_lines(o->model, UINT32_MAX, outside, sizeof outside / sizeof *outside);
    assert_int_equal(o->model->program.n_kv_groups, 1);
    assert_int_equal(o->model->program.kv_groups[0].n_layers, 2);
    assert_string_equal(o->model->program.slots[o->model->program.logits].name, "logits");
    open_close(o);
}

static void own_output_is_used_where_there_is_one(void **state)
{
    (void)state;
    struct tiny t = tiny_of("llama");
    t.has_output = true;
    struct opened *o = open_tiny(t);
    const struct tern_program *p = &o->model->program;
    const struct tern_weight *w = &p->weights[p->ops[p->n_ops - 1].weight];
    assert_memory_equal(o->model->tensors[w->tensor].name.data, "output.weight", 13);
    open_close(o);
}

static void qwen2_has_biases_and_turns_by_halves(void **state)
{
    (void)state;
    static const char *const start[] = {
        "x = rms_norm(h, blk.0.attn_norm.weight F32 8, eps 0.00001)",
        "q = matmul(x, blk.0.attn_q.weight F32 8x8, plus blk.0.attn_q.bias F32 8)",
        "k = matmul(x, blk.0.attn_k.weight F32 8x4, plus blk.0.attn_k.bias F32 4)",
        "v = matmul(x, blk.0.attn_v.weight F32 8x4, plus blk.0.attn_v.bias F32 4)",
        "q = rope(q, 4 of 2 heads of 4, halves, base 10000)",
    };
    struct opened *o = open_tiny(tiny_of("qwen2"));
    for (uint32_t i = 0; i < 5; i++) {
        char text[200];
        size_t n;
        uint32_t layer;
        assert_int_equal(tern_model_op(o->model, i + 1, text, sizeof text, &n, &layer), TERN_OK);
        assert_int_equal(n, strlen(start[i]));
        assert_memory_equal(text, start[i], n);
    }
    open_close(o);
}

static void qwen3_norms_each_head(void **state)
{
    (void)state;
    struct tiny t = tiny_of("qwen3");
    t.head_dim = 6; /* of its own: 2 heads of 6 over an embedding of 8 */
    struct opened *o = open_tiny(t);
    assert_int_equal(o->status, TERN_OK);
    const struct tern_op *ops = o->model->program.ops;
    assert_int_equal(ops[5].kind, TERN_OP_HEAD_NORM);
    assert_int_equal(ops[5].n_heads, 2);
    assert_int_equal(ops[5].head_dim, 6);
    assert_int_equal(ops[6].kind, TERN_OP_HEAD_NORM);
    assert_int_equal(ops[6].n_heads, 1);
    assert_int_equal(o->model->program.slots[ops[5].dst].width, 12);
    open_close(o);
}

static void window_of_3(struct gguf_writer *w)
{
    gw_u32(w, "gemma3.attention.sliding_window", 3);
    gw_text(w, "gemma3.rope.scaling.type", "linear");
    gw_f32(w, "gemma3.rope.scaling.factor", 8);
}

static void window_of_3_period_2(struct gguf_writer *w)
{
    window_of_3(w);
    gw_u32(w, "gemma3.attention.sliding_window_pattern", 2);
}

static void window_of_3_listed(struct gguf_writer *w)
{
    window_of_3(w);
    gw_array(w, "gemma3.attention.sliding_window_pattern", TERN_META_BOOL, 7);
    gw_put_int(&w->keys, 0x01000000000001, 7);
}

static void gemma3_sees_a_window_in_most_layers(void **state)
{
    (void)state;
    static const struct { void (*more)(struct gguf_writer *); const char *local; } cases[] = {
        {NULL, "......."}, {window_of_3, "lllll.l"}, {window_of_3_period_2, "l.l.l.l"},
        {window_of_3_listed, "l.....l"},
    };
    for (int c = 0; c < 4; c++) {
        struct tiny t = tiny_of("gemma3");
        t.n_layers = 7;
        t.more = cases[c].more;
        struct opened *o = open_tiny(t);
        assert_int_equal(o->status, TERN_OK);
        const struct tern_program *p = &o->model->program;
        assert_int_equal(p->n_kv_layers, 7);
        uint32_t turned = UINT32_MAX;
        for (uint32_t i = 0; i < p->n_ops; i++) {
            if (p->ops[i].kind == TERN_OP_ROPE)
                turned = p->ops[i].index;
            if (p->ops[i].kind != TERN_OP_ATTENTION)
                continue;
            const bool local = cases[c].local[p->ops[i].layer] == 'l';
            const struct tern_kv_layer *kv = &p->kv_layers[p->ops[i].index];
            assert_int_equal(p->kv_groups[kv->group].window, local ? 3 : 0);
            assert_true(p->ropes[turned].freq_scale == (local || !cases[c].more ? 1.0f : 0.125f));
        }
        assert_true(p->ops[0].x == sqrtf(8));
        open_close(o);
    }
}

static void yarn(struct gguf_writer *w)
{
    gw_text(w, "llama.rope.scaling.type", "yarn");
    gw_f32(w, "llama.rope.scaling.factor", 4);
    gw_u32(w, "llama.rope.scaling.original_context_length", 4096);
}

static void linear(struct gguf_writer *w)
{
    gw_f32(w, "llama.rope.scaling.factor", 4);
}

static void old_linear(struct gguf_writer *w)
{
    gw_f32(w, "llama.rope.scale_linear", 4);
}

static void none(struct gguf_writer *w)
{
    gw_text(w, "llama.rope.scaling.type", "none");
    linear(w);
}

static void longrope(struct gguf_writer *w)
{
    gw_text(w, "llama.rope.scaling.type", "longrope");
}

static void factors(struct gguf_writer *w)
{
    gw_tensor(w, "rope_freqs.weight", 2, 0);
}

static void scaling_of_rope_follows_the_metadata(void **state)
{
    (void)state;
    /* YaRN's corrections for 4 dimensions, base 10000, 4096 tokens, in Python:
     * 4 * log(4096 / (2 * pi * beta)) / (2 * log(10000)) = 0.6545, 1.4071 for 32 and 1. */
    static const struct {
        void (*more)(struct gguf_writer *);
        float freq_scale, mscale, ext_factor, low, high;
        int32_t factors;
    } cases[] = {
        {NULL, 1, 1, 0, 0, 0, -1}, {linear, 0.25f, 1, 0, 0, 0, -1},
        {old_linear, 0.25f, 1, 0, 0, 0, -1}, {none, 1, 1, 0, 0, 0, -1},
        {yarn, 0.25f, 1.13862944f, 1, 0, 2, -1}, {factors, 1, 1, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny t = tiny_of("llama");
        t.more = cases[i].more;
        struct opened *o = open_tiny(t);
        assert_int_equal(o->status, TERN_OK);
        const struct tern_rope *r = &o->model->program.ropes[0];
        assert_int_equal(r->n_rot, 4);
        assert_true(r->freq_scale == cases[i].freq_scale);
        assert_true(fabsf(r->mscale - cases[i].mscale) < 1e-6f);
        assert_true(r->ext_factor == cases[i].ext_factor);
        assert_true(r->corr_low == cases[i].low && r->corr_high == cases[i].high);
        assert_int_equal(r->factors, cases[i].factors);
        open_close(o);
    }
    struct tiny t = tiny_of("llama");
    t.more = longrope;
    struct opened *o = open_tiny(t);
    assert_int_equal(o->status, TERN_UNSUPPORTED);
    assert_non_null(strstr(o->error.text, "longrope"));
    open_close(o);
}

static void builder_refuses_more_than_its_tables_hold(void **state)
{
    (void)state;
    struct opened *o = open_tiny(tiny_of("llama"));
    struct tern_program program = {0};
    struct tern_kv_layer layers[8];
    tern_error e = {0};
    struct tern_builder b = {.model = o->model, .program = &program, .kv_layers = layers,
                             .cap_kv_layers = 8, .err = &e};
    for (int i = 0; i < TERN_MAX_SLOTS; i++)
        assert_int_equal(tern_b_slot(&b, "s", 1), i);
    assert_int_equal(b.status, TERN_OK);
    tern_b_slot(&b, "one more", 1);
    assert_int_equal(b.status, TERN_UNSUPPORTED);
    assert_non_null(strstr(e.text, "slots"));
    b.status = e.status = TERN_OK;
    for (uint32_t i = 0; i < TERN_MAX_KV_GROUPS; i++)
        tern_b_kv_layer(&b, 1, 4, 4, i);
    assert_int_equal(b.status, TERN_OK);
    tern_b_kv_layer(&b, 1, 4, 4, 99);
    assert_int_equal(b.status, TERN_UNSUPPORTED);
    b.status = e.status = TERN_OK;
    for (uint32_t i = 0; i < TERN_MAX_ROPES; i++)
        assert_int_equal(tern_b_rope(&b, &(struct tern_rope){.n_rot = 2 * i}), i);
    assert_int_equal(tern_b_rope(&b, &(struct tern_rope){.n_rot = 2}), 1); /* equal: the same */
    assert_int_equal(b.status, TERN_OK);
    tern_b_rope(&b, &(struct tern_rope){.n_rot = 99});
    assert_int_equal(b.status, TERN_UNSUPPORTED);
    open_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_reads_like_its_paper),
        cmocka_unit_test(own_output_is_used_where_there_is_one),
        cmocka_unit_test(qwen2_has_biases_and_turns_by_halves),
        cmocka_unit_test(qwen3_norms_each_head),
        cmocka_unit_test(gemma3_sees_a_window_in_most_layers),
        cmocka_unit_test(scaling_of_rope_follows_the_metadata),
        cmocka_unit_test(builder_refuses_more_than_its_tables_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
