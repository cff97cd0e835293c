/* text: one text that grows token by token: what is drawn, and where it ends.
 *
 * Window     the model sees at most its context: past that, the newest tokens
 * Ids        of a run on token ids, which have no text, prompt and text are numbers: "12 7 400 "
 * Errors     DT_ERR_USAGE for a prompt with characters that the tokenizer lacks; else the model's
 */
#ifndef DT_ENGINE_GENERATE_TEXT_H
#define DT_ENGINE_GENERATE_TEXT_H

#include "base/strbuf.h"
#include "engine/generate/loaded.h"
#include "engine/generate/sample.h"
#include "engine/generate/stops.h"

typedef enum dt_text_end {
    DT_TEXT_TOKENS,      /* as many as were asked for */
    DT_TEXT_END_OF_TEXT, /* the model says that the text ends */
    DT_TEXT_STOP         /* a stop text; it is left out */
} dt_text_end;

typedef struct dt_text_rules {
    int64_t tokens; /* how many to add at most */
    dt_stops stops;
    bool past_end;   /* a token that ends texts is a token like others */
    bool no_special; /* nothing that the tokenizer puts around a text is put before a prompt */
    dt_sampling sampling;
    int64_t beams; /* over 1: the likeliest text that a search finds (beam.h), nothing is drawn */
    double length_penalty;
} dt_text_rules;

typedef struct dt_text {
    const dt_text_rules *rules;
    const dt_loaded *from;
    uint64_t seed;   /* instead of the rules' */
    int32_t *tokens; /* prompt and what was added */
    int64_t count;
    int64_t added; /* the one that ended the text with them */
    bool *seen;    /* (V): tokens of the text; NULL where nobody asks */
    dt_strbuf text;
    size_t whole; /* bytes of it that stay what they are; all of them when it is done */
    bool done;
    dt_text_end end;
    double score; /* of a search */
} dt_text;

/* Growing sequences of the model that one text takes. */
static inline int64_t dt_text_sequences(const dt_text_rules *rules)
{
    return rules->beams > 1 ? 2 * rules->beams : 1;
}

/* "tokens", "end_of_text", "stop" */
const char *dt_text_end_name(dt_text_end end);

/* A prompt starts with what the tokenizer puts before a text. "" starts with that, or as a document does: after an
 * end-of-text token if the tokenizer has one, at a line break, or at token 0. `from` and the rules must outlive the
 * text; a zeroed one may be closed. */
dt_status dt_text_open(dt_text *out, const dt_loaded *from, const dt_text_rules *rules,
                       const char *prompt, size_t length, uint64_t seed, dt_error *err);
void dt_text_close(dt_text *t);

/* Logits (V) of what follows the newest tokens, by growing sequence `sequence` of the model while the
 * context holds them all; then each pass is over the whole window, which has moved: the place of every
 * token in it is another one. */
dt_status dt_text_logits(float *logits, const dt_text *t, dt_loaded *from, int64_t sequence,
                         dt_error *err);
/* Adds the token drawn from logits (V), which are overwritten. DT_ERR_CORRUPT if one of them is not finite: nothing
 * is added then. */
dt_status dt_text_take(dt_text *t, float *logits, dt_error *err);

/* All of it, by a search over growing sequences 0 up to 2 * rules->beams of the model; stop texts are not
 * looked for. DT_ERR_USAGE where the context does not hold it. */
dt_status dt_text_search(dt_text *t, dt_loaded *from, dt_error *err);

#endif
