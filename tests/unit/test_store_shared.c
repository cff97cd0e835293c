/* Several processes on one store, and writers that are killed. */
#include "store_support.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PROCESSES    8
#define TRANSACTIONS 150
#define KILLS        100

/* Stores one journal event as the supervisor does: the row, its metric, the acknowledged number. */
static dt_status store_event(dt_store *store, const char *run, int64_t sequence, dt_error *err)
{
    dt_store_event event = {.attempt = 1,
                            .sequence = sequence,
                            .rank = 0,
                            .time_ms = 1,
                            .kind = "metrics",
                            .json = "{}"};
    dt_node node = {.name = "localhost", .state = "running", .acknowledged = sequence + 1};
    dt_status st = DT_OK;

    DT_TRY(dt_store_begin(store, err));
    DT_TRY(dt_store_event_add(store, run, &event, err));
    DT_TRY(dt_store_metric_add(store, run, 1, sequence, "loss", (double)sequence, 1, err));
    DT_TRY(dt_store_run_set_progress(store, run, sequence, 1, 1, 1, 1, err));
    DT_TRY(dt_store_node_set(store, run, 1, &node, err));
    DT_TRY(dt_store_commit(store, err));
out:
    dt_store_rollback(store);
    return st;
}

static dt_status write_much(const char *path, const char *id, dt_error *err)
{
    dt_run run = {.id = id, .name = "n", .steps_total = TRANSACTIONS};
    dt_store *store = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_store_open(&store, path, err));
    DT_TRY(dt_store_run_add(store, &run, err));
    DT_TRY(dt_store_run_set_state(store, id, DT_RUN_RUNNING, -1, "", 1, err));
    for (int64_t i = 0; i < TRANSACTIONS; i++)
        DT_TRY(store_event(store, id, i, err));
    DT_TRY(dt_store_run_set_state(store, id, DT_RUN_FINISHED, 0, "", 2, err));
out:
    dt_store_close(store);
    return st;
}

/* Reads until every writer has finished; each run must be consistent at any time. */
static dt_status read_much(const char *path, dt_error *err)
{
    double give_up = dt_clock_monotonic_seconds() + 250;
    int64_t count, finished = 0;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_run *runs;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_open(&store, path, err));
    while (finished < PROCESSES / 2) {
        dt_arena_reset(&arena);
        if (dt_clock_monotonic_seconds() > give_up)
            DT_THROW(err, DT_ERR_TIMEOUT, "the writers did not finish");
        DT_TRY(dt_store_run_list(store, &runs, &count, -1, 0, &arena, err));
        finished = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t points;
            dt_metric *list;

            finished += runs[i].state == DT_RUN_FINISHED;
            DT_TRY(dt_store_metric_list(store, &list, &points, runs[i].id, "loss", -1, 0, &arena,
                                        err));
            if (points > 0 && (list[points - 1].step != points - 1 ||
                               points < runs[i].step)) /* the points were read after the run */
                DT_THROW(err, DT_ERR_CORRUPT, "run '%s' has %lld points at step %lld", runs[i].id,
                         (long long)points, (long long)runs[i].step);
        }
    }
out:
    dt_store_close(store);
    dt_arena_release(&arena);
    return st;
}

static void test_eight_writers_and_readers_on_a_fresh_store_never_meet_a_lock(void **state)
{
    test_store *t = *state;
    pid_t children[PROCESSES];
    int go[2], status;

    dt_store_close(t->store);
    t->store = NULL;
    assert_int_equal(unlink(t->path), 0); /* all open and create it at once */
    assert_int_equal(pipe(go), 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char id[] = {'r', (char)('a' + i), '\0'}, byte;
            dt_error err = DT_ERROR_INIT;
            dt_status st;

            close(go[1]);
            if (read(go[0], &byte, 1) != 0)
                _exit(9);
            st = i % 2 == 0 ? write_much(t->path, id, &err) : read_much(t->path, &err);
            if (st != DT_OK)
                fprintf(stderr, "process %d: %s\n", i, err.message);
            _exit(st == DT_OK ? 0 : 1);
        }
    }
    close(go[0]);
    close(go[1]); /* starts them */
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM runs"), PROCESSES / 2);
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM events"),
                     PROCESSES / 2 * TRANSACTIONS);
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"),
                     PROCESSES / 2 * TRANSACTIONS);
}

