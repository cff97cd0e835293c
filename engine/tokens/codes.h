/* codes: applies subword-nmt's byte pair encoding: splits the words of a line into pieces, with "@@ " between the
 * pieces of one word.
 *
 *   file    "#version: 0.2", then one merge per line, "a b", the earliest first; without the first line the version
 *           is 0.1. fastBPE's "a b count" is also read, as version 0.2
 *   0.2     "</w>" is a part of a word's last character; 0.1: a character of its own
 *   merge   the pair of neighbours in a word that is earliest in the file, at all its places from left to right;
 *           repeated until no pair is in the file
 *
 * Source     subword-nmt/apply_bpe.py; no glossaries, no dropout
 * Threads    read-only after parsing
 * Errors     DT_ERR_CORRUPT naming file and line; DT_ERR_NOMEM
 */
#ifndef DT_ENGINE_TOKENS_CODES_H
#define DT_ENGINE_TOKENS_CODES_H

#include "engine/tokens/pairs.h"
#include "engine/tokens/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_codes {
    dt_vocab symbols; /* both inputs and the result of every merge */
    dt_pairs merges;
    bool end_apart; /* version 0.1: "</w>" is a character of its own */
} dt_codes;

/* Parses a file. `name` is its name, for messages. Release with dt_codes_release, which accepts a zeroed one. */
dt_status dt_codes_parse(dt_codes *out, const char *bytes, size_t length, const char *name,
                         dt_error *err);
void dt_codes_release(dt_codes *codes);

/* Appends the pieces of the words of a line (UTF-8), which is split at spaces. */
dt_status dt_codes_apply(dt_strbuf *out, const dt_codes *codes, const char *text, size_t length,
                         dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
