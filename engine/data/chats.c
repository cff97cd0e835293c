/* chats: reads and writes files of conversations, and places conversations in rows. */
#include "engine/data/chats.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "recipes/architecture/architecture.h"

#define HEAD_BYTES  64
#define WEIGHT_MOST 1e6F /* as of a message (engine/chat/messages.c) */
#define OPEN_ROWS   256  /* rows that conversations are still added to, with data.pack */

static const char magic[8] = "DTCHATS\1";

/* --- files */

static int64_t int64_at(const unsigned char *bytes)
{
    int64_t value;

    memcpy(&value, bytes, sizeof(value));
    return value;
}

static int int32_at(const unsigned char *bytes)
{
    int32_t value;

    memcpy(&value, bytes, sizeof(value));
    return value;
}

static dt_status refuse(const dt_chat_piece *piece, const char *why, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s' %s: prepare it again with 'dtrun data prepare', or copy it again",
                   piece->path, why);
}

/* Number of tokens before a conversation of the piece. */
static int64_t start_of(const dt_chat_piece *piece, int64_t index)
{
    return int64_at(piece->starts + 8 * index);
}

static float weight_at(const dt_chat_piece *piece, int64_t index)
{
    float value;

    if (piece->weight_bytes == 1)
        return (float)piece->weights[index];
    memcpy(&value, piece->weights + 4 * index, sizeof(value));
    return value;
}

static int32_t id_at(const dt_chat_piece *piece, int64_t index)
{
    uint16_t two;

    if (piece->id_bytes == 4)
        return int32_at(piece->ids + 4 * index);
    memcpy(&two, piece->ids + 2 * index, sizeof(two));
    return two;
}

/* Check what every reader relies on: ascending starts, and weights that are numbers. */
static dt_status check_piece(const dt_chat_piece *piece, dt_error *err)
{
    for (int64_t i = 0; i < piece->count; i++)
        if (start_of(piece, i) < 0 || start_of(piece, i) >= start_of(piece, i + 1))
            return refuse(piece, "is damaged: its conversations overlap", err);
    if (start_of(piece, 0) != 0 || start_of(piece, piece->count) != piece->tokens)
        return refuse(piece, "is damaged: its conversations do not cover its tokens", err);
    for (int64_t i = 0; i < piece->tokens; i++)
        if (!(weight_at(piece, i) >= 0 && weight_at(piece, i) <= WEIGHT_MOST))
            return refuse(piece, "is damaged: a weight is not a number from 0 to 1e6", err);
    return DT_OK;
}

static dt_status read_piece(dt_chat_piece *out, const unsigned char *bytes, size_t length,
                            dt_error *err)
{
    int64_t left = (int64_t)length - HEAD_BYTES - 8;

    if (length < HEAD_BYTES + 8 || memcmp(bytes, magic, sizeof(magic) - 1) != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' is not a file of conversations: it lacks the header that 'dtrun data "
                       "prepare' writes",
                       out->path);
    if (bytes[7] != (unsigned char)magic[7])
        return refuse(out, "is of another version of dtrun", err);
    out->count = int64_at(bytes + 8);
    out->tokens = int64_at(bytes + 16);
    out->id_bytes = int32_at(bytes + 24);
    out->weight_bytes = int32_at(bytes + 28);
    if (out->count < 0 || out->tokens < 0 || out->count > left / 8 || out->tokens > left ||
        (out->id_bytes != 2 && out->id_bytes != 4) ||
        (out->weight_bytes != 1 && out->weight_bytes != 4) ||
        left != 8 * out->count + out->tokens * (out->id_bytes + out->weight_bytes))
        return refuse(out, "is cut off or damaged: its header does not match its size", err);
    out->starts = bytes + HEAD_BYTES;
    out->ids = out->starts + 8 * (out->count + 1);
    out->weights = out->ids + out->tokens * out->id_bytes;
    return check_piece(out, err);
}

static void add_piece(dt_chats *chats, dt_chat_piece *piece)
{
    piece->first = chats->count;
    chats->count += piece->count;
    chats->tokens += piece->tokens;
    chats->piece_count++;
}

