/* The quick reader of JSON lines: what it decides, jansson decides too, with the same text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "runner/corpus/corpus_int.h"

static dt_strbuf text;

static bool read_line(const char *line, size_t length)
{
    return dt_json_line_text(&text, line, length, "text");
}

/* Returns whether the quick reader decided; fails if jansson disagrees. */
static bool agrees(const char *line, size_t length)
{
    json_t *object;
    const json_t *value;

    if (!read_line(line, length))
        return false;
    object = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
    value = json_object_get(object, "text");
    if (!json_is_string(value) || json_string_length(value) != text.length ||
        memcmp(json_string_value(value), text.data, text.length) != 0)
        fail_msg("'%.*s' gave '%s'", (int)length, line, text.data);
    json_decref(object);
    return true;
}

static const char *const clear[] = {
    "{\"text\":\"\"}",
    " { \"text\" : \"one\" } \r\n",
    "{\"a\": [1, -2.50, 0, {\"b\": [], \"text\": 3}, {}], \"text\": "
    "\"\xc3\xa9\xf0\x9f\x9a\x80\"}\n",
    "{\"text\": \"a\\\"b\\\\c\\/d\\b\\f\\n\\r\\t\", \"n\": null, \"t\": true, \"f\": false}",
    "{\"text\": \"\\u0041\\u00e9\\u20AC\\ud83d\\ude80\\u0000x\"}",
    "{\"x\": \"\\u0041\\\\\", \"text\": \"a long text without anything that needs an escape\"}",
    "{\"Text\": \"no\", \"text\": \"eight by\\te, and then some more \\\"bytes\\\" of it\"}",
};

static const char *const unclear[] = {
    "",
    "[\"text\"]",
    "{}",
    "{\"text\": 1}",
    "{\"text\": null}",
    "{\"other\": \"x\"}",
    "{\"text\": \"a\", \"text\": \"b\"}",
    "{\"t\\u0065xt\": \"a\"}",
    "{\"text\": \"a\"} x",
    "{\"text\": \"a\",}",
    "{\"text\": \"a\"",
    "{\"text\": \"a",
    "{\"text\": \"a\\",
    "{\"text\": \"a\\u12",
    "{\"text\": \"a\\x\"}",
    "{\"text\": \"a\tb\"}",
    "{\"text\t\": \"a\"}",
    "{\"text\": \"\\ud83d\"}",
    "{\"text\": \"\\ude80\\ud83d\"}",
    "{\"text\": \"\\ud83d\\u0041\"}",
    "{\"text\": \"\xff\"}",
    "{\"x\": \"\xc3\", \"text\": \"a\"}",
    "{\"x\": 01, \"text\": \"a\"}",
    "{\"x\": 1., \"text\": \"a\"}",
    "{\"x\": -, \"text\": \"a\"}",
    "{\"x\": 1e999, \"text\": \"a\"}",
    "{\"x\": 99999999999999999999, \"text\": \"a\"}",
    "{\"x\": tru, \"text\": \"a\"}",
    "{\"x\": [1 2], \"text\": \"a\"}",
    "{\"x\": [1,], \"text\": \"a\"}",
    "{\"x\": {\"y\"}, \"text\": \"a\"}",
};

static void test_clear_lines_are_decided_and_others_are_left(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof(clear) / sizeof(clear[0]); i++)
        if (!agrees(clear[i], strlen(clear[i])))
            fail_msg("'%s' was not decided", clear[i]);
    for (size_t i = 0; i < sizeof(unclear) / sizeof(unclear[0]); i++)
        if (read_line(unclear[i], strlen(unclear[i])))
            fail_msg("'%s' gave '%s'", unclear[i], text.data);
}

static uint32_t state = 7;

static uint32_t pick(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* Replaces, drops or doubles some bytes. */
static size_t change(char *line, size_t length)
{
    static const char bytes[] = "\"\\{}[]:,u0t \n\t-.e\xc3\xa9\x01";

    for (uint32_t changes = pick(4); changes > 0 && length > 1; changes--) {
        size_t at = pick((uint32_t)length);

        switch (pick(3)) {
        case 0:
            line[at] = bytes[pick(sizeof(bytes))];
            break;
        case 1:
            memmove(line + at, line + at + 1, --length - at);
            break;
        default:
            memmove(line + at + 1, line + at, length++ - at);
        }
    }
    return length;
}

static void test_changed_lines_are_read_as_by_jansson(void **unused)
{
    int decided = 0;

    (void)unused;
    for (int i = 0; i < 40000; i++) {
        const char *from = clear[pick(sizeof(clear) / sizeof(clear[0]))];
        size_t length = strlen(from);
        char line[256];

        memcpy(line, from, length);
        length = change(line, length);
        decided += agrees(line, length);
    }
    assert_true(decided > 10000 && decided < 35000);
}

static int set_up(void **unused)
{
    (void)unused;
    dt_strbuf_init(&text);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    dt_strbuf_release(&text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clear_lines_are_decided_and_others_are_left),
        cmocka_unit_test(test_changed_lines_are_read_as_by_jansson),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
