/* The table of metrics, and the pages that are generated from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/file.h"
#include "base/metric_kinds.h"

static void is_same(const char *path, void (*write)(dt_strbuf *), const char *remedy)
{
    dt_strbuf expected, found;

    dt_strbuf_init(&expected);
    dt_strbuf_init(&found);
    write(&expected);
    assert_int_equal(dt_file_read(&found, path, 1 << 20, NULL), DT_OK);
    if (strcmp(expected.data, found.data) != 0)
        fail_msg("%s is out of date: %s > %s", path, remedy, path);
    dt_strbuf_release(&expected);
    dt_strbuf_release(&found);
}

static void test_the_generated_pages_are_up_to_date(void **state)
{
    (void)state;
    is_same("docs/metrics.md", dt_metric_doc, "dtrun-metric-doc");
    is_same("web/page/metric_table.js", dt_metric_script, "dtrun-metric-doc --script");
}

static void test_every_metric_is_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < DT_METRIC_COUNT; i++) {
        const dt_metric_kind *kind = &dt_metric_kinds[i];

        assert_non_null(kind->name);
        assert_true(kind->title[0] != '\0' && kind->help[0] != '\0');
        assert_null(strpbrk(kind->title, "'\\|")); /* as it is inside a script and a table */
        assert_null(strchr(kind->help, '|'));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(kind->name, dt_metric_kinds[k].name);
    }
}

/* A user's metric and one of dtrun's own are judged by the same rule. */
static void test_the_direction_follows_from_the_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < DT_METRIC_COUNT; i++)
        if (dt_metric_kinds[i].better != DT_BETTER_NEITHER)
            assert_int_equal(dt_metric_more_is_better(dt_metric_kinds[i].name),
                             dt_metric_kinds[i].better == DT_BETTER_HIGH);
    assert_true(dt_metric_more_is_better("eval/accuracy"));
    assert_false(dt_metric_more_is_better("eval/perplexity"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_generated_pages_are_up_to_date),
        cmocka_unit_test(test_every_metric_is_described),
        cmocka_unit_test(test_the_direction_follows_from_the_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