dt_status dt_chats_open(dt_chats *out, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_chats){.pieces = dt_calloc((size_t)files->count + 1, sizeof(*out->pieces))};
    for (int64_t i = 0; i < files->count; i++) {
        dt_chat_piece *piece = &out->pieces[i];

        piece->path = files->items[i].path;
        DT_TRY(dt_mapping_open(&piece->mapping, piece->path, err));
        out->piece_count = i + 1; /* is closed also if it cannot be read */
        DT_TRY(read_piece(piece, piece->mapping.bytes, piece->mapping.length, err));
        out->piece_count = i;
        add_piece(out, piece);
    }
out:
    return st;
}

dt_status dt_chats_take(dt_chats *out, const char *name, const void *bytes, size_t length,
                        dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_chats){.pieces = dt_calloc(1, sizeof(*out->pieces))};
    out->pieces[0].path = name;
    DT_TRY(read_piece(&out->pieces[0], bytes, length, err));
    add_piece(out, &out->pieces[0]);
out:
    return st;
}

void dt_chats_close(dt_chats *chats)
{
    for (int64_t i = 0; i < chats->piece_count; i++)
        dt_mapping_close(&chats->pieces[i].mapping);
    free(chats->pieces);
    *chats = (dt_chats){0};
}

static const dt_chat_piece *piece_of(const dt_chats *chats, int64_t conversation)
{
    int64_t low = 0, high = chats->piece_count - 1;

    DT_ASSERT(conversation >= 0 && conversation < chats->count);
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;

        if (chats->pieces[middle].first <= conversation)
            low = middle;
        else
            high = middle - 1;
    }
    return &chats->pieces[low];
}

int64_t dt_chats_length(const dt_chats *chats, int64_t conversation)
{
    const dt_chat_piece *piece = piece_of(chats, conversation);
    int64_t index = conversation - piece->first;

    return start_of(piece, index + 1) - start_of(piece, index);
}

void dt_chats_read(int32_t *ids, float *weights, const dt_chats *chats, int64_t conversation,
                   int64_t count)
{
    const dt_chat_piece *piece = piece_of(chats, conversation);
    int64_t start = start_of(piece, conversation - piece->first);

    DT_ASSERT(count <= dt_chats_length(chats, conversation));
    for (int64_t i = 0; ids != NULL && i < count; i++)
        ids[i] = id_at(piece, start + i);
    for (int64_t i = 0; weights != NULL && i < count; i++)
        weights[i] = weight_at(piece, start + i);
}

dt_status dt_chats_check(const dt_chats *chats, int64_t limit, dt_error *err)
{
    for (int64_t p = 0; p < chats->piece_count; p++) {
        const dt_chat_piece *piece = &chats->pieces[p];

        for (int64_t i = 0; i < piece->tokens; i++) {
            int32_t id = id_at(piece, i);

            if (id < 0 || id >= limit)
                return DT_FAIL(err, DT_ERR_RECIPE,
                               "'%s': token %lld is %d, but the vocabulary has %lld: the "
                               "conversations were prepared with another tokenizer",
                               piece->path, (long long)i, id, (long long)limit);
        }
    }
    return DT_OK;
}

/* --- writing */

void dt_chats_draft_add(dt_chats_draft *draft, const int32_t *ids, const float *weights,
                        int64_t count)
{
    int64_t after = draft->tokens + count;

    draft->starts =
        dt_array_room(draft->starts, draft->count + 1, &draft->start_room, sizeof(*draft->starts));
    draft->ids = dt_array_room(draft->ids, after, &draft->id_room, sizeof(*draft->ids));
    draft->weights =
        dt_array_room(draft->weights, after, &draft->weight_room, sizeof(*draft->weights));
    memcpy(draft->ids + draft->tokens, ids, (size_t)count * sizeof(*ids));
    memcpy(draft->weights + draft->tokens, weights, (size_t)count * sizeof(*weights));
    draft->starts[draft->count++] = draft->tokens;
    draft->tokens = after;
}

