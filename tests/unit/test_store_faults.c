/* Every change of the store with memory or the disk failing at each call in turn: it reports failure and leaves
 * nothing, or reports success and is complete. The same for opening and backing up.
 *
 * Memory   SQLite's own allocations (SQLITE_CONFIG_MALLOC); all fail from number N on
 * Disk     a VFS over the usual one; all writes, syncs and extensions fail from number N on (SQLITE_FULL or
 *          SQLITE_IOERR_WRITE), until the fault ends
 */
#include "store_support.h"

#include <dirent.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"

/* --- the fault, and the call at which it starts */

static int64_t calls, fails_from = INT64_MAX; /* calls of the tested kind */
static enum { NOTHING, MEMORY, DISK_FULL, DISK_BROKEN } fault = NOTHING;

static bool fails_now(bool memory)
{
    if (fault == NOTHING || memory != (fault == MEMORY))
        return false;
    return calls++ >= fails_from;
}

static sqlite3_mem_methods usual_memory;

static void *allocate(int bytes)
{
    return fails_now(true) ? NULL : usual_memory.xMalloc(bytes);
}

static void *reallocate(void *memory, int bytes)
{
    return fails_now(true) ? NULL : usual_memory.xRealloc(memory, bytes);
}

typedef struct faulty_file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    sqlite3_file *true_file;
} faulty_file;

static sqlite3_vfs *usual_disk, faulty_disk;

static sqlite3_file *under(sqlite3_file *file)
{
    return ((faulty_file *)file)->true_file;
}

static int disk_error(void)
{
    return fault == DISK_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int file_close(sqlite3_file *file)
{
    return under(file)->pMethods->xClose(under(file));
}
static int file_read(sqlite3_file *file, void *out, int bytes, sqlite3_int64 at)
{
    return under(file)->pMethods->xRead(under(file), out, bytes, at);
}
static int file_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    return fails_now(false) ? disk_error()
                            : under(file)->pMethods->xWrite(under(file), from, bytes, at);
}
static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return under(file)->pMethods->xTruncate(under(file), size);
}
static int file_sync(sqlite3_file *file, int flags)
{
    return fails_now(false) ? SQLITE_IOERR_FSYNC : under(file)->pMethods->xSync(under(file), flags);
}
static int file_size(sqlite3_file *file, sqlite3_int64 *out)
{
    return under(file)->pMethods->xFileSize(under(file), out);
}
static int file_lock(sqlite3_file *file, int kind)
{
    return under(file)->pMethods->xLock(under(file), kind);
}
static int file_unlock(sqlite3_file *file, int kind)
{
    return under(file)->pMethods->xUnlock(under(file), kind);
}
static int file_reserved(sqlite3_file *file, int *out)
{
    return under(file)->pMethods->xCheckReservedLock(under(file), out);
}
static int file_control(sqlite3_file *file, int what, void *with)
{
    return under(file)->pMethods->xFileControl(under(file), what, with);
}
static int file_sector(sqlite3_file *file)
{
    return under(file)->pMethods->xSectorSize(under(file));
}
static int file_characteristics(sqlite3_file *file)
{
    return under(file)->pMethods->xDeviceCharacteristics(under(file));
}
static int shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return under(file)->pMethods->xShmMap(under(file), page, size, extend, out);
}
static int shm_lock(sqlite3_file *file, int at, int count, int flags)
{
    return under(file)->pMethods->xShmLock(under(file), at, count, flags);
}
static void shm_barrier(sqlite3_file *file)
{
    under(file)->pMethods->xShmBarrier(under(file));
}
static int shm_unmap(sqlite3_file *file, int remove_it)
{
    return under(file)->pMethods->xShmUnmap(under(file), remove_it);
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    faulty_file *f = (faulty_file *)file;
    int code;

    f->base.pMethods = NULL;
    f->true_file = (sqlite3_file *)(f + 1);
    code = usual_disk->xOpen(usual_disk, name, f->true_file, flags, out);
    if (f->true_file->pMethods == NULL)
        return code;
    f->methods = (sqlite3_io_methods){2,
                                      file_close,
                                      file_read,
                                      file_write,
                                      file_truncate,
                                      file_sync,
                                      file_size,
                                      file_lock,
                                      file_unlock,
                                      file_reserved,
                                      file_control,
                                      file_sector,
                                      file_characteristics,
                                      shm_map,
                                      shm_lock,
                                      shm_barrier,
                                      shm_unmap,
                                      NULL,
                                      NULL};
    f->base.pMethods = &f->methods;
    return code;
}

