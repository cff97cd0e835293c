/* text: extends one text token by token, by sampling or search, and decides where it ends.
 *
 * Window     the model sees at most its context: for longer texts, the newest tokens
 * Ids        for a run on token ids, which have no text, prompt and text are numbers: "12 7 400 "
 * Errors     DT_ERR_USAGE for a prompt with characters that the tokenizer lacks; else the model's
 */
#ifndef DT_ENGINE_GENERATE_TEXT_H
#define DT_ENGINE_GENERATE_TEXT_H

#include "base/strbuf.h"
#include "engine/generate/loaded.h"
#include "engine/generate/sample.h"
#include "engine/generate/stops.h"

typedef enum dt_text_end {
    DT_TEXT_TOKENS,      /* the text has the requested number of tokens */
    DT_TEXT_END_OF_TEXT, /* the model generated an end-of-text token */
    DT_TEXT_STOP         /* a stop text, which is cut off */
} dt_text_end;

typedef struct dt_text_rules {
    int64_t tokens; /* maximum number of new tokens */
    dt_stops stops;
    bool past_end;   /* do not end at tokens that end texts */
    bool no_special; /* do not put the tokenizer's special tokens before a prompt */
    dt_sampling sampling;
    int64_t beams; /* above 1: beam search for the likeliest text (beam.h) instead of sampling */
    double length_penalty;
} dt_text_rules;

typedef struct dt_text {
    const dt_text_rules *rules;
    const dt_loaded *from;
    uint64_t seed;   /* seed of this text, replaces that of the rules */
    int32_t *tokens; /* prompt and generated tokens */
    int64_t count;
    int64_t added; /* generated tokens, including the one that ended the text */
    bool *seen;    /* (V): tokens that have occurred; NULL if no penalty needs it */
    dt_strbuf text;
    size_t whole; /* bytes that can no longer change; all when done */
    bool done;
    dt_text_end end;
    double score; /* score of a beam search */
} dt_text;

/* Number of model sequences that one text uses. */
static inline int64_t dt_text_sequences(const dt_text_rules *rules)
{
    return rules->beams > 1 ? 2 * rules->beams : 1;
}

/* Name of an end: "tokens", "end_of_text", "stop". */
const char *dt_text_end_name(dt_text_end end);

/* Start a text with a prompt, preceded by the tokenizer's begin tokens. An empty prompt starts with
 * these, or like a document: with the end-of-text token if the tokenizer has one, else a line
 * break, else token 0. `from` and the rules must outlive the text; a zeroed text can be closed. */
dt_status dt_text_open(dt_text *out, const dt_loaded *from, const dt_text_rules *rules,
                       const char *prompt, size_t length, uint64_t seed, dt_error *err);
void dt_text_close(dt_text *t);

/* Logits (V) of the next token, by incremental decoding in `sequence` of the model while the text
 * fits into the context. After that, each call is a pass over the whole window, because all
 * positions in it have changed. */
dt_status dt_text_logits(float *logits, const dt_text *t, dt_loaded *from, int64_t sequence,
                         dt_error *err);
/* Add the token drawn from logits (V), which are overwritten. DT_ERR_RECIPE if one of them is not
 * finite: nothing is added then. */
dt_status dt_text_take(dt_text *t, float *logits, dt_error *err);

/* Generate the whole text by a beam search, in sequences 0 .. 2 * rules->beams of the model;
 * ignores stop texts. DT_ERR_USAGE if it does not fit into the context. */
dt_status dt_text_search(dt_text *t, dt_loaded *from, dt_error *err);

#endif