void dt_chats_draft_release(dt_chats_draft *draft)
{
    free(draft->starts);
    free(draft->ids);
    free(draft->weights);
    *draft = (dt_chats_draft){0};
}

static bool is_plain(const dt_chats_draft *draft)
{
    for (int64_t i = 0; i < draft->tokens; i++)
        if (draft->weights[i] != 0 && draft->weights[i] != 1)
            return false;
    return true;
}

void dt_chats_draft_write(dt_strbuf *out, const dt_chats_draft *draft, bool wide)
{
    bool plain = is_plain(draft);
    int32_t widths[2] = {wide ? 4 : 2, plain ? 1 : 4};
    int64_t counts[2] = {draft->count, draft->tokens};
    char head[HEAD_BYTES] = {0};

    memcpy(head, magic, sizeof(magic));
    memcpy(head + 8, counts, sizeof(counts));
    memcpy(head + 24, widths, sizeof(widths));
    dt_strbuf_add(out, head, sizeof(head));
    if (draft->count > 0)
        dt_strbuf_add(out, draft->starts, (size_t)draft->count * sizeof(*draft->starts));
    dt_strbuf_add(out, &draft->tokens, sizeof(draft->tokens));
    for (int64_t i = 0; i < draft->tokens; i++) {
        uint16_t two = (uint16_t)draft->ids[i];

        dt_strbuf_add(out, wide ? (const void *)&draft->ids[i] : &two, (size_t)widths[0]);
    }
    for (int64_t i = 0; i < draft->tokens; i++) {
        unsigned char one = draft->weights[i] != 0;

        dt_strbuf_add(out, plain ? (const void *)&one : &draft->weights[i], (size_t)widths[1]);
    }
}

/* --- rows */

dt_chat_limits dt_chat_limits_of(const dt_recipe *recipe)
{
    return (dt_chat_limits){.tokens = recipe->batch.tokens,
                            .too_long = recipe->data.too_long,
                            .pack = recipe->data.pack,
                            .mean = recipe->data.loss,
                            .pairs = recipe->dpo.beta > 0};
}

dt_status dt_chats_split(int64_t *before_split, const dt_recipe *recipe, int64_t train_count,
                         int64_t valid_count, dt_error *err)
{
    int64_t left = 0;

    *before_split = train_count;
    if (valid_count < 0 && recipe->data.split > 0) {
        left = (int64_t)((double)train_count * (1.0 - recipe->data.split));
        *before_split = left;
        if (left == train_count && train_count > 1) /* a split takes at least one */
            *before_split = train_count - 1;
    }
    if (recipe->dpo.beta > 0) /* both of a pair are on one side */
        *before_split -= *before_split % 2;
    if (*before_split == 0 || (valid_count < 0 && recipe->data.split > 0 && train_count < 2))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.train ('%s') has %lld conversation%s, too few for training and for "
                       "data.split %g: give more, a data.validation, or data.split 0",
                       recipe->data.train.items[0], (long long)train_count,
                       train_count == 1 ? "" : "s", recipe->data.split);
    return DT_OK;
}

static int64_t kept_length(const dt_chat_rows *rows, int64_t conversation)
{
    int64_t length = dt_chats_length(rows->chats, conversation);

    return length < rows->limits.tokens ? length : rows->limits.tokens;
}

/* The sum of the weights of the targets among the first `length` tokens, and their number. */
static double sum_weights(int64_t *targets, const dt_chats *chats, int64_t conversation,
                          int64_t length)
{
    const dt_chat_piece *piece = piece_of(chats, conversation);
    int64_t start = start_of(piece, conversation - piece->first);
    double sum = 0;

    for (int64_t i = 1; i < length; i++) {
        float weight = weight_at(piece, start + i);

        sum += (double)weight;
        *targets += weight > 0;
    }
    return sum;
}

/* Rows that have room, while conversations are placed. */
typedef struct dt_chat_packing {
    dt_chat_rows *rows;
    int64_t *row_of; /* (kept_count): the row of each kept conversation */
    int64_t open[OPEN_ROWS], used[OPEN_ROWS];
    int64_t open_count;
} dt_chat_packing;

