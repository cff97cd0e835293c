/* text: what generating text is made of: a checkpoint as a model with its tokenizer, drawing a token, stop
 * texts, and a text that grows token by token.
 *
 * Window     the model sees at most its context: for longer texts, the newest tokens
 * Ids        for a run on token ids, which have no text, prompt and text are numbers: "12 7 400 "
 * Errors     DT_ERR_USAGE for a prompt with characters that the tokenizer lacks; else the model's
 */
#ifndef DT_ENGINE_GENERATE_TEXT_H
#define DT_ENGINE_GENERATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/data/data.h"
#include "engine/model/model.h"
#include "engine/weights/weights.h"

/* loaded: opens a checkpoint as a model with its weights and its tokenizer, to generate text.
 *
 * Errors     DT_ERR_CORRUPT, DT_ERR_NOT_FOUND from the checkpoint
 * Threads    one
 */

typedef struct dt_loaded {
    dt_checkpoint *checkpoint;
    dt_arena arena; /* owns the recipe's strings */
    dt_recipe recipe;
    dt_tokenizer *tokenizer;
    bool ids; /* prompts and texts are token ids */
    /* tokens that end a text: model.end_ids, or the tokenizer's end-of-text token; can be empty */
    dt_ids ends;
    dt_device device;
    dt_model *model;
    dt_device_arena memory;
    /* the weights that an adapter was trained on, or that replace the checkpoint's; NULL: neither */
    struct dt_weights *base;
    dt_weights_files base_files;
    float *host;          /* of one parameter; NULL unless units are read during a pass */
    dt_model_hooks hooks; /* read units during a pass */
    dt_tensor wide;       /* F32 staging for a parameter; NULL if the model is F32 */
    dt_tensor
        tokens_in; /* I32, for the tokens of the context, or one per sequence and hypothesis */
} dt_loaded;

typedef struct dt_loaded_room {
    int64_t batch;     /* number of texts in a pass over whole texts */
    int64_t sequences; /* texts or translations that are extended at once */
    int64_t kept;      /* tokens cached per text; 0: the context */
    int64_t versions;  /* hypotheses per translation; 0: one */
    int64_t tokens;    /* tokens of a pass; 0: the context */
    bool
        by_units; /* each pass reads a block's weights when it comes to the block, into the memory of one block */
} dt_loaded_room;

/* Open recipe and tokenizer. A zeroed dt_loaded can be closed. base: the files of the base of an adapter, borrowed until
 * close; NULL or of kind none: they are where the recipe says. */
dt_status dt_loaded_open(dt_loaded *out, const char *path, const dt_weights_files *base,
                         dt_error *err);
/* The same for a model whose weights are in `files`, without a checkpoint. Borrows both until close. DT_ERR_USAGE if the
 * recipe names no tokenizer. */
dt_status dt_loaded_open_weights(dt_loaded *out, const dt_recipe *recipe,
                                 const dt_weights_files *files, dt_error *err);
/* Then take the weights of a folder, a whole model, instead of the checkpoint's. */
dt_status dt_loaded_replace_weights(dt_loaded *l, const char *folder, dt_error *err);
/* Then open the model for incremental decoding. dtype: type of weights and activations. */
dt_status dt_loaded_open_model(dt_loaded *l, const char *device, int64_t threads, dt_dtype dtype,
                               const dt_loaded_room *room, dt_error *err);
/* Returns DT_ERR_RECIPE, as training that diverges, so that a run is not restarted: the model computed a NaN or an
 * infinity, so its weights contain them or are too large. */
dt_status dt_loaded_diverged(dt_error *err);
/* Return in `out` the tokens that start a text without a prompt: the tokenizer's begin tokens, else
 * the end-of-text token, else a line break; none (NULL) if the model was trained on token ids, for which no such
 * token is known. The caller frees `out`. */
dt_status dt_loaded_first_tokens(int32_t **out, int64_t *count, const dt_loaded *l, dt_error *err);
void dt_loaded_close(dt_loaded *l);

/* Whether the run of a checkpoint was trained on sentence pairs. */
dt_status dt_loaded_is_of_pairs(bool *out, const char *path, dt_error *err);

/* sample: draws one token from a row of logits.
 *
 * Formula  1  with a penalty R, logits of tokens that have occurred: l / R above 0, l * R below (Keskar
 *             et al., "CTRL", 2019)
 *          2  softmax(logits / temperature) over the top_k largest
 *          3  of these the fewest likeliest tokens whose probabilities sum to top_p (Holtzman et al.,
 *             "The curious case of neural text degeneration", 2020); ties of the last one stay
 *          4  the inverse of the cumulative distribution at a Philox number of (seed, index): a pure
 *             function. Temperature 0 takes the largest logit after step 1, the first of equals
 * Shapes   logits (V), overwritten; seen (V): whether the text has that token, or NULL
 * Time     a few passes over the logits; no memory
 */

typedef struct dt_sampling {
    double temperature;
    int64_t top_k;  /* sample among the k likeliest; 0: all */
    double top_p;   /* sample among the likeliest up to this sum; 0 or 1: all */
    double penalty; /* repetition penalty; 0 or 1: none */
    uint64_t seed;
} dt_sampling;

int32_t dt_sample_token(float *logits, int64_t vocab, const dt_sampling *how, const bool *seen,
                        uint32_t index);

/* stops: finds stop texts in text that is generated piece by piece, and splits it at whole characters.
 *
 * A suffix that could be the start of a stop text, or of a character, is held back until that is decided.
 */

typedef struct dt_stops {
    const char *const *texts; /* stop texts, none of them empty */
    size_t count;
} dt_stops;

/* Search text[from ..], which has not been emitted yet. If it contains a stop text, cut the text
 * there and return true. *until: how far the text can be emitted. */
bool dt_stops_find(size_t *until, dt_strbuf *text, size_t from, const dt_stops *stops);

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
    int64_t beams; /* above 1: beam search for the likeliest text (search.h) instead of sampling */
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
/* The same with a prompt of ids, to which no token is added. */
dt_status dt_text_open_ids(dt_text *out, const dt_loaded *from, const dt_text_rules *rules,
                           const int32_t *ids, int64_t count, uint64_t seed, dt_error *err);
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
