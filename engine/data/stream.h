/* stream: joins the tokens of several files in order, each piece in its own width.
 *
 * Widths  1 (bytes, small alphabets), 2, 4 or 8 bytes, unsigned: a .bin file is used in place when
 *         mapped, and a text takes one byte per token if its alphabet has at most 256 characters
 * Ownership  a piece owns its mapping or its memory
 */
#ifndef DT_ENGINE_STREAM_H
#define DT_ENGINE_STREAM_H

#include <stdint.h>

#include "engine/data/mapping.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_token_piece {
    const char *path; /* path of the file, borrowed, for messages */
    const unsigned char *tokens;
    int width_bytes;
    int64_t start, count; /* range of the piece in the stream */
    dt_mapping mapping;   /* mapped file; zeroed if `memory` holds the tokens */
    void *memory;
} dt_token_piece;

typedef struct dt_token_stream {
    dt_token_piece *pieces;
    int64_t piece_count, count;
} dt_token_stream;

/* Allocate a stream for up to `pieces` pieces, without any yet. */
dt_status dt_token_stream_init(dt_token_stream *out, int64_t pieces, dt_error *err);
void dt_token_stream_release(dt_token_stream *stream); /* accepts a zeroed stream */
/* Takes the piece; sets its `start`. */
void dt_token_stream_add(dt_token_stream *stream, const dt_token_piece *piece);

/* Read tokens start .. start+count, which must be in the stream; a token above int32 is cut to its
 * lower 32 bits. */
void dt_token_stream_read(int32_t *out, const dt_token_stream *stream, int64_t start,
                          int64_t count);

/* DT_ERR_RECIPE naming file and position of the first of tokens start .. start+count that is not
 * below `limit`. */
dt_status dt_token_stream_check(const dt_token_stream *stream, int64_t start, int64_t count,
                                int64_t limit, dt_error *err);
/* The largest token; -1 for an empty stream. */
int64_t dt_token_stream_max(const dt_token_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
