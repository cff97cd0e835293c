/* documents: what becomes of many JSON texts, a line each; built against jansson and against what
 * stands in for it (stand_ins_match_the_libraries.sh compares).
 *
 *   documents SEED COUNT FILE...
 *
 * Texts drawn by a generator, those with some bytes changed, and the files: whether they are
 * taken, in which line not, and what is written of them, by the library and by base/json.h. Then values built by calls.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/file.h"
#include "base/json.h"

#include "base/banned.h"

static uint64_t seed;

/* xorshift64* (Vigna 2016) */
static size_t below(size_t limit)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (size_t)((seed * 2685821657736338717u) >> 33) % limit;
}

static const char *one_of(const char *const *words, size_t count)
{
    return words[below(count)];
}
#define ONE_OF(words) one_of(words, sizeof(words) / sizeof((words)[0]))

static void draw_space(dt_strbuf *out)
{
    static const char *const spaces[] = {"", "", "", "", " ", "\n", "\t \r\n"};

    dt_strbuf_add_str(out, ONE_OF(spaces));
}

static void draw_string(dt_strbuf *out)
{
    static const char *const pieces[] = {"a",
                                         "b",
                                         "key",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\\b\\f\\n\\r\\t",
                                         "\\u0041",
                                         "\\u00e9",
                                         "\\u20AC",
                                         "\\ud83d\\ude00",
                                         "\xc3\xa9",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80",
                                         "\x7f",
                                         "\\u001f",
                                         "\\u0000",
                                         "\\ud800",
                                         "\\udc00",
                                         "\\ud800\\u0041",
                                         "\\x",
                                         "\\u12g4",
                                         "\n",
                                         "\x01",
                                         "\xff",
                                         "\xc0\x80",
                                         "\xed\xa0\x80",
                                         "\xf4\x90\x80\x80",
                                         "\xe2\x82",
                                         "\xc1\xbf"};
    size_t good = 15, count = below(4);

    dt_strbuf_add_char(out, '"');
    while (count-- > 0) /* now and then one that is refused */
        dt_strbuf_add_str(out, pieces[below(40) != 0 ? below(good) : below(30)]);
    dt_strbuf_add_char(out, '"');
}

static void draw_number(dt_strbuf *out)
{
    static const char *const odd[] = {"0",
                                      "-0",
                                      "-0.0",
                                      "1e5",
                                      "1E+5",
                                      "1e-5",
                                      "0.1",
                                      "1e308",
                                      "1e309",
                                      "-1e400",
                                      "4e-320",
                                      "1e-999",
                                      "00",
                                      "01",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "-",
                                      "+1",
                                      "1e+",
                                      "0x10",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "-9223372036854775808",
                                      "-9223372036854775809",
                                      "123456789012345678901234567890.5",
                                      "2.5000000000000000000001",
                                      "NaN",
                                      "Infinity"};
    char text[64];
    uint64_t bits =
        (uint64_t)below(1u << 31) << 33 ^ (uint64_t)below(1u << 31) << 10 ^ below(1u << 31);
    double value;

    memcpy(&value, &bits, sizeof(value));
    switch (below(4)) {
    case 0:
        dt_strbuf_add_str(out, ONE_OF(odd));
        break;
    case 1:
        snprintf(text, sizeof(text), "%.*g", 1 + (int)below(20), isfinite(value) ? value : 0.5);
        dt_strbuf_add_str(out, text);
        break;
    default:
        dt_strbuf_add_fmt(out, "%lld", (long long)bits >> below(63));
    }
}

static void draw_value(dt_strbuf *out, int depth)
{
    static const char *const words[] = {"true", "false", "null", "true", "nul", "True", "nulll"};
    size_t kind = below(depth > 0 ? 8 : 5), count;

    draw_space(out);
    if (kind < 2) {
        draw_number(out);
    } else if (kind < 4) {
        draw_string(out);
    } else if (kind == 4) {
        dt_strbuf_add_str(out, words[below(20) != 0 ? below(4) : below(7)]);
    } else {
        bool object = kind > 5;

        dt_strbuf_add_char(out, object ? '{' : '[');
        for (count = below(7); count > 0; count--) {
            if (object) {
                draw_space(out);
                draw_string(out);
                draw_space(out);
                dt_strbuf_add_char(out, ':');
            }
            draw_value(out, depth - 1);
            if (count > 1 || below(30) == 0)
                dt_strbuf_add_char(out, ',');
        }
        draw_space(out);
        dt_strbuf_add_char(out, object ? '}' : ']');
    }
    draw_space(out);
}

/* Some bytes changed, gone, or twice. */
static void damage(dt_strbuf *text)
{
    static const char bytes[] = "{}[]\",:\\ 0e.-u\x80";

    for (size_t i = 1 + below(3); i > 0 && text->length > 0; i--) {
        size_t at = below(text->length);

        if (below(2) == 0)
            text->data[at] = bytes[below(sizeof(bytes) - 1)];
        else if (below(2) == 0)
            dt_strbuf_remove_front(text, below(4) < text->length ? below(2) : 0);
        else
            text->length -= text->length - at < 4 ? text->length - at : 0;
    }
}