/* The open row with the least room of those in which the conversation fits; -1: none. */
static int64_t find_open(const dt_chat_packing *p, int64_t length)
{
    int64_t best = -1;

    for (int64_t i = 0; i < p->open_count; i++)
        if (p->used[i] + length <= p->rows->limits.tokens &&
            (best < 0 || p->used[i] > p->used[best]))
            best = i;
    return best;
}

/* Opens a new row, in the place of the fullest one if there are many. */
static int64_t open_row(dt_chat_packing *p)
{
    int64_t at = p->open_count;

    if (!p->rows->limits.pack)
        at = 0;
    else if (at == OPEN_ROWS)
        at = find_open(p, 0);
    if (at == p->open_count)
        p->open_count++;
    p->open[at] = p->rows->count++;
    p->used[at] = 0;
    p->rows->weights[p->open[at]] = 0;
    return at;
}

static void place_in_row(dt_chat_packing *p, int64_t conversation, int64_t length, double weight)
{
    dt_chat_rows *rows = p->rows;
    int64_t at = rows->limits.pack ? find_open(p, length) : -1;

    if (at < 0)
        at = open_row(p);
    p->row_of[rows->kept_count] = p->open[at];
    rows->kept[rows->kept_count++] = conversation;
    rows->weights[p->open[at]] += rows->limits.mean == DT_MEAN_OF_CONVERSATIONS ? 1 : weight;
    rows->tokens += length;
    p->used[at] += length;
}

/* Sorts the conversations by their rows; within a row they keep their order. */
static dt_status sort_by_row(dt_chat_packing *p, dt_error *err)
{
    dt_chat_rows *rows = p->rows;
    int64_t *sorted = malloc(((size_t)rows->kept_count + 1) * sizeof(*sorted));
    int64_t before = 0;

    if (sorted == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to place %lld conversations",
                       (long long)rows->kept_count);
    for (int64_t i = 0; i < rows->kept_count; i++)
        rows->starts[p->row_of[i]]++;
    for (int64_t r = 0; r <= rows->count; r++) {
        int64_t count = r < rows->count ? rows->starts[r] : 0;

        rows->starts[r] = before;
        before += count;
    }
    for (int64_t i = 0; i < rows->kept_count; i++)
        sorted[rows->starts[p->row_of[i]]++] = rows->kept[i];
    for (int64_t r = rows->count; r > 0; r--) /* each start has become the next one's */
        rows->starts[r] = rows->starts[r - 1];
    rows->starts[0] = 0;
    free(rows->kept);
    rows->kept = sorted;
    return DT_OK;
}

static dt_status check_rows(const dt_chat_rows *rows, int64_t count, int64_t many_long,
                            const char *field, dt_error *err)
{
    const dt_chat_limits *limits = &rows->limits;

    if (many_long > 0 && limits->too_long == DT_TOO_LONG_REFUSE)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "%s: %lld of %lld conversations are longer than batch.tokens %lld; the first is "
            "conversation %lld, with %lld tokens: raise batch.tokens, or set data.too_long to cut "
            "or drop",
            field, (long long)many_long, (long long)count, (long long)limits->tokens,
            (long long)rows->first_long + 1,
            (long long)dt_chats_length(rows->chats, rows->first_long));
    if (count > 0 && rows->count == 0)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "%s: nothing is trained: of %lld conversations, %lld have no trained token%s and %lld "
            "are longer than batch.tokens %lld; see 'dtrun data show'",
            field, (long long)count, (long long)rows->untrained,
            rows->cut > 0 ? " within batch.tokens" : "", (long long)rows->too_long,
            (long long)limits->tokens);
    return DT_OK;
}

