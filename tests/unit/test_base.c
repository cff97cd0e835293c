/* Tests of base: arena, strbuf, error, clock, file, json, dirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/process.h"
#include "base/strbuf.h"

static char folder[] = "/tmp/dtrun-base-XXXXXX";

static int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int folder_remove(void **state)
{
    (void)state;
    return dt_file_remove_tree(folder, NULL) != DT_OK;
}

static void first_error_wins(void **state)
{
    dt_error err = DT_ERROR_INIT;

    (void)state;
    assert_int_equal(DT_FAIL(&err, DT_ERR_IO, "disk '%s' is full", "a"), DT_ERR_IO);
    assert_int_equal(DT_FAIL(&err, DT_ERR_COMM, "later"), DT_ERR_COMM);
    assert_int_equal(err.code, DT_ERR_IO);
    assert_string_equal(err.message, "disk 'a' is full");
    dt_error_prefix(&err, "rank %d", 3);
    assert_string_equal(err.message, "rank 3: disk 'a' is full");
    dt_error_clear(&err);
    dt_error_prefix(&err, "nothing");
    assert_string_equal(err.message, "");
    assert_int_equal(DT_FAIL(NULL, DT_ERR_IO, "nobody listens"), DT_ERR_IO);
}

static void long_message_is_cut_not_overrun(void **state)
{
    dt_error err = DT_ERROR_INIT;
    char text[5000];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    DT_FAIL(&err, DT_ERR_IO, "%s", text);
    dt_error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

static void arena_gives_zeroed_aligned_memory(void **state)
{
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 256);
    for (size_t n = 1; n < 2000; n += 37) {
        unsigned char *p = dt_arena_alloc(&arena, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, n);
    }
    dt_arena_release(&arena);
}

static void an_array_that_is_too_large_ends_the_process(void **state)
{
    static const char said[] = "out of memory: cannot allocate 18446744073709551615 bytes\n";
    char text[sizeof(said)] = "";
    int ends[2], status;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        dt_arena arena;

        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        dt_arena_init(&arena, 0);
        dt_arena_alloc_array(&arena, SIZE_MAX / 4, 8);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_int_equal(read(ends[0], text, sizeof(text)), sizeof(said) - 1);
    assert_string_equal(text, said);
    close(ends[0]);
    close(ends[1]);
}

static void arena_reset_keeps_blocks(void **state)
{
    dt_arena arena;
    void *first, *second;

    (void)state;
    dt_arena_init(&arena, 128);
    first = dt_arena_alloc(&arena, 100);
    second = dt_arena_alloc(&arena, 1000);
    dt_arena_reset(&arena);
    assert_ptr_equal(dt_arena_alloc(&arena, 100), first);
    assert_ptr_equal(dt_arena_alloc(&arena, 1000), second);
    assert_string_equal(dt_arena_printf(&arena, "%d-%s", 7, "b"), "7-b");
    assert_string_equal(dt_arena_strndup(&arena, "abcdef", 3), "abc");
    dt_arena_release(&arena);
}

static void arrays_double_and_keep_their_elements(void **state)
{
    int64_t plain_capacity = 0, large_capacity = 0, arena_capacity = 0, huge = INT64_MAX / 8;
    int64_t *plain = NULL, *large = NULL, *in_arena = NULL, moves = 0;
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 256);
    for (int64_t i = 0; i < 1000; i++) {
        int64_t held = plain_capacity;

        plain = dt_array_room(plain, i + 1, &plain_capacity, sizeof(*plain));
        large = dt_array_try_room(large, i + 1, &large_capacity, sizeof(*large));
        in_arena = dt_arena_array_room(&arena, in_arena, i + 1, &arena_capacity, sizeof(*in_arena));
        assert_int_equal(in_arena[i], 0);
        moves += plain_capacity != held;
        plain[i] = large[i] = in_arena[i] = i;
    }
    for (int64_t i = 0; i < 1000; i++) {
        assert_int_equal(plain[i], i);
        assert_int_equal(large[i], i);
        assert_int_equal(in_arena[i], i);
    }
    assert_int_equal(moves, 7); /* 16, 32, ... 1024 */
    assert_int_equal(plain_capacity, 1024);
    assert_int_equal(arena_capacity, 1024);

    /* Several elements at once; then a size that no machine has. */
    large = dt_array_try_room(large, 5000, &large_capacity, sizeof(*large));
    assert_int_equal(large_capacity, 8192);
    assert_null(dt_array_try_room(large, huge, &large_capacity, 64));
    assert_int_equal(large_capacity, 8192);
    assert_int_equal(large[999], 999);
    free(plain);
    free(large);
    dt_arena_release(&arena);
}

