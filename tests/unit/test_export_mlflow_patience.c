/* When 'export --to mlflow --follow' gives up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/export/mlflow.h"

#define MOST DT_MLFLOW_REFUSED_SECONDS_MOST

static void test_busy_never_ends(void **state)
{
    dt_mlflow_patience patience = {0};

    (void)state;
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_BUSY, 1));
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_BUSY, 1e9));
}

static void test_lasting_refusal_ends(void **state)
{
    dt_mlflow_patience patience = {0};

    (void)state;
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_USAGE, 7));
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_CORRUPT, 7 + MOST - 1));
    assert_true(dt_mlflow_gives_up(&patience, DT_ERR_NOT_FOUND, 7 + MOST));
}

/* A time without answers does not reset the count of refusals; a successful round does. */
static void test_success_alone_forgives(void **state)
{
    dt_mlflow_patience patience = {0};

    (void)state;
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_USAGE, 0));
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_BUSY, MOST));
    assert_true(dt_mlflow_gives_up(&patience, DT_ERR_USAGE, MOST + 1));
    assert_false(dt_mlflow_gives_up(&patience, DT_OK, MOST + 2));
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_USAGE, MOST + 3));
    assert_false(dt_mlflow_gives_up(&patience, DT_ERR_USAGE, MOST + 4));
}

static void test_own_failure_ends_at_once(void **state)
{
    dt_mlflow_patience patience = {0};

    (void)state;
    assert_true(dt_mlflow_gives_up(&patience, DT_ERR_IO, 0));
    assert_true(dt_mlflow_gives_up(&patience, DT_ERR_NOMEM, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busy_never_ends),
        cmocka_unit_test(test_lasting_refusal_ends),
        cmocka_unit_test(test_success_alone_forgives),
        cmocka_unit_test(test_own_failure_ends_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
