/* chat_prepared: makes conversations ids with weights, in files in the cache, with several threads (chats.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/version.h"
#include "engine/data/chats.h"
#include "runner/corpus/chats.h"
#include "runner/corpus/corpus_int.h"
#include "runner/node_setup/workdir/contents.h"

#define KEY_VERSION    "chats 1 " DT_VERSION /* as in token_files.c */
#define PART_NAME_SIZE 32
/* Without files: text that is read of each file, and of all together. Rendering reads about 10 MB a second. */
#define HEAD_BYTES      ((size_t)2 << 20)
#define HEAD_MOST_BYTES ((size_t)8 << 20)

typedef struct chat_work {
    const char *folder;
    const char *field; /* "data.train" */
    const dt_data_files *files;
    const dt_chat *chat;
    const dt_tokenizer *tokenizer;
    bool pairs; /* of answers (dpo) */
    void (*tell)(const char *text);
    dt_corpus_parts parts;
} chat_work;

/* --- one part */

typedef struct chat_worker {
    dt_chat_encoder *encoder;
    dt_arena arena;
    dt_chats_draft draft;
    dt_chat_tally counts;
    bool wide;
} chat_worker;

static dt_status add_line(void *context, const dt_chats_line *line, bool *stop, dt_error *err)
{
    const dt_chat_row *row = line->row;
    chat_worker *own = context;
    dt_chat_tally *all = &own->counts;

    (void)stop;
    if (row->count == 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "%s: a conversation has no text: its template makes "
                       "nothing of it",
                       line->path);
    dt_chats_draft_add(&own->draft, row->ids, row->weights, (int64_t)row->count);
    all->conversations++;
    all->tokens += (int64_t)row->count;
    all->trained += (int64_t)row->trained_count;
    all->bytes += (int64_t)row->length;
    all->field_bytes += (int64_t)row->field_bytes;
    all->dropped_bytes += (int64_t)row->dropped_bytes;
    all->forms[row->form]++;
    return DT_OK;
}

static dt_status open_worker(chat_worker *out, const chat_work *all, dt_error *err)
{
    *out = (chat_worker){.wide = dt_tokenizer_vocab(all->tokenizer) > 65536};
    dt_arena_init(&out->arena, 0);
    return dt_chat_encoder_open(&out->encoder, all->chat, err);
}

static void close_worker(chat_worker *own)
{
    dt_chat_encoder_close(own->encoder);
    dt_arena_release(&own->arena);
    dt_chats_draft_release(&own->draft);
}

static dt_status job_open(void **worker, void *context, dt_error *err)
{
    *worker = dt_calloc(1, sizeof(chat_worker));
    return open_worker(*worker, context, err);
}

static dt_status job_close(void *worker, void *context, dt_error *err)
{
    (void)context;
    (void)err;
    if (worker != NULL)
        close_worker(worker);
    free(worker);
    return DT_OK;
}

static void path_of(dt_strbuf *out, const chat_work *all, int64_t index, const char *tail)
{
    dt_strbuf_reset(out);
    dt_strbuf_add_fmt(out, "%s/part-%05lld.%s", all->folder, (long long)index, tail);
}

static dt_status write_part(const chat_work *all, chat_worker *own, int64_t index, dt_error *err)
{
    json_t *facts = json_object();
    dt_status st = DT_OK;
    dt_strbuf path, bytes;

    dt_strbuf_init(&path);
    dt_strbuf_init(&bytes);
    path_of(&path, all, index, "chats");
    if (own->draft.count > 0) {
        dt_chats_draft_write(&bytes, &own->draft, own->wide);
        DT_TRY(dt_file_write_atomic(path.data, bytes.data, bytes.length, 0600, err));
        dt_strbuf_reset(&bytes);
    }
    dt_chat_tally_to_json(facts, &own->counts);
    dt_json_write(&bytes, facts);
    path_of(&path, all, index, "json");
    DT_TRY(dt_file_write_atomic(path.data, bytes.data, bytes.length, 0600, err));
out:
    json_decref(facts);
    dt_strbuf_release(&path);
    dt_strbuf_release(&bytes);
    return st;
}

