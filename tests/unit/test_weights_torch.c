/* torch: files of torch.save (tests/golden/make_torch_fixture.py) have the same model as safetensors, also cut into
 * several files; a pickle that calls anything else than what rebuilds tensors is refused by name, and damage is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/weights/torch_int.h"
#include "engine/weights/weights.h"
#include "tests/unit/weights_harness.h"

#define FOLDER "tests/golden/huggingface/"
#define SMALL  "tests/fuzz/corpus/torch/file"
#define FILE_  FOLDER "gpt2_torch/pytorch_model.bin"

static void test_the_model_is_that_of_safetensors(void **state)
{
    weights_expect_same(FOLDER "gpt2_torch", FOLDER "gpt2");
    weights_expect_same(FILE_, FOLDER "gpt2"); /* with the config.json next to it */
    weights_expect_same(FOLDER "gpt2_torch_parts", FOLDER "gpt2_parts");
    weights_expect_slices(FOLDER "gpt2_torch");
    weights_expect_logits(FOLDER "gpt2_torch", FOLDER "gpt2_expect.safetensors");
}

/* Reads a file of these bytes; returns its message, "" if it was read. */
static void read_bytes(char *message, size_t room, const char *bytes, size_t length)
{
    int fd = memfd_create("torch", MFD_CLOEXEC);
    dt_error err = DT_ERROR_INIT;
    dt_safetensors file;
    dt_status st;

    assert_true(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    st = dt_torch_read(&file, fd, (int64_t)length, "m.bin", &err);
    assert_true(st == DT_OK || st == DT_ERR_RECIPE || st == DT_ERR_CORRUPT);
    assert_int_equal(st == DT_OK, err.message[0] == '\0');
    assert_true(st == DT_OK || strstr(err.message, "m.bin") != NULL);
    snprintf(message, room, "%.200s", err.message);
    if (st == DT_OK)
        dt_safetensors_release(&file);
    close(fd);
}

/* Cut at any place, the file has no directory at its end. */
static void test_a_file_that_is_cut_off_is_refused(void **state)
{
    char message[256];
    dt_strbuf whole;

    dt_strbuf_init(&whole);
    assert_int_equal(dt_file_read(&whole, SMALL, 1 << 20, NULL), DT_OK);
    memmove(whole.data, whole.data + 1, --whole.length); /* the kind of the input */
    read_bytes(message, sizeof(message), whole.data, whole.length);
    assert_string_equal(message, "");
    for (size_t length = 0; length < whole.length; length++) {
        read_bytes(message, sizeof(message), whole.data, length);
        assert_non_null(strstr(message, "damaged or cut off"));
    }
    dt_strbuf_release(&whole);
}

/* Any damage is refused, or it is where no list of tensors is. */
static void test_damage_crashes_nothing(void **state)
{
    char message[256];
    dt_strbuf whole;

    dt_strbuf_init(&whole);
    assert_int_equal(dt_file_read(&whole, SMALL, 1 << 20, NULL), DT_OK);
    memmove(whole.data, whole.data + 1, --whole.length); /* the kind of the input */
    for (size_t at = 0; at < whole.length; at++) {
        char held = whole.data[at];

        for (int value = 0; value < 256; value += 51) {
            whole.data[at] = value == 0 ? '\0' : (char)(held ^ (value | 1));
            read_bytes(message, sizeof(message), whole.data, whole.length);
        }
        whole.data[at] = held;
    }
    dt_strbuf_release(&whole);
}

#define BEFORE    "\x80\x02}("
#define TENSOR    "X\1\0\0\0accollections\nOrderedDict\n)R"
#define END       "u."
#define PICKLE(p) (p), sizeof(p) - 1

static void test_pickles_that_are_programs_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        dt_status st;
        const char *word;
    } cases[] = {
        {PICKLE(BEFORE END), DT_OK, ""},
        {PICKLE(BEFORE TENSOR END), DT_OK, ""},
        {PICKLE("\x80\x02(X\1\0\0\0acposix\nsystem\nX\2\0\0\0ls\x85Rd."), DT_ERR_RECIPE,
         "calls 'posix system'"},
        {PICKLE("\x80\x04\x8c\x08"
                "builtins\x8c\x04"
                "eval\x93\x8c\x01x\x85R."),
         DT_ERR_RECIPE, "calls 'builtins eval'"},
        {PICKLE("ccollections\nOrderedDict\n)(R."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("ctorch._utils\n_rebuild_tensor_v2\n)R."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("ctorch._utils\n_rebuild_parameter\n)R."), DT_ERR_RECIPE, "_rebuild_parameter"},
        {PICKLE("ccollections\nOrderedDict\n)\x81."), DT_ERR_RECIPE, "instruction 0x81"},
        {PICKLE("(i__main__\nrun\n."), DT_ERR_RECIPE, "instruction 0x69"},
        {PICKLE("N."), DT_OK, ""},
        {PICKLE("N"), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("NN."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("(N."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("0."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("N(0."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("t."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("N\x87."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("h\1."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("Nr\xff\xff\xff\xff."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("}(Nu."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("N(NNu."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("](Nq\1e."), DT_OK, ""},
        {PICKLE("]q\1h\1a."), DT_OK, ""}, /* a list that is in itself */
        {PICKLE("NQ."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("X\xff\xff\xff\xff"
                "a."),
         DT_ERR_CORRUPT, "damaged"},
        {PICKLE("X\1\0\0\0\xff."), DT_ERR_CORRUPT, "damaged"},
        {PICKLE("\x8a\x09"
                "123456789."),
         DT_ERR_CORRUPT, "damaged"},
        {PICKLE("\x8a\x01\xff."), DT_OK, ""},
        {PICKLE("Nb."), DT_ERR_CORRUPT, "damaged"},
    };
    const dt_pickle_value *value;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_error err = DT_ERROR_INIT;
        dt_arena arena;
        dt_status st;

        dt_arena_init(&arena, 0);
        st = dt_pickle_read(&value, (const unsigned char *)cases[i].bytes, cases[i].length, "m.bin",
                            &arena, &err);
        if (st != cases[i].st || strstr(err.message, cases[i].word) == NULL)
            fail_msg("case %zu: %s: %s", i, dt_status_name(st), err.message);
        dt_arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_model_is_that_of_safetensors),
        cmocka_unit_test(test_a_file_that_is_cut_off_is_refused),
        cmocka_unit_test(test_damage_crashes_nothing),
        cmocka_unit_test(test_pickles_that_are_programs_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