static void strbuf_grows_and_shrinks(void **state)
{
    dt_strbuf buf;
    char *text;

    (void)state;
    dt_strbuf_init(&buf);
    assert_string_equal(buf.data, "");
    for (int i = 0; i < 1000; i++)
        dt_strbuf_add_fmt(&buf, "%03d", i);
    assert_int_equal(buf.length, 3000);
    dt_strbuf_remove_front(&buf, 2997);
    assert_string_equal(buf.data, "999");
    dt_strbuf_add(&buf, "", 0);
    text = dt_strbuf_detach(&buf);
    assert_string_equal(text, "999");
    assert_string_equal(buf.data, "");
    free(text);
    text = dt_strbuf_detach(&buf);
    assert_string_equal(text, "");
    free(text);
    dt_strbuf_release(&buf);
}

static void distance_counts_typing_mistakes(void **state)
{
    char long_word[200];

    (void)state;
    memset(long_word, 'a', sizeof(long_word) - 1);
    long_word[sizeof(long_word) - 1] = '\0';
    assert_int_equal(dt_distance("launch", "launch"), 0);
    assert_int_equal(dt_distance("lanch", "launch"), 1);
    assert_int_equal(dt_distance("luanch", "launch"), 1);
    assert_int_equal(dt_distance("kitten", "sitting"), 3);
    assert_int_equal(dt_distance("", "abc"), 3);
    assert_int_equal(dt_distance("abc", ""), 3);
    assert_int_equal(dt_distance(long_word, "a"), DT_DISTANCE_MAX);
}

static void times_are_written_as_people_read_them(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0.0004, "0ms"}, {0.85, "850ms"}, {12.44, "12.4s"},  {59.97, "1m00s"},
                 {185, "3m05s"},  {3725, "1h02m"}, {200000, "2d07h"}, {-1, "-"},
                 {NAN, "-"},      {INFINITY, "-"}};
    char text[32];

    (void)state;
    assert_string_equal(dt_clock_iso(text, 1700000000123), "2023-11-14T22:13:20.123Z");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(dt_clock_duration(text, sizeof(text), cases[i].seconds), cases[i].text);
}

static void atomic_write_replaces_whole_files(void **state)
{
    char path[128];
    dt_strbuf text;
    dt_error err = DT_ERROR_INIT;

    (void)state;
    dt_strbuf_init(&text);
    snprintf(path, sizeof(path), "%s/a/b", folder);
    assert_int_equal(dt_file_write_atomic(path, "x", 1, 0600, &err), DT_ERR_IO);
    assert_non_null(strstr(err.message, path));
    dt_error_clear(&err);
    snprintf(path, sizeof(path), "%s/a/b/c", folder);
    assert_int_equal(dt_file_make_dirs(path, 0700, &err), DT_OK);
    assert_int_equal(dt_file_make_dirs(path, 0700, &err), DT_OK);
    snprintf(path, sizeof(path), "%s/a/b/c/file", folder);
    assert_int_equal(dt_file_write_atomic(path, "one", 3, 0600, &err), DT_OK);
    assert_int_equal(dt_file_write_atomic(path, "second", 6, 0600, &err), DT_OK);
    assert_int_equal(dt_file_read(&text, path, 100, &err), DT_OK);
    assert_string_equal(text.data, "second");
    assert_int_equal(dt_file_read(&text, path, 5, &err), DT_ERR_UNSUPPORTED);
    dt_error_clear(&err);
    assert_int_equal(dt_file_read(&text, folder, 5, &err), DT_ERR_IO);
    dt_error_clear(&err);
    assert_int_equal(dt_file_make_dirs(path, 0700, &err), DT_ERR_IO);
    dt_error_clear(&err);
    snprintf(path, sizeof(path), "%s/a", folder);
    assert_int_equal(dt_file_remove_tree(path, &err), DT_OK);
    assert_false(dt_file_exists(path));
    assert_int_equal(dt_file_remove_tree(path, &err), DT_OK);
    assert_int_equal(dt_file_read(&text, path, 5, &err), DT_ERR_NOT_FOUND);
    dt_strbuf_release(&text);
}

/* Any other pipe could block for ever, if nobody writes to it. */
static void a_pipe_is_read_where_it_was_inherited(void **state)
{
    char path[128];
    int ends[2];
    dt_strbuf text;
    dt_error err = DT_ERROR_INIT;

    (void)state;
    dt_strbuf_init(&text);
    snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(dt_file_read(&text, path, 100, &err), DT_ERR_IO);
    assert_non_null(strstr(err.message, "not a regular file"));
    dt_error_clear(&err);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    assert_int_equal(dt_file_read(&text, path, 100, &err), DT_OK);
    assert_string_equal(text.data, "hello");
    close(ends[0]);
    dt_strbuf_release(&text);
}

