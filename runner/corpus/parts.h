/* parts: what one thread reads at a time, and the file of tokens that it writes.
 *
 * Where files are cut depends on them and on the tokenizer alone.
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
    int64_t column; /* csv */
} dt_corpus_file;

typedef struct dt_corpus_part {
    const dt_corpus_file *file;
    size_t start, end;
    bool begins_document, ends_document; /* text: the beginning, the end of its file */
} dt_corpus_part;

typedef struct dt_corpus_parts {
    dt_corpus_file *files;
    int64_t file_count;
    dt_corpus_part *items;
    int64_t count, capacity;
} dt_corpus_parts;

/* Maps the files and cuts them. Released by dt_corpus_parts_release, which accepts a zeroed one. */
dt_status dt_corpus_parts_open(dt_corpus_parts *out, const dt_data_files *files, const char *field,
                               const dt_bpe *bpe, dt_error *err);
void dt_corpus_parts_release(dt_corpus_parts *parts);

/* The texts of a part. DT_ERR_RECIPE naming file and byte, also where `add` says DT_ERR_USAGE. */
dt_status dt_corpus_part_read(dt_documents *documents, const dt_corpus_part *part,
                              const char *field, dt_document_fn *add, void *context, dt_error *err);
/* Appends the tokens of a part: of each document what stands before a text, its own, what stands after it, and the
 * end of the text unless that is the last one already. DT_ERR_RECIPE naming file and byte. */
dt_status dt_corpus_part_encode(dt_ids *ids, dt_documents *documents, const dt_corpus_part *part,
                                const char *field, dt_bpe_encoder *encoder, const dt_bpe *bpe,
                                dt_error *err);

/* A file in llm.c's format, under its name only when it is on the disk. */
dt_status dt_corpus_tokens_write(const char *path, const dt_ids *ids, bool wide, dt_error *err);

#endif
