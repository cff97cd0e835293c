/* frames: the output of a remote command, in pieces of any size, and invalid frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runner/relay/relay.h"

typedef struct heard {
    dt_strbuf out, errors;
    int signs; /* keep-alives */
} heard;

static dt_status take(void *context, char what, const char *bytes, size_t length, dt_error *err)
{
    heard *h = context;

    h->signs += length == 0;
    dt_strbuf_add(what == 'o' ? &h->out : &h->errors, bytes, length);
    return DT_OK;
}

static void begin(dt_frames *frames, heard *h)
{
    h->signs = 0;
    dt_strbuf_init(&h->out);
    dt_strbuf_init(&h->errors);
    dt_frames_init(frames, take, h);
}

static void end(dt_frames *frames, heard *h)
{
    dt_strbuf_release(&h->out);
    dt_strbuf_release(&h->errors);
    dt_frames_release(frames);
}

static void test_pieces_of_every_size(void **state)
{
    static const char said[] = "o 6\nabc\no\no 0\ne 4\nx 1\no 1\n\ne 0\nx 17\n";

    for (size_t size = 1; size <= sizeof(said); size++) {
        dt_frames frames;
        heard h;

        begin(&frames, &h);
        for (size_t at = 0; at < strlen(said); at += size) {
            size_t left = strlen(said) - at;

            assert_false(frames.ended);
            assert_int_equal(dt_frames_add(&frames, said + at, left < size ? left : size, NULL),
                             DT_OK);
        }
        assert_true(frames.ended);
        assert_int_equal(frames.exit_code, 17);
        assert_string_equal(h.out.data, "abc\no\n\n");
        assert_string_equal(h.errors.data, "x 1\n");
        assert_int_equal(h.signs, 2);
        end(&frames, &h);
    }
}

static void test_invalid_frames_are_refused(void **state)
{
    static const char *const bad[] = {
        "o\n", "o 1x\n", "o  1\n", "o -1\n",  "o 16385\n",         "x 256\n", "x -1\n",   "y 1\n",
        "\n",  "O 1\n",  "x 0\nx", "x 0\n\n", "o 000000000000000", "hello",   "o 1\nab\n"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_frames frames;
        dt_status st;
        heard h;

        begin(&frames, &h);
        st = dt_frames_add(&frames, bad[i], strlen(bad[i]), &err);
        if (strcmp(bad[i], "hello") == 0)
            assert_int_equal(st, DT_OK); /* an incomplete line */
        else
            assert_int_equal(st, DT_ERR_CORRUPT);
        assert_false(frames.ended && st == DT_OK);
        end(&frames, &h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_every_size),
        cmocka_unit_test(test_invalid_frames_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