/* If stderr is the log file, two files hold the newest lines. */
static void a_log_is_rotated_where_it_is_its_own_file(void **state)
{
    char path[128], older[160];
    struct stat now, before;
    int kept = dup(STDERR_FILENO), fd;

    (void)state;
    snprintf(path, sizeof(path), "%s/own.log", folder);
    snprintf(older, sizeof(older), "%s.1", path);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0 && kept >= 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    close(fd);
    for (int i = 0; i < 40; i++) /* no limit was set */
        dt_log_error("line %d", i);
    dt_log_bound("/dev/null", 1000); /* stderr is another file */
    dt_log_error("x");
    assert_false(dt_file_exists(older));
    dt_log_bound(path, 1000);
    for (int i = 0; i < 100; i++)
        dt_log_error("line %d", i);
    dt_log_bound("", 0);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    assert_int_equal(stat(path, &now), 0);
    assert_int_equal(stat(older, &before), 0);
    assert_in_range(now.st_size, 1, 1100);
    assert_in_range(before.st_size, 1000, 1100);
}

static void removing_a_tree_follows_no_link(void **state)
{
    char path[128], kept[128];

    (void)state;
    snprintf(kept, sizeof(kept), "%s/kept", folder);
    assert_int_equal(dt_file_write_atomic(kept, "k", 1, 0600, NULL), DT_OK);
    snprintf(path, sizeof(path), "%s/tree", folder);
    assert_int_equal(dt_file_make_dirs(path, 0700, NULL), DT_OK);
    snprintf(path, sizeof(path), "%s/tree/link", folder);
    assert_int_equal(symlink(folder, path), 0);
    snprintf(path, sizeof(path), "%s/tree", folder);
    assert_int_equal(dt_file_remove_tree(path, NULL), DT_OK);
    assert_true(dt_file_exists(kept));
}

