/* torch_int: reads the tensors of files that PyTorch wrote with torch.save, such as pytorch_model.bin.
 *
 * File     a zip archive without compression: NAME/data.pkl, a dictionary of names and tensors as a pickle; the storages
 *          NAME/data/KEY, each the elements of one or more tensors; NAME/byteorder
 * Pickle   a program for a stack machine. Only the instructions that build a dictionary of tensors are known, and of
 *          functions only those of torch that rebuild tensors and collections.OrderedDict: nothing of the file is run
 * Memory   that of data.pkl, a few bytes a tensor; tensors stay in the file
 * Errors   DT_ERR_RECIPE naming the file: another function, instruction or value, a tensor that is not stored row by
 *          row, a file of a torch before 1.6; DT_ERR_CORRUPT: cut off or damaged
 */
#ifndef DT_ENGINE_WEIGHTS_TORCH_INT_H
#define DT_ENGINE_WEIGHTS_TORCH_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "engine/checkpoint/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether the file begins as a zip archive. */
bool dt_torch_is_file(int fd);
/* Reads the names, types, shapes and places of all tensors, as if they were in a safetensors file. */
dt_status dt_torch_read(dt_safetensors *out, int fd, int64_t bytes, const char *path,
                        dt_error *err);

/* pickle: the values of a pickle. */

typedef enum dt_pickle_kind {
    DT_PICKLE_NONE,
    DT_PICKLE_NUMBER, /* a whole number, true or false */
    DT_PICKLE_FLOAT,
    DT_PICKLE_TEXT,
    DT_PICKLE_LIST, /* or a tuple */
    DT_PICKLE_DICT, /* items: keys and values in turn */
    DT_PICKLE_GLOBAL,
    DT_PICKLE_STORAGE,
    DT_PICKLE_TENSOR
} dt_pickle_kind;

typedef struct dt_pickle_value {
    dt_pickle_kind kind;
    int64_t number;   /* STORAGE: elements; TENSOR: first element */
    const char *text; /* GLOBAL: "module name"; STORAGE: its key */
    const char *type; /* STORAGE: "FloatStorage" */
    /* LIST, DICT; TENSOR: storage, sizes, strides */
    struct dt_pickle_value **items;
    int64_t count, room;
} dt_pickle_value;

/* *out lives in the arena. */
dt_status dt_pickle_read(const dt_pickle_value **out, const unsigned char *bytes, size_t length,
                         const char *path, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
