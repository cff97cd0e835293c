/* mask: says of each byte and each token of a conversation whether it is trained, by where the bytes came from. */
#include <stdlib.h>
#include <string.h>

#include "engine/chat/chat_int.h"

/* What was found of one message of an assistant. */
typedef struct answer {
    bool written;                     /* a field was printed, even an empty one */
    bool closed;                      /* a special token came after a field */
    bool ended;                       /* and no other field after it */
    uint8_t seen[DT_CHAT_VALUES / 8]; /* bits: values that were printed */
} answer;

typedef struct masker {
    dt_chat_row *row;
    const dt_chat *chat;
    const dt_jinja_output *rendered;
    const dt_chat_messages *messages;
    dt_chat_run *runs;
    size_t run_count;
    int64_t room;
    dt_arena *arena;
    size_t token;    /* the first one that may end in the part that is looked at */
    answer *answers; /* [messages] */
    size_t *found;   /* [messages * DT_CHAT_FIELDS]: bytes in the text */
} masker;

static bool is_trained_field(const masker *m, uint32_t origin)
{
    int32_t message = dt_chat_origin_message(origin);
    dt_chat_field field = dt_chat_origin_field(origin);

    return message >= 0 && m->messages->items[message].assistant &&
           (field == DT_CHAT_CONTENT || field == DT_CHAT_REASONING || field == DT_CHAT_TOOL_CALLS);
}

static bool is_template(uint32_t origin)
{
    return (origin & DT_JINJA_ORIGIN) == DT_JINJA_TEMPLATE;
}

/* --- runs of bytes */

static void add_run(masker *m, size_t end, int32_t message, dt_chat_field field, bool trained)
{
    dt_chat_run *last = m->run_count > 0 ? &m->runs[m->run_count - 1] : NULL;

    if (end == (last != NULL ? last->end : 0))
        return;
    if (last != NULL && last->message == message && last->field == field &&
        last->trained == trained) {
        last->end = (uint32_t)end;
        return;
    }
    m->runs = dt_arena_array_room(m->arena, m->runs, (int64_t)m->run_count + 1, &m->room,
                                  sizeof(*m->runs));
    m->runs[m->run_count++] = (dt_chat_run){(uint32_t)end, message, field, trained};
}

/* Returns where the end of a turn in a part of the text ends: its first special token, and the eos_token if that follows
 * at once; 0: there is none. */
static size_t special_end(masker *m, size_t from, size_t to)
{
    const dt_chat_row *row = m->row;

    while (m->token < row->count && row->ends[m->token] <= from)
        m->token++;
    for (size_t i = m->token; i < row->count && row->ends[i] <= to; i++) {
        if (m->chat->tokens[row->ids[i]] != DT_CHAT_CONTROL)
            continue;
        return i + 1 < row->count && row->ends[i + 1] <= to &&
                       row->ids[i + 1] == m->chat->end_of_text
                   ? row->ends[i + 1]
                   : row->ends[i];
    }
    return 0;
}

static bool is_seen(const masker *m, uint32_t origin)
{
    const answer *a = &m->answers[dt_chat_origin_message(origin)];
    int value = dt_chat_origin_value(origin);

    return value > 0 && (a->seen[value / 8] >> value % 8 & 1) != 0;
}

/* Returns whether a field of an assistant is printed after a special token ended its message: it is empty, or it was
 * printed before, such as the name of a tool above its result, and nothing new of the message follows. `closed`: a
 * special token is before it. */
static bool is_late(const masker *m, size_t piece, bool empty, bool closed)
{
    const dt_jinja_piece *pieces = m->rendered->pieces;
    uint32_t origin = pieces[piece].origin & DT_JINJA_ORIGIN;

    if (!closed || empty || !is_seen(m, origin))
        return closed && empty;
    for (size_t i = piece + 1; i < m->rendered->count; i++) {
        uint32_t other = pieces[i].origin & DT_JINJA_ORIGIN;

        if (is_template(other) || pieces[i].end == pieces[i - 1].end)
            continue;
        if (dt_chat_origin_message(other) != dt_chat_origin_message(origin))
            return true;
        if (is_trained_field(m, other) && !is_seen(m, other))
            return false;
    }
    return true;
}

