/* tokens_int: declares what the files of this folder share: classes of code points, base64, fast splits,
 * the normalizers, added tokens, joints, Unigram models, and the parts of a tokenizer. */
#ifndef DT_ENGINE_TOKENS_TOKENS_INT_H
#define DT_ENGINE_TOKENS_TOKENS_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "engine/tokens/bpe.h"
#include "engine/tokens/split.h"
#include "engine/tokens/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* unicode: returns the class of a code point, using libutf8proc.
 *
 * Version    that of the libutf8proc in this build: Unicode 15.0 with Debian 12's 2.8
 */

/* Every code point is in exactly one class; a set of classes is the bitwise or. */
typedef enum dt_code_class {
    DT_CODE_UPPER = 1,      /* \p{Lu}, \p{Lt} */
    DT_CODE_LOWER = 2,      /* \p{Ll} */
    DT_CODE_CASELESS = 4,   /* \p{Lm}, \p{Lo} */
    DT_CODE_MARK = 8,       /* \p{M} */
    DT_CODE_NUMBER = 16,    /* \p{N} */
    DT_CODE_PUNCT = 32,     /* \p{P} */
    DT_CODE_SYMBOL = 64,    /* \p{S} */
    DT_CODE_SPACE = 128,    /* White_Space */
    DT_CODE_REMAINDER = 256 /* controls, formats, unassigned */
} dt_code_class;

#define DT_CODE_LETTER ((unsigned)(DT_CODE_UPPER | DT_CODE_LOWER | DT_CODE_CASELESS)) /* \p{L} */
#define DT_CODE_ALL    511u

dt_code_class dt_code_class_of(uint32_t code);

/* Returns the code point at `at` and its bytes in *used. The text must be valid UTF-8 and must not
 * end at `at`. */
static inline uint32_t dt_code_at(const unsigned char *at, size_t *used)
{
    if (at[0] < 0x80) {
        *used = 1;
        return at[0];
    }
    if (at[0] < 0xe0) {
        *used = 2;
        return (uint32_t)(at[0] & 0x1f) << 6 | (at[1] & 0x3f);
    }
    if (at[0] < 0xf0) {
        *used = 3;
        return (uint32_t)(at[0] & 0x0f) << 12 | (uint32_t)(at[1] & 0x3f) << 6 | (at[2] & 0x3f);
    }
    *used = 4;
    return (uint32_t)(at[0] & 0x07) << 18 | (uint32_t)(at[1] & 0x3f) << 12 |
           (uint32_t)(at[2] & 0x3f) << 6 | (at[3] & 0x3f);
}

/* base64: decodes base64 (RFC 4648, section 4), the end with or without '='. */

/* Appends the decoded bytes. Returns false if a character is not a base64 digit, or if the text is
 * empty. */
bool dt_base64_decode(dt_strbuf *out, const char *text, size_t length);

/* ascii_masks: finds the classes of 64 bytes as masks. Bit i belongs to byte i.
 *
 * Paths    AVX2 if the processor has it, else eight bytes at a time in 64-bit integers; both give the same masks
 */

#define DT_ASCII_BLOCK 64

typedef struct dt_ascii_masks {
    uint64_t letter, upper, number;
    uint64_t space; /* \t \n \v \f \r and the blank */
    uint64_t blank; /* ' ' */
    uint64_t line;  /* \r \n */
    uint64_t quote; /* ' */
    uint64_t high;  /* not ASCII */
} dt_ascii_masks;

/* Reads DT_ASCII_BLOCK bytes. */
void dt_ascii_masks_find(dt_ascii_masks *out, const unsigned char *block);
/* The path that needs no AVX2. */
void dt_ascii_masks_find_plain(dt_ascii_masks *out, const unsigned char *block);

/* split_block: finds the word ends in up to 64 bytes of ASCII at once, by arithmetic on masks.
 *
 * Splits   DT_SPLIT_GPT2, LLAMA3, QWEN, QWEN35, CL100K, O200K and TEKKEN; `\p{N}`, then GPT2, as in SmolLM2
 * Result   equals that of the patterns in split.h; unit.tokens_split compares both
 */

