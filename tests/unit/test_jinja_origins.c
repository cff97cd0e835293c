/* Every part of a text keeps its origin. Each case has a template, its text, and a map with one character a byte: '.' for
 * the template, a letter for a variable: a, b, c; upper case inside {% generation %}. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/jinja/jinja.h"

typedef struct origin_case {
    const char *template, *text, *map;
} origin_case;

/* a = "Hello, world", b = "ß\nx" (the first character has two bytes), c = {"n": 12, "s": "q\"", "l": [true, null]} */
static const origin_case cases[] = {
    {"<{{ a }}>", "<Hello, world>", ".aaaaaaaaaaaa."},
    {"{{ '<' + a + '>' }}", "<Hello, world>", ".aaaaaaaaaaaa."},
    {"{{ '<' ~ a ~ b }}", "<Hello, worldß\nx", ".aaaaaaaaaaaabbbb"},
    {"{{ a[:5] }}{{ a[-5:] }}", "Helloworld", "aaaaaaaaaa"},
    {"{{ ('-' ~ b ~ '-')[::-1] }}", "-x\nß-", ".bbbb."},
    {"{{ ('-' ~ b ~ '-')[1:2] }}", "ß", "bb"},
    {"{{ b | upper }}|{{ b.upper() }}", "SS\nX|SS\nX", "bbbb.bbbb"},
    {"{{ ('x' ~ a) | title }}", "Xhello, World", ".aaaaaaaaaaaa"},
    {"{{ a.replace('world', b) }}", "Hello, ß\nx", "aaaaaaabbbb"},
    {"{{ ('<' ~ a) | replace('l', '') }}", "<Heo, word", ".aaaaaaaaa"},
    {"{{ a.split(', ') | join('-') }}", "Hello-world", "aaaaa.aaaaa"},
    {"{{ (' ' ~ a ~ ' ') | trim }}", "Hello, world", "aaaaaaaaaaaa"},
    {"{{ a.strip('Hd') }}", "ello, worl", "aaaaaaaaaa"},
    {"{{ b | indent(2) }}", "ß\n  x", "bbb..b"},
    {"{{ [a, 'y'] | map('upper') | join }}", "HELLO, WORLDY", "aaaaaaaaaaaa."},
    {"{{ '%s!%d' % (a, c.n) }}", "Hello, world!12", "aaaaaaaaaaaa.cc"},
    {"{{ '{}!'.format(a) }}", "Hello, world!", "aaaaaaaaaaaa."},
    {"{{ c | tojson }}", "{\"n\": 12, \"s\": \"q\\\"\", \"l\": [true, null]}",
     "cccccccccccccccccccccccccccccccccccccccc"},
    {"{{ {'k': a, 'n': c.n} | tojson }}", "{\"k\": \"Hello, world\", \"n\": 12}",
     "......aaaaaaaaaaaaaa.......cc."},
    {"{{ {'k': c.l[0]} }}", "{'k': True}", ".ppp..cccc."},
    {"{{ [a] }}", "['Hello, world']", ".PPPPPPPPPPPPPP."},
    {"{% set x %}({{ a }}){% endset %}{{ x }}{{ x[1:3] }}", "(Hello, world)He", ".aaaaaaaaaaaa.aa"},
    {"{% macro m(x, y='?') %}{{ y }}{{ x }}{% endmacro %}{{ m(a) | upper }}", "?HELLO, WORLD",
     ".aaaaaaaaaaaa"},
    {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ a }}!{% endcall %}",
     "<Hello, world!>", ".aaaaaaaaaaaa.."},
    {"{% filter upper %}x{{ a }}{% endfilter %}", "XHELLO, WORLD", ".aaaaaaaaaaaa"},
    {"{% for k, v in c.items() %}{{ k }}{{ v if v is number }};{% endfor %}", "n12;s;l;",
     "ccc.c.c."},
    {"{{ c.n + 1 }}{{ c.n }}", "1312", "..cc"},
    {"{{ c.n | string }}{{ c.n | int }}{{ c.l | list }}", "1212[True, None]", "cccccccccccccccc"},
    {"{{ a | e }}{{ '<' | e }}", "Hello, world&lt;", "aaaaaaaaaaaa...."},
    {"{{ a | default('z') }}{{ d | default(b) }}", "Hello, worldß\nx", "aaaaaaaaaaaabbbb"},
    {"{{ a | truncate(8, true, '..', 0) }}", "Hello,..", "aaaaaa.."},
    {"{{ a | center(16) }}", "  Hello, world  ", "..aaaaaaaaaaaa.."},
    {"{{ a.partition(', ')[2] }}{{ a.removeprefix('Hell') }}", "worldo, world", "aaaaaaaaaaaaa"},
    {"{{ a | first }}{{ a | last }}{{ a[4] }}{% for x in a[:2] %}{{ x }}{% endfor %}", "HdoHe",
     "aaaaa"},
    {"x{% generation %}y{{ a[:2] }}{% endgeneration %}{{ a[:1] }}", "xyHeH", ".:AAa"},
    {"{% set t %}{% generation %}{{ a[:2] }}.{% endgeneration %}!{% endset %}{{ '<' ~ t }}",
     "<He.!", ".AA:."},
};

/* Returns the character of an origin; printed: 'P', and ':' for the template in {% generation %}. */
static char letter(uint32_t origin)
{
    uint32_t number = origin & DT_JINJA_ORIGIN;
    bool generated = (origin & DT_JINJA_GENERATED) != 0;

    if ((origin & DT_JINJA_PRINTED) != 0)
        return number == DT_JINJA_TEMPLATE ? 'p' : 'P';
    if (number == DT_JINJA_TEMPLATE)
        return generated ? ':' : '.';
    return (char)((generated ? 'A' : 'a') + (int)number - 1);
}

static void check(const origin_case *one)
{
    json_t *c = json_pack("{siss s[bn]}", "n", 12, "s", "q\"", "l", 1);
    dt_error err = DT_ERROR_INIT;
    dt_jinja_output out;
    dt_jinja *jinja;
    dt_jinja_run *run;
    char map[200];
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_jinja_parse(&jinja, one->template, strlen(one->template), "x", &err) != DT_OK)
        fail_msg("%s: %s", one->template, err.message);
    run = dt_jinja_begin(jinja, 0, &arena);
    dt_jinja_set(run, "a", dt_jinja_from_text(run, "Hello, world", 12, 1));
    dt_jinja_set(run, "b", dt_jinja_from_text(run, "\xc3\x9f\nx", 4, 2));
    dt_jinja_set(run, "c", dt_jinja_from_json(run, c, 3));
    if (dt_jinja_render(&out, run, &err) != DT_OK)
        fail_msg("%s: %s", one->template, err.message);
    assert_true(out.length < sizeof(map));
    for (size_t piece = 0, at = 0; at < out.length; at++) {
        while (out.pieces[piece].end <= at)
            piece++;
        map[at] = letter(out.pieces[piece].origin);
    }
    map[out.length] = '\0';
    if (strcmp(out.text, one->text) != 0 || strcmp(map, one->map) != 0)
        fail_msg("%s:\n%s\n%s\nexpected:\n%s\n%s", one->template, out.text, map, one->text,
                 one->map);
    dt_jinja_free(jinja);
    dt_arena_release(&arena);
    json_decref(c);
}

static void parts_keep_their_origin(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_keep_their_origin)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
