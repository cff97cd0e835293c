/* program: finds the error of a program in its stderr, and matches the paths of its checkpoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runner/agent/program/program_int.h"

#define HEAD \
    "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n"
#define RANK "[rank1]: "
#define CLOSE                                                                      \
    "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer " \
    "[10.0.0.1]:5000\n"

static void test_the_error_of_a_program_is_found(void **state)
{
    static const struct {
        const char *text, *found; /* found NULL: no text */
        bool secondary;
    } cases[] = {
        {"", NULL, false},
        {"\n\n", NULL, false},
        {"loading\nusage: train.py [-h]\ntrain.py: error: no such option\n\n",
         "train.py: error: no such option", false},
        {HEAD "ValueError: bad value\n", "ValueError: bad value", false},
        {HEAD "ValueError: bad value\n" RANK "[W925] destroy_process_group() was not called\n",
         "ValueError: bad value", false},
        {RANK "Traceback (most recent call last):\n" RANK "  File \"a.py\", line 1\n" RANK
              "torch.OutOfMemoryError: CUDA out of memory.\n",
         "torch.OutOfMemoryError: CUDA out of memory.", false},
        {HEAD CLOSE,
         "RuntimeError: [../gloo/transport/tcp/pair.cc:553] Connection closed by peer "
         "[10.0.0.1]:5000",
         true},
        {HEAD "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:"
              "\n\n" HEAD "RuntimeError: no x\n",
         "RuntimeError: no x", false},
        /* two processes of torchrun, and its own report */
        {HEAD "ValueError: of rank 3\n" HEAD CLOSE HEAD
              "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\n"
              "train.py FAILED\n",
         "ValueError: of rank 3", false},
        {"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  no\n",
         "  what():  no", false},
        {"10%|#   |\r20%|##  |\r" HEAD "\x1b[31mValueError\x1b[0m: \xff\n",
         " [31mValueError [0m: \xef\xbf\xbd", false},
        {"out of luck\n[W1126 18:38:53.2 socket.cpp:207] [c10d] a warning\n", "out of luck", false},
        {"tcp: Connection reset by peer", "tcp: Connection reset by peer", true},
        {HEAD "ValueError: bad value\n/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: "
              "UserWarning: resource_tracker: 1 leaked semaphore objects\n  warnings.warn('x')\n",
         "ValueError: bad value", false},
        {"cannot open dataset /data/x\n/lib/tracker.py:224: UserWarning: leaked\n  "
         "warnings.warn(\n",
         "cannot open dataset /data/x", false},
        {"no data\nsys:1: ResourceWarning: unclosed file\n", "no data", false},
        {"no data\nW1127 20:04:10.123000 4 torch/distributed/elastic/api.py:9] closing\n",
         "no data", false},
        {"no data\n[rank0]:[W1127 20:04:10.1 ProcessGroup.cpp:1] Warning: not destroyed\n",
         "no data", false},
        {"no data\nException ignored in: <function D.__del__ at 0x7f>\n" HEAD "AttributeError: x\n",
         "no data", false},
        {HEAD "ValueError: bad\nException ignored in: <Finalize object, dead>\n" HEAD
              "TypeError: of the end\n",
         "ValueError: bad", false},
        {"Exception ignored in: <x>\n" HEAD "TypeError: y\n" HEAD "ValueError: after it\n",
         "ValueError: after it", false},
        {"WARNING: no data, ending\n", "WARNING: no data, ending", false},
        {HEAD "torch.distributed.DistStoreError: Timed out after 31 seconds waiting for clients.\n",
         "torch.distributed.DistStoreError: Timed out after 31 seconds waiting for clients.", true},
        {"Fatal Python error: Segmentation fault\n\nThread 0x07 (most recent call first):\n"
         "\nCurrent thread 0x08 (most recent call first):\n  File \"a.py\", line 9 in inner\n"
         "  File \"a.py\", line 3 in <module>\n\nExtension modules: torch (total: 1)\n",
         "Fatal Python error: Segmentation fault at File \"a.py\", line 9 in inner", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_last_error last;
        const char *found;
        bool secondary;
        dt_arena arena;

        dt_arena_init(&arena, 0);
        dt_last_error_init(&last);
        dt_last_error_add(&last, cases[i].text, strlen(cases[i].text));
        found = dt_last_error_find(&secondary, &last, &arena);
        if (cases[i].found == NULL)
            assert_null(found);
        else
            assert_string_equal(found, cases[i].found);
        assert_int_equal(secondary, cases[i].secondary);
        dt_last_error_release(&last);
        dt_arena_release(&arena);
    }
}

/* Only the end is kept, in pieces of any size. */
static void test_long_output_keeps_its_end(void **state)
{
    static const char line[] = "a line that is written again and again\n";
    dt_last_error last;
    bool secondary;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_last_error_init(&last);
    dt_last_error_add(&last, HEAD "ValueError: long ago\n", strlen(HEAD "ValueError: long ago\n"));
    for (int i = 0; i < 10000; i++)
        dt_last_error_add(&last, line, (size_t)(1 + i % (int)(sizeof(line) - 1)));
    dt_last_error_add(&last, "\n" HEAD "ValueError: now\n", strlen("\n" HEAD "ValueError: now\n"));
    assert_string_equal(dt_last_error_find(&secondary, &last, &arena), "ValueError: now");
    dt_last_error_release(&last);
    dt_arena_release(&arena);
}

static void test_a_pattern_matches_paths_and_their_step(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool fits;
        int64_t step;
    } cases[] = {
        {"out/checkpoint-{step}", "out/checkpoint-500", true, 500},
        {"out/checkpoint-{step}", "out/checkpoint-007", true, 7},
        {"out/checkpoint-{step}", "out/checkpoint-500.tmp", false, -1},
        {"out/checkpoint-{step}", "out/checkpoint-", false, -1},
        {"out/checkpoint-{step}", "out/checkpoint-5/6", false, -1},
        {"run-*/epoch=*-step={step}.ckpt", "run-3/epoch=2-step=1200.ckpt", true, 1200},
        {"{step}", "12", true, 12},
        {"{step}", "12345678901234567890", false, -1},
        {"*.pt", "last.pt", true, -1},
        {"*.pt", ".hidden.pt", false, -1},
        {"*.pt", "out/last.pt", false, -1},
        {"checkpoint[12].pt", "checkpoint2.pt", true, -1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t step;

        assert_int_equal(dt_saves_match(&step, cases[i].pattern, cases[i].path), cases[i].fits);
        assert_int_equal(step, cases[i].step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_error_of_a_program_is_found),
        cmocka_unit_test(test_long_output_keeps_its_end),
        cmocka_unit_test(test_a_pattern_matches_paths_and_their_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
