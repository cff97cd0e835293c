/* bpe: encodes text as token ids and decodes ids, with a tokenizer file that was trained elsewhere, and
 * writes a trained tokenizer as a tokenizer.json.
 *
 * Files     tokenizer.json of Hugging Face, with a BPE model (byte-level as in GPT-2, Llama 3, Qwen and DeepSeek, or
 *           on characters with byte fallback as in Llama 2) or a Unigram model (as in T5, ALBERT, XLM-R and
 *           NLLB) or a WordPiece model (as in BERT); tiktoken files (a base64 token and its id per line), which do not contain the split pattern
 *           and the special tokens: these are derived from the file's name or size
 * Ids       equal those of the libraries `tokenizers` (dt_bpe_around has what a post-processor adds) and
 *           `tiktoken` (every special token allowed)
 * Unknown   an unsupported feature of a file is refused by its name, never ignored
 * Unicode   the version of the libutf8proc in this build, 15.0 on Debian 12: letters of later versions (5,004, most
 *           of them hieroglyphs and rare Han) are not letters here, but are in libraries that have 16.0. What BERT's parts
 *           call marks, controls and punctuation is older in the library: 568 code points differ
 * Threads   a dt_bpe is read-only; an encoder belongs to one thread
 * Errors    DT_ERR_CORRUPT naming the file and the fault, DT_ERR_UNSUPPORTED naming the feature; DT_ERR_USAGE for
 *           text that is not UTF-8, with the byte
 */
#ifndef DT_ENGINE_TOKENS_BPE_H
#define DT_ENGINE_TOKENS_BPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "engine/tokens/split.h"
#include "engine/tokens/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BPE_MAX_BYTES ((size_t)256 << 20) /* bytes of a tokenizer file */

typedef struct dt_bpe dt_bpe;
typedef struct dt_bpe_encoder dt_bpe_encoder;

/* A list of token ids that grows. Zeroed before its first use. */
typedef struct dt_ids {
    int32_t *items;
    size_t count;
    int64_t capacity;
} dt_ids;

void dt_ids_release(dt_ids *ids);
dt_status dt_ids_add(dt_ids *ids, int32_t id, dt_error *err);

/* Parses a file. `name` is its name, for messages and to identify a tiktoken file. */
dt_status dt_bpe_parse(dt_bpe **out, const char *bytes, size_t length, const char *name,
                       dt_error *err);
void dt_bpe_free(dt_bpe *bpe);

/* Returns the largest id + 1. Ids may have holes. */
int64_t dt_bpe_vocab(const dt_bpe *bpe);
/* Returns the token between documents, "<|endoftext|>" for example; -1: none. */
int32_t dt_bpe_end_of_text(const dt_bpe *bpe);
/* Returns the token of unknown characters, "<unk>" for example; -1: none. */
int32_t dt_bpe_unknown(const dt_bpe *bpe);

/* The special tokens that the file's post-processor puts around a text: "<s>" before it, for example. They are not
 * part of what dt_bpe_encode returns. Borrowed from the tokenizer. */
typedef struct dt_bpe_around {
    const int32_t *before, *after;
    size_t before_count, after_count;
} dt_bpe_around;

dt_bpe_around dt_bpe_get_around(const dt_bpe *bpe);

/* A token that is cut out of a text before it is split into words. special: a control token, such as "<|im_end|>". */
typedef struct dt_bpe_added {
    const char *text;
    int32_t id;
    bool special;
} dt_bpe_added;

/* Returns the added tokens in the order of the file; borrowed from the tokenizer. */
const dt_bpe_added *dt_bpe_get_added(size_t *count, const dt_bpe *bpe);
/* Makes a token the one between documents. Returns false and changes nothing if no token has the id. */
bool dt_bpe_set_end_of_text(dt_bpe *bpe, int64_t id);

/* tokenizer_config.c: reads what the other files in the folder of a tokenizer.json say about it. The token between
 * documents becomes the `eos_token` of tokenizer_config.json or special_tokens_map.json, else the first
 * `eos_token_id` of config.json; without these files nothing changes. Settings with which transformers'
 * AutoTokenizer makes other ids become warnings. DT_ERR_CORRUPT naming the file. */