/* Adds the template's text from .. to after a field of an assistant (`before`). next: the piece that follows. */
static void add_after(masker *m, size_t from, size_t to, uint32_t before, size_t next)
{
    const dt_jinja_piece *pieces = m->rendered->pieces;
    uint32_t origin =
        next < m->rendered->count ? pieces[next].origin & DT_JINJA_ORIGIN : DT_JINJA_TEMPLATE;
    int32_t message = dt_chat_origin_message(before);
    size_t end = special_end(m, from, to);
    answer *a = &m->answers[message];
    bool inside = is_trained_field(m, origin) && dt_chat_origin_message(origin) == message &&
                  !is_late(m, next, pieces[next].end == to, a->closed || end > 0);

    a->closed = a->closed || end > 0;
    a->ended = a->ended || (end > 0 && !inside);
    if (end == 0)
        end = inside ? to : from;
    add_run(m, end, message, DT_CHAT_TEMPLATE, true);
    add_run(m, to, -1, DT_CHAT_TEMPLATE, false);
}

/* Joins pieces of one origin, from piece i on. Returns the first piece of another origin; *end: the byte where it begins.
 * Empty pieces do not interrupt the template's text. */
static size_t next_piece(const masker *m, size_t i, size_t *end)
{
    const dt_jinja_piece *pieces = m->rendered->pieces;
    uint32_t origin = pieces[i].origin & DT_JINJA_ORIGIN;

    for (*end = pieces[i++].end; i < m->rendered->count; i++) {
        uint32_t other = pieces[i].origin & DT_JINJA_ORIGIN;

        if (other != origin && (pieces[i].end > *end || is_trained_field(m, other)))
            break;
        *end = pieces[i].end;
    }
    return i;
}

/* Adds a piece that is not the template's. Returns whether what follows it is part of an answer. */
static bool add_field(masker *m, size_t piece, size_t from, size_t end)
{
    uint32_t origin = m->rendered->pieces[piece].origin & DT_JINJA_ORIGIN;
    int32_t message = dt_chat_origin_message(origin);
    dt_chat_field field = dt_chat_origin_field(origin);
    bool trained = is_trained_field(m, origin);
    int value = dt_chat_origin_value(origin);

    if (trained && is_late(m, piece, end == from, m->answers[message].closed))
        trained = false;
    add_run(m, end, message, field, trained);
    if (message >= 0)
        m->found[(size_t)message * DT_CHAT_FIELDS + field] += end - from;
    if (trained) {
        m->answers[message].written = true;
        m->answers[message].seen[value / 8] |= (uint8_t)(1u << value % 8);
    }
    return trained;
}

static void make_runs(masker *m)
{
    const dt_jinja_piece *pieces = m->rendered->pieces;
    uint32_t before = DT_JINJA_TEMPLATE; /* the field of an answer that is before */
    size_t from = 0, next, end;

    for (size_t i = 0; i < m->rendered->count; i = next, from = end) {
        uint32_t origin = pieces[i].origin & DT_JINJA_ORIGIN;
        bool answers = false;

        next = next_piece(m, i, &end);
        if (!is_template(origin)) {
            if (end == from && !is_trained_field(m, origin))
                continue; /* nothing was printed */
            answers = add_field(m, i, from, end);
        } else if (!is_template(before)) {
            add_after(m, from, end, before, next);
        } else {
            add_run(m, end, -1, DT_CHAT_TEMPLATE, false);
        }
        before = answers ? origin : DT_JINJA_TEMPLATE;
    }
}

/* --- tokens */