typedef enum dt_split_block_kind {
    DT_BLOCK_NONE,
    DT_BLOCK_GPT2,
    DT_BLOCK_DIGITS_GPT2,
    DT_BLOCK_LLAMA3, /* and CL100K, which differs at the end of the text */
    DT_BLOCK_QWEN,   /* and QWEN35, which differs in marks, none of which is ASCII */
    DT_BLOCK_O200K,
    DT_BLOCK_TEKKEN
} dt_split_block_kind;

/* DT_BLOCK_NONE: only dt_splitter_next supports the split. */
dt_split_block_kind dt_split_block_kind_of(const dt_split *split);

/* Returns the word ends after the word start at[0]: bit i is set if a word ends before at[i]. The mask has
 * only the ends that the bytes before the first one that is not ASCII determine, and none is left out
 * before its highest bit. 0: the end of the first word is not among them. `left`: bytes from at[0] to the
 * end of the text. */
uint64_t dt_split_block(dt_split_block_kind kind, const unsigned char *at, size_t left);

/* charsmap: replaces characters as the normalizer of a SentencePiece model does.
 *
 * Format   a little-endian uint32: the size of the tree in bytes; the tree: a double array of uint32 units, which
 *          maps each key to an offset into the replacements; the replacements: UTF-8 texts, each ending with a
 *          NUL byte
 * Rule     for each grapheme cluster (UAX #29) of less than 6 bytes, the shortest key that is a prefix of the
 *          cluster is looked up, and its replacement replaces the whole cluster. If there is no such key, or the
 *          cluster is longer, each of its characters is looked up in the same way. The library `tokenizers` does
 *          the same
 * Threads  read-only
 */

typedef struct dt_charsmap {
    const unsigned char *units; /* [count * 4] */
    size_t count;
    const char *replacements; /* ends with a NUL byte */
    size_t length;
    const char *ascii[128]; /* replacements of single ASCII characters; NULL: unchanged */
} dt_charsmap;

/* Reads a map. Keeps pointers into bytes, after which a NUL byte must follow. DT_ERR_CORRUPT with
 * the reason. */
dt_status dt_charsmap_read(dt_charsmap *out, const char *bytes, size_t length, dt_error *err);

/* forms: converts text to a Unicode normalization form (UAX #15), using libutf8proc. */

typedef enum dt_form { DT_FORM_NFC, DT_FORM_NFD, DT_FORM_NFKC, DT_FORM_NFKD } dt_form;

/* Returns true if text (valid UTF-8) is certainly in the form already; tests each code point by
 * itself. */
bool dt_form_holds(dt_form form, const char *text, size_t length);

/* pattern: matches the regular expressions by which normalizers replace text.
 *
 * Form     SEQUENCE, or SEQUENCE|SEQUENCE: a SEQUENCE is one or two SETs (split.h), each alone or with +, {N,} or {M,N}.
 *          The second SET has no character of the first. `^` before it and `$` behind it: the whole text; since they
 *          also match at line breaks, only in a text without any
 * Matches  from left to right, the first SEQUENCE that matches at a place, as long as possible
 * Time     linear in the text
 */

#define DT_PATTERN_SETS 2
#define DT_PATTERN_MOST 2 /* sequences */

typedef struct dt_pattern_sequence {
    dt_code_set sets[DT_PATTERN_SETS];
    int64_t least[DT_PATTERN_SETS], most[DT_PATTERN_SETS];
    int count;
    bool whole;
} dt_pattern_sequence;

typedef struct dt_pattern {
    dt_pattern_sequence sequences[DT_PATTERN_MOST];
    int count;
} dt_pattern;

/* Returns false for an expression of another form. */
bool dt_pattern_parse(dt_pattern *out, dt_arena *arena, const char *expression);
/* Returns whether it replaces every line break `\n`. */
bool dt_pattern_has_line_breaks(const dt_pattern *pattern);
/* Appends the text (valid UTF-8) with each match replaced. */
void dt_pattern_replace(dt_strbuf *out, const dt_pattern *pattern, const char *text, size_t length,
                        const char *to);

