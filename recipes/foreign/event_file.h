/* event_file: reads the records of TensorBoard's event files.
 *
 * Format     records: uint64 length, masked CRC-32C of it (base/file.h), an Event (protocol buffer), masked CRC-32C of it.
 *            Event: wall_time (1) double, step (2) varint, summary (5); summary: value (1)*; value: tag (1), simple_value
 *            (2) float, tensor (8) of dtype (1) float or double with one value, in float_val (5), double_val (6) or
 *            tensor_content (4)
 * Ownership  a tag is borrowed during the call, and not ended by '\0'
 * Errors     DT_ERR_CORRUPT: a checksum is wrong, and the next record cannot be found
 */
#ifndef DT_RECIPES_FOREIGN_EVENT_FILE_H
#define DT_RECIPES_FOREIGN_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_event_value {
    int64_t step, time_ms;
    const char *tag;
    size_t tag_length;
    bool scalar; /* false: an image, a histogram, ...; without a value */
    double value;
} dt_event_value;

typedef dt_status dt_event_take(void *context, const dt_event_value *value, dt_error *err);

/* Reads all complete records of `length` bytes, which are at `offset` of the file `path` (for messages). *used: their
 * size; a last record that is incomplete is still being written. */
dt_status dt_event_file_read(size_t *used, const void *bytes, size_t length, const char *path,
                             int64_t offset, dt_event_take *take, void *context, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
