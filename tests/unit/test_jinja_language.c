/* Templates give what Jinja gives (tests/golden/jinja/cases.json, made by tests/golden/make_jinja_fixture.py), and
 * errors name the template, the line and the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/jinja/jinja.h"

/* Renders a template with a JSON object of variables. */
static dt_status render(dt_jinja_output *out, dt_arena *arena, const char *text, size_t length,
                        json_t *variables, dt_error *err)
{
    dt_jinja *jinja = NULL;
    dt_status st = DT_OK;
    const char *name;
    dt_jinja_run *run;
    json_t *value;

    DT_TRY(dt_jinja_parse(&jinja, text, length, "x.jinja", err));
    run = dt_jinja_begin(jinja, 1700000000, arena);
    json_object_foreach(variables, name, value)
        dt_jinja_set(run, name, dt_jinja_from_json(run, value, 1));
    DT_TRY(dt_jinja_render(out, run, err));
out:
    dt_jinja_free(jinja);
    return st;
}

static void check(const json_t *one, json_t *variables)
{
    const json_t *template = json_object_get(one, "template"), *text = json_object_get(one, "text");
    dt_error err = DT_ERROR_INIT;
    dt_jinja_output out;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = render(&out, &arena, json_string_value(template), json_string_length(template), variables,
                &err);
    if (text == NULL && st == DT_OK)
        fail_msg("%s: Jinja fails with %s", json_string_value(template),
                 json_string_value(json_object_get(one, "fails")));
    if (text != NULL && st != DT_OK)
        fail_msg("%s: %s", json_string_value(template), err.message);
    if (text != NULL && (out.length != json_string_length(text) ||
                         memcmp(out.text, json_string_value(text), out.length) != 0))
        fail_msg("%s: '%s', Jinja: '%s'", json_string_value(template), out.text,
                 json_string_value(text));
    dt_arena_release(&arena);
}

static void equals_jinja(void **state)
{
    dt_error err = DT_ERROR_INIT;
    json_t *file = NULL, *one;
    dt_strbuf text;
    size_t i;

    (void)state;
    dt_strbuf_init(&text);
    assert_int_equal(dt_file_read(&text, "tests/golden/jinja/cases.json", 1 << 20, &err), DT_OK);
    assert_int_equal(dt_json_parse_with_nul(&file, text.data, text.length, "cases", &err), DT_OK);
    assert_true(json_array_size(json_object_get(file, "cases")) > 500);
    json_array_foreach(json_object_get(file, "cases"), i, one)
        check(one, json_object_get(file, "variables"));
    json_decref(file);
    dt_strbuf_release(&text);
}

static void refuse(const char *template, dt_status status, const char *message)
{
    json_t *variables = json_pack("{s[iii]s{ss}}", "l", 1, 2, 3, "m", "role", "user");
    dt_error err = DT_ERROR_INIT;
    dt_jinja_output out;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(render(&out, &arena, template, strlen(template), variables, &err), status);
    assert_string_equal(err.message, message);
    dt_arena_release(&arena);
    json_decref(variables);
}

static void errors_name_template_line_and_reason(void **state)
{
    (void)state;
    refuse("a\n\n{{ m.content.strip() }}", DT_ERR_USAGE,
           "'x.jinja', line 3: 'dict object' has no attribute 'content'");
    refuse("{{ nobody.x }}", DT_ERR_USAGE, "'x.jinja', line 1: 'nobody' is undefined");
    refuse("{% if m.role != 'system' %}\n{{ raise_exception('Roles must alternate!') }}{% endif %}",
           DT_ERR_USAGE, "'x.jinja', line 2: Roles must alternate!");
    refuse("\n{% include 'y' %}", DT_ERR_UNSUPPORTED,
           "'x.jinja', line 2: unsupported tag 'include'");
    refuse("\n{{ l | pprint }}", DT_ERR_UNSUPPORTED,
           "'x.jinja', line 2: unsupported filter 'pprint'");
    refuse("{{ l | nothing }}", DT_ERR_UNSUPPORTED,
           "'x.jinja', line 1: No filter named 'nothing'.");
    refuse("\n\n{% for x in l %}{{ x }}", DT_ERR_UNSUPPORTED,
           "'x.jinja', line 3: expected 'endfor', got the end of the template");
    refuse("{{ 'x' + 1 }}", DT_ERR_USAGE,
           "'x.jinja', line 1: can only concatenate str (not \"int\") to str");
    refuse("{{ 9223372036854775807 + 1 }}", DT_ERR_USAGE,
           "'x.jinja', line 1: an integer of more than 64 bits");
    refuse("{{ l.append(4) }}", DT_ERR_USAGE,
           "'x.jinja', line 1: access to attribute 'append' of 'list' object is unsafe.");
    refuse("{{ '<' + ('x' | safe) }}", DT_ERR_USAGE,
           "'x.jinja', line 1: unsupported: '+' of a string and the result of 'safe' or 'escape'");
}

static void endless_templates_are_ended(void **state)
{
    (void)state;
    refuse("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
           DT_ERR_USAGE, "'x.jinja', line 1: the template takes too many steps");
    refuse("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", DT_ERR_USAGE,
           "'x.jinja', line 1: calls, loops or values are nested too deeply");
    refuse("{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for a in range(60) %}"
           "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
           DT_ERR_USAGE, "'x.jinja', line 1: the template takes too much memory");
    refuse("{{ 'x' * 1000000000000 }}", DT_ERR_USAGE,
           "'x.jinja', line 1: the template takes too many steps");
    refuse("{{ range(100001) }}", DT_ERR_USAGE,
           "'x.jinja', line 1: Range too big: at most 100000 items");
    refuse(
        "{% set ns = namespace(x=[]) %}{% for a in range(2000) %}{% set ns.x = [ns.x] %}{% endfor "
        "%}{{ ns.x }}",
        DT_ERR_USAGE, "'x.jinja', line 1: calls, loops or values are nested too deeply");
}

static void deep_templates_are_refused(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_jinja *jinja;
    dt_strbuf text;

    (void)state;
    dt_strbuf_init(&text);
    for (int i = 0; i < 5000; i++)
        dt_strbuf_add_str(&text, "{% if x %}");
    assert_int_equal(dt_jinja_parse(&jinja, text.data, text.length, "deep", &err),
                     DT_ERR_UNSUPPORTED);
    assert_string_equal(err.message, "'deep', line 1: the template is nested too deeply");
    dt_strbuf_reset(&text);
    dt_error_clear(&err);
    dt_strbuf_add_str(&text, "{{ ");
    for (int i = 0; i < 5000; i++)
        dt_strbuf_add_str(&text, "not ");
    dt_strbuf_add_str(&text, "x }}");
    assert_int_equal(dt_jinja_parse(&jinja, text.data, text.length, "deep", &err),
                     DT_ERR_UNSUPPORTED);
    dt_strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_jinja),
                                       cmocka_unit_test(errors_name_template_line_and_reason),
                                       cmocka_unit_test(endless_templates_are_ended),
                                       cmocka_unit_test(deep_templates_are_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
