/* live: the bytes sent to the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/term/screen.h"

typedef struct screen {
    int ends[2];
    dt_term term;
    dt_live live;
} screen;

static void open_screen(screen *s)
{
    assert_int_equal(pipe(s->ends), 0);
    s->term = (dt_term){.fd = s->ends[1]};
    dt_live_open(&s->live, &s->term);
}

static void expect(screen *s, const char *expected)
{
    char bytes[4096];
    ssize_t got = read(s->ends[0], bytes, sizeof(bytes) - 1);

    assert_true(got >= 0);
    bytes[got] = '\0';
    assert_string_equal(bytes, expected);
}

static void close_screen(screen *s)
{
    close(s->ends[0]);
    close(s->ends[1]);
}

static void test_a_block_is_drawn_over_the_one_before(void **state)
{
    screen s;

    open_screen(&s);
    dt_live_draw(&s.live, "", "one\ntwo\n");
    expect(&s, "\x1b[?25lone\x1b[K\ntwo\x1b[K\n\x1b[J");
    dt_live_draw(&s.live, "", "three\n");
    expect(&s, "\r\x1b[2Athree\x1b[K\n\x1b[J");
    dt_live_draw(&s.live, "kept\n", "four\n");
    expect(&s, "\r\x1b[1Akept\x1b[K\nfour\x1b[K\n\x1b[J");
    dt_live_close(&s.live);
    expect(&s, "\r\x1b[1A\r\x1b[J\x1b[?25h");
    close_screen(&s);
}

static void test_lines_are_cut_before_they_wrap(void **state)
{
    char wide[201], expected[128];
    screen s;

    memset(wide, 'x', 199);
    wide[199] = '\n';
    wide[200] = '\0';
    open_screen(&s);
    dt_live_draw(&s.live, "", wide);
    snprintf(expected, sizeof(expected), "\x1b[?25l%.79s\x1b[K\n\x1b[J", wide);
    expect(&s, expected);
    dt_live_close(&s.live);
    close_screen(&s);
}

static void test_closing_without_drawing_writes_nothing(void **state)
{
    screen s;
    char byte;

    open_screen(&s);
    dt_live_close(&s.live);
    close(s.ends[1]);
    assert_int_equal(read(s.ends[0], &byte, 1), 0);
    close(s.ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_is_drawn_over_the_one_before),
        cmocka_unit_test(test_lines_are_cut_before_they_wrap),
        cmocka_unit_test(test_closing_without_drawing_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
