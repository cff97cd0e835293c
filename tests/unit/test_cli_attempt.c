/* Two people who resume one run: the second finds what the first did, and changes none of it. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "recipes/fields.h"
#include "runner/cli/attempt.h"

static char top[64];
static dt_store *store;
static dt_arena arena;

static void make_flight(dt_preflight *out)
{
    static const char *files[] = {"/nowhere.txt"};

    *out = (dt_preflight){0};
    dt_recipe_init(&out->recipe);
    out->recipe.name = "r";
    out->recipe.data.train = (dt_string_list){files, 1};
    out->recipe.ranks = 1;
    assert_int_equal(dt_plan_make(&out->plan, &out->recipe, 1, &arena, NULL), DT_OK);
}

static void resume_is_refused(const dt_run *seen)
{
    dt_error err = DT_ERROR_INIT;
    dt_preflight flight;

    make_flight(&flight);
    assert_int_equal(dt_attempt_resume(store, seen, "", 0, &flight, &arena, &err), DT_ERR_BUSY);
    assert_non_null(strstr(err.message, "by somebody else"));
}

static void test_another_was_quicker(void **state)
{
    const dt_run row = {.id = "r",
                        .name = "r",
                        .created_ms = 1,
                        .steps_total = 1,
                        .loss = NAN,
                        .valid_loss = NAN,
                        .tokens_per_second = NAN,
                        .recipe_path = "",
                        .recipe_text = "",
                        .recipe_json = "{}",
                        .recipe_hash = "",
                        .exit_code = -1,
                        .reason = ""};
    dt_run seen, now;
    dt_strbuf text;
    int64_t added;
    char path[128];

    dt_strbuf_init(&text);
    assert_int_equal(dt_store_run_add(store, &row, NULL), DT_OK);
    assert_int_equal(dt_store_run_set_state(store, "r", DT_RUN_STOPPED, 4, "", 2, NULL), DT_OK);
    assert_int_equal(dt_store_run_find(store, &seen, "r", &arena, NULL), DT_OK);

    /* the other one */
    snprintf(path, sizeof(path), "%s/dtrun/runs/r/attempt-2", top);
    assert_int_equal(dt_file_make_dirs(path, 0700, NULL), DT_OK);
    snprintf(path, sizeof(path), "%s/dtrun/runs/r/attempt-2/plan.json", top);
    assert_int_equal(dt_file_write_atomic(path, "theirs", 6, 0600, NULL), DT_OK);
    assert_int_equal(dt_store_attempt_add(store, "r", 0, 1, "{}", "", 3, &added, NULL), DT_OK);

    resume_is_refused(&seen); /* while it runs */
    assert_int_equal(dt_store_run_set_state(store, "r", DT_RUN_FINISHED, 0, "", 4, NULL), DT_OK);
    resume_is_refused(&seen); /* and once it has ended */
    assert_int_equal(dt_file_read(&text, path, 4096, NULL), DT_OK);
    assert_string_equal(text.data, "theirs");
    assert_int_equal(dt_store_run_find(store, &now, "r", &arena, NULL), DT_OK);
    assert_int_equal(now.attempt, 2);
    assert_int_equal(now.state, DT_RUN_FINISHED);
    dt_strbuf_release(&text);
}

static int setup(void **state)
{
    snprintf(top, sizeof(top), "/tmp/dtrun-attempt.XXXXXX");
    assert_non_null(mkdtemp(top));
    setenv("XDG_STATE_HOME", top, 1);
    dt_arena_init(&arena, 0);
    assert_int_equal(dt_store_open(&store, NULL, NULL), DT_OK);
    return 0;
}

static int teardown(void **state)
{
    dt_store_close(store);
    dt_arena_release(&arena);
    return dt_file_remove_tree(top, NULL) != DT_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_was_quicker),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