/* Place the pair of conversations i and i + 1; *many_long counts conversations that are too long. */
static void place_pair(dt_chat_packing *p, int64_t i, int64_t *many_long)
{
    dt_chat_rows *rows = p->rows;
    int64_t lengths[2] = {dt_chats_length(rows->chats, i), dt_chats_length(rows->chats, i + 1)};
    int64_t targets[2] = {0, 0};
    bool is_long = lengths[0] + lengths[1] > rows->limits.tokens;

    rows->all_tokens += lengths[0] + lengths[1];
    if (is_long && rows->first_long < 0)
        rows->first_long = i;
    *many_long += is_long;
    for (int k = 0; k < 2; k++)
        (void)sum_weights(&targets[k], rows->chats, i + k, lengths[k]);
    if (is_long || targets[0] == 0 || targets[1] == 0) {
        rows->too_long += is_long;
        rows->untrained += !is_long;
        return;
    }
    for (int k = 0; k < 2; k++) {
        p->row_of[rows->kept_count] = rows->count;
        rows->kept[rows->kept_count++] = i + k;
    }
    rows->weights[rows->count++] = 1;
    rows->tokens += lengths[0] + lengths[1];
    rows->targets += targets[0] + targets[1];
}

dt_status dt_chat_rows_make(dt_chat_rows *out, const dt_chats *chats, int64_t first, int64_t count,
                            const dt_chat_limits *limits, const char *field, dt_error *err)
{
    size_t room = (size_t)count + 1;
    dt_chat_packing p = {.rows = out};
    int64_t many_long = 0;
    dt_status st = DT_OK;

    *out =
        (dt_chat_rows){.chats = chats, .limits = *limits, .conversations = count, .first_long = -1};
    out->kept = malloc(room * sizeof(*out->kept));
    out->starts = calloc(room, sizeof(*out->starts));
    out->weights = malloc(room * sizeof(*out->weights));
    p.row_of = malloc(room * sizeof(*p.row_of));
    if (out->kept == NULL || out->starts == NULL || out->weights == NULL || p.row_of == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to place %lld conversations", (long long)count);
    for (int64_t i = first; limits->pairs && i + 1 < first + count; i += 2)
        place_pair(&p, i, &many_long);
    for (int64_t i = first; !limits->pairs && i < first + count; i++) {
        int64_t whole = dt_chats_length(chats, i), length = kept_length(out, i), targets = 0;
        bool is_long = whole > limits->tokens;
        double weight = sum_weights(&targets, chats, i, length);

        out->all_tokens += whole;
        if (is_long && out->first_long < 0)
            out->first_long = i;
        many_long += is_long;
        if (is_long && limits->too_long == DT_TOO_LONG_DROP) {
            out->too_long++;
            continue;
        }
        out->cut += is_long;
        if (targets == 0) {
            out->untrained++;
            continue;
        }
        out->targets += targets;
        place_in_row(&p, i, length, weight);
    }
    DT_TRY(sort_by_row(&p, err));
    DT_TRY(check_rows(out, count, many_long, field, err));
out:
    free(p.row_of);
    return st;
}

/* Append `count` elements; returns false without memory. */
static bool join(void **io, int64_t before, const void *from, int64_t count, size_t bytes)
{
    void *larger = realloc(*io, (size_t)(before + count + 1) * bytes);

    if (larger == NULL)
        return false;
    *io = larger;
    if (count > 0)
        memcpy((char *)larger + (size_t)before * bytes, from, (size_t)count * bytes);
    return true;
}

dt_status dt_chat_rows_join(dt_chat_rows *out, dt_chat_rows *more, dt_error *err)
{
    int64_t kept = out->kept_count;

    if (out->chats == NULL) {
        *out = *more;
        *more = (dt_chat_rows){0};
        return DT_OK;
    }
    DT_ASSERT(out->chats == more->chats && out->reference == NULL && more->reference == NULL);
    if (!join((void **)&out->kept, kept, more->kept, more->kept_count, sizeof(*out->kept)) ||
        !join((void **)&out->starts, out->count, more->starts, more->count + 1,
              sizeof(*out->starts)) ||
        !join((void **)&out->weights, out->count, more->weights, more->count,
              sizeof(*out->weights)))
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to place %lld conversations",
                       (long long)(out->conversations + more->conversations));
    for (int64_t i = 0; i <= more->count; i++)
        out->starts[out->count + i] += kept;
    out->kept_count += more->kept_count;
    out->count += more->count;
    out->conversations += more->conversations;
    out->all_tokens += more->all_tokens;
    out->tokens += more->tokens;
    out->targets += more->targets;
    out->cut += more->cut;
    out->too_long += more->too_long;
    out->untrained += more->untrained;
    if (out->first_long < 0)
        out->first_long = more->first_long;
    dt_chat_rows_release(more);
    return DT_OK;
}

