/* thrift: writes structs in Thrift's compact protocol, which Parquet's headers use.
 *
 * Fields of a struct are added in rising order. Each begun struct must be ended.
 */
#ifndef DT_EXPORT_THRIFT_H
#define DT_EXPORT_THRIFT_H

#include <stdint.h>

#include "base/strbuf.h"

enum { DT_THRIFT_DEPTH = 8 };

typedef struct dt_thrift {
    dt_strbuf *out;
    int last[DT_THRIFT_DEPTH]; /* the previous field of each open struct */
    int depth;
} dt_thrift;

void dt_thrift_init(dt_thrift *thrift, dt_strbuf *out); /* inside the outermost struct */
void dt_thrift_add_i32(dt_thrift *thrift, int field, int32_t value);
void dt_thrift_add_i64(dt_thrift *thrift, int field, int64_t value);
void dt_thrift_add_text(dt_thrift *thrift, int field, const char *text);
void dt_thrift_begin(dt_thrift *thrift,
                     int field);       /* a struct as a field; 0: as an item of a list */
void dt_thrift_end(dt_thrift *thrift); /* of the struct begun last, or the outermost */

typedef enum dt_thrift_type {
    DT_THRIFT_I32 = 5,
    DT_THRIFT_TEXT = 8,
    DT_THRIFT_STRUCT = 12
} dt_thrift_type;
/* Begins a list of `count` items, added by the two functions below or by dt_thrift_begin(thrift, 0). */
void dt_thrift_begin_list(dt_thrift *thrift, int field, dt_thrift_type type, size_t count);
void dt_thrift_item_i32(dt_thrift *thrift, int32_t value);
void dt_thrift_item_text(dt_thrift *thrift, const char *text);

/* Adds a varint: seven bits a byte, the lowest first. */
void dt_varint_add(dt_strbuf *out, uint64_t value);

#endif
