/* utf8: decoding and encoding, and text from outside in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/display.h"
#include "base/json.h"

static void test_every_code_point_comes_back(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < DT_UTF8_CODES; code++) {
        char bytes[DT_UTF8_MAX];
        uint32_t back = 0;
        size_t length;

        if (code >= 0xd800 && code < 0xe000)
            continue;
        length = dt_utf8_encode(bytes, code);
        assert_int_equal(dt_utf8_decode(&back, (unsigned char *)bytes, length), length);
        assert_int_equal(back, code);
        assert_int_equal(dt_utf8_decode(&back, (unsigned char *)bytes, length - 1), 0);
    }
}

static void test_refuses_what_has_another_spelling(void **state)
{
    static const char *const broken[] = {
        "\x80",             /* a tail without a head */
        "\xc0\x80",         /* over-long NUL */
        "\xc1\xbf",         /* over-long two */
        "\xe0\x9f\xbf",     /* over-long three */
        "\xf0\x8f\xbf\xbf", /* over-long four */
        "\xed\xa0\x80",     /* a surrogate */
        "\xf4\x90\x80\x80", /* beyond U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3\x28",
        "\xe2\x28\xa1",
    };
    uint32_t code;

    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        assert_int_equal(dt_utf8_decode(&code, (const unsigned char *)broken[i], strlen(broken[i])),
                         0);
}

static void test_json_takes_any_bytes(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"f\xfcr", "f\xef\xbf\xbdr"},                             /* of another character set */
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* cut inside a character */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *json = dt_json_text(cases[i][0]);

        assert_non_null(json);
        assert_string_equal(json_string_value(json), cases[i][1]);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_comes_back),
        cmocka_unit_test(test_refuses_what_has_another_spelling),
        cmocka_unit_test(test_json_takes_any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
