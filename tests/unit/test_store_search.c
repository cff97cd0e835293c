#include "store_support.h"

#include <math.h>

#include "store/curve.h"
#include "store/run_value.h"

/* Three runs, the oldest first: "a" (lr 1e-3), "b" (lr 1e-4) and "c" (an imported run without a recipe). The loss of "b" falls
 * below that of "a" at step 20, and is not a number at its end. */
static void fill(test_store *t)
{
    static const struct {
        const char *id, *recipe, *group, *tags;
        double loss[3]; /* at steps 10, 20 and 30 */
    } runs[] = {{"aaaa", "{\"optimizer\":{\"lr\":0.001}}", "g", "keep", {3, 2, 1.5}},
                {"bbbb", "{\"optimizer\":{\"lr\":0.0001}}", "g", "keeper", {4, 1, NAN}},
                {"cccc", "{}", "", "old keep", {5, 4.5, 4}}};

    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        dt_run run = {.id = runs[i].id,
                      .name = runs[i].id,
                      .recipe_path = "",
                      .recipe_text = "",
                      .recipe_json = runs[i].recipe,
                      .recipe_hash = runs[i].id,
                      .group = runs[i].group,
                      .tags = runs[i].tags};

        assert_good(t, dt_store_run_add(t->store, &run, &t->err));
        for (int64_t at = 0; at < 3; at++)
            assert_good(t, dt_store_metric_add(t->store, run.id, 1, 10 * (at + 1), "acc/loss",
                                               runs[i].loss[at], 0, &t->err));
    }
}

/* Searches by filters, each like "loss<2", and an order; `wanted`: ids with a blank between. */
static void assert_search(test_store *t, dt_run_search search, const char *const *filters,
                          const char *wanted)
{
    dt_run_filter parsed[4];
    int64_t count, total;
    const char **ids;
    dt_strbuf got;

    dt_strbuf_init(&got);
    search.state = -1;
    search.filters = parsed;
    for (; filters != NULL && filters[search.filters_count] != NULL; search.filters_count++)
        assert_good(t, dt_run_filter_parse(&parsed[search.filters_count],
                                           filters[search.filters_count], &t->arena, &t->err));
    assert_good(t,
                dt_store_run_search(t->store, &ids, &count, &total, &search, &t->arena, &t->err));
    for (int64_t i = 0; i < count; i++)
        dt_strbuf_add_fmt(&got, "%s%s", i > 0 ? " " : "", ids[i]);
    assert_string_equal(got.data, wanted);
    dt_strbuf_release(&got);
}

static void test_runs_are_found_by_values_of_recipes_and_metrics(void **state)
{
    test_store *t = *state;

    fill(t);
    assert_search(t, (dt_run_search){0}, (const char *[]){"optimizer.lr>=1e-4", NULL}, "bbbb aaaa");
    assert_search(t, (dt_run_search){0}, (const char *[]){"optimizer.lr>1e-4", NULL}, "aaaa");
    assert_search(t, (dt_run_search){0}, (const char *[]){"acc/loss.min<1.2", NULL}, "bbbb");
    assert_search(t, (dt_run_search){0}, (const char *[]){"acc/loss.max>=4", "name!=c*", NULL},
                  "bbbb");
    assert_search(t, (dt_run_search){0}, (const char *[]){"acc/loss@20<=2", NULL}, "bbbb aaaa");
    assert_search(t, (dt_run_search){0}, (const char *[]){"acc/loss@25=4.5", NULL}, "cccc");
    assert_search(t, (dt_run_search){0}, (const char *[]){"acc/loss@9>0", NULL}, "");
}

static void test_an_order_by_a_value_has_unknown_values_last(void **state)
{
    test_store *t = *state;

    fill(t);
    assert_search(t, (dt_run_search){.sort = "optimizer.lr", .rising = true}, NULL,
                  "bbbb aaaa cccc");
    assert_search(t, (dt_run_search){.sort = "optimizer.lr"}, NULL, "aaaa bbbb cccc");
    assert_search(t, (dt_run_search){.sort = "acc/loss", .rising = true}, NULL, "aaaa cccc bbbb");
    assert_search(t,
                  (dt_run_search){.sort = "acc/loss.min", .rising = true, .limit = 1, .offset = 1},
                  NULL, "aaaa");
}

static void test_a_tag_is_a_whole_word_and_a_group_its_whole_name(void **state)
{
    test_store *t = *state;

    fill(t);
    assert_search(t, (dt_run_search){.tag = "keep"}, NULL, "cccc aaaa");
    assert_search(t, (dt_run_search){.group = "g"}, NULL, "bbbb aaaa");
    assert_search(t, (dt_run_search){.group = "g", .tag = "keep"},
                  (const char *[]){"optimizer.lr>0", NULL}, "aaaa");
}

