/* documents: reads the documents of a file, or of a part of a file that begins and ends between documents.
 *
 *   text    the file is one document; a part of it is a piece of the document
 *   jsonl   one document per line: the string of a key
 *   csv     one document per record: the field of a column, which the first record names
 *
 * A line or record without this text, or with an empty one, is counted as broken and left out.
 * Errors  those of `add`; DT_ERR_RECIPE: a .csv without the column
 */
#ifndef DT_RUNNER_CORPUS_DOCUMENTS_H
#define DT_RUNNER_CORPUS_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

typedef enum dt_corpus_kind { DT_CORPUS_TEXT, DT_CORPUS_JSONL, DT_CORPUS_CSV } dt_corpus_kind;

/* Returns the kind by the name's ending: .jsonl and .json, .csv; all others are text. */
dt_corpus_kind dt_corpus_kind_of(const char *path);

#define DT_BROKEN_NAMED 3

typedef struct dt_documents {
    int64_t documents, lines, bytes; /* bytes of text */
    int64_t broken;
    int64_t broken_lines[DT_BROKEN_NAMED]; /* the first ones, from 1, within the part */
    char broken_why[80];                   /* of the first */
} dt_documents;

/* More than one in a thousand, and more than 10. */
bool dt_documents_too_broken(int64_t broken, int64_t lines);

typedef dt_status dt_document_fn(void *context, const char *text, size_t length, dt_error *err);

/* Calls `add` for each document of `text`, and adds to the counts of *out. field: the key, for
 * jsonl. column: for csv, from 0. */
dt_status dt_documents_read(dt_documents *out, dt_corpus_kind kind, const char *text, size_t length,
                            const char *field, int64_t column, dt_document_fn *add, void *context,
                            dt_error *err);

/* Returns the bytes of the first record of a .csv, with its line break. */
size_t dt_csv_record(const char *text, size_t length);
/* Replaces *out with a field of the record at `text`, which has no line break; false: it has fewer fields. */
bool dt_csv_field(dt_strbuf *out, const char *text, size_t length, int64_t column);
/* Returns the column of this name in the record at `text`; -1: none. */
int64_t dt_csv_column(const char *text, size_t length, const char *name);

#endif