dt_status dt_bpe_read_folder(dt_bpe *bpe, const char *folder, dt_error *err);

/* Returns the settings that were not applied, one a line without a final line break; "": none. Borrowed. */
const char *dt_bpe_warnings(const dt_bpe *bpe);
/* Returns true if the file sets 'truncation' or 'padding'. Both are ignored. */
bool dt_bpe_ignores_limits(const dt_bpe *bpe);

/* Returns the first position at or after text[from] where the text can be cut without changing its tokens, so that
 * several threads can encode it, each part after the first with dt_bpe_encode_rest; `length` if there is none. */
size_t dt_bpe_cut(const dt_bpe *bpe, const char *text, size_t length, size_t from);

dt_status dt_bpe_encoder_open(dt_bpe_encoder **out, const dt_bpe *bpe, dt_error *err);
void dt_bpe_encoder_close(dt_bpe_encoder *encoder);
/* DT_ERR_USAGE, with the byte, if the text is not UTF-8. */
dt_status dt_bpe_check_text(const char *text, size_t length, dt_error *err);
/* Appends the ids of a complete text, or of its first part. */
dt_status dt_bpe_encode(dt_ids *out, dt_bpe_encoder *encoder, const char *text, size_t length,
                        dt_error *err);
/* Decides whether an added token may be recognised in bytes from .. to of the text; otherwise they are ordinary text. */
typedef bool dt_bpe_allow_fn(void *context, int32_t id, size_t from, size_t to);

/* The same as dt_bpe_encode, but only with the added tokens that `allow` allows. */
dt_status dt_bpe_encode_allowed(dt_ids *out, dt_bpe_encoder *encoder, const char *text,
                                size_t length, dt_bpe_allow_fn *allow, void *context,
                                dt_error *err);
/* Appends the ids of a part that begins where dt_bpe_cut has cut a text. */
dt_status dt_bpe_encode_rest(dt_ids *out, dt_bpe_encoder *encoder, const char *text, size_t length,
                             dt_error *err);

/* Appends the bytes of one token, which can be a part of a character; U+FFFD for an id that is not in the
 * vocabulary. */
void dt_bpe_decode(dt_strbuf *out, const dt_bpe *bpe, int32_t id);

/* Returns true if a decoded text must lose its first character if that is a space, which the tokenizer added.
 * dt_bpe_decode keeps it, since a token does not know whether it is the first. */
bool dt_bpe_drops_first_space(const dt_bpe *bpe);

/* write: writes a trained tokenizer as a tokenizer.json that Hugging Face's libraries and dt_bpe_parse read:
 * byte-level, with text split as in GPT-2, Llama 3 or Qwen. */

typedef struct dt_bpe_merge {
    int32_t first, second; /* ids; the first merge of the list is tried first */
} dt_bpe_merge;

typedef struct dt_bpe_draft {
    dt_vocab vocab;        /* ids without holes: special tokens, the 256 bytes, merged tokens */
    int64_t special_count; /* special tokens have the ids below this one */
    const dt_bpe_merge *merges;
    int64_t merge_count;
    dt_split_kind split; /* GPT2, LLAMA3 or QWEN */
} dt_bpe_draft;

/* Begins a draft with the special tokens (UTF-8) and the 256 bytes, in the order of the library's trainer.
 * DT_ERR_USAGE: a special token that is empty or a single byte's, or given twice. */
dt_status dt_bpe_draft_begin(dt_bpe_draft *out, const char *const *special, size_t special_count,
                             dt_split_kind split, dt_error *err);
void dt_bpe_draft_release(dt_bpe_draft *draft); /* not the merges; accepts a zeroed one */

/* unicode.c: returns the printable character that stands for a byte in a byte-level vocabulary. */
uint32_t dt_byte_map_code(unsigned char byte);

/* Returns the tokenizer.json, a new reference; NULL if memory is exhausted. */
json_t *dt_bpe_draft_json(const dt_bpe_draft *draft);

#ifdef __cplusplus
}
#endif

#endif
