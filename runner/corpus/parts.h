/* parts: divides a corpus into parts that one thread reads at a time, and writes files of tokens.
 *
 * The division depends only on the files and the tokenizer.
 */
#ifndef DT_RUNNER_CORPUS_PARTS_H
#define DT_RUNNER_CORPUS_PARTS_H

#include "base/arena.h"
#include "engine/data/files.h"
#include "engine/data/mapping.h"
#include "engine/tokens/bpe.h"
#include "runner/corpus/documents.h"

#define DT_CORPUS_HEADER_BYTES 1024 /* engine/data/bin.h */

typedef struct dt_corpus_file {
    const char *path;
    dt_corpus_kind kind;
    dt_mapping text;
    int64_t column; /* of the text, in a .csv */
} dt_corpus_file;

typedef struct dt_corpus_part {
    const dt_corpus_file *file;
    size_t start, end;
    /* For text: the part has the beginning of its file, or the end. */
    bool begins_document, ends_document;
} dt_corpus_part;

typedef struct dt_corpus_parts {
    dt_corpus_file *files;
    int64_t file_count;
    dt_corpus_part *items;
    int64_t count, capacity;
} dt_corpus_parts;

/* Maps the files and divides them. dt_corpus_parts_release accepts a zeroed struct. */
dt_status dt_corpus_parts_open(dt_corpus_parts *out, const dt_data_files *files, const char *field,
                               const dt_bpe *bpe, dt_error *err);
void dt_corpus_parts_release(dt_corpus_parts *parts);

/* Passes the documents of a part to `add`. DT_ERR_RECIPE naming file and byte, also if `add` returns DT_ERR_USAGE. */
dt_status dt_corpus_part_read(dt_documents *documents, const dt_corpus_part *part,
                              const char *field, dt_document_fn *add, void *context, dt_error *err);
/* Appends the tokens of a part: for each document its own tokens, with those that the
 * post-processor puts before and after a text, and the end-of-text token unless the document ends
 * with it. DT_ERR_RECIPE naming file and byte. */
dt_status dt_corpus_part_encode(dt_ids *ids, dt_documents *documents, const dt_corpus_part *part,
                                const char *field, dt_bpe_encoder *encoder, const dt_bpe *bpe,
                                dt_error *err);

/* Does the same for about the first `bytes` bytes of a file. *whole: the file has no more. */
dt_status dt_corpus_head_encode(dt_ids *ids, dt_documents *documents, bool *whole, const char *path,
                                size_t bytes, const char *field, dt_bpe_encoder *encoder,
                                const dt_bpe *bpe, dt_error *err);

/* Writes a file in llm.c's format atomically. */
dt_status dt_corpus_tokens_write(const char *path, const dt_ids *ids, bool wide, dt_error *err);

#endif
