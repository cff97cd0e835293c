/* Word ends found on masks of 64 bytes equal those of the patterns, and the masks of AVX2 equal the
 * plain ones: random texts of all ASCII bytes, with other characters in some, at every offset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/tokens/split.h"
#include "engine/tokens/tokens_int.h"

#define MOST   300
#define ROUNDS 20000

static uint64_t state = 88172645463325252ull;

static size_t random_below(size_t count)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % count);
}

static const char *const parts[] = {" ",
                                    "  ",
                                    "\n",
                                    "\r\n",
                                    "\n\n",
                                    "\t",
                                    " \n",
                                    "a",
                                    "B",
                                    "word",
                                    "Word",
                                    "'",
                                    "'s",
                                    "'re",
                                    "'LL",
                                    "'ve",
                                    "don't",
                                    "I'm's",
                                    "''d",
                                    "1",
                                    "22",
                                    "333",
                                    "4444",
                                    "55555",
                                    ".",
                                    "/",
                                    ".\n",
                                    "/\n/",
                                    ".\n/",
                                    "()",
                                    "\v",
                                    "\f",
                                    "\x1c",
                                    "_",
                                    "\x7f",
                                    "-",
                                    "------",
                                    "        ",
                                    "longerwordsarehere",
                                    "CamelCase",
                                    "HTTPServer",
                                    "\xc3\xa9",
                                    "\xc2\xa0",
                                    "\xe2\x80\x99s",
                                    "\xd0\x94\xd0\xb0",
                                    "\xe4\xb8\xad",
                                    "\xf0\x9f\x98\x80",
                                    "'\xc5\xbf",
                                    "\xcc\x81"};

#define PARTS       (sizeof(parts) / sizeof(parts[0]))
#define ASCII_PARTS 40

/* A few of the parts many times, so that runs and pairs of them are frequent. */
static size_t make_text(char *out)
{
    size_t length = 0, most = random_below(MOST + 1), kinds = 1 + random_below(8);
    size_t range = random_below(2) == 0 ? ASCII_PARTS : PARTS;
    const char *chosen[8];

    for (size_t i = 0; i < kinds; i++)
        chosen[i] = parts[random_below(range)];
    for (;;) {
        const char *part = chosen[random_below(kinds)];
        char byte[2] = {(char)(1 + random_below(127)), 0};

        if (random_below(6) == 0)
            part = byte;
        if (length + strlen(part) > most)
            break;
        memcpy(out + length, part, strlen(part));
        length += strlen(part);
    }
    return length;
}

/* Returns the end of the word at `at`, which must be `end`. */
static const unsigned char *expect(dt_splitter *one, const unsigned char *at,
                                   const unsigned char *end, const char *text, size_t length)
{
    const unsigned char *wanted = dt_splitter_next(one, at);

    if (wanted != end)
        fail_msg("%d stages, the last %d: a word of %td bytes has %td in '%.*s'", one->split->count,
                 one->split->stages[one->split->count - 1].kind, wanted - at, end - at, (int)length,
                 text);
    return end;
}

static void compare(const dt_split *split, const char *source, size_t length)
{
    unsigned char *text = malloc(length + 1); /* a sanitizer sees reads behind it */
    dt_splitter one, blocks;

    assert_non_null(text);
    memcpy(text, source, length);
    dt_splitter_begin(&one, split, (const char *)text, length);
    dt_splitter_begin(&blocks, split, (const char *)text, length);
    for (const unsigned char *at = text; at < text + length;) {
        uint64_t ends = dt_splitter_block(&blocks, at);
        const unsigned char *start = at;

        for (; ends != 0; ends &= ends - 1)
            at = expect(&one, at, start + __builtin_ctzll(ends), source, length);
        if (at == start)
            at = expect(&one, at, dt_splitter_next(&blocks, at), source, length);
    }
    free(text);
}

static void test_words_of_blocks_are_those_of_the_pattern(void **context)
{
    static const dt_split_kind kinds[] = {DT_SPLIT_GPT2,   DT_SPLIT_LLAMA3, DT_SPLIT_QWEN,
                                          DT_SPLIT_CL100K, DT_SPLIT_O200K,  DT_SPLIT_QWEN35,
                                          DT_SPLIT_TEKKEN, DT_SPLIT_GPT2};
    enum { SPLITS = sizeof(kinds) / sizeof(kinds[0]) };
    static dt_split splits[SPLITS];
    char text[MOST];
    dt_arena arena;

    (void)context;
    dt_arena_init(&arena, 1024);
    assert_int_equal(dt_split_add(&splits[SPLITS - 1], &arena, "\\p{N}", NULL), DT_OK);
    for (size_t i = 0; i < SPLITS; i++)
        assert_int_equal(dt_split_add_kind(&splits[i], kinds[i], NULL), DT_OK);
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = make_text(text);

        for (size_t i = 0; i < SPLITS; i++)
            compare(&splits[i], text, length);
    }
    dt_arena_release(&arena);
}

static void test_blocks_find_the_words_of_plain_text(void **context)
{
    const char *text =
        "It's a block of plain English text, which has 64 bytes and more than that.\n";
    dt_split split = {.count = 0};
    dt_splitter splitter;

    (void)context;
    assert_int_equal(dt_split_add_kind(&split, DT_SPLIT_GPT2, NULL), DT_OK);
    dt_splitter_begin(&splitter, &split, text, strlen(text));
    assert_int_equal(__builtin_popcountll(dt_splitter_block(&splitter, (const void *)text)), 14);
    dt_splitter_begin(&splitter, &split, text, 10);
    assert_int_equal(dt_splitter_block(&splitter, (const void *)text), 1 << 2 | 1 << 4 | 1 << 6);
}

static void test_masks_of_both_paths_are_equal(void **context)
{
    unsigned char block[DT_ASCII_BLOCK];
    dt_ascii_masks fast, plain;

    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < DT_ASCII_BLOCK; i++)
            block[i] = (unsigned char)random_below(round % 2 == 0 ? 256 : 128);
        dt_ascii_masks_find(&fast, block);
        dt_ascii_masks_find_plain(&plain, block);
        assert_memory_equal(&fast, &plain, sizeof(fast));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_of_blocks_are_those_of_the_pattern),
        cmocka_unit_test(test_blocks_find_the_words_of_plain_text),
        cmocka_unit_test(test_masks_of_both_paths_are_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
