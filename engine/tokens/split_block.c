/* split_block: finds the word ends in up to 64 bytes of ASCII at once, from masks of their classes. */
#include <string.h>

#include "engine/tokens/tokens_int.h"

/* --- masks of 64 bytes */

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define EACH(byte) ((byte)*0x0101010101010101ull)
#define TOP        EACH(0x80ull)

/* --- eight bytes, which must be ASCII: the top bit of each byte of a result is set if the byte
 * matches */

/* Neither sum carries into the next byte, because both terms are below 0x80. */
static inline uint64_t between(uint64_t bytes, uint64_t first, uint64_t last)
{
    return (bytes + EACH(0x80 - first)) & ~(bytes + EACH(0x7f - last)) & TOP;
}

/* The multiplication moves bit 7 of byte i to bit 56 + i. */
static inline uint64_t pack(uint64_t tops, int at)
{
    return ((tops >> 7) * 0x0102040810204080ull >> 56) << at;
}

void dt_ascii_masks_find_plain(dt_ascii_masks *out, const unsigned char *block)
{
    dt_ascii_masks found = {0};

    for (int at = 0; at < DT_ASCII_BLOCK; at += 8) {
        uint64_t bytes = 0, high, upper, blank;

        memcpy(&bytes, block + at, 8);
        high = bytes & TOP;
        bytes &= ~TOP;
        upper = between(bytes, 'A', 'Z');
        blank = between(bytes, ' ', ' ');
        found.high |= pack(high, at);
        found.letter |= pack((upper | between(bytes, 'a', 'z')) & ~high, at);
        found.upper |= pack(upper & ~high, at);
        found.number |= pack(between(bytes, '0', '9') & ~high, at);
        found.space |= pack((blank | between(bytes, '\t', '\r')) & ~high, at);
        found.blank |= pack(blank & ~high, at);
        found.line |= pack((between(bytes, '\n', '\n') | between(bytes, '\r', '\r')) & ~high, at);
        found.quote |= pack(between(bytes, '\'', '\'') & ~high, at);
    }
    *out = found;
}

#if defined(__x86_64__)

#define AVX2 __attribute__((target("avx2")))

/* The comparison is signed, but a byte that is not ASCII is negative and therefore below `first`. */
AVX2 static inline __m256i between_avx2(__m256i bytes, char first, char last)
{
    return _mm256_and_si256(_mm256_cmpgt_epi8(bytes, _mm256_set1_epi8((char)(first - 1))),
                            _mm256_cmpgt_epi8(_mm256_set1_epi8((char)(last + 1)), bytes));
}

AVX2 static inline __m256i equal_avx2(__m256i bytes, char byte)
{
    return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte));
}

AVX2 static inline uint64_t pack_avx2(__m256i found, int at)
{
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(found) << at;
}

AVX2 static void find_avx2(dt_ascii_masks *out, const unsigned char *block)
{
    dt_ascii_masks found = {0};

    for (int at = 0; at < DT_ASCII_BLOCK; at += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(block + at));
        __m256i blank = equal_avx2(bytes, ' ');
        __m256i lower = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));

        found.high |= pack_avx2(bytes, at);
        found.letter |= pack_avx2(between_avx2(lower, 'a', 'z'), at);
        found.upper |= pack_avx2(between_avx2(bytes, 'A', 'Z'), at);
        found.number |= pack_avx2(between_avx2(bytes, '0', '9'), at);
        found.space |= pack_avx2(_mm256_or_si256(blank, between_avx2(bytes, '\t', '\r')), at);
        found.blank |= pack_avx2(blank, at);
        found.line |=
            pack_avx2(_mm256_or_si256(equal_avx2(bytes, '\n'), equal_avx2(bytes, '\r')), at);
        found.quote |= pack_avx2(equal_avx2(bytes, '\''), at);
    }
    *out = found;
}

void dt_ascii_masks_find(dt_ascii_masks *out, const unsigned char *block)
{
    if (__builtin_cpu_supports("avx2"))
        find_avx2(out, block);
    else
        dt_ascii_masks_find_plain(out, block);
}

#else

void dt_ascii_masks_find(dt_ascii_masks *out, const unsigned char *block)
{
    dt_ascii_masks_find_plain(out, block);
}

#endif

/* --- word ends */

/* The classes of a block without the bytes that are not known. A mask shifted left by one says at
 * each byte what its predecessor is; shifted right by one, what its successor is. */