/* Stores events from where the store ends, and reports each commit. */
static void write_until_killed(const char *path, int told)
{
    dt_error err = DT_ERROR_INIT;
    dt_store *store;
    dt_node *nodes;
    int64_t count;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_store_open(&store, path, &err) != DT_OK ||
        dt_store_node_list(store, &nodes, &count, "aa", 1, &arena, &err) != DT_OK)
        _exit(1);
    for (int64_t next = count > 0 ? nodes[0].acknowledged : 0;; next++) {
        if (store_event(store, "aa", next, &err) != DT_OK) {
            fprintf(stderr, "writer: %s\n", err.message);
            _exit(2);
        }
        if (write(told, &next, sizeof(next)) != (ssize_t)sizeof(next))
            _exit(3);
    }
}

static void test_a_writer_that_is_killed_a_hundred_times_loses_and_doubles_nothing(void **state)
{
    test_store *t = *state;
    int64_t last_told = -1, previous = -1;
    int told[2], status, moved = 0;
    unsigned seed = 7;

    test_store_run(t, "aa", "n");
    dt_store_close(t->store);
    t->store = NULL;
    assert_int_equal(pipe(told), 0);
    for (int round = 0; round < KILLS; round++) {
        int64_t acknowledged;
        struct timespec pause = {0, 0};
        pid_t child = fork();

        if (child == 0)
            write_until_killed(t->path, told[1]);
        /* waits until it writes, then for a random time of a few transactions */
        assert_int_equal(read(told[0], &last_told, sizeof(last_told)), sizeof(last_told));
        seed = seed * 1103515245 + 12345;
        pause.tv_nsec = (long)(seed >> 16) % 8000 * 1000;
        nanosleep(&pause, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        while (poll(&(struct pollfd){.fd = told[0], .events = POLLIN}, 1, 0) == 1)
            assert_int_equal(read(told[0], &last_told, sizeof(last_told)), sizeof(last_told));

        acknowledged = test_store_number(t, "SELECT acknowledged FROM nodes");
        assert_true(acknowledged > last_told); /* reported events are there */
        assert_int_equal(test_store_number(t, "SELECT count(*) FROM events"), acknowledged);
        assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), acknowledged);
        assert_int_equal(test_store_number(t, "SELECT max(step) FROM runs"), acknowledged - 1);
        moved += acknowledged > previous;
        previous = acknowledged;
    }
    assert_int_equal(moved, KILLS);
    assert_int_equal(
        test_store_number(t, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    assert_good(t, dt_store_open(&t->store, t->path, &t->err));
    close(told[0]);
    close(told[1]);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

/* A child changes the store after 100 ms: the wait ends long before its time; without a change it does not. */
static void test_a_wait_ends_when_another_process_changes_the_store(void **state)
{
    test_store *t = *state;
    double begun;
    pid_t child;
    int status;

    test_store_run(t, "r1", "gpt");
    (void)dt_store_wait(t->store, 0.05); /* takes what this process has changed */
    assert_false(dt_store_wait(t->store, 0.05));
    child = fork();
    if (child == 0) {
        dt_clock_sleep_seconds(0.1);
        execlp("sqlite3", "sqlite3", t->path, "UPDATE runs SET name = 'other' WHERE id = 'r1'",
               NULL);
        _exit(1);
    }
    begun = dt_clock_monotonic_seconds();
    while (!dt_store_wait(t->store, 120) && dt_clock_monotonic_seconds() - begun < 120)
        ;
    assert_true(dt_clock_monotonic_seconds() - begun < 100);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(test_store_number(t, "SELECT COUNT(*) FROM runs WHERE name = 'other'"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_a_wait_ends_when_another_process_changes_the_store),
        WITH_STORE(test_eight_writers_and_readers_on_a_fresh_store_never_meet_a_lock),
        WITH_STORE(test_a_writer_that_is_killed_a_hundred_times_loses_and_doubles_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