static int faults_begin(void **state)
{
    sqlite3_mem_methods ours;

    (void)state;
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* else small pieces are not allocated singly */
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual_memory) != SQLITE_OK)
        return -1;
    ours = usual_memory;
    ours.xMalloc = allocate;
    ours.xRealloc = reallocate;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) != SQLITE_OK ||
        sqlite3_initialize() != SQLITE_OK)
        return -1;
    usual_disk = sqlite3_vfs_find(NULL);
    faulty_disk = *usual_disk;
    faulty_disk.zName = "faulty";
    faulty_disk.pNext = NULL;
    faulty_disk.szOsFile = (int)sizeof(faulty_file) + usual_disk->szOsFile;
    faulty_disk.xOpen = disk_open;
    return sqlite3_vfs_register(&faulty_disk, 1) == SQLITE_OK ? 0 : -1;
}

/* --- operations */

typedef dt_status (*operation)(test_store *t);

static dt_status add_run(test_store *t)
{
    const dt_run run = {.id = "bb",
                        .name = "b",
                        .created_ms = 5,
                        .steps_total = 9,
                        .recipe_path = "",
                        .recipe_text = "",
                        .recipe_json = "{}",
                        .recipe_hash = "",
                        .tags = "x y"};

    return dt_store_run_add(t->store, &run, &t->err);
}

static dt_status add_points(test_store *t)
{
    dt_status st = dt_store_begin(t->store, &t->err);

    for (int64_t step = 200; st == DT_OK && step < 700; step++)
        st = dt_store_metric_add(t->store, "aa", 1, step, step % 3 == 0 ? "loss" : "other",
                                 step % 50 == 0 ? NAN : (double)step, step * 10, &t->err);
    if (st == DT_OK)
        st = dt_store_run_set_progress(t->store, "aa", 699, 1.5, NAN, 10, 7000, &t->err);
    if (st == DT_OK)
        st = dt_store_commit(t->store, &t->err);
    if (st != DT_OK)
        dt_store_rollback(t->store);
    return st;
}

static dt_status end_attempt(test_store *t)
{
    return dt_store_run_set_state(t->store, "aa", DT_RUN_FAILED, 1, "why", 8000, &t->err);
}

static dt_status add_attempt(test_store *t)
{
    int64_t attempt;

    return dt_store_attempt_add(t->store, "old", 50, 100, "{}", "h", 9000, &attempt, &t->err);
}

static dt_status set_node(test_store *t)
{
    const dt_node node = {.node = 0, .name = "gpu-a", .state = "ready", .acknowledged = 7};

    return dt_store_node_set(t->store, "aa", 1, &node, &t->err);
}

static dt_status add_event(test_store *t)
{
    const dt_store_event event = {.attempt = 1,
                                  .node = 0,
                                  .sequence = 3,
                                  .rank = 1,
                                  .time_ms = 5,
                                  .kind = "ready",
                                  .json = "{\"event\":\"ready\"}"};

    return dt_store_event_add(t->store, "aa", &event, &t->err);
}

static dt_status add_checkpoint(test_store *t)
{
    const dt_store_checkpoint c = {.attempt = 1,
                                   .step = 100,
                                   .bytes = 5,
                                   .time_ms = 6,
                                   .path = "/c/step-00000100",
                                   .digest = "d",
                                   .valid_loss = 2};

    return dt_store_checkpoint_add(t->store, "aa", &c, &t->err);
}

static dt_status label_run(test_store *t)
{
    const dt_labels labels = {.name = "new", .tags = "a", .note = "n", .group = "g"};

    return dt_store_run_label(t->store, "aa", &labels, &t->err);
}

static dt_status copy_past(test_store *t)
{
    return dt_store_run_copy_past(t->store, "old", "aa", 90, &t->err);
}

