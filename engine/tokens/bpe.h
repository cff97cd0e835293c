/* bpe: makes numbers of text and text of numbers, by a tokenizer that was learned elsewhere.
 *
 * Files     tokenizer.json of Hugging Face, with a model of kind BPE (byte-level, as GPT-2, Llama 3, Qwen and
 *           DeepSeek have it, or on characters with byte fallback, as Llama 2 has it) or Unigram (as T5, ALBERT,
 *           XLM-R and NLLB have it); tiktoken's files (a token in base64 and its number a line), which do not
 *           contain how text is split and what the special tokens are: dtrun knows it by their names or sizes
 * Ids       are those of the libraries `tokenizers` (dt_bpe_around has what a post-processor adds) and
 *           `tiktoken` (every special token allowed)
 * Unknown   what a file asks for and is not known here is refused by its name, never ignored
 * Unicode   that of the libutf8proc in this build, 15.0 on Debian 12: letters of later versions (5,004, most of them
 *           hieroglyphs and rare Han) are not letters here, but are in libraries that have 16.0
 * Threads   a dt_bpe is read only; an encoder is one thread's
 * Errors    DT_ERR_CORRUPT naming the file and what is wrong in it, DT_ERR_UNSUPPORTED what is not
 *           known here; DT_ERR_USAGE for text that is not UTF-8, with the byte
 */
#ifndef DT_ENGINE_TOKENS_BPE_H
#define DT_ENGINE_TOKENS_BPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BPE_MAX_BYTES ((size_t)256 << 20) /* of a file */

typedef struct dt_bpe dt_bpe;
typedef struct dt_bpe_encoder dt_bpe_encoder;

/* A list of token ids that grows. Zeroed before its first use. */
typedef struct dt_ids {
    int32_t *items;
    size_t count, capacity;
} dt_ids;

void dt_ids_release(dt_ids *ids);
dt_status dt_ids_add(dt_ids *ids, int32_t id, dt_error *err);

/* `name` is the file's, for messages and to know a tiktoken file by. */
dt_status dt_bpe_parse(dt_bpe **out, const char *bytes, size_t length, const char *name,
                       dt_error *err);
void dt_bpe_free(dt_bpe *bpe);

/* The largest id + 1. Ids may have holes. */
int64_t dt_bpe_vocab(const dt_bpe *bpe);
/* What stands between documents, "<|endoftext|>" for example; -1: there is none. */
int32_t dt_bpe_end_of_text(const dt_bpe *bpe);

/* The special tokens that the file's post-processor puts around a text: "<s>" before it, for example. They are not
 * part of what dt_bpe_encode returns. Borrowed from the tokenizer. */
typedef struct dt_bpe_around {
    const int32_t *before, *after;
    size_t before_count, after_count;
} dt_bpe_around;

dt_bpe_around dt_bpe_get_around(const dt_bpe *bpe);
/* Whether the file has 'truncation' or 'padding' set. Both are ignored: texts are neither cut nor filled. */
bool dt_bpe_ignores_limits(const dt_bpe *bpe);

/* The first place at or behind text[from] where the text can be cut in two that together have the
 * tokens of the whole, so that many can work on it: `length` where there is none. */
size_t dt_bpe_cut(const dt_bpe *bpe, const char *text, size_t length, size_t from);

dt_status dt_bpe_encoder_open(dt_bpe_encoder **out, const dt_bpe *bpe, dt_error *err);
void dt_bpe_encoder_close(dt_bpe_encoder *encoder);
/* DT_ERR_USAGE, with the byte, where it is not UTF-8. */
dt_status dt_bpe_check_text(const char *text, size_t length, dt_error *err);
/* Appends the ids of a text of its own. */
dt_status dt_bpe_encode(dt_ids *out, dt_bpe_encoder *encoder, const char *text, size_t length,
                        dt_error *err);

/* Appends the bytes of one token, which may be a part of a character; U+FFFD for one that is not in
 * the vocabulary. */
void dt_bpe_decode(dt_strbuf *out, const dt_bpe *bpe, int32_t id);

/* Whether a whole text loses its first character if that is a space: the tokenizer put it there. dt_bpe_decode keeps
 * it, since a token does not know whether it is the first. */
bool dt_bpe_drops_first_space(const dt_bpe *bpe);

#ifdef __cplusplus
}
#endif
#endif
