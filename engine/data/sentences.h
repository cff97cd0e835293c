/* sentences: reads and writes sentence pairs as ids in one file, which is used in place when mapped.
 *
 *   0    "DTPAIRS", and a byte 1: the version
 *   8    int64 pairs N, int64 ids of all sources A, int64 ids of all targets B
 *   32   int32 bytes of an id: 2 or 4; then zeros
 *   64   int64 (N+1) first id of each source, and A; the same of the targets, and B
 *        the A ids of the sources, then the B of the targets, unsigned
 *
 * All little-endian. Every sentence includes its end token, so it has at least one id.
 * Errors  DT_ERR_RECIPE naming the file: another format, cut off, of a later version
 */
#ifndef DT_ENGINE_DATA_SENTENCES_H
#define DT_ENGINE_DATA_SENTENCES_H

#include <stdint.h>

#include "base/strbuf.h"
#include "engine/data/mapping.h"
#include "engine/tokens/bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_language { DT_SOURCE, DT_TARGET, DT_LANGUAGES } dt_language;

typedef struct dt_sentences {
    const char *path; /* path of the file, borrowed */
    dt_mapping mapping;
    int64_t count;
    int width_bytes;
    const int64_t *starts[DT_LANGUAGES];    /* (count+1): first id of each sentence */
    const unsigned char *ids[DT_LANGUAGES]; /* ids of all sentences, in the mapping */
} dt_sentences;

dt_status dt_sentences_open(dt_sentences *out, const char *path, dt_error *err);
void dt_sentences_close(dt_sentences *sentences); /* accepts a zeroed value */

static inline int64_t dt_sentence_length(const dt_sentences *sentences, dt_language language,
                                         int64_t pair)
{
    const int64_t *start = sentences->starts[language] + pair;

    return start[1] - start[0];
}

/* Read dt_sentence_length ids. DT_ERR_RECIPE naming file and pair if an id is not below `limit`. */
dt_status dt_sentence_read(int32_t *out, const dt_sentences *sentences, dt_language language,
                           int64_t pair, int64_t limit, dt_error *err);

/* Append the header, up to the ids. starts: as in dt_sentences. */
void dt_sentences_head(dt_strbuf *out, int64_t count, int width_bytes,
                       const int64_t *const starts[DT_LANGUAGES]);
/* Append ids in the given width. */
void dt_sentences_ids(dt_strbuf *out, int width_bytes, const int32_t *ids, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