static void lock_is_held_by_one_process(void **state)
{
    char path[128];
    int fd, status;
    pid_t child;

    (void)state;
    snprintf(path, sizeof(path), "%s/lock", folder);
    assert_int_equal(dt_file_lock(&fd, path, NULL), DT_OK);
    child = fork();
    if (child == 0) {
        int other;
        _exit(dt_file_lock(&other, path, NULL) == DT_ERR_BUSY ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(fd);
    assert_int_equal(dt_file_lock(&fd, path, NULL), DT_OK);
    close(fd);
}

static void json_getters_name_the_place(void **state)
{
    static const char text[] = "{\"n\":1,\"x\":0.1,\"s\":\"t\",\"none\":null}";
    dt_error err = DT_ERROR_INIT;
    json_t *json;
    const char *s;
    int64_t n;
    double x;
    dt_strbuf out;

    (void)state;
    dt_strbuf_init(&out);
    assert_int_equal(dt_json_parse(&json, text, sizeof(text) - 1, "it", &err), DT_OK);
    assert_int_equal(dt_json_get_int(&n, json, "n", "it", &err), DT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(dt_json_get_number(&x, json, "n", "it", &err), DT_OK);
    assert_int_equal(dt_json_get_number(&x, json, "none", "it", &err), DT_OK);
    assert_true(isnan(x));
    assert_int_equal(dt_json_get_string_or(&s, json, "none", "f", "it", &err), DT_OK);
    assert_string_equal(s, "f");
    assert_int_equal(dt_json_get_int(&n, json, "s", "it", &err), DT_ERR_CORRUPT);
    assert_string_equal(err.message, "it: 's': expected a whole number");
    dt_error_clear(&err);
    assert_int_equal(dt_json_get_string(&s, json, "gone", "it", &err), DT_ERR_CORRUPT);
    assert_string_equal(err.message, "it: 'gone' is missing");
    dt_error_clear(&err);
    dt_json_write(&out, json);
    assert_string_equal(out.data, "{\"n\":1,\"x\":0.10000000000000001,\"s\":\"t\",\"none\":null}");
    json_decref(json);
    assert_int_equal(dt_json_parse(&json, "{\"a\":1,\"a\":2}", 13, "it", &err), DT_ERR_CORRUPT);
    assert_null(json);
    dt_strbuf_release(&out);
}

static void places_follow_the_environment(void **state)
{
    dt_error err = DT_ERROR_INIT;
    const char *path;
    char wanted[128];
    dt_arena arena;

    (void)state;
    dt_arena_init(&arena, 0);
    setenv("XDG_STATE_HOME", folder, 1);
    assert_int_equal(dt_dir_make(&path, DT_DIR_STATE, &arena, &err), DT_OK);
    snprintf(wanted, sizeof(wanted), "%s/dtrun", folder);
    assert_string_equal(path, wanted);
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", folder, 1);
    assert_int_equal(dt_dir_make(&path, DT_DIR_STATE, &arena, &err), DT_OK);
    snprintf(wanted, sizeof(wanted), "%s/.local/state/dtrun", folder);
    assert_string_equal(path, wanted);
    setenv("XDG_STATE_HOME", "/proc/nowhere", 1);
    assert_int_equal(dt_dir_make(&path, DT_DIR_STATE, &arena, &err), DT_ERR_IO);
    assert_non_null(strstr(err.message, "set XDG_STATE_HOME"));
    dt_error_clear(&err);
    assert_int_equal(dt_dir_program(&path, "no-such-program", NULL, &arena, &err),
                     DT_ERR_NOT_FOUND);
    dt_arena_release(&arena);
}

static void a_reboot_is_two_known_ids_that_differ(void **state)
{
    char id[DT_BOOT_ID_SIZE];

    (void)state;
    assert_int_equal(strlen(dt_boot_id(id)), 36);
    assert_false(dt_boot_differs(id, id));
    assert_true(dt_boot_differs(id, "another"));
    assert_false(dt_boot_differs("", id));
    assert_false(dt_boot_differs(id, ""));
    assert_false(dt_boot_differs(NULL, id));
    assert_false(dt_boot_differs(id, NULL));
}

/* A shell gives 128 + N for signal N; there are 64 signals. */
static void test_an_exit_code_above_192_is_not_a_signal(void **state)
{
    static const struct {
        int code;
        const char *words;
    } cases[] = {
        {3, "ended with exit code 3"},          {128, "ended with exit code 128"},
        {137, "was ended by SIGKILL (Killed)"}, {192, "was ended by signal 64"},
        {193, "ended with exit code 193"},      {255, "ended with exit code 255"},
    };
    char words[DT_EXIT_WORDS_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(dt_exit_words_of_shell(words, cases[i].code), cases[i].words);
}

static void exit_codes_pass_through_a_shell(void **state)
{
    static const struct {
        int ends_with, code, for_shell;
    } cases[] = {{0, 0, 0}, {3, 3, 3}, {255, 255, 255}, {-SIGKILL, -9, 137}, {-SIGTERM, -15, 143}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            if (cases[i].ends_with < 0)
                raise(-cases[i].ends_with);
            _exit(cases[i].ends_with);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(dt_exit_code(status), cases[i].code);
        assert_int_equal(dt_exit_code_for_shell(cases[i].code), cases[i].for_shell);
        assert_int_equal(dt_exit_code_of_shell(cases[i].for_shell), cases[i].code);
    }
}

static void only_a_whole_number_names_a_gpu(void **state)
{
    static const char *const others[] = {"cpu",     "cuda",    "cuda:",   "cuda:x",
                                         "cuda:1x", "cuda:-1", "cuda: 1", "cuda:12345",
                                         "gpu:0",   "CUDA:0",  ""};

    (void)state;
    assert_int_equal(dt_device_gpu("cuda:0"), 0);
    assert_int_equal(dt_device_gpu("cuda:15"), 15);
    assert_int_equal(dt_device_gpu("cuda:9999"), 9999);
    assert_int_equal(dt_device_gpu(NULL), -1);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(dt_device_gpu(others[i]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(long_message_is_cut_not_overrun),
        cmocka_unit_test(arena_gives_zeroed_aligned_memory),
        cmocka_unit_test(an_array_that_is_too_large_ends_the_process),
        cmocka_unit_test(arena_reset_keeps_blocks),
        cmocka_unit_test(arrays_double_and_keep_their_elements),
        cmocka_unit_test(strbuf_grows_and_shrinks),
        cmocka_unit_test(distance_counts_typing_mistakes),
        cmocka_unit_test(times_are_written_as_people_read_them),
        cmocka_unit_test(atomic_write_replaces_whole_files),
        cmocka_unit_test(a_log_is_rotated_where_it_is_its_own_file),
        cmocka_unit_test(a_pipe_is_read_where_it_was_inherited),
        cmocka_unit_test(removing_a_tree_follows_no_link),
        cmocka_unit_test(lock_is_held_by_one_process),
        cmocka_unit_test(json_getters_name_the_place),
        cmocka_unit_test(places_follow_the_environment),
        cmocka_unit_test(a_reboot_is_two_known_ids_that_differ),
        cmocka_unit_test(test_an_exit_code_above_192_is_not_a_signal),
        cmocka_unit_test(exit_codes_pass_through_a_shell),
        cmocka_unit_test(only_a_whole_number_names_a_gpu),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
