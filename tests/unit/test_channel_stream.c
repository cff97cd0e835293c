#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "runner/channel/stream.h"

typedef struct heard {
    dt_stream *stream;
    char lines[256];
    int ends;
} heard;

static void on_line(void *context, const char *text, size_t length, bool cut)
{
    heard *all = context;
    size_t used = strlen(all->lines);

    assert_false(cut);
    assert_int_equal(all->ends, 0);
    snprintf(all->lines + used, sizeof(all->lines) - used, "%.*s;", (int)length, text);
}

static void on_ended(void *context, const char *why)
{
    heard *all = context;

    all->ends++;
    dt_stream_close(all->stream);
}

/* A rank sends `finished` and exits while its agent, delayed by a slow disk, writes to it. */
static void test_the_last_message_is_read_though_nothing_can_be_sent(void **state)
{
    static const dt_stream_calls calls = {.line = on_line, .ended = on_ended};
    static const char last[] = "step 24\nfinished\n";
    heard all = {0};
    uv_loop_t loop;
    int ends[2];

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(dt_stream_open(&all.stream, &loop, ends[0], 1024, &calls, &all, NULL), DT_OK);
    assert_int_equal(write(ends[1], last, sizeof(last) - 1), sizeof(last) - 1);
    close(ends[1]);
    dt_stream_send(all.stream, "where?\n", 7);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_string_equal(all.lines, "step 24;finished;");
    assert_int_equal(all.ends, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_message_is_read_though_nothing_can_be_sent),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
