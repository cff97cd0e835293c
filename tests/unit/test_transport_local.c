#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "runner/channel/socket.h"
#include "runner/supervisor/supervisor.h"
#include "runner/transport/transport.h"

static void test_this_machine_is_reached_and_another_is_named(void **state)
{
    const dt_transport *transport;
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(dt_transport_find(&transport, "localhost", &err), DT_OK);
    assert_string_equal(transport->kind, "local");
    assert_int_equal(dt_transport_find(&transport, "localhost#2", &err), DT_OK);
    assert_string_equal(transport->kind, "local");
    assert_int_equal(dt_transport_find(&transport, "-gpu-a", &err), DT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'-gpu-a'"));
}

static void test_local_runs_the_words_as_they_are(void **state)
{
    const char *const words[] = {"/bin/echo", "it's", "$(x)", NULL};
    const char **argv;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_transport_local.command(&argv, "localhost", words, &arena, NULL), DT_OK);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(argv[i], words[i]);
    assert_null(argv[3]);
    dt_arena_release(&arena);
}

static void test_a_socket_works_in_a_folder_with_a_very_long_path(void **state)
{
    char root[] = "/tmp/dtrun-socket.XXXXXX", *folder = NULL, bytes[8];
    int listener, there, here;

    assert_non_null(mkdtemp(root));
    assert_true(asprintf(&folder, "%s/%0150d/%0100d", root, 1, 2) > 200);
    assert_int_equal(dt_file_make_dirs(folder, 0700, NULL), DT_OK);
    assert_int_equal(dt_socket_connect(&here, folder, "s", NULL), DT_ERR_NOT_FOUND);
    assert_int_equal(dt_socket_listen(&listener, folder, "s", NULL), DT_OK);
    assert_int_equal(dt_socket_connect(&here, folder, "s", NULL), DT_OK);
    there = accept(listener, NULL, NULL);
    assert_true(there >= 0);
    assert_int_equal(write(here, "hello", 5), 5);
    assert_int_equal(read(there, bytes, sizeof(bytes)), 5);
    close(here);
    close(there);
    close(listener);
    assert_int_equal(dt_socket_connect(&here, folder, "s", NULL), DT_ERR_NOT_FOUND);
    assert_int_equal(dt_socket_listen(&listener, folder, "s", NULL), DT_OK); /* as after a crash */
    close(listener);
    assert_int_equal(dt_file_remove_tree(root, NULL), DT_OK);
    free(folder);
}

static void test_an_id_is_never_a_path(void **state)
{
    static const char *const bad[] = {"", ".", "..", "../x", "a/b", ".hidden"};
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(dt_run_path(&path, bad[i], NULL, &arena, NULL), DT_ERR_USAGE);
    dt_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_machine_is_reached_and_another_is_named),
        cmocka_unit_test(test_local_runs_the_words_as_they_are),
        cmocka_unit_test(test_a_socket_works_in_a_folder_with_a_very_long_path),
        cmocka_unit_test(test_an_id_is_never_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