/* The bytes of one token. A token without bytes, such as a space that the tokenizer added, belongs to the next byte. */
static size_t last_byte(const dt_chat_row *row, size_t token)
{
    size_t start = token > 0 ? row->ends[token - 1] : 0, end = row->ends[token];

    return end > start ? end - 1 : end < row->length ? end : row->length - 1;
}

static void mark_tokens(const masker *m, uint8_t *trained, float *weights)
{
    size_t run = 0;

    for (size_t i = 0; i < m->row->count; i++) {
        size_t at = last_byte(m->row, i);

        while (run + 1 < m->run_count && m->runs[run].end <= at)
            run++;
        if (m->run_count == 0 || !m->runs[run].trained)
            continue;
        trained[i] = 1;
        weights[i] = m->messages->items[m->runs[run].message].weight;
    }
}

/* Marks the tokens that overlap a {% generation %} block. */
static void mark_generated(const masker *m, uint8_t *generated)
{
    const dt_jinja_piece *pieces = m->rendered->pieces;
    size_t piece = 0, start = 0;

    for (size_t i = 0; i < m->row->count; start = m->row->ends[i++]) {
        size_t end = m->row->ends[i];

        while (piece + 1 < m->rendered->count && pieces[piece].end <= start)
            piece++;
        for (size_t k = piece; k < m->rendered->count; k++) {
            bool empty = pieces[k].end == (k > 0 ? pieces[k - 1].end : 0);

            generated[i] |= !empty && (pieces[k].origin & DT_JINJA_GENERATED) != 0;
            if (pieces[k].end >= end)
                break;
        }
    }
}

/* --- checks */

static void show(dt_strbuf *out, const char *text, size_t from, size_t to)
{
    const json_t *shown;
    char *escaped;

    if (to - from > 60)
        to = from + 60;
    while (from < to && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++;
    while (to > from && ((unsigned char)text[to] & 0xc0) == 0x80)
        to--;
    shown = json_stringn(text + from, to - from);
    escaped = json_dumps(shown, JSON_ENCODE_ANY);
    dt_strbuf_add_str(out, escaped != NULL ? escaped : "?");
    free(escaped);
    json_decref((json_t *)shown);
}

/* What the two masks must agree on: text of somebody, and the end of a turn. */
typedef enum judgement { AGREE, ONLY_ORIGIN, ONLY_GENERATION } judgement;

static judgement judge(const masker *m, size_t token, const dt_chat_run *run, bool trained,
                       bool generated)
{
    bool control = m->chat->tokens[m->row->ids[token]] == DT_CHAT_CONTROL;

    if (trained && !generated && (run->field != DT_CHAT_TEMPLATE || control))
        return ONLY_ORIGIN;
    return !trained && generated && run->field != DT_CHAT_TEMPLATE ? ONLY_GENERATION : AGREE;
}

/* Fails if the blocks leave out a part of an answer or its end, or contain text of somebody else. Other text of the
 * template that they contain, such as a line break after the end of a turn, is counted. */
static dt_status check_generation(const masker *m, const uint8_t *trained, const uint8_t *generated,
                                  dt_error *err)
{
    dt_chat_row *row = m->row;
    size_t run = 0, from = 0, to = 0;
    judgement j = AGREE;
    dt_strbuf part, around;

    for (size_t i = 0; i < row->count && j == AGREE; i++) {
        while (run + 1 < m->run_count && m->runs[run].end <= last_byte(row, i))
            run++;
        j = judge(m, i, &m->runs[run], trained[i], generated[i]);
        from = i > 0 ? row->ends[i - 1] : 0;
        to = m->runs[run].end;
        row->marked_more += generated[i] && !trained[i];
    }
    if (j == AGREE)
        return DT_OK;
    dt_strbuf_init(&part);
    dt_strbuf_init(&around);
    show(&part, row->text, from, to);
    show(&around, row->text, from > 30 ? from - 30 : 0, from);
    (void)DT_FAIL(
        err, DT_ERR_USAGE,
        "the template's {%% generation %%} blocks %s %s (byte %zu, after %s), and the origin "
        "of the text %s: one of the two trains the wrong tokens",
        j == ONLY_GENERATION ? "train" : "do not train", part.data, from, around.data,
        j == ONLY_GENERATION ? "does not" : "does");
    dt_strbuf_release(&part);
    dt_strbuf_release(&around);
    return DT_ERR_USAGE;
}

static dt_status check_printed(const masker *m, dt_error *err)
{
    for (size_t i = 0; i < m->rendered->count; i++) {
        uint32_t origin = m->rendered->pieces[i].origin;
        int32_t message = dt_chat_origin_message(origin & DT_JINJA_ORIGIN);

        if ((origin & DT_JINJA_PRINTED) != 0 && message >= 0 &&
            dt_chat_origin_field(origin & DT_JINJA_ORIGIN) == DT_CHAT_CONTENT)
            return DT_FAIL(
                err, DT_ERR_USAGE,
                "messages[%d].content: the template prints the list of parts itself; give "
                "a string",
                message);
    }
    return DT_OK;
}

/* Counts what the template left out, and fails if it is a whole message. */
static dt_status count_dropped(masker *m, bool unchecked, dt_error *err)
{
    dt_chat_row *row = m->row;

    for (size_t i = 0; i < m->messages->count; i++) {
        const dt_chat_message *message = &m->messages->items[i];
        const size_t *found = m->found + i * DT_CHAT_FIELDS;
        size_t all = 0;

        for (dt_chat_field f = DT_CHAT_CONTENT; f <= DT_CHAT_TOOL_CALLS && message->assistant;
             f++) {
            size_t bytes = message->bytes[f], kept = found[f];

            if (f == DT_CHAT_TOOL_CALLS && kept > 0)
                kept = bytes; /* written in another form */
            row->field_bytes += bytes;
            row->dropped_bytes += bytes > kept ? bytes - kept : 0;
            all += found[f];
        }
        if (message->assistant && !message->blank && all == 0 && !unchecked)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "messages[%zu]: the template leaves this message of the assistant out",
                           i);
        if (message->assistant && m->answers[i].written && message->weight > 0 &&
            !m->answers[i].ended)
            row->endless++;
    }
    return DT_OK;
}