static dt_status remove_run(test_store *t)
{
    return dt_store_run_remove(t->store, "old", &t->err);
}

static dt_status set_plan(test_store *t)
{
    return dt_store_plan_set(t->store, "aa", 1, "{\"plan\":1}", &t->err);
}

static const struct {
    const char *name;
    operation run;
} operations[] = {
    {"a run is added", add_run},
    {"points and progress", add_points},
    {"an attempt ends", end_attempt},
    {"an attempt is added", add_attempt},
    {"a node is set", set_node},
    {"an event is added", add_event},
    {"a checkpoint is added", add_checkpoint},
    {"a run is labelled", label_run},
    {"a past is copied", copy_past},
    {"a run is removed", remove_run},
    {"a plan is kept", set_plan},
};

/* An active run, and one that has ended. */
static void fill(test_store *t)
{
    test_store_run(t, "old", "o");
    assert_good(t, dt_store_run_set_state(t->store, "old", DT_RUN_FINISHED, 0, "", 1, &t->err));
    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 0; step < 200; step++)
        assert_good(
            t, dt_store_metric_add(t->store, "aa", 1, step, "loss", (double)step, step, &t->err));
    assert_good(t, dt_store_commit(t->store, &t->err));
}

/* Returns the contents of a store as text, to be freed by the caller. */
static char *contents_of(const char *path)
{
    static const char tables[] = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT "
                                 "LIKE 'sqlite_%' ORDER BY name";
    sqlite3_stmt *names, *rows;
    dt_strbuf text;
    sqlite3 *db;
    char sql[200];

    dt_strbuf_init(&text);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, tables, -1, &names, NULL), SQLITE_OK);
    while (sqlite3_step(names) == SQLITE_ROW) {
        snprintf(sql, sizeof(sql), "SELECT * FROM \"%s\"", sqlite3_column_text(names, 0));
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
        while (sqlite3_step(rows) == SQLITE_ROW) {
            for (int i = 0; i < sqlite3_column_count(rows); i++) {
                const char *cell = (const char *)sqlite3_column_text(rows, i);

                dt_strbuf_add_fmt(&text, "%s|", cell != NULL ? cell : "NULL");
            }
            dt_strbuf_add_char(&text, '\n');
        }
        assert_int_equal(sqlite3_finalize(rows), SQLITE_OK);
    }
    sqlite3_finalize(names);
    sqlite3_close(db);
    return dt_strbuf_detach(&text);
}

static char *contents(const test_store *t)
{
    return contents_of(t->path);
}

static void assert_sound(test_store *t)
{
    const char **problems;
    int64_t count;

    assert_good(t, dt_store_verify(t->store, &problems, &count, &t->arena, &t->err));
    if (count > 0)
        print_error("%s\n", problems[0]);
    assert_int_equal(count, 0);
}

static void assert_nothing_partial(test_store *t)
{
    DIR *dir = opendir(t->folder);
    struct dirent *entry;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (strstr(entry->d_name, ".partial") != NULL)
            fail_msg("'%s' is left", entry->d_name);
    closedir(dir);
}

/* Runs one operation with the fault from call `from` on; false: it needed fewer calls. After the
 * fault, the same operation must succeed. */
static bool try_at(operation run, int kind, int64_t from)
{
    char *before, *after;
    bool reached;
    dt_status st;
    void *state;
    test_store *t;

    assert_int_equal(test_store_setup(&state), 0);
    t = state;
    fill(t);
    before = contents(t);
    calls = 0;
    fails_from = from;
    fault = kind;
    st = run(t);
    fault = NOTHING;
    reached = calls > from;
    after = contents(t);
    if (st != DT_OK) {
        assert_true(reached && t->err.message[0] != '\0');
        assert_string_equal(after, before);
        dt_error_clear(&t->err);
        assert_good(t, run(t));
    } else {
        assert_string_not_equal(after, before);
    }
    assert_sound(t);
    test_store_reopen(t);
    assert_sound(t);
    free(before);
    free(after);
    assert_int_equal(test_store_teardown(&state), 0);
    return reached;
}