typedef struct block {
    const unsigned char *bytes;
    dt_ascii_masks is;
    uint64_t other;     /* neither letter nor number nor space */
    uint64_t starts;    /* where words start */
    uint64_t uncertain; /* where the scalar code must decide */
} block;

static inline uint64_t first_of_run(uint64_t run)
{
    return run & ~(run << 1);
}

/* The mask of the bytes before byte i; i < 64. */
static inline uint64_t before(int i)
{
    return ((uint64_t)1 << i) - 1;
}

/* Extends `from`, the first bytes of some runs of `all`, to the whole of these runs: the carry of
 * the sum clears them. */
static inline uint64_t whole_runs(uint64_t from, uint64_t all)
{
    return all & ~(all + from);
}

/* Returns the bytes of the contraction 's, 't, 're, 've, 'm, 'll or 'd at the quote `at`; 0: there is
 * none. */
static inline int contraction(const unsigned char *at, bool any_case)
{
    unsigned char one = any_case ? at[1] | 0x20 : at[1], two = any_case ? at[2] | 0x20 : at[2];

    if (one == 's' || one == 't' || one == 'm' || one == 'd')
        return 2;
    return (one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l')
               ? 3
               : 0;
}

/* Makes each contraction at `quotes` a word, or with `joined` the end of the word before it, unless
 * that is itself a contraction. */
static inline void contractions(block *b, uint64_t quotes, bool any_case, bool joined)
{
    int end = -1;

    for (; quotes != 0; quotes &= quotes - 1) {
        int at = __builtin_ctzll(quotes), length;

        if (at > DT_ASCII_BLOCK - 3) {
            b->uncertain |= joined ? (uint64_t)1 << at : 0;
            break;
        }
        length = joined && at == end ? 0 : contraction(b->bytes + at, any_case);
        if (length == 0)
            continue;
        end = at + length;
        b->starts &= ~(before(length) << at) | (uint64_t)!joined << at;
        b->starts |= end < DT_ASCII_BLOCK ? (uint64_t)1 << end : 0;
    }
}

/* digits: each is a word, and white space before one is as at the end of the text. */
static inline void gpt2(block *b, bool digits)
{
    const dt_ascii_masks *is = &b->is;
    uint64_t number = digits ? is->number : first_of_run(is->number) & ~(is->blank << 1);
    uint64_t ends_space = ~(is->space | (digits ? is->number : 0));
    uint64_t joined = is->blank << 1; /* to the blank before it */
    uint64_t other = first_of_run(b->other) & ~joined;

    b->starts = other | number | (first_of_run(is->letter) & ~joined);
    b->starts |= first_of_run(is->space) | (is->space & ends_space >> 1);
    contractions(b, is->quote & other, false, false);
}

/* Returns the first of each three digits. */
static inline uint64_t threes(uint64_t number)
{
    uint64_t found = first_of_run(number), next = found;

    while ((next = next << 3 & number & number << 1 & number << 2) != 0)
        found |= next;
    return found;
}

/* Returns the starts of the words that `\s*[\r\n]+|\s+(?!\S)|\s+` finds in `space`, the white space behind `[\r\n]*`.
 * A run has a start at its first byte, after its last line break, and at its last byte unless that is a line break. */
static inline uint64_t space_starts(const block *b, uint64_t space)
{
    uint64_t line = b->is.line, rest = b->is.space & ~line;
    uint64_t after_line = rest & (line << 1);
    uint64_t stops =
        (rest + after_line) & ~rest; /* the byte after each run of `rest` that starts there */

    for (uint64_t bad = stops & line; bad != 0; bad &= bad - 1) {
        /* a line break follows: clear the start, the highest one before it */
        uint64_t below = after_line & before(__builtin_ctzll(bad));

        if (below != 0)
            after_line &= ~((uint64_t)1 << (63 - __builtin_clzll(below)));
    }
    return first_of_run(space) | after_line | (rest & ~(b->is.space >> 1));
}

/* Sets the starts of all words. A word of letters also contains the byte before it, unless that is a number or a line
 * break. */
static inline void words(block *b, uint64_t numbers)
{
    const dt_ascii_masks *is = &b->is;
    uint64_t taken = whole_runs(is->line & (b->other << 1), is->line); /* by `[\r\n]*` */
    uint64_t other = first_of_run(b->other) & ~(is->blank << 1);
    uint64_t prefix = other & (is->letter >> 1);

    b->starts = other | numbers;
    b->starts |= first_of_run(is->letter) & ~((prefix | (is->space & ~is->line)) << 1);
    b->starts |= space_starts(b, is->space & ~taken);
}

static inline void llama3(block *b, uint64_t numbers)
{
    words(b, numbers);
    contractions(b, b->is.quote & first_of_run(b->other) & ~(b->is.blank << 1), true, false);
}

static inline void o200k(block *b, bool tekken)
{
    const dt_ascii_masks *is = &b->is;

    words(b, tekken ? is->number : threes(is->number));
    b->starts |= is->upper & (is->letter & ~is->upper) << 1;
    for (uint64_t at = is->line << 1 & b->other; at != 0; at &= at - 1) /* `[\r\n/]*` */
        if (b->bytes[__builtin_ctzll(at)] == '/')
            b->uncertain |= at & -at;
    if (!tekken)
        contractions(b, is->quote & is->letter << 1, true, true);
}

dt_split_block_kind dt_split_block_kind_of(const dt_split *split)
{
    static const dt_split_block_kind kinds[] = {
        [DT_SPLIT_GPT2] = DT_BLOCK_GPT2,     [DT_SPLIT_LLAMA3] = DT_BLOCK_LLAMA3,
        [DT_SPLIT_CL100K] = DT_BLOCK_LLAMA3, [DT_SPLIT_QWEN] = DT_BLOCK_QWEN,
        [DT_SPLIT_QWEN35] = DT_BLOCK_QWEN,   [DT_SPLIT_TEKKEN] = DT_BLOCK_TEKKEN,
        [DT_SPLIT_O200K] = DT_BLOCK_O200K,   [DT_SPLIT_DEEPSEEK] = DT_BLOCK_NONE,
        [DT_SPLIT_SET] = DT_BLOCK_NONE};
    const dt_split_stage *stages = split->stages;

    if (split->count == 2 && stages[0].kind == DT_SPLIT_SET && stages[1].kind == DT_SPLIT_GPT2 &&
        dt_split_set_is_number(&stages[0].set))
        return DT_BLOCK_DIGITS_GPT2;
    return split->count == 1 ? kinds[stages[0].kind] : DT_BLOCK_NONE;
}

/* Returns the starts up to the second last of `count` known bytes; of white space that reaches the last one, only
 * the first byte, because what follows decides about the others. */
static inline uint64_t certain(const block *b, int count)
{
    uint64_t known = before(count - 1) & ~(uint64_t)1;
    uint64_t spaces =
        ~(b->is.space << (64 - count)); /* its leading zeros: white space at the end */
    int run = spaces == 0 ? 64 : __builtin_clzll(spaces);

    if (run >= count)
        return 0;
    if (run > 1)
        known &= before(count - run + 1);
    if (b->uncertain != 0)
        known &= before(__builtin_ctzll(b->uncertain));
    return b->starts & known;
}

uint64_t dt_split_block(dt_split_block_kind kind, const unsigned char *at, size_t left)
{
    unsigned char copy[DT_ASCII_BLOCK];
    block b = {.bytes = at};
    uint64_t unknown;
    int count = DT_ASCII_BLOCK;

    if (kind == DT_BLOCK_NONE || left < 3 || ((at[0] | at[1]) & 0x80) != 0)
        return 0;
    if (left < DT_ASCII_BLOCK) {
        memset(copy, 0x80, sizeof(copy));
        memcpy(copy, at, left);
        b.bytes = copy;
    }
    dt_ascii_masks_find(&b.is, b.bytes);
    unknown = b.is.high;
    if (unknown != 0) {
        uint64_t known = (unknown & -unknown) - 1;

        count = __builtin_ctzll(unknown);
        if (count < 2)
            return 0;
        b.is.letter &= known;
        b.is.upper &= known;
        b.is.number &= known;
        b.is.space &= known;
        b.is.blank &= known;
        b.is.line &= known;
        b.is.quote &= known;
        b.other = known;
    } else {
        b.other = ~(uint64_t)0;
    }
    b.other &= ~(b.is.letter | b.is.number | b.is.space);
    switch (kind) {
    case DT_BLOCK_NONE:
        break;
    case DT_BLOCK_GPT2:
        gpt2(&b, false);
        break;
    case DT_BLOCK_DIGITS_GPT2:
        gpt2(&b, true);
        break;
    case DT_BLOCK_LLAMA3:
        llama3(&b, threes(b.is.number));
        break;
    case DT_BLOCK_QWEN:
        llama3(&b, b.is.number);
        break;
    case DT_BLOCK_O200K:
        o200k(&b, false);
        break;
    case DT_BLOCK_TEKKEN:
        o200k(&b, true);
        break;
    }
    return certain(&b, count);
}