static void test_an_archived_run_is_found_only_if_it_is_asked_for(void **state)
{
    test_store *t = *state;

    fill(t);
    assert_good(
        t, dt_store_run_label(t->store, "aaaa", &(dt_labels){.tags = "archived keep"}, &t->err));
    assert_good(
        t, dt_store_run_label(t->store, "bbbb", &(dt_labels){.tags = "not-archived"}, &t->err));
    assert_search(t, (dt_run_search){0}, NULL, "cccc bbbb");
    assert_search(t, (dt_run_search){.tag = "keep"}, NULL, "cccc");
    assert_search(t, (dt_run_search){.group = "g"}, NULL, "bbbb");
    assert_search(t, (dt_run_search){0}, (const char *[]){"optimizer.lr>1e-4", NULL}, "");
    assert_search(t, (dt_run_search){.limit = 1}, NULL, "cccc");
    assert_search(t, (dt_run_search){.archived = true}, NULL, "cccc bbbb aaaa");
    assert_search(t, (dt_run_search){.tag = "archived"}, NULL, "aaaa");
    assert_search(t, (dt_run_search){.archived = true, .tag = "keep"}, NULL, "cccc aaaa");
}

/* "aaaa" has ended twice, "bbbb" once and runs again, "cccc" is archived and waits: whatever is asked for, a page of one
 * run says how many there are on all pages. */
static void test_a_page_says_how_many_runs_there_are(void **state)
{
    static const int states[] = {
        -1, DT_RUN_SEARCH_ACTIVE, DT_RUN_QUEUED, DT_RUN_FAILED, DT_RUN_STOPPED, DT_RUN_RUNNING};
    static const char *const words[] = {NULL, "KEEP", "b"}, *const groups[] = {NULL, "g"};
    int64_t attempt, active = 0, all, count, total;
    test_store *t = *state;
    const char **ids;

    fill(t);
    for (const char *const *id = (const char *const[]){"aaaa", "bbbb", NULL}; *id != NULL; id++) {
        assert_good(t, dt_store_run_set_state(t->store, *id, DT_RUN_FAILED, 1, "", 50, &t->err));
        assert_good(t, dt_store_attempt_add(t->store, *id, 0, 9, "{}", "h", 60, &attempt, &t->err));
    }
    assert_good(t, dt_store_run_set_state(t->store, "aaaa", DT_RUN_STOPPED, 0, "", 70, &t->err));
    assert_good(t, dt_store_run_set_state(t->store, "bbbb", DT_RUN_RUNNING, 0, "", 70, &t->err));
    assert_good(
        t, dt_store_run_label(t->store, "cccc", &(dt_labels){.tags = "archived keep"}, &t->err));
    for (int i = 0; i < 6 * 3 * 2 * 2; i++) {
        dt_run_search search = {.state = states[i % 6],
                                .words = words[i / 6 % 3],
                                .group = groups[i / 18 % 2],
                                .archived = i / 36 % 2 != 0};

        assert_good(t,
                    dt_store_run_search(t->store, &ids, &all, &total, &search, &t->arena, &t->err));
        assert_int_equal(total, all);
        search.limit = 1;
        assert_good(
            t, dt_store_run_search(t->store, &ids, &count, &total, &search, &t->arena, &t->err));
        assert_int_equal(total, all);
        if (i == 1 + 36)
            active = all;
    }
    assert_int_equal(active, 2);
    assert_good(t, dt_store_run_count_active(t->store, &count, &t->err));
    assert_int_equal(count, active);
}

static void test_a_key_that_no_run_has_is_refused(void **state)
{
    dt_run_search search = {.state = -1, .sort = "optimizer.lrr"};
    test_store *t = *state;
    int64_t count, total;
    const char **ids;

    fill(t);
    assert_fails(t,
                 dt_store_run_search(t->store, &ids, &count, &total, &search, &t->arena, &t->err),
                 DT_ERR_USAGE, "no run has 'optimizer.lrr'");
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_runs_are_found_by_values_of_recipes_and_metrics),
        WITH_STORE(test_an_order_by_a_value_has_unknown_values_last),
        WITH_STORE(test_a_tag_is_a_whole_word_and_a_group_its_whole_name),
        WITH_STORE(test_an_archived_run_is_found_only_if_it_is_asked_for),
        WITH_STORE(test_a_page_says_how_many_runs_there_are),
        WITH_STORE(test_a_key_that_no_run_has_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