/* added: finds added tokens, such as <|endoftext|>, which are cut out of a text before it is split into words:
 * from left to right, the longest token at each place.
 */

typedef struct dt_added_token {
    int32_t id;          /* -1: no token ends at this node */
    bool lstrip, rstrip; /* white space before it, after it, belongs to it */
} dt_added_token;

/* A tree of bytes. Node 0 is its root. */
typedef struct dt_added {
    dt_pairs edges;
    dt_added_token *nodes;
    size_t count;
    int64_t capacity;
    unsigned char first[256]; /* bytes that a token begins with, each once */
    int first_count;
} dt_added;

dt_status dt_added_init(dt_added *out, dt_error *err);
void dt_added_release(dt_added *added); /* accepts a zeroed one */
bool dt_added_is_empty(const dt_added *added);
/* Adds a token, which must not be empty, and replaces one with the same text. */
dt_status dt_added_put(dt_added *added, const char *text, size_t length,
                       const dt_added_token *token, dt_error *err);

/* Finds the first added token at or after text[from]. start .. end are its bytes, including the
 * white space that belongs to it, but none before `from`. Returns false if there is none. */
bool dt_added_next(const dt_added *added, const char *text, size_t length, size_t from,
                   size_t *start, size_t *end, int32_t *id);

/* joints: knows which characters can be neighbours inside a token that merges make. Between all other characters a
 * text can be cut into words without changing its ids, because no merge crosses such a place.
 *
 * Applies to BPE on characters, whose words are otherwise as long as the text (byte fallback without a split, as in
 * Llama 2), or as long as a run without spaces. Pairs of characters are stored as hashes: two pairs with one hash only
 * make a word longer.
 */

#define DT_JOINTS_LOG   18
#define DT_JOINTS_BLOCK 64

typedef struct dt_joints {
    bool cuts;               /* false: no place is known where a text can be cut */
    bool ends_at_breaks;     /* a text can be cut between a line break and all but a line break */
    uint8_t ascii[128][128]; /* [left][right] 1: a word ends between them */
    uint64_t others[1 << (DT_JOINTS_LOG - 6)]; /* the bits of hashes of other pairs */
    uint64_t *known; /* the bits of characters that are tokens; NULL: all others have byte tokens */
} dt_joints;

/* The model. All borrowed until dt_joints_find returns. */
typedef struct dt_joints_from {
    const dt_vocab *vocab;
    const dt_pairs *merges;
    const int32_t *bytes; /* [256] ids of the byte tokens, -1: none; NULL: without byte fallback */
    uint32_t blank; /* the character that spaces of the text stand for; 0: they are themselves */
} dt_joints_from;

/* Finds the pairs of neighbours in the tokens that the merges make. *out must be zeroed. */
dt_status dt_joints_find(dt_joints *out, const dt_joints_from *from, dt_error *err);
void dt_joints_release(dt_joints *joints); /* accepts a zeroed one */

/* Returns the mask of word ends from at[0] on: bit i is set if a word ends before at[i]. Looks at
 * DT_JOINTS_BLOCK bytes, up to the first one that is not ASCII. Returns 0 if the first word does not end in them. */
static inline uint64_t dt_joints_block(const dt_joints *joints, const unsigned char *at,
                                       const unsigned char *end)
{
    int count = end - at < DT_JOINTS_BLOCK ? (int)(end - at) : DT_JOINTS_BLOCK;
    uint64_t ends = 0;

    for (int i = 1; i < count && (at[i - 1] | at[i]) < 128; i++)
        ends |= (uint64_t)joints->ascii[at[i - 1]][at[i]] << i;
    return ends;
}

/* Returns the end of the word that starts at `at`, which must be before `end`. Valid UTF-8. */
const unsigned char *dt_joints_next(const dt_joints *joints, const unsigned char *at,
                                    const unsigned char *end);

