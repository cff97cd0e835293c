/* data_support: makes a folder of data files, and a recipe that names them. */
#ifndef DT_TESTS_DATA_SUPPORT_H
#define DT_TESTS_DATA_SUPPORT_H

#include <stdint.h>

#include "base/memory.h"
#include "engine/data/data.h"

#define DATA_MAX_FILES 8

typedef struct data_folder {
    char path[64];
    dt_arena names;
    const char *items[2][DATA_MAX_FILES]; /* lists of the recipe */
    dt_recipe recipe;
} data_folder;

/* For cmocka: *state is a fresh data_folder; its recipe has T = 4, split 0.1 and no file. */
int data_folder_make(void **state);
int data_folder_remove(void **state);

/* Writes `name` in the folder. */
void data_write(const data_folder *folder, const char *name, const void *bytes, size_t length);
void data_write_text(const data_folder *folder, const char *name, const char *text);
/* An llm.c file: header, then tokens of `width_bytes`. */
void data_write_llmc(const data_folder *folder, const char *name, int32_t magic, int32_t version,
                     int32_t count, int width_bytes, const uint32_t *tokens, int64_t written);
void data_write_uint16(const data_folder *folder, const char *name, const uint16_t *tokens,
                       int64_t count);

/* Adds a file or pattern of the folder to the recipe. */
void data_train(data_folder *folder, const char *name);
void data_validate(data_folder *folder, const char *name);

/* Opens the data, which must succeed; the caller closes it. */
dt_dataset *data_open(const data_folder *folder);
/* Opens a text of the ids 0, 1, 2, ..., in which each token equals its place. */
dt_dataset *data_count_up(data_folder *folder, int64_t tokens, double split);
/* Checks that the data can neither be opened nor pass the check, and that the message contains
 * each of the words (NULL ends). */
void data_refuse(const data_folder *folder, const char *word, ...);

#endif
