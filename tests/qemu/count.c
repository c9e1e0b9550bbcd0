/* count.c: a plugin of qemu-aarch64 that counts what a program executes: instructions, loads and
 * the bytes that they load.
 *
 *     qemu-aarch64 -plugin file=count.so[,out=FILE] PROGRAM...     one line: three numbers
 *
 * A translated block's numbers are found once, from the encodings, and added whenever it runs, so
 * counting costs next to nothing and counts are the same on every machine. For programs of one
 * thread: additions are not atomic. A pair of registers is one load of twice the bytes, as the
 * program wrote it; memory callbacks would see what QEMU makes of it instead. Prefetches are no
 * loads. Of the encodings those of ARMv8.0 are known, and what later additions share with them; no
 * SVE.
 *
 * Debian has no header for plugins (API version 1, QEMU 6 to 8): the few declarations are here. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*f)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(uint64_t id, void (*f)(uint64_t id, void *data), void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op,
                                              void *counter, uint64_t by);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
extern int qemu_plugin_version;
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv);

static uint64_t instructions, loads, bytes;
static FILE *out;

static uint32_t bits(uint32_t code, int low, int n)
{
    return code >> low & ((1u << n) - 1);
}

/* Bytes that ld1 .. ld4 and their relatives load. */
static unsigned structure_bytes(uint32_t code)
{
    static const uint8_t n_registers[16] = {[0] = 4, [2] = 4, [4] = 3, [6] = 3,
                                            [7] = 1, [8] = 2, [10] = 2};
    if (!bits(code, 24, 1))
        return n_registers[bits(code, 12, 4)] * (bits(code, 30, 1) ? 16u : 8u);
    const unsigned op = bits(code, 13, 3), n = (op & 1) * 2 + bits(code, 21, 1) + 1;
    unsigned scale = op >> 1;
    if (scale == 3) /* to all lanes */
        scale = bits(code, 10, 2);
    else if (scale == 2 && bits(code, 10, 1))
        scale = 3;
    return n << scale;
}

/* Of ldr and its relatives with one register and any kind of address. */
static unsigned single_bytes(uint32_t code)
{
    const unsigned size = bits(code, 30, 2), op = bits(code, 22, 2);
    if (bits(code, 26, 1))
        return !(op & 1) ? 0 : op & 2 ? 16u : 1u << size;
    if (!bits(code, 24, 1) && bits(code, 21, 1) && bits(code, 10, 2) == 0)
        return 1u << size; /* an atomic operation */
    return op == 0 || (size == 3 && op == 2) ? 0 : 1u << size;
}

/* What one instruction loads; 0 if it is no load. */
static unsigned load_bytes(uint32_t code)
{
    const bool vector = bits(code, 26, 1);
    const unsigned op = bits(code, 30, 2);
    if ((code & 0xbe000000) == 0x0c000000)
        return bits(code, 22, 1) ? structure_bytes(code) : 0;
    if ((code & 0x3a000000) == 0x38000000)
        return single_bytes(code);
    if ((code & 0x3a000000) == 0x28000000)
        return !bits(code, 22, 1) ? 0 : vector ? 8u << op : op & 2 ? 16 : 8;
    if ((code & 0x3b000000) == 0x18000000)
        return vector ? 4u << op : op == 3 ? 0 : op == 1 ? 8 : 4;
    if ((code & 0x3f000000) == 0x08000000 && bits(code, 22, 1))
        return (bits(code, 23, 1) == 0 && bits(code, 21, 1) ? 2u : 1u) << op;
    return 0;
}

static void on_block(uint64_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    const size_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t n_loads = 0, n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t code;
        memcpy(&code, qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, i)), sizeof code);
        n_loads += load_bytes(code) > 0;
        n_bytes += load_bytes(code);
    }
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &instructions, n);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &loads, n_loads);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &bytes, n_bytes);
}

static void on_exit_of_it(uint64_t id, void *data)
{
    (void)id;
    (void)data;
    fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", instructions, loads, bytes);
    fflush(out);
}

int qemu_plugin_install(uint64_t id, const struct qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    out = stderr;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) != 0)
            return -1;
        out = fopen(argv[i] + 4, "w");
        if (!out)
            return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_atexit_cb(id, on_exit_of_it, NULL);
    return 0;
}
