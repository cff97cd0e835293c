#include "engine/tokens/unicode.h"

#include "base/banned.h"

/* class_blocks: code point / 256 -> block; class_words: 4 bits a code point, 16 words a block. */
#include "engine/tokens/unicode_classes.inc"

#define CLASS_BITS   3u
#define UNSTABLE_BIT 4u

static inline unsigned look_up(uint32_t code)
{
    if (code / 256 >= sizeof(class_blocks))
        return 0;
    return class_words[class_blocks[code / 256] * 16u + code % 256 / 16] >> code % 16 * 4 & 0xf;
}

dt_code_class dt_code_class_of(uint32_t code)
{
    return (dt_code_class)(look_up(code) & CLASS_BITS);
}

bool dt_code_is_unstable(uint32_t code)
{
    return (look_up(code) & UNSTABLE_BIT) != 0;
}
