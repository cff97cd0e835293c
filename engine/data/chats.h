/* chats: conversations as ids with a weight per token, in files, and the rows of them that become samples.
 *
 *   0    "DTCHATS", and a byte 1: the version
 *   8    int64 conversations N, int64 tokens A
 *   24   int32 bytes of an id: 2 or 4; int32 bytes of a weight: 1 (0 or 1) or 4 (fp32); then zeros
 *   64   int64 (N+1) first token of each conversation, and A
 *        the A ids, unsigned; the A weights: of a token as the target of the one before it, 0: not trained
 *
 * All little-endian.
 * Errors  DT_ERR_RECIPE naming the file: another format, cut off, of a later version, a weight that is not a
 *         number from 0 to 1e6
 */
#ifndef DT_ENGINE_DATA_CHATS_H
#define DT_ENGINE_DATA_CHATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "engine/data/data.h"
#include "engine/data/files.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The conversations of one file. */
typedef struct dt_chat_piece {
    const char *path; /* borrowed */
    dt_mapping mapping;
    int64_t first, count; /* range of the piece among all conversations */
    int64_t tokens;
    int id_bytes, weight_bytes;
    const unsigned char *starts, *ids, *weights;
} dt_chat_piece;

typedef struct dt_chats {
    dt_chat_piece *pieces;
    int64_t piece_count, count, tokens;
} dt_chats;

/* Map all files; `files` may be empty. */
dt_status dt_chats_open(dt_chats *out, const dt_data_files *files, dt_error *err);
/* The same with one file that is in memory, which is borrowed; `name` is for messages. */
dt_status dt_chats_take(dt_chats *out, const char *name, const void *bytes, size_t length,
                        dt_error *err);
void dt_chats_close(dt_chats *chats); /* accepts a zeroed value */

/* Number of tokens of a conversation. */
int64_t dt_chats_length(const dt_chats *chats, int64_t conversation);
/* Read the first `count` ids and weights of a conversation; either can be NULL. */
void dt_chats_read(int32_t *ids, float *weights, const dt_chats *chats, int64_t conversation,
                   int64_t count);
/* DT_ERR_RECIPE naming file and conversation if an id is not below `limit`. */
dt_status dt_chats_check(const dt_chats *chats, int64_t limit, dt_error *err);

/* A file that is being made. Zeroed: empty. */
typedef struct dt_chats_draft {
    int64_t count, tokens;
    int64_t *starts; /* (count) */
    int32_t *ids;    /* (tokens) */
    float *weights;  /* (tokens) */
    int64_t start_room, id_room, weight_room;
} dt_chats_draft;

void dt_chats_draft_add(dt_chats_draft *draft, const int32_t *ids, const float *weights,
                        int64_t count);
void dt_chats_draft_release(dt_chats_draft *draft);
/* Append the file. wide: ids take 4 bytes. */
void dt_chats_draft_write(dt_strbuf *out, const dt_chats_draft *draft, bool wide);

/* rows: selects conversations and places them in sequences of T tokens.
 *
 * Left out   conversations without a trained token, also after they were cut; with too_long drop, those of more
 *            than T tokens. Both are counted. A conversation's first token is never a target
 * Cut        with too_long cut, a conversation ends after T tokens: its last turn has no end token
 * Packed     in the order of the files, a conversation is added to the row with the least room in which it fits, of
 *            the last 256 that have some, or starts a new one: a few percent are padding. Otherwise one conversation
 *            is a sequence
 * Mean       of tokens: a target counts with its weight. Of conversations: with its weight divided by the sum of the
 *            conversation's weights, so that each conversation counts 1
 * Pairs      (dpo) both conversations of a pair are one row, or none is; a target of the rejected one has its weight
 *            negative. Each row counts 1
 * Separate   tokens attend to their own conversation alone, positions start with it, and its last token has no target
 */

typedef struct dt_chat_limits {
    int64_t tokens; /* T */
    dt_too_long_kind too_long;
    bool pack;
    dt_loss_mean mean;
    bool pairs; /* conversations 2 i and 2 i + 1 are a chosen and a rejected answer, and a row */
} dt_chat_limits;

typedef struct dt_chat_rows {
    const dt_chats *chats; /* borrowed */
    dt_chat_limits limits;
    int64_t conversations, all_tokens; /* of which the rows were made */
    int64_t *kept;                     /* (kept_count): conversations in rows */
    int64_t kept_count;
    int64_t count;   /* rows */
    int64_t *starts; /* (count+1): first of `kept` of each row */
    double *weights; /* (count): sum of the weights of a row's targets; of pairs 1 */
    float *
        reference; /* (count): the log ratios of pairs by the reference (dt_dataset_reference); NULL: none */
    int64_t tokens;  /* of the conversations in rows */
    int64_t targets; /* that are trained */
    /* conversations that are cut; left out because they are longer, or since nothing of them is trained */
    int64_t cut, too_long, untrained;
    int64_t first_long; /* first conversation of more than T tokens; -1: none */
} dt_chat_rows;

/* The limits of a recipe's rows. */
dt_chat_limits dt_chat_limits_of(const dt_recipe *recipe);
/* Conversations before the split, which leaves at least one on each side. valid_count -1: data.split takes the
 * validation from the training conversations. DT_ERR_RECIPE if there are too few. */
dt_status dt_chats_split(int64_t *before_split, const dt_recipe *recipe, int64_t train_count,
                         int64_t valid_count, dt_error *err);

/* Place the conversations first .. first+count. `field` names them in messages. DT_ERR_RECIPE if one is too long,
 * with too_long refuse, or if none is left. */
dt_status dt_chat_rows_make(dt_chat_rows *out, const dt_chats *chats, int64_t first, int64_t count,
                            const dt_chat_limits *limits, const char *field, dt_error *err);
/* Append rows of the same conversations, made with the same limits; releases `more`. */
dt_status dt_chat_rows_join(dt_chat_rows *out, dt_chat_rows *more, dt_error *err);
/* Tokens of the conversations in `count` rows from `first`. */
int64_t dt_chat_rows_tokens(const dt_chat_rows *rows, int64_t first, int64_t count);
dt_chat_facts dt_chat_facts_of(const dt_chat_rows *rows);
void dt_chat_rows_release(dt_chat_rows *rows); /* accepts a zeroed value */

/* Fill sample `place` of a batch with a row; -1: with padding whose targets do not count. */
void dt_chat_row_fill(void *const inputs[], int64_t place, const dt_chat_rows *rows, int64_t row);

#ifdef __cplusplus
}
#endif

#endif