/* unigram: finds the most probable segmentation of a word into pieces.
 *
 * Each piece has a score, the logarithm of its probability. The segmentation with the largest sum of scores wins; a
 * character that is not a piece is unknown, with a score 10 below the lowest one. Sums are computed from left to
 * right, and of two equal sums the one found first wins, as in the library `tokenizers`.
 *
 * Time     length * bytes of the longest piece
 * Memory   16 bytes for each byte of the longest word, kept until release
 */

/* A tree of bytes in breadth-first order: the children of a node are contiguous, ascending by
 * byte. */
typedef struct dt_unigram {
    uint8_t *bytes;     /* [nodes] */
    uint32_t *children; /* [nodes + 1]: first child; the end is the first child of node + 1 */
    int32_t *ids;       /* [nodes]: the piece that ends here; -1: none */
    uint32_t root[256]; /* the root's child for each byte; 0: none */
    size_t nodes;
    double *scores; /* [ids] */
    double unknown_score;
} dt_unigram;

/* The last piece of the best segmentation of the word up to a byte. */
typedef struct dt_unigram_place {
    double score;
    uint32_t length; /* 0: no segmentation ends here */
    int32_t id;      /* -1: an unknown character */
} dt_unigram_place;

/* Scratch memory; zeroed before its first use. */
typedef struct dt_unigram_memory {
    dt_unigram_place *places;
    size_t room;
} dt_unigram_memory;

/* Builds the tree from the tokens of the vocabulary that can be found by their bytes. Takes
 * ownership of `scores`, which has an element for every id, also on failure. */
dt_status dt_unigram_build(dt_unigram *out, const dt_vocab *vocab, double *scores, dt_error *err);
void dt_unigram_release(dt_unigram *unigram); /* accepts a zeroed one */

/* Writes the best segmentations to memory->places: places[i] is the last piece of the first i
 * bytes, for i = 1 .. length. Following `length` back from the end gives all pieces. DT_ERR_NOMEM
 * on failure. */
dt_status dt_unigram_segment(dt_unigram_memory *memory, const dt_unigram *unigram,
                             const unsigned char *word, size_t length, dt_error *err);
void dt_unigram_memory_release(dt_unigram_memory *memory);

/* wordpiece: cuts a word into the longest pieces from left to right, as BERT's tokenizers do. A piece inside a word has
 * a prefix. A word that cannot be cut, or is too long, is the unknown token. */

typedef struct dt_wordpiece {
    const char *prefix; /* "##"; NULL: the model is another */
    int64_t most;       /* characters of a word */
    size_t longest;     /* bytes of a piece, without its prefix */
} dt_wordpiece;

/* bpe_int: defines the parts of a tokenizer, for the files that read and use one. */

#define DT_BPE_STEPS 16 /* published: at most 10, ALBERT */

typedef enum dt_normal_kind {
    DT_NORMAL_FORM,
    DT_NORMAL_PREPEND,
    DT_NORMAL_REPLACE,
    DT_NORMAL_REPLACE_SPACES, /* two or more in a row become one `to` */
    DT_NORMAL_PATTERN,        /* each match becomes `to` */
    DT_NORMAL_STRIP,
    DT_NORMAL_STRIP_ACCENTS,
    DT_NORMAL_LOWERCASE,
    DT_NORMAL_NMT,
    DT_NORMAL_CHARSMAP,
    DT_NORMAL_CLEAN,     /* without control characters, and each white space a blank */
    DT_NORMAL_APART,     /* Chinese characters have a blank on each side */
    DT_NORMAL_NONSPACING /* without nonspacing marks */
} dt_normal_kind;

