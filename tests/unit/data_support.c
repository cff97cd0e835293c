#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data_support.h"

int data_folder_make(void **state)
{
    data_folder *folder = calloc(1, sizeof(*folder));

    if (folder == NULL)
        return 1;
    snprintf(folder->path, sizeof(folder->path), "/tmp/dtrun-data-XXXXXX");
    dt_arena_init(&folder->names, 0);
    folder->recipe.data.split = 0.1;
    folder->recipe.data.cross_documents = true;
    folder->recipe.data.pack = false;
    folder->recipe.data.end_of_text = -1;
    folder->recipe.batch.tokens = 4;
    folder->recipe.data.train.items = folder->items[0];
    folder->recipe.data.validation.items = folder->items[1];
    *state = folder;
    return mkdtemp(folder->path) == NULL;
}

int data_folder_remove(void **state)
{
    data_folder *folder = *state;
    dt_status st = dt_file_remove_tree(folder->path, NULL);

    dt_arena_release(&folder->names);
    free(folder);
    return st != DT_OK;
}

void data_write(const data_folder *folder, const char *name, const void *bytes, size_t length)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void data_write_text(const data_folder *folder, const char *name, const char *text)
{
    data_write(folder, name, text, strlen(text));
}

void data_write_llmc(const data_folder *folder, const char *name, int32_t magic, int32_t version,
                     int32_t count, int width_bytes, const uint32_t *tokens, int64_t written)
{
    size_t length = 1024 + (size_t)written * (size_t)width_bytes;
    char *bytes = calloc(1, length);

    assert_non_null(bytes);
    memcpy(bytes, &magic, 4);
    memcpy(bytes + 4, &version, 4);
    memcpy(bytes + 8, &count, 4);
    for (int64_t i = 0; i < written; i++) {
        uint16_t two = (uint16_t)tokens[i];
        char *at = bytes + 1024 + i * width_bytes;

        if (width_bytes == 2)
            memcpy(at, &two, 2);
        else
            memcpy(at, &tokens[i], 4);
    }
    data_write(folder, name, bytes, length);
    free(bytes);
}

void data_write_uint16(const data_folder *folder, const char *name, const uint16_t *tokens,
                       int64_t count)
{
    data_write(folder, name, tokens, (size_t)count * sizeof(*tokens));
}

static void add(data_folder *folder, int list, dt_string_list *to, const char *name)
{
    const char *path = dt_arena_printf(&folder->names, "%s/%s", folder->path, name);

    assert_non_null(path);
    assert_true(to->count < DATA_MAX_FILES);
    folder->items[list][to->count++] = path;
}

void data_train(data_folder *folder, const char *name)
{
    add(folder, 0, &folder->recipe.data.train, name);
}

void data_validate(data_folder *folder, const char *name)
{
    add(folder, 1, &folder->recipe.data.validation, name);
}

dt_dataset *data_open(const data_folder *folder)
{
    dt_error err = DT_ERROR_INIT;
    dt_dataset *dataset;

    if (dt_dataset_open(&dataset, &folder->recipe, NULL, &err) != DT_OK)
        fail_msg("%s", err.message);
    return dataset;
}

void data_refuse(const data_folder *folder, const char *word, ...)
{
    dt_error of_open = DT_ERROR_INIT, of_check = DT_ERROR_INIT;
    dt_dataset *dataset = NULL;
    dt_dataset_facts facts;
    va_list words;

    assert_int_equal(dt_dataset_open(&dataset, &folder->recipe, NULL, &of_open), DT_ERR_RECIPE);
    assert_null(dataset);
    assert_int_equal(dt_dataset_check(&facts, &folder->recipe, NULL, &of_check), DT_ERR_RECIPE);
    assert_string_equal(of_open.message, of_check.message);
    va_start(words, word);
    for (; word != NULL; word = va_arg(words, const char *))
        if (strstr(of_open.message, word) == NULL)
            fail_msg("no '%s' in: %s", word, of_open.message);
    va_end(words);
}

dt_dataset *data_count_up(data_folder *folder, int64_t tokens, double split)
{
    uint16_t *values = calloc((size_t)tokens, sizeof(*values));

    assert_non_null(values);
    for (int64_t i = 0; i < tokens; i++)
        values[i] = (uint16_t)i;
    data_write_uint16(folder, "count.bin", values, tokens);
    free(values);
    data_train(folder, "count.bin");
    folder->recipe.data.split = split;
    return data_open(folder);
}
