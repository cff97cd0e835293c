/* bpe_int: defines the parts of a tokenizer, for the files that read and use one. */
#ifndef DT_ENGINE_TOKENS_BPE_INT_H
#define DT_ENGINE_TOKENS_BPE_INT_H

#include <stddef.h>

#include "base/arena.h"
#include "base/json.h"
#include "engine/tokens/added.h"
#include "engine/tokens/bpe.h"
#include "engine/tokens/charsmap.h"
#include "engine/tokens/forms.h"
#include "engine/tokens/joints.h"
#include "engine/tokens/pairs.h"
#include "engine/tokens/split.h"
#include "engine/tokens/unigram.h"
#include "engine/tokens/vocab.h"
#include "engine/tokens/write.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BPE_STEPS 16 /* published: at most 10, ALBERT */

typedef enum dt_normal_kind {
    DT_NORMAL_FORM,
    DT_NORMAL_PREPEND,
    DT_NORMAL_REPLACE,
    DT_NORMAL_REPLACE_SPACES, /* two or more in a row become one `to` */
    DT_NORMAL_STRIP,
    DT_NORMAL_STRIP_ACCENTS,
    DT_NORMAL_LOWERCASE,
    DT_NORMAL_NMT,
    DT_NORMAL_CHARSMAP
} dt_normal_kind;

/* Pointers are into the arena. */
typedef struct dt_normal_step {
    dt_normal_kind kind;
    dt_form form;          /* FORM */
    const char *from, *to; /* REPLACE; PREPEND and REPLACE_SPACES use only `to` */
    bool left, right;      /* STRIP */
    const dt_charsmap *charsmap;
} dt_normal_step;

/* Replaces spaces with `mark`; each mark starts a word. */
typedef struct dt_metaspace {
    const char *mark; /* NULL: the tokenizer has no Metaspace */
    enum { DT_PREPEND_NEVER, DT_PREPEND_FIRST, DT_PREPEND_ALWAYS } prepend;
    bool split;
} dt_metaspace;

struct dt_bpe {
    dt_arena arena;
    dt_vocab vocab;
    dt_pairs merges;    /* BPE only */
    dt_joints joints;   /* BPE on characters only */
    dt_unigram unigram; /* Unigram only */
    bool is_unigram;
    int32_t bytes[256]; /* byte-level: id of each byte; else id of "<0x41>"; -1: none */
    int32_t ascii[128]; /* BPE on characters: id of each one; -1: none */
    bool keeps_spaces;  /* words keep their spaces, for which ascii[' '] is the token of the mark */
    int32_t unknown;    /* id of the unknown token; -1: none */
    int32_t end_of_text;
    dt_ids before, after; /* tokens that the post-processor puts around a text */
    bool ignores_limits;
    dt_strbuf warnings; /* dt_bpe_warnings */
    bool byte_level, byte_fallback, ignore_merges, fuse_unknown;
    bool reaches_over_breaks; /* an added token can span a line break */
    bool drops_breaks;        /* an added token can end with a line break that it drops */
    bool separates_lines;     /* a line break always separates words, like a space */

    dt_added raw;        /* added tokens found in the text before normalization */
    dt_added normalized; /* added tokens found in the rest after normalization */
    dt_normal_step steps[DT_BPE_STEPS];
    int step_count;
    bool prefix_space; /* puts a space before each text between added tokens, if it has none */
    bool drops_spaces; /* words are separated at white space, which is dropped */
    dt_split split;
    dt_metaspace metaspace;
    const char *space;      /* what the decoder replaces with a space; NULL: nothing */
    bool drops_first_space; /* the decoder drops the space before the first word */
};

/* Returns whether words end where joints.h allows it, instead of where `split` cuts. */
static inline bool dt_bpe_uses_joints(const dt_bpe *bpe)
{
    return bpe->joints.cuts && bpe->split.count == 0;
}

/* Returns an empty tokenizer with initialized parts. */
dt_status dt_bpe_new(dt_bpe **out, dt_error *err);

/* huggingface.c and tiktoken.c: fill an empty tokenizer. Messages do not name the file. */
dt_status dt_bpe_read_huggingface(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_tiktoken(dt_bpe *bpe, const char *text, size_t length, const char *name,
                               dt_error *err);

/* huggingface_*.c: read the parts of a tokenizer.json. The pre_tokenizer must be read first: it
 * sets whether the model's tokens are byte-level. */
dt_status dt_bpe_read_model(dt_bpe *bpe, const json_t *model, dt_error *err);
void dt_bpe_find_bytes(dt_bpe *bpe); /* fills `bytes` from the vocabulary */
dt_status dt_bpe_read_unigram(dt_bpe *bpe, const json_t *model, dt_error *err);
dt_status dt_bpe_read_normalizer(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_pre_tokenizer(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_decoder(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_post_processor(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_added(dt_bpe *bpe, const json_t *list, const json_t *vocab, dt_error *err);

/* fields.c: DT_ERR_UNSUPPORTED for a key that is not in the list, which ends with NULL. */
dt_status dt_bpe_check_keys(const json_t *object, const char *where, const char *const *keys,
                            dt_error *err);
/* Gives the "type" of an object; DT_ERR_CORRUPT if there is none. */
dt_status dt_bpe_get_type(const char **out, const json_t *object, const char *where, dt_error *err);
dt_status dt_bpe_get_bool(bool *out, const json_t *object, const char *key, bool fallback,
                          const char *where, dt_error *err);
dt_status dt_bpe_get_text(const char **out, const json_t *object, const char *key,
                          const char *where, dt_error *err);

/* alone: the part is not one of several in a Sequence. */
typedef dt_status dt_bpe_read_fn(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err);
/* Reads a part, or every part of a Sequence; `list` is the key of the Sequence's list. */
dt_status dt_bpe_read_each(dt_bpe *bpe, const json_t *json, const char *where, const char *list,
                           dt_bpe_read_fn *read, dt_error *err);

/* normalize.c: appends the normalized text. begins: false if the text continues another one, so that nothing is put
 * before it. */
dt_status dt_bpe_normalize(dt_strbuf *out, const dt_bpe *bpe, const char *text, size_t length,
                           bool begins, dt_error *err);

/* byte_map.c: appends the bytes for the printable characters of a byte-level vocabulary. Returns
 * false if a character does not stand for a byte. */
bool dt_byte_map_decode(dt_strbuf *out, const char *text, size_t length);

/* merge: performs byte pair encoding on one word. As long as neighbouring tokens are in the table of merges,
 * it merges the pair of the lowest rank into one token; among pairs of equal rank, the first in the word.
 *
 * Time     n * n for short words, which nearly all are; n for long words, which are merged in windows (n log n if that
 *          does not work)
 * Memory   28 bytes per token of a window, kept until release; for long words 8 bytes per token meanwhile
 */

typedef struct dt_merge_symbol {
    int32_t id; /* -1: merged into the previous token */
    uint32_t before, behind;
} dt_merge_symbol;

/* Scratch memory; zeroed before its first use. */
typedef struct dt_merge_memory {
    dt_merge_symbol *symbols;
    uint64_t *queue; /* a heap of rank << 32 | position */
    size_t room, queued;
} dt_merge_memory;

void dt_merge_release(dt_merge_memory *memory);

/* Merges ids[0 .. *count - 1] in place. DT_ERR_NOMEM on failure. */
dt_status dt_merge(int32_t *ids, size_t *count, const dt_pairs *merges, dt_merge_memory *memory,
                   dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