/* Pointers are into the arena. */
typedef struct dt_normal_step {
    dt_normal_kind kind;
    dt_form form;          /* FORM */
    const char *from, *to; /* REPLACE; PREPEND and REPLACE_SPACES use only `to` */
    bool left, right;      /* STRIP */
    const dt_charsmap *charsmap;
    const dt_pattern *pattern;
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
    dt_wordpiece wordpiece; /* WordPiece only */
    int32_t bytes[256];     /* byte-level: id of each byte; else id of "<0x41>"; -1: none */
    int32_t ascii[128];     /* BPE on characters: id of each one; -1: none */
    bool keeps_spaces; /* words keep their spaces, for which ascii[' '] is the token of the mark */
    int32_t unknown;   /* id of the unknown token; -1: none */
    int32_t end_of_text;
    dt_ids before, after; /* tokens that the post-processor puts around a text */
    bool ignores_limits;
    dt_strbuf warnings; /* dt_bpe_warnings */
    bool byte_level, byte_fallback, ignore_merges, fuse_unknown;
    bool reaches_over_breaks; /* an added token can span a line break */
    bool drops_breaks;        /* an added token can end with a line break that it drops */
    bool separates_lines;     /* a line break always separates words, like a space */

    dt_bpe_added *added; /* all added tokens */
    int64_t added_count, added_capacity;
    dt_added raw;        /* those found in the text before normalization */
    dt_added normalized; /* those found in the rest after normalization */
    dt_normal_step steps[DT_BPE_STEPS];
    int step_count;
    bool prefix_space; /* puts a space before each text between added tokens, if it has none */
    bool drops_spaces; /* words are separated at white space, which is dropped */
    dt_split split;
    dt_metaspace metaspace;
    const char *space;      /* what the decoder replaces with a space; NULL: nothing */
    bool drops_first_space; /* the decoder drops the space before the first word */
    const char *
        continues; /* the decoder drops this before a token, and puts a space before others; NULL: it does not */
    bool cleans_up; /* no space before punctuation and contractions (wordpiece.c) */
};

/* Returns whether words end where the joints allow it, instead of where `split` cuts. */
static inline bool dt_bpe_uses_joints(const dt_bpe *bpe)
{
    return bpe->joints.cuts && bpe->split.count == 0;
}

/* huggingface.c and tiktoken.c: fill an empty tokenizer. Messages do not name the file. */
dt_status dt_bpe_read_huggingface(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_tiktoken(dt_bpe *bpe, const char *text, size_t length, const char *name,
                               dt_error *err);

/* vocab.c: adds to the list of added tokens. The text is copied. */
void dt_bpe_note_added(dt_bpe *bpe, const char *text, int64_t id, bool special);
/* Returns where an added token was written that was found in bytes start .. stop of a normalized part: as many times as
 * it occurs before it. Returns the whole part if it is not there. *end: the end of what is returned. */
const char *dt_bpe_find_written(const char **end, const dt_bpe *bpe, int32_t id, const char *part,
                                size_t part_length, const char *normal, size_t start, size_t stop);

/* wordpiece.c: appends the tokens of a word; the list has room for one a byte. DT_ERR_USAGE without a token for unknown
 * words. */
dt_status dt_wordpiece_add(dt_ids *out, const dt_bpe *bpe, const unsigned char *word, size_t length,
                           dt_error *err);
/* Appends the text of a token as a part of several: with a space before it unless it continues a word. */
void dt_wordpiece_decode(dt_strbuf *out, const dt_bpe *bpe, const char *text, size_t length);
/* Reads the model, as dt_bpe_read_model does other models. */
dt_status dt_wordpiece_read(dt_bpe *bpe, const json_t *model, dt_error *err);
/* huggingface_model.c, for it: reads 'vocab', an object of tokens and ids, and 'unk_token'. */
dt_status dt_bpe_read_vocab(dt_bpe *bpe, const json_t *vocab, dt_error *err);
dt_status dt_bpe_read_unknown(dt_bpe *bpe, const json_t *model, dt_error *err);

/* huggingface_*.c: read the parts of a tokenizer.json. The pre_tokenizer must be read first: it
 * sets whether the model's tokens are byte-level. */
dt_status dt_bpe_read_model(dt_bpe *bpe, const json_t *model, dt_error *err);
dt_status dt_bpe_read_normalizer(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_pre_tokenizer(dt_bpe *bpe, const json_t *json, dt_error *err);
dt_status dt_bpe_read_decoder(dt_bpe *bpe, const json_t *json, dt_error *err);

/* huggingface_model.c: DT_ERR_UNSUPPORTED for a key that is not in the list, which ends with NULL. */
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

/* unicode.c: appends the bytes for the printable characters of a byte-level vocabulary. Returns
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
