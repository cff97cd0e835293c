/* Opening stores, and messages about files that are not stores. */
#include "store_support.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "store/store_int.h"

static void close_store(test_store *t)
{
    dt_store_close(t->store);
    t->store = NULL;
}

static dt_status open_again(test_store *t)
{
    close_store(t);
    return dt_store_open(&t->store, t->path, &t->err);
}

static int mode_of(const char *path, const char *suffix)
{
    char name[128];
    struct stat info;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &info) == 0 ? (int)(info.st_mode & 0777) : -1;
}

static void test_the_store_is_private_with_any_umask(void **state)
{
    test_store *t = *state;
    mode_t old = umask(0);

    close_store(t);
    assert_int_equal(unlink(t->path), 0);
    assert_good(t, open_again(t));
    test_store_run(t, "aa", "n");
    assert_int_equal(mode_of(t->path, ""), 0600);
    assert_int_equal(mode_of(t->path, "-wal"), 0600);
    assert_int_equal(mode_of(t->path, "-shm"), 0600);

    close_store(t);
    assert_int_equal(chmod(t->path, 0664), 0);
    assert_good(t, open_again(t));
    assert_int_equal(mode_of(t->path, ""), 0600);
    umask(old);
}

static void test_it_is_in_wal_mode_with_the_version_of_the_schema(void **state)
{
    test_store *t = *state;

    assert_int_equal(test_store_number(t, "PRAGMA user_version"), DT_STORE_VERSION);
    assert_int_equal(test_store_number(t, "PRAGMA application_id"), DT_STORE_APPLICATION_ID);
    assert_int_equal(test_store_number(t, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"),
                     1);
}

static void test_the_default_place_is_the_state_folder(void **state)
{
    test_store *t = *state;
    char wanted[128];

    close_store(t);
    assert_int_equal(setenv("XDG_STATE_HOME", t->folder, 1), 0);
    assert_good(t, dt_store_open(&t->store, NULL, &t->err));
    snprintf(wanted, sizeof(wanted), "%s/dtrun/store.db", t->folder);
    assert_string_equal(t->store->path, wanted);
    assert_int_equal(mode_of(wanted, ""), 0600);
    unsetenv("XDG_STATE_HOME");
}

static void test_another_version_is_refused_and_left_alone(void **state)
{
    test_store *t = *state;

    close_store(t);
    test_store_run_sql(t, "PRAGMA user_version = 99");
    assert_fails(t, open_again(t), DT_ERR_UNSUPPORTED, "another dtrun wrote it (version 99");
    assert_null(t->store);
    assert_int_equal(test_store_number(t, "PRAGMA user_version"), 99);
}

static void test_a_version_that_never_was_is_called_damaged(void **state)
{
    test_store *t = *state;

    close_store(t);
    test_store_run_sql(t, "PRAGMA user_version = -1");
    assert_fails(t, open_again(t), DT_ERR_CORRUPT, "is damaged, its version is -1");
    test_store_run_sql(t, "PRAGMA user_version = 0");
    assert_fails(t, open_again(t), DT_ERR_CORRUPT, "is damaged, its version is 0");
}

static void test_another_programs_database_is_refused_and_left_alone(void **state)
{
    test_store *t = *state;

    close_store(t);
    assert_int_equal(unlink(t->path), 0);
    test_store_run_sql(t, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (42)");
    assert_fails(t, open_again(t), DT_ERR_CORRUPT, "belongs to another program");
    assert_int_equal(test_store_number(t, "SELECT x FROM theirs"), 42);
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM sqlite_schema"), 1);
    assert_int_equal(
        test_store_number(t, "SELECT journal_mode = 'delete' FROM pragma_journal_mode"), 1);
}

static void write_file(test_store *t, const void *bytes, size_t length)
{
    close_store(t);
    assert_int_equal(unlink(t->path), 0);
    assert_good(t, dt_file_write_atomic(t->path, bytes, length, 0600, &t->err));
}

static void test_a_file_that_is_not_a_database_is_refused(void **state)
{
    test_store *t = *state;
    char text[8192];

    memset(text, 'x', sizeof(text));
    write_file(t, text, sizeof(text));
    assert_fails(t, open_again(t), DT_ERR_CORRUPT, "is not a run store");
    write_file(t, "short", 5);
    assert_fails(t, open_again(t), DT_ERR_CORRUPT, "is not a run store");
}

static void test_an_empty_file_becomes_a_store(void **state)
{
    test_store *t = *state;

    write_file(t, "", 0);
    assert_good(t, open_again(t));
    test_store_run(t, "aa", "n");
}

static void test_what_is_in_the_way_is_named(void **state)
{
    test_store *t = *state;
    char path[160];

    close_store(t);
    assert_fails(t, dt_store_open(&t->store, t->folder, &t->err), DT_ERR_IO, "is not a file");
    snprintf(path, sizeof(path), "%s/missing/store.db", t->folder);
    assert_fails(t, dt_store_open(&t->store, path, &t->err), DT_ERR_IO, "No such file");
    snprintf(path, sizeof(path), "%s/store.db", t->path);
    assert_fails(t, dt_store_open(&t->store, path, &t->err), DT_ERR_IO, "Not a directory");
}

static void test_a_folder_of_somebody_else_is_named(void **state)
{
    test_store *t = *state;
    int status;
    pid_t child;

    if (geteuid() != 0)
        skip();
    close_store(t);
    child = fork();
    if (child == 0) {
        dt_error err = DT_ERROR_INIT;
        dt_status st;

        if (setuid(65534) != 0)
            _exit(9);
        st = dt_store_open(&t->store, t->path, &err);
        _exit(st == DT_ERR_IO && strstr(err.message, "Permission denied") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Adds rows for a few hundred pages. */
static void fill(test_store *t)
{
    char json[1024];
    dt_store_event event = {.attempt = 1, .rank = -1, .kind = "k", .json = json};

    memset(json, 'j', sizeof(json) - 1);
    json[sizeof(json) - 1] = '\0';
    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (event.sequence = 0; event.sequence < 500; event.sequence++) {
        assert_good(t, dt_store_event_add(t->store, "aa", &event, &t->err));
        assert_good(t,
                    dt_store_metric_add(t->store, "aa", 1, event.sequence, "loss", 1, 1, &t->err));
    }
    assert_good(t, dt_store_commit(t->store, &t->err));
}

/* Opens the store and reads everything; returns the first error. */
static dt_status read_all(test_store *t)
{
    dt_store_event *events;
    dt_metric *points;
    dt_status st = DT_OK;
    int64_t count;
    dt_run *runs;

    DT_TRY(dt_store_open(&t->store, t->path, &t->err));
    DT_TRY(dt_store_run_list(t->store, &runs, &count, -1, 0, &t->arena, &t->err));
    DT_TRY(dt_store_event_list(t->store, &events, &count, "aa", 0, 0, &t->arena, &t->err));
    DT_TRY(dt_store_metric_list(t->store, &points, &count, "aa", NULL, -1, 0, &t->arena, &t->err));
out:
    return st;
}

static void test_a_file_that_is_cut_short_is_called_damaged(void **state)
{
    test_store *t = *state;
    struct stat info;

    fill(t);
    close_store(t);
    assert_int_equal(stat(t->path, &info), 0);
    assert_int_equal(truncate(t->path, info.st_size / 2), 0);
    assert_fails(t, read_all(t), DT_ERR_CORRUPT, "is damaged");
}

static void test_overwritten_pages_never_do_worse_than_an_error(void **state)
{
    test_store *t = *state;
    unsigned seed = 12345, errors = 0;
    struct stat info;
    char page[512];
    dt_strbuf good;

    fill(t);
    close_store(t);
    dt_strbuf_init(&good);
    assert_good(t, dt_file_read(&good, t->path, 64u << 20, &t->err));
    assert_int_equal(stat(t->path, &info), 0);
    for (int round = 0; round < 40; round++) {
        int fd;

        assert_good(t, dt_file_write_atomic(t->path, good.data, good.length, 0600, &t->err));
        fd = open(t->path, O_WRONLY);
        for (size_t i = 0; i < sizeof(page); i++) {
            seed = seed * 1103515245 + 12345;
            page[i] = (char)(seed >> 16);
        }
        seed = seed * 1103515245 + 12345;
        assert_int_equal(pwrite(fd, page, sizeof(page), (off_t)(seed >> 8) % info.st_size),
                         sizeof(page));
        close(fd);
        errors += read_all(t) != DT_OK;
        if (t->err.code != DT_OK) {
            assert_true(t->err.code == DT_ERR_CORRUPT || t->err.code == DT_ERR_NOT_FOUND ||
                        t->err.code == DT_ERR_UNSUPPORTED);
            assert_true(t->err.message[0] != '\0');
        }
        dt_error_clear(&t->err);
        close_store(t);
        dt_arena_reset(&t->arena);
    }
    dt_strbuf_release(&good);
    assert_true(errors > 10); /* most damage is noticed */
}

static void test_network_file_systems_are_refused_by_name(void **state)
{
    assert_string_equal(dt_store_file_system_refused(0x6969, ""), "NFS");
    assert_string_equal(dt_store_file_system_refused(0xFF534D42, ""), "CIFS");
    assert_string_equal(dt_store_file_system_refused(0x0BD00BD0, ""), "Lustre");
    assert_string_equal(dt_store_file_system_refused(0x65735546, "sshfs"), "sshfs");
    assert_string_equal(dt_store_file_system_refused(0x65735546, ""), "FUSE");
    assert_null(dt_store_file_system_refused(0x65735546, "fuse-overlayfs"));
    assert_null(dt_store_file_system_refused(0xEF53, ""));     /* ext4 */
    assert_null(dt_store_file_system_refused(0x01021994, "")); /* tmpfs */
    assert_null(dt_store_file_system_refused(0x794C7630, "")); /* overlayfs */
    assert_null(dt_store_file_system_refused(0x9123683E, "")); /* btrfs */
}

/* Mounts a folder a second time, read-only. Returns 0 on success, 77 if this is not possible here. */
static int read_only_child(test_store *t)
{
    char written[128], read[128], path[160];
    dt_error err = DT_ERROR_INIT;
    dt_store *reader = NULL;
    dt_run run;

    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("small", t->folder, "tmpfs", 0, "mode=700") != 0)
        return 77;
    snprintf(written, sizeof(written), "%s/written", t->folder);
    snprintf(read, sizeof(read), "%s/read?#%%41", t->folder); /* the name needs quoting in a URI */
    if (mkdir(written, 0700) != 0 || mkdir(read, 0700) != 0 ||
        mount(written, read, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, read, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0)
        return 77;
    snprintf(path, sizeof(path), "%s/store.db", read);
    if (dt_store_open_to_read(&reader, path, &err) == DT_OK)
        return 1; /* there is no store yet */
    dt_error_clear(&err);
    snprintf(path, sizeof(path), "%s/store.db", written);
    if (dt_store_open(&t->store, path, &err) != DT_OK)
        return 2;
    test_store_run(t, "aa", "n");
    snprintf(path, sizeof(path), "%s/store.db", read);
    for (int i = 0; i < 2; i++) { /* while it is written, and when it is closed */
        if (dt_store_open_to_read(&reader, path, &err) != DT_OK)
            return 3 + i;
        if (dt_store_run_find(reader, &run, "aa", &t->arena, &err) != DT_OK)
            return 5 + i;
        if (dt_store_run_set_state(reader, "aa", DT_RUN_RUNNING, -1, "", 1, NULL) == DT_OK)
            return 7 + i;
        dt_store_close(reader);
        reader = NULL;
        dt_store_close(t->store);
        t->store = NULL;
    }
    return dt_store_open(&reader, path, NULL) == DT_OK ? 9 : 0; /* opening for writing must fail */
}

/* Runs on a separate disk of 600 KB. Returns 0 on success, 77 if it cannot be made here. */
static int full_disk_child(test_store *t)
{
    char json[4096], path[128];
    dt_store_event event = {.attempt = 1, .rank = -1, .kind = "k", .json = json};
    dt_error err = DT_ERROR_INIT;
    int64_t stored = 0, count;
    dt_store_event *events;
    dt_status st = DT_OK;

    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("full", t->folder, "tmpfs", 0, "size=600k,mode=700") != 0)
        return 77;
    snprintf(path, sizeof(path), "%s/small.db", t->folder);
    if (dt_store_open(&t->store, path, &err) != DT_OK)
        return 1;
    test_store_run(t, "aa", "n");
    memset(json, 'j', sizeof(json) - 1);
    json[sizeof(json) - 1] = '\0';
    for (event.sequence = 0; event.sequence < 1000 && st == DT_OK; event.sequence++) {
        if ((st = dt_store_begin(t->store, &err)) == DT_OK &&
            (st = dt_store_event_add(t->store, "aa", &event, &err)) == DT_OK)
            st = dt_store_commit(t->store, &err);
        stored += st == DT_OK;
        dt_store_rollback(t->store);
    }
    if (st != DT_ERR_IO || strstr(err.message, "is full") == NULL)
        return 2;
    dt_error_clear(&err);
    /* all committed events can still be read */
    if (dt_store_event_list(t->store, &events, &count, "aa", 0, 0, &t->arena, &err) != DT_OK)
        return 3;
    if (count != stored || stored < 10)
        return 4;
    dt_store_close(t->store);
    return dt_store_open(&t->store, path, &err) == DT_OK || err.code == DT_ERR_IO ? 0 : 5;
}

static void check_in_child(test_store *t, int (*child_of)(test_store *t))
{
    int status;
    pid_t child;

    close_store(t);
    child = fork();
    if (child == 0)
        _exit(child_of(t));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_a_full_disk_is_reported_and_loses_nothing_committed(void **state)
{
    check_in_child(*state, full_disk_child);
}

static void test_what_cannot_be_written_is_read(void **state)
{
    check_in_child(*state, read_only_child);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

static void test_readers_of_a_replaced_file_see_the_new_one(void **state)
{
    static const char *const files[] = {"", "-wal", "-shm"};
    test_store *t = *state, other = *t;

    test_store_run(t, "aa", "old");
    assert_false(dt_store_renew(t->store, "aa")); /* it is the file at the path */
    for (int i = 0; i < 3; i++) {
        char name[128];

        snprintf(name, sizeof(name), "%s%s", t->path, files[i]);
        assert_int_equal(unlink(name), 0);
    }
    assert_false(dt_store_is_current(t->store));
    assert_false(dt_store_renew(t->store, "aa")); /* there is no file at the path */
    assert_good(t, dt_store_open(&other.store, t->path, &t->err));
    assert_false(dt_store_renew(t->store, "aa")); /* the file does not have the run yet */
    assert_good(t, dt_store_run_find(t->store, &(dt_run){0}, "old", &t->arena, &t->err));
    test_store_run(&other, "aa", "new");
    assert_true(dt_store_renew(t->store, "aa"));
    assert_good(t, dt_store_run_find(t->store, &(dt_run){0}, "new", &t->arena, &t->err));
    assert_true(dt_store_is_current(t->store));
    dt_store_close(other.store);
}

/* A file from elsewhere may contain its own SQL: none of it runs, and the message names it. */
static void test_sql_that_the_file_defines_is_refused_and_does_not_run(void **state)
{
    static const struct {
        const char *sql, *named;
    } cases[] = {
        {"CREATE TRIGGER spy AFTER UPDATE ON runs BEGIN DELETE FROM metrics; END",
         "the trigger 'spy'"},
        {"CREATE VIEW endless AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i FROM n)"
         " SELECT * FROM n",
         "the view 'endless'"},
        {"ALTER TABLE events RENAME TO kept; CREATE VIEW events AS SELECT * FROM kept",
         "the view 'events'"},
        {"CREATE VIRTUAL TABLE words USING fts5(text)", "the table 'words'"},
        {"CREATE TABLE theirs (x)", "the table 'theirs'"},
        {"CREATE INDEX runs_by_note ON runs (upper(note))", "the index 'runs_by_note'"},
        {"ALTER TABLE runs ADD COLUMN more TEXT AS (upper(note))", "the table 'runs'"},
        {"DROP INDEX events_by_run; CREATE INDEX events_by_run ON events (run, kind)",
         "the index 'events_by_run'"},
    };
    test_store *t = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        close_store(t);
        unlink(t->path);
        assert_good(t, open_again(t));
        test_store_run(t, "aa", "n");
        assert_good(t, dt_store_metric_add(t->store, "aa", 1, 1, "loss", 2.5, 1000, &t->err));
        close_store(t);
        test_store_run_sql(t, cases[i].sql);
        assert_fails(t, open_again(t), DT_ERR_CORRUPT, cases[i].named);
        assert_fails(t, dt_store_open_to_read(&t->store, t->path, &t->err), DT_ERR_CORRUPT,
                     "'dtrun store repair'");
        assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"), 1);
    }
}

static void test_a_copy_that_sqlite_wrote_is_accepted(void **state)
{
    test_store *t = *state;

    close_store(t);
    test_store_run_sql(
        t, "ANALYZE; PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql,"
           " 'CREATE TABLE runs', 'CREATE TABLE IF NOT EXISTS \"runs\"');"
           "PRAGMA writable_schema = 0");
    assert_good(t, open_again(t));
    test_store_run(t, "aa", "n");
}

/* Rows with ids that lead out of the folder of runs, or with numbers out of range, cost no other run. */
static void test_rows_that_dtrun_cannot_have_written_are_left_out_and_reported(void **state)
{
    static const char *const ids[] = {"'../x'", "'/etc'",          "'.'",    "'..'",
                                      "'a b'",  "'a' || char(27)", "x'2e2e'"};
    static const char *const numbers[] = {"step = 9223372036854775807", "step = -1",
                                          "created_ms = -9223372036854775807",
                                          "attempt = 9223372036854775807"};
    test_store *t = *state;
    const char **problems, **found;
    int64_t count, bad = 0, total;
    dt_run_mark *marks;
    dt_run *runs;
    char sql[256];

    test_store_run(t, "good", "n");
    for (size_t i = 0; i < 11; i++, bad++) {
        char id[16];

        snprintf(id, sizeof(id), "bad%zu", i);
        test_store_run(t, id, "bad");
        if (i < 7)
            snprintf(sql, sizeof(sql), "UPDATE runs SET id = %s WHERE id = '%s'", ids[i], id);
        else
            snprintf(sql, sizeof(sql), "UPDATE runs SET %s WHERE id = '%s'", numbers[i - 7], id);
        test_store_run_sql(t, sql);
    }
    test_store_run_sql(
        t, "PRAGMA foreign_keys = OFF; UPDATE attempts SET attempt ="
           " 9223372036854775807 WHERE run IN (SELECT run FROM runs WHERE attempt > 9)");
    assert_good(t, dt_store_run_list(t->store, &runs, &count, -1, 0, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_good(t, dt_store_run_marks(t->store, &marks, &count, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_good(t, dt_store_run_search(t->store, &found, &count, &total,
                                       &(dt_run_search){.state = -1}, &t->arena, &t->err));
    assert_int_equal(count, 1);
    assert_good(t, dt_store_run_find(t->store, &runs[0], "last", &t->arena, &t->err));
    assert_string_equal(runs[0].id, "good");
    assert_fails(t, dt_store_run_find(t->store, &runs[0], "../x", &t->arena, &t->err),
                 DT_ERR_NOT_FOUND, "unknown run");
    assert_good(t, dt_store_verify(t->store, &problems, &count, &t->arena, &t->err));
    assert_int_equal(count, bad);
    assert_non_null(strstr(problems[0], "'../x'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_the_store_is_private_with_any_umask),
        WITH_STORE(test_it_is_in_wal_mode_with_the_version_of_the_schema),
        WITH_STORE(test_the_default_place_is_the_state_folder),
        WITH_STORE(test_another_version_is_refused_and_left_alone),
        WITH_STORE(test_a_version_that_never_was_is_called_damaged),
        WITH_STORE(test_another_programs_database_is_refused_and_left_alone),
        WITH_STORE(test_a_file_that_is_not_a_database_is_refused),
        WITH_STORE(test_an_empty_file_becomes_a_store),
        WITH_STORE(test_what_is_in_the_way_is_named),
        WITH_STORE(test_a_folder_of_somebody_else_is_named),
        WITH_STORE(test_a_file_that_is_cut_short_is_called_damaged),
        WITH_STORE(test_overwritten_pages_never_do_worse_than_an_error),
        cmocka_unit_test(test_network_file_systems_are_refused_by_name),
        WITH_STORE(test_a_full_disk_is_reported_and_loses_nothing_committed),
        WITH_STORE(test_what_cannot_be_written_is_read),
        WITH_STORE(test_readers_of_a_replaced_file_see_the_new_one),
        WITH_STORE(test_sql_that_the_file_defines_is_refused_and_does_not_run),
        WITH_STORE(test_a_copy_that_sqlite_wrote_is_accepted),
        WITH_STORE(test_rows_that_dtrun_cannot_have_written_are_left_out_and_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
