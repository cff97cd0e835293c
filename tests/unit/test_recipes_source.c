/* Reads the file of a recipe. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes_support.h"

typedef struct folder {
    char path[32];
    char file[64];
    reading r;
    dt_recipe_source source;
} folder;

static int make(void **state)
{
    folder *f = calloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/dt_recipes.XXXXXX");
    if (mkdtemp(f->path) == NULL)
        return -1;
    snprintf(f->file, sizeof(f->file), "%s/gpt.yaml", f->path);
    reading_open(&f->r);
    *state = f;
    return 0;
}

static int clean(void **state)
{
    folder *f = *state;

    dt_file_remove_tree(f->path, NULL);
    reading_close(&f->r);
    free(f);
    return 0;
}

static void write_file(const folder *f, const char *bytes, size_t length)
{
    assert_int_equal(dt_file_write_atomic(f->file, bytes, length, 0600, NULL), DT_OK);
}

static void expect_unread(folder *f, const char *path, const char *part)
{
    dt_status st = dt_recipe_source_read(&f->source, path, &f->r.arena, &f->r.err);

    assert_int_equal(st, DT_ERR_RECIPE);
    assert_non_null(strstr(f->r.err.message, path));
    assert_non_null(strstr(f->r.err.message, part));
}

static void test_a_file_is_read_as_written_and_its_paths_start_at_its_folder(void **state)
{
    folder *f = *state;
    char expected[80];

    write_file(f, LEAST, strlen(LEAST));
    assert_int_equal(dt_recipe_source_read(&f->source, f->file, &f->r.arena, &f->r.err), DT_OK);
    assert_string_equal(f->source.text, LEAST);
    assert_string_equal(f->source.path, f->file);
    assert_int_equal(dt_recipe_read(&f->r.recipe, &f->source, &f->r.arena, &f->r.err), DT_OK);
    snprintf(expected, sizeof(expected), "%s/a.txt", f->path);
    assert_string_equal(f->r.recipe.data.train.items[0], expected);
    assert_string_equal(f->r.recipe.name, "gpt");
}

static void test_a_missing_file_is_named(void **state)
{
    folder *f = *state;

    expect_unread(f, f->file, "No such file");
}

/* "file:line:column" of the file in the message, matched by name or pattern. */
static void test_a_message_about_data_gets_their_line(void **state)
{
    static const struct {
        const char *text, *set, *message, *expected;
    } cases[] = {
        {"data: /d/a.txt\n", NULL, "data.train: '/d/a.txt' is empty", "r.yaml:1:7: "},
        {"data:\n  train:\n    - /d/a.txt\n    - /d/b.txt\n", NULL, "'/d/b.txt' is empty",
         "r.yaml:4:7: "},
        {"data: [/d/a, '/d/*.txt']\n", NULL, "'/d/b.txt' is empty", "r.yaml:1:14: "},
        {"data: {train: /d/a, validation: [/d/a.txt, /d/b.txt]}\n", NULL, "'/d/b.txt' is empty",
         "r.yaml:1:44: "},
        {"data: {train: /d/a, validation: /d/b}\n", NULL, "data.validation: too short",
         "r.yaml:1:33: "},
        {"data: /d/a.txt\n", NULL, "too few tokens", "r.yaml:1:7: "},
        {"data: /d/a.txt\n", "data=/d/c.txt", "'/d/c.txt' is empty", "--set data=/d/c.txt: "},
        {"data: [\n", NULL, "too few tokens", "r.yaml: "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        folder *f = *state;
        const char *const sets[] = {cases[i].set};
        char text[256], expected[256];
        dt_error err = DT_ERROR_INIT;
        dt_recipe_source source = {.path = "r.yaml",
                                   .text = text,
                                   .sets = sets,
                                   .sets_count = cases[i].set != NULL ? 1 : 0};

        snprintf(text, sizeof(text), "%smodel: gpt2-small\nschedule: {steps: 1}\n", cases[i].text);
        snprintf(expected, sizeof(expected), "%s%s", cases[i].expected, cases[i].message);
        (void)DT_FAIL(&err, DT_ERR_RECIPE, "%s", cases[i].message);
        dt_recipe_locate_data(&err, &source, &f->r.arena);
        assert_string_equal(err.message, expected);
    }
}

static void test_a_directory_is_not_a_recipe(void **state)
{
    folder *f = *state;

    expect_unread(f, f->path, "directory");
}

static void test_an_unreadable_file_is_named(void **state)
{
    folder *f = *state;

    if (geteuid() == 0)
        skip(); /* root can read everything */
    write_file(f, LEAST, strlen(LEAST));
    assert_int_equal(chmod(f->file, 0), 0);
    expect_unread(f, f->file, "denied");
}

static void test_a_recipe_of_100_megabytes_is_refused_at_once(void **state)
{
    folder *f = *state;
    clock_t start = clock(); /* processor time: a busy machine may not run this process at once */
    int fd = open(f->file, O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 100 << 20), 0);
    close(fd);
    expect_unread(f, f->file, "larger than 1 MiB");
    assert_true(clock() - start < CLOCKS_PER_SEC);
}

static void test_a_recipe_without_end_is_refused(void **state)
{
    expect_unread(*state, "/dev/zero", "not a regular file");
}

static void test_a_zero_byte_is_found_before_it_cuts_the_text(void **state)
{
    folder *f = *state;

    write_file(f, "clip: 1\na: \0b\n", 14);
    expect_unread(f, f->file, "gpt.yaml:2:4: control character U+0000");
}

static void test_an_invalid_file_name_requires_a_name(void **state)
{
    const dt_recipe_source source = {.path = "/r/my recipe.yaml", .text = LEAST};
    reading r;

    reading_open(&r);
    assert_int_equal(dt_recipe_read(&r.recipe, &source, &r.arena, &r.err), DT_ERR_RECIPE);
    assert_string_equal(r.err.message,
                        "/r/my recipe.yaml: 'name' is 'my recipe' (from the file's name): "
                        "expected 1 to 64 letters, digits, '.', '_' or '-', the first neither '.' "
                        "nor '-'");
    reading_close(&r);
}

static void test_a_folder_that_is_not_utf8_asks_for_absolute_paths(void **state)
{
    const dt_recipe_source source = {.path = "/r\xff/gpt.yaml", .text = LEAST};
    reading r;

    reading_open(&r);
    assert_int_equal(dt_recipe_read(&r.recipe, &source, &r.arena, &r.err), DT_ERR_RECIPE);
    assert_non_null(strstr(r.err.message, "has a name that is not UTF-8"));
    reading_close(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_is_read_as_written_and_its_paths_start_at_its_folder),
        TEST(test_a_missing_file_is_named),
        TEST(test_a_message_about_data_gets_their_line),
        TEST(test_a_directory_is_not_a_recipe),
        TEST(test_an_unreadable_file_is_named),
        TEST(test_a_recipe_of_100_megabytes_is_refused_at_once),
        TEST(test_a_recipe_without_end_is_refused),
        TEST(test_a_zero_byte_is_found_before_it_cuts_the_text),
        cmocka_unit_test(test_an_invalid_file_name_requires_a_name),
        cmocka_unit_test(test_a_folder_that_is_not_utf8_asks_for_absolute_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