static dt_status job_part(void *worker, void *context, int64_t index, dt_error *err)
{
    const chat_work *all = context;
    const dt_corpus_part *part = &all->parts.items[index];
    chat_worker *own = worker;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    path_of(&path, all, index, "json");
    if (dt_file_exists(path.data))
        goto out; /* an earlier, interrupted process wrote this part */
    own->draft.count = own->draft.tokens = 0;
    own->counts = (dt_chat_tally){0};
    DT_TRY(dt_chats_part_read(part->file, part->start, part->end, own->encoder, &own->arena,
                              all->pairs, add_line, own, err));
    DT_TRY(write_part(all, own, index, err));
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- all parts */

static dt_status check_counts(const dt_chat_tally *all, const char *field, dt_error *err)
{
    if (all->conversations == 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "%s has no conversation", field);
    if (all->trained == 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "%s: nothing is trained: none of %lld conversations has a message of the "
                       "role 'assistant' with content and a weight above 0; see 'dtrun data show'",
                       field, (long long)all->conversations);
    return DT_OK;
}

static dt_status add_part(dt_chat_tally *sums, json_t *parts, const chat_work *all, int64_t index,
                          dt_error *err)
{
    char name[PART_NAME_SIZE];
    json_t *facts = NULL;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    path_of(&path, all, index, "json");
    DT_TRY(dt_json_read(&facts, path.data, DT_CORPUS_FACTS_MAX, err));
    DT_TRY(dt_chat_tally_add(sums, facts, path.data, err));
    snprintf(name, sizeof(name), "part-%05lld.chats", (long long)index);
    if (json_integer_value(json_object_get(facts, "documents")) > 0)
        json_array_append_new(parts, json_string(name));
out:
    json_decref(facts);
    dt_strbuf_release(&path);
    return st;
}

static dt_status finish(const chat_work *all, dt_error *err)
{
    json_t *facts = json_object(), *parts = json_array();
    dt_status st = DT_OK;
    dt_chat_tally sums = {0};
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    json_object_set_new(facts, "parts", parts);
    json_object_set_new(facts, "broken", json_integer(0));
    for (int64_t i = 0; i < all->parts.count; i++)
        DT_TRY(add_part(&sums, parts, all, i, err));
    DT_TRY(check_counts(&sums, all->field, err));
    dt_chat_tally_to_json(facts, &sums);
    dt_json_write(&text, facts);
    dt_strbuf_add_fmt(&path, "%s/" DT_CORPUS_FACTS, all->folder);
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0600, err));
    for (int64_t i = 0; i < all->parts.count; i++) {
        path_of(&path, all, i, "json");
        (void)unlink(path.data); /* facts.json has their sums */
    }
out:
    json_decref(facts);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

static dt_status make(void *context, const char *folder, dt_error *err)
{
    chat_work *all = context;
    dt_corpus_job job = {.doing = "tokenizing conversations",
                         .parts = &all->parts,
                         .tell = all->tell,
                         .context = all,
                         .open = job_open,
                         .part = job_part,
                         .close = job_close};
    dt_status st = DT_OK;

    all->folder = folder;
    DT_TRY(dt_corpus_parts_open(&all->parts, all->files, "", NULL, err));
    DT_TRY(dt_corpus_run(&job, err));
    DT_TRY(finish(all, err));
out:
    dt_corpus_parts_release(&all->parts);
    return st;
}

/* --- without preparing */

typedef struct head {
    chat_worker *own;
    size_t bytes, most; /* of text that was rendered; reading ends above `most` */
    bool stopped;
} head;

static dt_status add_head_line(void *context, const dt_chats_line *line, bool *stop, dt_error *err)
{
    head *at = context;
    dt_status st = add_line(at->own, line, stop, err);

    at->bytes += line->row->length;
    *stop = at->stopped = at->bytes > at->most;
    return st;
}

/* Reads the beginning of the files, for errors that a launch would report, and for facts of their rows. */
static dt_status read_heads(dt_prepared *out, const chat_work *all, const dt_recipe *recipe,
                            int64_t split_of, dt_arena *arena, dt_error *err)
{
    dt_chat_limits limits = dt_chat_limits_of(recipe);
    dt_chat_facts *facts = dt_arena_alloc(arena, 2 * sizeof(*facts));
    chat_worker own;
    head at = {.own = &own, .most = HEAD_MOST_BYTES};
    dt_chat_rows rows = {0}, split = {0};
    dt_chats chats = {0};
    int64_t kept;
    dt_status st = DT_OK;
    dt_strbuf file;

    dt_strbuf_init(&file);
    DT_TRY(open_worker(&own, all, err));
    DT_TRY(dt_chats_each(all->files, all->chat, all->pairs, add_head_line, &at, err));
    out->counted = !at.stopped;
    if (out->counted)
        DT_TRY(check_counts(&own.counts, all->field, err));
    dt_chats_draft_write(&file, &own.draft, own.wide);
    DT_TRY(dt_chats_take(&chats, all->files->items[0].path, file.data, file.length, err));
    kept = chats.count;
    if (out->counted)
        DT_TRY(dt_chats_split(&kept, recipe, chats.count, split_of, err));
    DT_TRY(dt_chat_rows_make(&rows, &chats, 0, kept, &limits, all->field, err));
    facts[0] = dt_chat_facts_of(&rows);
    out->rows = facts;
    DT_TRY(dt_chat_rows_make(&split, &chats, kept, chats.count - kept, &limits,
                             dt_arena_printf(arena, "%s, after data.split", all->field), err));
    facts[1] = dt_chat_facts_of(&split);
    out->facts.documents = own.counts.conversations;
    out->facts.tokens = own.counts.tokens;
    out->facts.bytes = own.counts.bytes;
    out->facts.chats = dt_chat_counts_of(&own.counts);
out:
    dt_chat_rows_release(&rows);
    dt_chat_rows_release(&split);
    dt_chats_close(&chats);
    dt_strbuf_release(&file);
    close_worker(&own);
    return st;
}

