/* resume_point: selects the checkpoint from which the next attempt resumes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint_support.h"
#include "runner/supervisor/supervisor.h"
#include "store_support.h"

static void save(const char *folder, int64_t step)
{
    fake_world world;

    fake_world_init(&world, folder); /* FOLDER/checkpoints */
    world.info.step = step;
    fake_must_save(&world);
    fake_world_release(&world);
}

static void tell(test_store *t, const char *path, int64_t step)
{
    dt_store_checkpoint row = {
        .attempt = 1, .step = step, .path = path, .digest = "", .valid_loss = NAN};

    assert_good(t, dt_store_checkpoint_add(t->store, "aa", &row, &t->err));
}

static int64_t newest(test_store *t, const char *parent)
{
    dt_resume_point found;

    assert_good(t, dt_run_newest_checkpoint(&found, t->store, "aa", parent, &t->arena, &t->err));
    assert_true((found.path != NULL) == (found.step > 0));
    return found.step;
}

static void test_only_checkpoints_in_the_history_are_resumed_from(void **state)
{
    test_store *t = *state;
    char parent[128];

    test_store_run(t, "aa", "n");
    snprintf(parent, sizeof(parent), "%s/checkpoints", t->folder);
    assert_int_equal(newest(t, parent), 0); /* the folder is missing */
    save(t->folder, 100);
    save(t->folder, 200);
    assert_int_equal(newest(t, parent), 0);
    tell(t, "/elsewhere/step-00000100", 100);
    assert_int_equal(newest(t, parent), 100); /* 200 was not reported */
    tell(t, "/elsewhere/step-00000200", 200);
    assert_int_equal(newest(t, parent), 200);
    tell(t, "/elsewhere/step-00000300", 300); /* reported, but missing */
    assert_int_equal(newest(t, parent), 200);
}

/* After resume --from 100, later checkpoints of attempt 1 are not used. */
static void test_what_a_later_attempt_left_behind_is_not_resumed_from(void **state)
{
    test_store *t = *state;
    int64_t attempt;
    char parent[128];

    test_store_run(t, "aa", "n");
    snprintf(parent, sizeof(parent), "%s/checkpoints", t->folder);
    save(t->folder, 100);
    save(t->folder, 200);
    tell(t, "/elsewhere/step-00000100", 100);
    tell(t, "/elsewhere/step-00000200", 200);
    assert_good(t, dt_store_run_set_state(t->store, "aa", DT_RUN_STOPPED, 4, "", 2, &t->err));
    assert_int_equal(newest(t, parent), 200);
    assert_good(t, dt_store_attempt_add(t->store, "aa", 100, 0, "{}", "h", 3, &attempt, &t->err));
    assert_int_equal(newest(t, parent), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_a_later_attempt_left_behind_is_not_resumed_from,
                                        test_store_setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_only_checkpoints_in_the_history_are_resumed_from,
                                        test_store_setup, test_store_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