/* Tries each call of an operation; of long ones all at the beginning, and then at growing distances. */
static void try_all(int kind)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        int64_t from = 0, places = 0;

        while (try_at(operations[i].run, kind, from)) {
            from += 1 + from / 8;
            places++;
        }
        print_message("  %s: %lld places\n", operations[i].name, (long long)places);
        assert_true(kind == MEMORY || places > 0);
    }
}

/* --- the file as a whole */

/* Opens a store that does not exist yet, with the fault from call `from` on. */
static bool open_at(int kind, int64_t from)
{
    bool reached;
    dt_status st;
    void *state;
    test_store *t;
    char *after;

    assert_int_equal(test_store_setup(&state), 0);
    t = state;
    dt_store_close(t->store);
    t->store = NULL;
    assert_int_equal(unlink(t->path), 0);
    calls = 0;
    fails_from = from;
    fault = kind;
    st = dt_store_open(&t->store, t->path, &t->err);
    fault = NOTHING;
    reached = calls > from;
    if (st != DT_OK) {
        assert_true(reached && t->err.message[0] != '\0' && t->store == NULL);
        dt_error_clear(&t->err);
        after = contents(t);
        assert_string_equal(after, "");
        free(after);
        assert_good(t, dt_store_open(&t->store, t->path, &t->err));
    }
    assert_sound(t);
    test_store_reopen(t);
    assert_nothing_partial(t);
    assert_int_equal(test_store_teardown(&state), 0);
    return reached;
}

/* A failed backup leaves no file, and does not change the store. */
static bool back_up_at(int kind, int64_t from)
{
    char *before, *after;
    char backup[128];
    bool reached;
    dt_status st;
    void *state;
    test_store *t;

    assert_int_equal(test_store_setup(&state), 0);
    t = state;
    fill(t);
    before = contents(t);
    snprintf(backup, sizeof(backup), "%s/copy", t->folder);
    calls = 0;
    fails_from = from;
    fault = kind;
    st = dt_store_backup(t->store, backup, &t->err);
    fault = NOTHING;
    reached = calls > from;
    assert_int_equal(access(backup, F_OK) == 0, st == DT_OK);
    assert_nothing_partial(t);
    if (st != DT_OK) {
        assert_true(reached && t->err.message[0] != '\0');
        dt_error_clear(&t->err);
        assert_good(t, dt_store_backup(t->store, backup, &t->err));
    }
    assert_sound(t);
    after = contents_of(backup);
    assert_string_equal(after, before);
    free(before);
    free(after);
    assert_int_equal(test_store_teardown(&state), 0);
    return reached;
}

static void try_file(const char *name, bool (*at)(int kind, int64_t from))
{
    static const int kinds[] = {MEMORY, DISK_FULL, DISK_BROKEN};

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        int64_t from = 0, places = 0;

        while (at(kinds[k], from)) {
            from += 1 + from / 4;
            places++;
        }
        print_message("  %s: %lld places\n", name, (long long)places);
        assert_true(places > 0);
    }
}

static void test_a_store_that_cannot_be_made_now_can_be_later(void **state)
{
    (void)state;
    try_file("a store is made", open_at);
}

static void test_a_backup_is_whole_or_not_there(void **state)
{
    (void)state;
    try_file("a store is backed up", back_up_at);
}

static void test_without_memory_a_change_is_whole_or_not_there(void **state)
{
    (void)state;
    try_all(MEMORY);
}

static void test_on_a_full_disk_a_change_is_whole_or_not_there(void **state)
{
    (void)state;
    try_all(DISK_FULL);
}

static void test_on_a_broken_disk_a_change_is_whole_or_not_there(void **state)
{
    (void)state;
    try_all(DISK_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_memory_a_change_is_whole_or_not_there),
        cmocka_unit_test(test_on_a_full_disk_a_change_is_whole_or_not_there),
        cmocka_unit_test(test_on_a_broken_disk_a_change_is_whole_or_not_there),
        cmocka_unit_test(test_a_store_that_cannot_be_made_now_can_be_later),
        cmocka_unit_test(test_a_backup_is_whole_or_not_there),
    };

    return cmocka_run_group_tests(tests, faults_begin, NULL);
}