/* --- the data of a recipe */

/* Adds the digest of a file of a folder, if there is one. */
static dt_status add_digest(dt_strbuf *out, const char *folder, const char *name, const char *cache,
                            dt_arena *arena, dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/%s", folder, name);
    char digest[DT_DIGEST_SIZE];
    dt_status st = DT_OK;

    if (!dt_file_exists(path))
        return DT_OK;
    DT_TRY(dt_content_digest(digest, path, cache, NULL, NULL, NULL, err));
    dt_strbuf_add_fmt(out, "%s %s\n", name, digest);
out:
    return st;
}

static dt_status make_key(char *hex, const chat_work *all, const dt_recipe *recipe, dt_arena *arena,
                          dt_error *err)
{
    json_t *json = dt_tokenizer_to_json(all->tokenizer);
    const char *folder = dt_chats_folder(recipe, arena), *cache;
    char digest[DT_DIGEST_SIZE];
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    dt_strbuf_add_fmt(&text, KEY_VERSION " %s\n",
                      json_string_value(json_object_get(json, "xxh3_128")));
    if (all->pairs)
        dt_strbuf_add_str(&text, "pairs of answers\n");
    dt_strbuf_add_str(&text, dt_chat_template_text(all->chat));
    dt_strbuf_add_char(&text, '\n');
    for (const char *const *name = dt_chats_folder_files; *name != NULL; name++)
        DT_TRY(add_digest(&text, folder, *name, cache, arena, err));
    for (int64_t i = 0; i < all->files->count; i++) {
        DT_TRY(dt_content_digest(digest, all->files->items[i].path, cache, NULL, NULL, NULL, err));
        dt_strbuf_add_fmt(&text, "%lld %s\n", (long long)all->files->items[i].bytes, digest);
    }
    dt_digest_of(hex, text.data, text.length);
out:
    json_decref(json);
    dt_strbuf_release(&text);
    return st;
}

static dt_status open_list(dt_prepared *out, chat_work *all, const dt_recipe *recipe,
                           const dt_string_list *entries, int64_t split_of, bool make_it,
                           dt_arena *arena, dt_error *err)
{
    dt_prepared_job job = {.context = all, .work = make, .tell = all->tell};
    dt_data_files files;
    dt_status st = DT_OK;

    *out = (dt_prepared){.vocab = dt_tokenizer_vocab(all->tokenizer), .chats = true};
    if (entries->count == 0)
        return DT_OK;
    DT_TRY(dt_chats_files(&files, entries, all->field, arena, err));
    all->files = &files;
    DT_TRY(make_key(job.key, all, recipe, arena, err));
    DT_TRY(dt_prepared_folder(out, &job, make_it, arena, err));
    if (out->files.count == 0)
        DT_TRY(read_heads(out, all, recipe, split_of, arena, err));
out:
    return st;
}

/* Lets generation end where the assistant's turn ends, and says so; warns if the template does not show the end. */
static dt_status take_turn_end(const char **warning, dt_recipe *recipe, const dt_chat *chat,
                               const dt_tokenizer *tokenizer, dt_arena *arena, dt_error *err)
{
    const dt_string_list *ids = &recipe->model.end_ids;
    int32_t turn_end, text_end = dt_tokenizer_end_of_text(tokenizer);
    const char **all = dt_arena_alloc_array(arena, (size_t)ids->count + 2, sizeof(*all));
    const char *id;
    int64_t count = 0;
    dt_status st = DT_OK;

    DT_TRY(dt_chat_turn_end(&turn_end, chat, err));
    if (turn_end < 0) {
        *warning = dt_arena_printf(arena,
                                   "'%s' ends no turn of the assistant with a control token: the "
                                   "model does not learn to end its answers",
                                   dt_chat_template_path(chat));
        goto out;
    }
    id = dt_arena_printf(arena, "%d", turn_end);
    all[count++] = id;
    for (int64_t i = 0; i < ids->count; i++)
        if (strcmp(ids->items[i], id) != 0)
            all[count++] = ids->items[i];
    if (ids->count == 0 && text_end >= 0 && text_end != turn_end)
        all[count++] = dt_arena_printf(arena, "%d", text_end);
    recipe->model.end_ids = (dt_string_list){all, count};
out:
    return st;
}