dt_status dt_chat_mask(dt_chat_row *row, const dt_chat *chat, const dt_jinja *jinja,
                       const dt_jinja_output *rendered, const dt_chat_messages *messages,
                       const dt_chat_options *options, dt_arena *arena, dt_error *err)
{
    masker m = {
        .row = row, .chat = chat, .rendered = rendered, .messages = messages, .arena = arena};
    uint8_t *trained = dt_arena_alloc(arena, row->count + 1), *generated = NULL;
    float *weights = dt_arena_alloc_array(arena, row->count + 1, sizeof(*weights));
    dt_status st = DT_OK;

    m.answers = dt_arena_alloc_array(arena, messages->count, sizeof(*m.answers));
    m.found = dt_arena_alloc_array(arena, messages->count * DT_CHAT_FIELDS, sizeof(*m.found));
    make_runs(&m);
    mark_tokens(&m, trained, weights);
    if (dt_jinja_has_generation(jinja)) {
        generated = dt_arena_alloc(arena, row->count + 1);
        mark_generated(&m, generated);
    }
    DT_TRY(check_printed(&m, err));
    if (generated != NULL && !options->unchecked)
        DT_TRY(check_generation(&m, trained, generated, err));
    DT_TRY(count_dropped(&m, options->unchecked, err));
    for (size_t i = 0; i < m.run_count; i++)
        if (m.runs[i].trained && messages->items[m.runs[i].message].weight == 0)
            m.runs[i].trained = false;
    for (size_t i = 0; i < row->count; i++) {
        trained[i] = trained[i] && weights[i] > 0;
        row->trained_count += trained[i];
    }
    row->runs = m.runs;
    row->run_count = m.run_count;
    row->trained = trained;
    row->weights = weights;
    row->generated = generated;
out:
    return st;
}
