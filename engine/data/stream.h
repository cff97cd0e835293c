/* stream: the tokens of several files in order; sequences of whole documents (data.pack); and the marks
 * that separate documents within a sample (data.cross_documents: false).
 *
 * Widths  1 (bytes, small alphabets), 2, 4 or 8 bytes, unsigned: a .bin file is used in place when
 *         mapped, and a text takes one byte per token if its alphabet has at most 256 characters
 * Ownership  a piece owns its mapping or its memory
 */
#ifndef DT_ENGINE_DATA_STREAM_H
#define DT_ENGINE_DATA_STREAM_H

#include <stdint.h>

#include "engine/data/data.h"
#include "engine/data/files.h"
#include "recipes/fields/recipe.h"

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

/* Move the first kept[i] tokens of each part to `head`, and the rest to `tail`, which borrows what it shares with a piece
 * of `head`. files[i]: pieces of each part. Both are new, and `stream` is then empty. */
dt_status dt_token_stream_divide(dt_token_stream *head, dt_token_stream *tail,
                                 dt_token_stream *stream, const int64_t files[],
                                 const int64_t kept[], int64_t parts, dt_error *err);

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

/* packs: cuts a text at the ends of documents, so that sequences contain whole documents (data.pack).
 *
 * Filled     in the order of the text: a document that does not fit into the rest of a sequence starts the
 *            next one. A document of more than T tokens also starts a sequence, and is cut every T tokens;
 *            whole documents can follow its last piece
 * Place      a sequence is a contiguous range of up to T tokens, followed by padding: every token is in
 *            exactly one sequence. The sampler shuffles the sequences; the cuts are the same in every
 *            epoch and for every number of ranks
 * Cost       one pass over all tokens when data are opened, and 8 bytes per sequence
 * Threads    any, once made
 */

typedef struct dt_packs {
    int64_t count;
    int64_t *starts; /* (count+1): first token of each sequence */
} dt_packs;

/* Whether to pack; data.pack has no effect if documents are not separated. */
static inline bool dt_packs_asked(const dt_recipe *recipe)
{
    return recipe->data.pack && dt_recipe_separates(recipe);
}

/* Whether the sequences of an epoch are fixed: packs, and rows of conversations. */
static inline bool dt_packs_fixed(const dt_recipe *recipe)
{
    return dt_packs_asked(recipe) || recipe->data.format == DT_DATA_CHAT;
}

/* Pack the tokens first .. first+count into sequences of T = `tokens`. end: the token that ends
 * documents. */
dt_status dt_packs_make(dt_packs *out, const dt_token_stream *stream, int64_t first, int64_t count,
                        int64_t tokens, int32_t end, dt_error *err);
/* Append packs that start where those of `out` end; releases `more`. */
dt_status dt_packs_join(dt_packs *out, dt_packs *more, dt_error *err);
void dt_packs_release(dt_packs *packs); /* accepts a zeroed value */

/* Number of tokens of a sequence. */
static inline int64_t dt_packs_length(const dt_packs *packs, int64_t index)
{
    return packs->starts[index + 1] - packs->starts[index];
}

/* documents: marks documents in samples so that their tokens do not see each other (data.cross_documents:
 * false).
 *
 * A document ends with its end-of-text token; the next token starts a new document. Positions
 * count from a document's first token, attention starts there, and the end-of-text token, which could only
 * predict the first token of the next document, has no target. The losses of documents that share a sample
 * are those of each alone (unit.model_documents).
 *
 * Threads    any
 */

#define DT_DOCUMENTS_CROSSED (-1) /* special value: documents are not separated */

/* *out: the token that ends documents: data.end_of_text, or the tokenizer's (tokenizer can be
 * NULL), or DT_DOCUMENTS_CROSSED. vocab: vocabulary of the data, 0: unknown. DT_ERR_RECIPE if a
 * token is needed but not known, or is outside the vocabulary. */
dt_status dt_documents_end(int32_t *out, const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                           int64_t vocab, dt_error *err);

/* For one sample: set targets of end-of-text tokens to -1; starts: index of the first token of each
 * token's document; positions: position within the document. All (count). */
void dt_documents_mark(int32_t *targets, int32_t *starts, int32_t *positions, const int32_t *tokens,
                       int64_t count, int32_t end);

#ifdef __cplusplus
}
#endif

#endif
