/* The store is written on a thread: the loop runs while another process locks the store, and
 * everything is stored in order afterwards. Events reported as durable are on the disk: this
 * file wraps fdatasync. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/supervisor/collect/run_rows.h"
#include "store_support.h"

typedef struct watch {
    uv_loop_t loop;
    uv_timer_t pulse;
    dt_store_writer *writer;
    int64_t stored, until; /* the loop ends there */
    int64_t durable, until_durable;
    int pulses, rolled_back;
    dt_status failed;
} watch;

static void on_stored(void *context, int64_t batch)
{
    watch *all = context;

    assert_true(batch > all->stored);
    all->stored = batch;
    if (batch >= all->until)
        uv_stop(&all->loop);
}

static void on_failed(void *context, dt_status st, const dt_error *err)
{
    watch *all = context;

    all->failed = st;
    uv_stop(&all->loop);
}

static void on_settled(void *context, bool committed)
{
    watch *all = context;

    all->rolled_back += committed ? 0 : 1;
}

static const dt_store_writer_calls calls = {
    .stored = on_stored, .failed = on_failed, .settled = on_settled};

static void begin_with(watch *all, const test_store *t, const dt_store_writer_calls *given)
{
    *all = (watch){.until = INT64_MAX, .until_durable = INT64_MAX};
    uv_loop_init(&all->loop);
    assert_int_equal(dt_store_writer_open(&all->writer, t->path, &all->loop, given, all, NULL),
                     DT_OK);
}

static void begin(watch *all, const test_store *t)
{
    begin_with(all, t, &calls);
}

static void end(watch *all)
{
    dt_store_writer_close(all->writer);
    while (uv_run(&all->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&all->loop), 0);
}

static void await(watch *all, int64_t batch)
{
    all->until = batch;
    if (all->stored < batch)
        uv_run(&all->loop, UV_RUN_DEFAULT);
}

typedef struct point {
    const char *run, *name;
    int64_t step;
    dt_status st;
} point;

static dt_status write_point(dt_store *store, const void *what, dt_error *err)
{
    const point *one = what;

    if (one->st != DT_OK)
        return DT_FAIL(err, one->st, "as told");
    return dt_store_metric_add(store, one->run, 1, one->step, one->name, (double)one->step, 1, err);
}

static int64_t add(watch *all, const char *run, int64_t step, dt_status st)
{
    const point one = {.run = run,
                       .name = dt_store_writer_copy(all->writer, "loss", sizeof("loss")),
                       .step = step,
                       .st = st};

    dt_store_writer_add(all->writer, write_point, &one, sizeof(one));
    return dt_store_writer_submit(all->writer);
}

static int64_t count_points(dt_store *store, const char *run)
{
    dt_metric *points;
    dt_arena arena;
    int64_t count;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_store_metric_list(store, &points, &count, run, "loss", -1, 0, &arena, NULL),
                     DT_OK);
    dt_arena_release(&arena);
    return count;
}

static void on_pulse(uv_timer_t *timer)
{
    watch *all = timer->data;

    if (++all->pulses == 20)
        uv_stop(&all->loop);
}

static void test_the_loop_turns_while_the_store_is_held(void **state)
{
    test_store *t = *state;
    int64_t last = 0;
    watch all;

    test_store_run(t, "held", "held");
    begin(&all, t);
    assert_int_equal(dt_store_begin(t->store, NULL), DT_OK);
    for (int64_t step = 1; step <= 700; step++) /* more than fit into one transaction */
        last = add(&all, "held", step, DT_OK);
    uv_timer_init(&all.loop, &all.pulse);
    all.pulse.data = &all;
    uv_timer_start(&all.pulse, on_pulse, 1, 1);
    uv_run(&all.loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&all.pulse, NULL);
    assert_int_equal(all.stored, 0);
    assert_false(dt_store_writer_is_idle(all.writer));
    assert_true(dt_store_writer_waiting_bytes(all.writer) > 0);
    dt_store_rollback(t->store);
    await(&all, last);
    assert_true(dt_store_writer_is_idle(all.writer));
    assert_int_equal(dt_store_writer_waiting_bytes(all.writer), 0);
    assert_int_equal(count_points(t->store, "held"), 700);
    end(&all);
}

