#include "tools/serve/serve_keys.h"

/* All bytes of all keys are read, whatever was found before; those of a given key that is shorter
 * from its start again. Sums are kept where no compiler knows what they are, so that it cannot end
 * a loop before its time. */
bool tern_keys_have(const tern_text *keys, uint32_t n_keys, tern_text given)
{
    static const char none[] = "";
    const char *const data = given.size ? given.data : none;
    const size_t n = given.size ? given.size : 1;
    volatile unsigned found = 0;
    for (uint32_t i = 0; i < n_keys; i++) {
        volatile unsigned differ = keys[i].size != given.size;
        for (size_t k = 0, m = 0; k < keys[i].size; k++) {
            differ = differ | (unsigned char)(keys[i].data[k] ^ data[m]);
            m = m + 1 < n ? m + 1 : 0;
        }
        found = found | (differ == 0);
    }
    return found;
}