int64_t dt_chat_rows_tokens(const dt_chat_rows *rows, int64_t first, int64_t count)
{
    int64_t tokens = 0;

    for (int64_t i = rows->starts[first]; i < rows->starts[first + count]; i++)
        tokens += kept_length(rows, rows->kept[i]);
    return tokens;
}

dt_chat_facts dt_chat_facts_of(const dt_chat_rows *rows)
{
    return (dt_chat_facts){.conversations = rows->conversations,
                           .tokens = rows->all_tokens,
                           .rows = rows->count,
                           .row_tokens = rows->tokens,
                           .targets = rows->targets,
                           .untrained = rows->untrained,
                           .cut = rows->cut,
                           .too_long = rows->too_long};
}

void dt_chat_rows_release(dt_chat_rows *rows)
{
    free(rows->kept);
    free(rows->starts);
    free(rows->weights);
    free(rows->reference);
    *rows = (dt_chat_rows){0};
}

/* --- batches */

/* Where a sample of a batch begins in each of its tensors. */
typedef struct dt_chat_sample {
    int32_t *ids, *targets, *starts, *positions;
    float *weights;
} dt_chat_sample;

/* Fill tokens from..from+length of a sample with a conversation. */
static void fill_conversation(const dt_chat_sample *sample, int64_t from, int64_t length,
                              const dt_chat_rows *rows, int64_t conversation, bool rejected)
{
    int32_t *ids = sample->ids + from, *targets = sample->targets + from;
    float *weights = sample->weights + from;
    double factor = rejected ? -1 : 1;
    int64_t unused = 0;

    if (!rows->limits.pairs && rows->limits.mean == DT_MEAN_OF_CONVERSATIONS)
        factor = 1 / sum_weights(&unused, rows->chats, conversation, length);
    dt_chats_read(ids, weights, rows->chats, conversation, length);
    for (int64_t t = 0; t < length; t++) {
        float next = t + 1 < length ? weights[t + 1] : 0;

        weights[t] = (float)(factor * (double)next);
        targets[t] = weights[t] != 0 ? ids[t + 1] : -1;
        sample->starts[from + t] = (int32_t)from;
        sample->positions[from + t] = (int32_t)t;
    }
}

void dt_chat_row_fill(void *const inputs[], int64_t place, const dt_chat_rows *rows, int64_t row)
{
    int64_t tokens = rows->limits.tokens, at = place * tokens, used = 0;
    dt_chat_sample sample = {.ids = (int32_t *)inputs[DT_DECODER_TOKENS] + at,
                             .targets = (int32_t *)inputs[DT_DECODER_TARGETS] + at,
                             .starts = (int32_t *)inputs[DT_DECODER_STARTS] + at,
                             .positions = (int32_t *)inputs[DT_DECODER_POSITIONS] + at,
                             .weights = (float *)inputs[DT_DECODER_WEIGHTS] + at};

    for (int64_t i = row >= 0 ? rows->starts[row] : 0; row >= 0 && i < rows->starts[row + 1]; i++) {
        int64_t length = kept_length(rows, rows->kept[i]);

        fill_conversation(&sample, used, length, rows, rows->kept[i],
                          rows->limits.pairs && i > rows->starts[row]);
        used += length;
    }
    if (rows->limits.pairs)
        ((float *)inputs[DT_DECODER_REFERENCE])[place] =
            row >= 0 && rows->reference != NULL ? rows->reference[row] : 0;
    for (int64_t t = used; t < tokens; t++) { /* padding: each is a document of its own */
        sample.ids[t] = sample.positions[t] = 0;
        sample.targets[t] = -1;
        sample.starts[t] = (int32_t)t;
        sample.weights[t] = 0;
    }
}