static void test_refused_variables_are_reported_once_and_not_stored(void **state)
{
    test_store *t = *state;
    watch all;

    test_store_run(t, "bad", "bad");
    begin(&all, t);
    await(&all, add(&all, "bad", 1, DT_OK));
    add(&all, "bad", 2, DT_ERR_NOT_FOUND);
    uv_run(&all.loop, UV_RUN_DEFAULT);
    assert_int_equal(all.failed, DT_ERR_NOT_FOUND);
    assert_int_equal(all.rolled_back, 1);
    assert_int_equal(count_points(t->store, "bad"), 1);
    end(&all);
}

static void test_close_lets_go_of_what_waits(void **state)
{
    test_store *t = *state;
    watch all;

    test_store_run(t, "closed", "closed");
    begin(&all, t);
    assert_int_equal(dt_store_begin(t->store, NULL), DT_OK);
    add(&all, "closed", 1, DT_OK);
    (void)dt_store_writer_copy(all.writer, "in a batch that is open", 24);
    end(&all);
    dt_store_rollback(t->store);
    assert_int_equal(count_points(t->store, "closed"), 0);
}

/* --- on the disk */

static atomic_bool disk_fails;
static atomic_int refused, synced; /* of the store's log */

static bool is_log(int fd)
{
    char name[64], path[128];
    ssize_t length;

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    length = readlink(name, path, sizeof(path));
    return length > 4 && memcmp(path + length - 4, "-wal", 4) == 0;
}

int fdatasync(int fd)
{
    bool log = is_log(fd);

    if (log && atomic_load(&disk_fails)) {
        atomic_fetch_add(&refused, 1);
        errno = EIO;
        return -1;
    }
    if (syscall(SYS_fdatasync, fd) != 0)
        return -1;
    if (log)
        atomic_fetch_add(&synced, 1);
    return 0;
}

static void on_durable(void *context, int64_t batch)
{
    watch *all = context;

    assert_true(batch > all->durable && batch <= all->stored);
    assert_true(atomic_load(&synced) > 0);
    all->durable = batch;
    if (batch >= all->until_durable)
        uv_stop(&all->loop);
}

static const dt_store_writer_calls durable_calls = {
    .stored = on_stored, .durable = on_durable, .failed = on_failed};

static void hurry_until_refused_twice(uv_timer_t *timer)
{
    watch *all = timer->data;

    dt_store_writer_request_sync(all->writer);
    if (atomic_load(&refused) >= 2)
        uv_stop(&all->loop);
}

static void test_durable_is_what_the_disk_has_taken(void **state)
{
    test_store *t = *state;
    int64_t last;
    watch all;

    atomic_store(&disk_fails, true);
    test_store_run(t, "safe", "safe");
    begin_with(&all, t, &durable_calls);
    add(&all, "safe", 1, DT_OK);
    last = add(&all, "safe", 2, DT_OK);
    await(&all, last);
    uv_timer_init(&all.loop, &all.pulse);
    all.pulse.data = &all;
    uv_timer_start(&all.pulse, hurry_until_refused_twice, 1, 1);
    uv_run(&all.loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&all.pulse, NULL);
    assert_int_equal(count_points(t->store, "safe"), 2); /* stored, */
    assert_int_equal(all.durable, 0);                    /* but not reported as durable */
    atomic_store(&synced, 0);
    atomic_store(&disk_fails, false);
    all.until_durable = last;
    dt_store_writer_request_sync(all.writer);
    uv_run(&all.loop, UV_RUN_DEFAULT);
    assert_int_equal(all.durable, last);
    assert_int_equal(all.failed, DT_OK);
    end(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_loop_turns_while_the_store_is_held,
                                        test_store_setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_refused_variables_are_reported_once_and_not_stored,
                                        test_store_setup, test_store_teardown),
        cmocka_unit_test_setup_teardown(test_close_lets_go_of_what_waits, test_store_setup,
                                        test_store_teardown),
        cmocka_unit_test_setup_teardown(test_durable_is_what_the_disk_has_taken, test_store_setup,
                                        test_store_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
