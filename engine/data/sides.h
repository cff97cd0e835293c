/* sides: holds the tokenizers of sentence pairs, for source and target, in one file stored in checkpoints.
 *
 *   {"version": 1, "source": SIDE, "target": SIDE}     "target" is omitted if both are the same
 *   SIDE   {"dictionary": "dict.txt's text", "codes": "subword-nmt's"}     codes are optional
 *          {"tokenizer": "tokenizer.json's text"}
 *
 * Sentences  end with the tokenizer's end-of-text token, </s> of a dictionary
 * Padding    <pad> of a dictionary; of a tokenizer.json "<pad>" or "[PAD]", or if it has neither,
 *            one more id after its vocabulary
 * Errors     DT_ERR_CORRUPT naming the file and its fault
 */
#ifndef DT_ENGINE_DATA_SIDES_H
#define DT_ENGINE_DATA_SIDES_H

#include <stdbool.h>

#include "base/json.h"
#include "engine/tokens/fairseq.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SIDES_MAX_BYTES ((size_t)512 << 20) /* maximum size of a file */
#define DT_SIDES_FILE      "translation.json"

typedef struct dt_side {
    dt_dictionary dictionary; /* fairseq dictionary, used if `bpe` is NULL */
    dt_codes codes;
    bool has_codes;
    dt_bpe *bpe;
    int32_t end, pad;
    int64_t vocab;
} dt_side;

typedef struct dt_sides {
    dt_side own[2]; /* the source's tokenizer, and the target's if it differs */
    const dt_side *source, *target;
} dt_sides;

/* Convert text to a SIDE of the file. `codes` can be NULL. */
json_t *dt_side_of_dictionary(const dt_strbuf *dictionary, const dt_strbuf *codes);
json_t *dt_side_of_tokenizer(const dt_strbuf *tokenizer);

dt_status dt_sides_parse(dt_sides **out, const char *bytes, size_t length, const char *name,
                         dt_error *err);
void dt_sides_free(dt_sides *sides);

/* Encoder for one thread. Zero it before opening. */
typedef struct dt_side_encoder {
    const dt_side *side;
    dt_bpe_encoder *bpe;
    dt_strbuf pieces;
} dt_side_encoder;

dt_status dt_side_encoder_open(dt_side_encoder *out, const dt_side *side, dt_error *err);
void dt_side_encoder_close(dt_side_encoder *encoder); /* accepts a zeroed encoder */
/* Append the ids of a sentence and its end. DT_ERR_USAGE, with the byte's position, if it is not
 * UTF-8. */
dt_status dt_side_encode(dt_ids *out, dt_side_encoder *encoder, const char *text, size_t length,
                         dt_error *err);
/* Append the text of an id, by dt_dictionary_decode or dt_bpe_decode; nothing for the end and the
 * padding. */
void dt_side_decode(dt_strbuf *out, const dt_side *side, int32_t id);

#ifdef __cplusplus
}
#endif
#endif
