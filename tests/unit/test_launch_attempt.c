/* Two people resume one run: the second sees what the first did, and changes nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_support.h"

#include "base/file.h"
#include "recipes/fields/fields.h"
#include "runner/launch/attempt.h"

static test_store *t;

static void make_flight(dt_preflight *out)
{
    static const char *files[] = {"/nowhere.txt"};

    *out = (dt_preflight){0};
    dt_recipe_init(&out->recipe);
    out->recipe.name = "r";
    out->recipe.data.train = (dt_string_list){files, 1};
    out->recipe.ranks = 1;
    assert_good(t, dt_plan_make(&out->plan, &out->recipe, 1, &t->arena, &t->err));
}

static void resume_is_refused(const dt_run *seen)
{
    const dt_budget_place at = {0};
    dt_preflight flight;

    make_flight(&flight);
    assert_fails(t, dt_attempt_resume(t->store, seen, "", &at, &flight, &t->arena, &t->err),
                 DT_ERR_BUSY, "by another process");
}

static void test_a_second_resume_finds_the_first(void **state)
{
    dt_run seen, now;
    dt_strbuf text;
    int64_t added;
    char path[128];

    dt_strbuf_init(&text);
    test_store_run(t, "r", "r");
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_STOPPED, 4, "", 2, &t->err));
    assert_good(t, dt_store_run_find(t->store, &seen, "r", &t->arena, &t->err));

    /* the first person's resume */
    snprintf(path, sizeof(path), "%s/dtrun/runs/r/attempt-2", t->folder);
    assert_good(t, dt_file_make_dirs(path, 0700, &t->err));
    snprintf(path, sizeof(path), "%s/dtrun/runs/r/attempt-2/plan.json", t->folder);
    assert_good(t, dt_file_write_atomic(path, "theirs", 6, 0600, &t->err));
    assert_good(t, dt_store_attempt_add(t->store, "r", 0, 1, "{}", "", 3, &added, &t->err));

    resume_is_refused(&seen); /* while it runs */
    assert_good(t, dt_store_run_set_state(t->store, "r", DT_RUN_FINISHED, 0, "", 4, &t->err));
    resume_is_refused(&seen); /* after it has ended */
    assert_good(t, dt_file_read(&text, path, 4096, &t->err));
    assert_string_equal(text.data, "theirs");
    assert_good(t, dt_store_run_find(t->store, &now, "r", &t->arena, &t->err));
    assert_int_equal(now.attempt, 2);
    assert_int_equal(now.state, DT_RUN_FINISHED);
    dt_strbuf_release(&text);
}

static int setup(void **state)
{
    if (test_store_setup(state) != 0)
        return -1;
    t = *state;
    setenv("XDG_STATE_HOME", t->folder, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_resume_finds_the_first),
    };

    return cmocka_run_group_tests(tests, setup, test_store_teardown);
}
