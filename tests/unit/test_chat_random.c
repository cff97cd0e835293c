/* 2,000 random conversations (or as many as the first argument or DTRUN_TEST_CONVERSATIONS says), random templates of
 * tests/golden/chat/: no trained byte comes from elsewhere than an assistant's fields or the end of its turn, each of its
 * turns has its end trained exactly once, and no control token comes from a field. What the mask should be is found
 * without its code: every field of a message has characters of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/display.h"
#include "tests/unit/chat_support.h"

static const char *const templates[] = {"turns", "headers", "brackets", "marked", "channels"};
static const char *const typed[] = {"<|im_end|>", "<|eot_id|>", "</s>",
                                    "<|end|>",    "<|return|>", "<tool_call>"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t seed = 1;

static uint32_t below(uint32_t count)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % count;
}

/* The characters of an assistant's fields are in U+4E00 and above, those of others in U+AC00 and above; no template
 * writes either. */
static void add_words(dt_strbuf *out, bool assistant, bool controls)
{
    uint32_t count = 1 + below(6);

    dt_strbuf_reset(out);
    for (uint32_t i = 0; i < count; i++) {
        char utf8[DT_UTF8_MAX];
        uint32_t length = 1 + below(4);

        if (i > 0)
            dt_strbuf_add_str(out, below(3) == 0 ? "\n" : " ");
        for (uint32_t k = 0; k < length; k++)
            dt_strbuf_add(out, utf8,
                          dt_utf8_encode(utf8, (assistant ? 0x4e00 : 0xac00) + below(2000)));
        if (controls && below(3) == 0)
            dt_strbuf_add_str(out, typed[below(COUNT(typed))]);
    }
}

static json_t *words(bool assistant, bool controls)
{
    json_t *made;
    dt_strbuf text;

    dt_strbuf_init(&text);
    add_words(&text, assistant, controls);
    made = json_stringn(text.data, text.length);
    dt_strbuf_release(&text);
    return made;
}

static void add_message(json_t *messages, const char *role, bool controls)
{
    json_t *message = json_object();
    bool assistant = strcmp(role, "assistant") == 0;

    json_object_set_new(message, "role", json_string(role));
    json_object_set_new(message, "content", words(assistant, controls));
    json_array_append_new(messages, message);
}

/* with_more: thoughts and calls too, which not every template writes. */
static json_t *conversation(bool with_more)
{
    json_t *line = json_object(), *messages = json_array(), *last;
    bool controls = below(2) == 0;
    uint32_t turns = 1 + below(4);

    json_object_set_new(line, "messages", messages);
    if (below(3) == 0)
        add_message(messages, "system", controls);
    for (uint32_t i = 0; i < turns; i++) {
        add_message(messages, "user", controls);
        add_message(messages, "assistant", controls);
        last = json_array_get(messages, json_array_size(messages) - 1);
        if (with_more && below(2) == 0)
            json_object_set_new(last, "reasoning_content", words(true, controls));
        if (with_more && below(3) == 0)
            json_object_set_new(last, "tool_calls",
                                json_pack("[{s{sos{so}}}]", "function", "name", words(true, false),
                                          "arguments", "x", words(true, controls)));
    }
    return line;
}

/* Returns which side a token's bytes are of: 'a' for an assistant's field, 'o' for others, '.' for neither. */
static char side_of(const dt_chat_row *row, size_t token)
{
    size_t from = token > 0 ? row->ends[token - 1] : 0;
    const unsigned char *text = (const unsigned char *)row->text;
    uint32_t code = 0;

    while (from > 0 && (text[from] & 0xc0) == 0x80)
        from--; /* a token can be a part of a character */
    for (size_t at = from, used; at<row->ends[token]; at += used> 0 ? used : 1) {
        used = dt_utf8_decode(&code, text + at, row->length - at);
        if (code >= 0x4e00 && code < 0x4e00 + 2000)
            return 'a';
        if (code >= 0xac00 && code < 0xac00 + 2000)
            return 'o';
    }
    return '.';
}

static bool is_control(const chat_place *place, int32_t id)
{
    size_t count;
    const dt_bpe_added *added = dt_bpe_get_added(&count, place->bpe);

    for (size_t i = 0; i < count; i++)
        if (added[i].id == id)
            return added[i].special;
    return false;
}

/* From left to right: after an assistant's text everything is trained up to a control token, which is trained too. In
 * between are the control tokens that were typed, as text. */
static void check_row(const chat_place *place, const dt_chat_row *row, int64_t *ends)
{
    bool answers = false; /* an answer has begun, and its end was not reached */

    for (size_t i = 0; i < row->count; i++) {
        char side = side_of(row, i);
        bool control = is_control(place, row->ids[i]);

        if (side == 'a') {
            answers = true;
            if (!row->trained[i])
                fail_msg("token %zu of an answer is not trained: %s", i, row->text);
        }
        if (side == 'o' && (row->trained[i] || answers))
            fail_msg("token %zu of somebody else is trained, or an answer has no end: %s", i,
                     row->text);
        if (side == '.' && row->trained[i] && !answers)
            fail_msg("token %zu is trained outside of an answer: %s", i, row->text);
        if (control && answers) {
            if (!row->trained[i])
                fail_msg("token %zu, the end of a turn, is not trained: %s", i, row->text);
            answers = false;
            (*ends)++;
        }
    }
    if (answers)
        fail_msg("the last answer has no end: %s", row->text);
}

static int64_t conversations = 2000;

static void only_answers_are_trained(void **state)
{
    chat_place places[COUNT(templates)];
    int64_t rows = 0, ends = 0, parts = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(templates); i++)
        chat_place_open(&places[i], templates[i]);
    for (int64_t i = 0; i < conversations; i++) {
        uint32_t kind = below(COUNT(templates));
        json_t *line = conversation(kind == 0);
        dt_error err = DT_ERROR_INIT;
        dt_chat_row row;
        int64_t before = ends;

        if (dt_chat_encode(&row, places[kind].encoder, line, NULL, &places[kind].arena, &err) !=
            DT_OK)
            fail_msg("%s", err.message);
        check_row(&places[kind], &row, &ends);
        assert_int_equal(ends - before, row.assistants); /* one end a turn */
        assert_int_equal(row.endless, 0);
        assert_int_equal(row.ends[row.count - 1], row.length);
        rows++;
        parts += (int64_t)row.trained_count;
        json_decref(line);
        dt_arena_reset(&places[kind].arena);
    }
    for (size_t i = 0; i < COUNT(templates); i++)
        chat_place_close(&places[i]);
    printf("%lld conversations, %lld ends of turns, %lld trained tokens\n", (long long)rows,
           (long long)ends, (long long)parts);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_answers_are_trained)};
    const char *given = argc > 1 ? argv[1] : getenv("DTRUN_TEST_CONVERSATIONS");

    if (given != NULL)
        conversations = strtoll(given, NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