typedef void (*writer)(dt_strbuf *out, const json_t *json);

/* What base/json.h writes is what the library writes, but for what must not be shown. */
static void check_written(const json_t *json, const dt_strbuf *written, bool pretty)
{
#ifdef JANSSON_VERSION /* what stands in for it writes nothing itself */
    char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) |
                                      (pretty ? JSON_INDENT(2) : JSON_COMPACT));
    dt_strbuf expected;

    dt_strbuf_init(&expected);
    dt_strbuf_add_str(&expected, text);
    dt_display_escape_json(&expected, 0);
    dt_strbuf_add_str(&expected, pretty ? "\n" : "");
    DT_ASSERT(strcmp(expected.data, written->data) == 0);
    dt_strbuf_release(&expected);
    free(text);
#else
    (void)json, (void)written, (void)pretty;
#endif
}

static void show_written(const json_t *json, writer write, bool pretty)
{
    dt_strbuf written;

    dt_strbuf_init(&written);
    write(&written, json);
    check_written(json, &written, pretty);
    printf("%s ", written.data);
    dt_strbuf_release(&written);
}

static void show_value(const json_t *json)
{
    show_written(json, dt_json_write, false);
    show_written(json, dt_json_write_pretty, true);
    putchar('\n');
}

static void show(const char *bytes, size_t length, size_t flags)
{
    json_error_t error;
    json_t *json = json_loadb(bytes, length, flags, &error), *copy;

    if (json == NULL) {
        printf("refused in line %d\n", error.line);
        return;
    }
    copy = json_deep_copy(json);
    printf("%d %d ", (int)json_typeof(json), json_equal(json, copy));
    json_object_set_new(copy, "added",
                        json_pack("[{s:s%}, b, f]", "\xc3\xa9", "\xc3\xa9x", (size_t)2,
                                  json_is_array(json), 0.1 + (double)length));
    printf("%d ", json_equal(json, copy));
    show_value(copy);
    json_decref(copy);
    json_decref(json);
}

static void show_all(const char *bytes, size_t length)
{
    show(bytes, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY);
    show(bytes, length, 0);
}

/* So deep, and one deeper. */
static void show_depths(void)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (size_t depth = 2046; depth <= 2050; depth++) {
        dt_strbuf_reset(&text);
        for (size_t i = 0; i < depth; i++)
            dt_strbuf_add_str(&text, i % 2 == 0 ? "[" : "{\"a\":");
        dt_strbuf_add_str(&text, "1");
        for (size_t i = depth; i-- > 0;)
            dt_strbuf_add_str(&text, i % 2 == 0 ? "]" : "}");
        show_all(text.data, text.length);
    }
    dt_strbuf_release(&text);
}

/* Members set, replaced and deleted; items set and appended; what is refused. */
static void show_calls(void)
{
    json_t *object = json_object(), *array = json_array(), *value;
    const char *key;
    char name[16];
    size_t at;

    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "%zu", below(500));
        printf("%d", below(3) == 0 ? json_object_del(object, name)
                                   : json_object_set_new(object, name, json_integer(i)));
        printf("%d", json_array_append_new(array, json_pack("{s:i, s:s?}", name, i, "?", NULL)));
        printf("%d", json_array_set(array, below(4000), json_object_get(object, name)));
    }
    printf("\n%d %d %d %d %d\n", json_object_set_new(object, "\xff", json_null()),
           json_object_set_new(object, "none", NULL), json_array_append_new(array, NULL),
           json_object_set_new(array, "a", json_true()), json_array_extend(array, object));
    printf("%d %zu %zu\n", json_array_extend(array, array), json_array_size(array),
           json_object_size(object));
    json_object_foreach(object, key, value)
        printf("%s=%lld ", key, (long long)json_integer_value(value));
    json_array_foreach(array, at, value)
        printf("%zu:%d ", at, (int)json_typeof(value));
    printf("%d %d %d %d\n", json_string("\xc3") == NULL, json_real(NAN) == NULL,
           json_pack("{s:s, s:o}", "a", "\xff", "b", json_object()) == NULL,
           json_pack("{s:f}", "a", INFINITY) == NULL);
    value = json_sprintf("%s-%d", "text", 7);
    show_value(value);
    json_decref(value);
    json_decref(array);
    json_decref(object);
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    dt_strbuf text;
    size_t count;

    DT_ASSERT(argc >= 3);
    seed = strtoull(argv[1], NULL, 10) * 2 + 1;
    count = strtoull(argv[2], NULL, 10);
    dt_strbuf_init(&text);
    for (size_t i = 0; i < count; i++) {
        dt_strbuf_reset(&text);
        draw_value(&text, (int)below(5));
        if (below(3) == 0)
            damage(&text);
        show_all(text.data, text.length);
    }
    for (int i = 3; i < argc; i++) {
        if (dt_file_read(&text, argv[i], (size_t)1 << 30, &err) != DT_OK) {
            fprintf(stderr, "documents: %s\n", err.message);
            return 1;
        }
        show_all(text.data, text.length);
    }
    show_depths();
    show_calls();
    dt_strbuf_release(&text);
    return 0;
}