/* Encodes the message of a user, and the template's prompt for an answer. */
static dt_status encode_prompt(dt_plan_prompt *out, const char *text, int64_t context,
                               dt_chat_encoder *encoder, dt_arena *arena, dt_error *err)
{
    const dt_chat_options options = {.prompts = true, .unchecked = true};
    json_t *line =
        json_pack("{s:[{s:s, s:o}]}", "messages", "role", "user", "content", dt_json_text(text));
    dt_status st = DT_OK;
    dt_chat_row row;

    DT_TRY(dt_chat_encode(&row, encoder, line, &options, arena, err));
    if (row.count == 0)
        DT_THROW(err, DT_ERR_RECIPE, "the chat template makes no text of it");
    if ((int64_t)row.count >= context)
        DT_THROW(err, DT_ERR_RECIPE,
                 "it has %zu tokens with the chat template, and 'batch.tokens' is %lld: shorten it",
                 row.count, (long long)context);
    *out = (dt_plan_prompt){row.ids, (int64_t)row.count};
out:
    json_decref(line);
    return st;
}

static dt_status encode_prompts(dt_prepared *out, const dt_recipe *recipe, const dt_chat *chat,
                                dt_arena *arena, dt_error *err)
{
    const dt_string_list *samples = &recipe->evaluate.samples;
    dt_plan_prompt *prompts =
        dt_arena_alloc_array(arena, (size_t)samples->count + 1, sizeof(*prompts));
    dt_chat_encoder *encoder = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_chat_encoder_open(&encoder, chat, err));
    for (int64_t i = 0; i < samples->count && st == DT_OK; i++) {
        st = encode_prompt(&prompts[i], samples->items[i], recipe->batch.tokens, encoder, arena,
                           err);
        if (st == DT_ERR_USAGE && err != NULL)
            err->code = st = DT_ERR_RECIPE;
        if (st != DT_OK)
            dt_error_prefix(err, "evaluate.samples: prompt %lld", (long long)i + 1);
    }
    out->prompts = prompts;
    out->prompt_count = samples->count;
out:
    dt_chat_encoder_close(encoder);
    return st;
}

typedef struct chat_lists {
    chat_work *all;
    dt_arena *arena;
    bool make_it;
} chat_lists;

static dt_status open_train(dt_prepared *out, const dt_recipe *own, const char *field,
                            void *context, dt_error *err)
{
    const chat_lists *lists = context;
    int64_t split_of = own->data.validation.count > 0 ? own->data.validation.count : -1;

    lists->all->field = field;
    return open_list(out, lists->all, own, &own->data.train, split_of, lists->make_it, lists->arena,
                     err);
}

dt_status dt_prepare_chats(dt_recipe *recipe, const dt_tokenizer *tokenizer, bool make_it,
                           void (*tell)(const char *text), dt_prepared made[2], dt_arena *arena,
                           dt_error *err)
{
    chat_work all = {.tokenizer = tokenizer, .pairs = recipe->dpo.beta > 0, .tell = tell};
    chat_lists lists = {&all, arena, make_it};
    dt_map_list parts;
    const char *warning = NULL;
    dt_chat *chat = NULL;
    dt_status st = DT_OK;

    if (recipe->data.tokens == DT_TOKENS_CHATS) /* the recipe was already prepared */
        goto out;
    DT_TRY(dt_chats_template(&chat, recipe, tokenizer, arena, err));
    all.chat = chat;
    DT_TRY(dt_prepare_parts(&made[0], &parts, recipe, open_train, &lists, arena, err));
    all.field = "data.validation";
    DT_TRY(open_list(&made[1], &all, recipe, &recipe->data.validation, 0, make_it, arena, err));
    DT_TRY(take_turn_end(&warning, recipe, chat, tokenizer, arena, err));
    dt_prepared_take(recipe, made, &parts, DT_TOKENS_CHATS);
    made[0].warnings = warning;
    DT_TRY(encode_prompts(&made[0], recipe, chat, arena, err));
out:
    dt_chat_free(chat);
    return st;
}
