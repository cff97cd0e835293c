/* safetensors: reads the fixtures of this folder, for tests.
 *
 * Format  8 bytes: length n of the header, little endian; n bytes of JSON: name → {"dtype",
 *         "shape", "data_offsets": [from, to]}; the data, offsets counted from its start
 * Errors  a failing call fails the running test
 */
#ifndef DT_TESTS_GOLDEN_SAFETENSORS_H
#define DT_TESTS_GOLDEN_SAFETENSORS_H

#include "base/json.h"

typedef struct fixture {
    dt_strbuf text;
    json_t *header;
} fixture;

void fixture_open(fixture *out, const char *path);
void fixture_close(fixture *f);

/* Returns the data of a tensor, checked to be `elems` of `dtype` ("F32"); lives as long as the
 * fixture. */
const void *fixture_get(const fixture *f, const char *name, const char *dtype, int64_t elems);

/* Returns a number of the file's metadata. */
double fixture_number(const fixture *f, const char *name);

#endif
