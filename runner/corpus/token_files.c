/* token_files: tokenizes text into token files in the cache (corpus.h), with several threads. A part is
 * complete once its facts exist, which are written after its tokens. The folder is complete once facts.json
 * exists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/version.h"
#include "runner/corpus/corpus.h"
#include "runner/corpus/corpus_int.h"
#include "runner/node_setup/workdir/contents.h"

#define PART_NAME_SIZE 32

typedef struct tokenizing {
    const char *folder;
    const dt_prepare_options *options;
    const dt_bpe *bpe;
    dt_corpus_parts parts;
} tokenizing;

static void name_part(char *out, int64_t index, const char *tail)
{
    snprintf(out, PART_NAME_SIZE, "part-%05lld.%s", (long long)index, tail);
}

static void path_of(dt_strbuf *out, const tokenizing *all, int64_t index, const char *tail)
{
    char name[PART_NAME_SIZE];

    name_part(name, index, tail);
    dt_strbuf_reset(out);
    dt_strbuf_add_fmt(out, "%s/%s", all->folder, name);
}

/* --- one part */

static json_t *facts_of(const dt_documents *documents, int64_t tokens)
{
    json_t *lines = json_array();

    for (int64_t i = 0; i < documents->broken && i < DT_BROKEN_NAMED; i++)
        json_array_append_new(lines, json_integer(documents->broken_lines[i]));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "tokens", (json_int_t)tokens,
                     "documents", (json_int_t)documents->documents, "bytes",
                     (json_int_t)documents->bytes, "lines", (json_int_t)documents->lines, "broken",
                     (json_int_t)documents->broken, "broken_lines", lines, "why",
                     dt_json_text(documents->broken_why));
}

static dt_status make_part(tokenizing *all, int64_t index, dt_ids *ids, dt_bpe_encoder *encoder,
                           dt_error *err)
{
    dt_documents documents = {0};
    dt_status st = DT_OK;
    json_t *facts = NULL;
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    path_of(&path, all, index, "json");
    if (dt_file_exists(path.data))
        goto out; /* an earlier, interrupted process wrote this part */
    ids->count = 0;
    DT_TRY(dt_corpus_part_encode(ids, &documents, &all->parts.items[index], all->options->field,
                                 encoder, all->bpe, err));
    path_of(&path, all, index, "bin");
    if (ids->count > INT32_MAX)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "a document has %zu tokens", ids->count);
    if (ids->count > 0)
        DT_TRY(dt_corpus_tokens_write(path.data, ids, dt_bpe_vocab(all->bpe) > 65536, err));
    facts = facts_of(&documents, (int64_t)ids->count);
    dt_json_write(&text, facts);
    path_of(&path, all, index, "json");
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0600, err));
out:
    json_decref(facts);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

typedef struct encoder {
    dt_bpe_encoder *encoder;
    dt_ids ids;
} encoder;

static dt_status open_encoder(void **worker, void *context, dt_error *err)
{
    const tokenizing *all = context;
    encoder *made = dt_calloc(1, sizeof(*made));

    *worker = made;
    return dt_bpe_encoder_open(&made->encoder, all->bpe, err);
}

static dt_status encode_part(void *worker, void *context, int64_t index, dt_error *err)
{
    encoder *own = worker;

    return make_part(context, index, &own->ids, own->encoder, err);
}

static dt_status close_encoder(void *worker, void *context, dt_error *err)
{
    encoder *own = worker;

    (void)context;
    (void)err;
    if (own != NULL) {
        dt_ids_release(&own->ids);
        dt_bpe_encoder_close(own->encoder);
    }
    free(own);
    return DT_OK;
}

/* --- all parts */

typedef struct sums {
    int64_t tokens, documents, bytes, lines, broken;
    int64_t file_lines; /* lines of the current file before the current part */
    const dt_corpus_file *file;
    json_t *names;
    dt_strbuf words; /* description of the broken lines */
    int named;
} sums;

static int64_t number(const json_t *facts, const char *key)
{
    return json_integer_value(json_object_get(facts, key));
}

/* Appends the numbers of broken lines. In a .csv they count from the second line, since the first
 * has the names. */
static void name_broken(sums *all, const dt_corpus_part *part, const json_t *facts)
{
    const json_t *lines = json_object_get(facts, "broken_lines"), *line;
    size_t i;

    json_array_foreach((json_t *)lines, i, line) {
        if (all->named == DT_BROKEN_NAMED)
            break;
        all->named++;
        dt_strbuf_add_fmt(&all->words, "%s%s:%lld", i == 0 && all->named == 1 ? "" : ", ",
                          part->file->path,
                          (long long)(all->file_lines + json_integer_value(line) +
                                      (part->file->kind == DT_CORPUS_CSV)));
        if (all->named == 1)
            dt_strbuf_add_fmt(&all->words, " (%s)",
                              json_string_value(json_object_get(facts, "why")));
    }
}

static dt_status add_up(sums *all, const tokenizing *from, int64_t index, dt_error *err)
{
    const dt_corpus_part *part = &from->parts.items[index];
    char name[PART_NAME_SIZE];
    json_t *facts = NULL;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    path_of(&path, from, index, "json");
    DT_TRY(dt_json_read(&facts, path.data, DT_CORPUS_FACTS_MAX, err));
    if (all->file != part->file)
        all->file_lines = 0;
    all->file = part->file;
    name_broken(all, part, facts);
    all->file_lines += number(facts, "lines");
    all->tokens += number(facts, "tokens");
    all->documents += number(facts, "documents");
    all->bytes += number(facts, "bytes");
    all->lines += number(facts, "lines");
    all->broken += number(facts, "broken");
    name_part(name, index, "bin");
    if (number(facts, "tokens") > 0)
        json_array_append_new(all->names, json_string(name));
out:
    json_decref(facts);
    dt_strbuf_release(&path);
    return st;
}

static dt_status check_sums(const sums *all, const dt_prepare_options *options, dt_error *err)
{
    if (dt_documents_too_broken(all->broken, all->lines))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "%lld of %lld lines have no text under '%s', the first ones %s; correct "
                       "them, or set data.field",
                       (long long)all->broken, (long long)all->lines, options->field,
                       all->words.data);
    if (all->tokens == 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the data have no text under '%s': all documents are empty", options->field);
    return DT_OK;
}

static dt_status write_facts(const tokenizing *from, const sums *all, dt_error *err)
{
    json_t *facts = json_pack("{s:I, s:I, s:I, s:I, s:O}", "documents", (json_int_t)all->documents,
                              "tokens", (json_int_t)all->tokens, "bytes", (json_int_t)all->bytes,
                              "broken", (json_int_t)all->broken, "parts", all->names);
    dt_status st = DT_OK;
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (all->broken > 0) {
        dt_strbuf_add_fmt(&text, "left out %lld lines without text: %s", (long long)all->broken,
                          all->words.data);
        json_object_set_new(facts, DT_CORPUS_LEFT_OUT, dt_json_text(text.data));
        dt_strbuf_reset(&text);
    }
    dt_json_write(&text, facts);
    dt_strbuf_add_fmt(&path, "%s/" DT_CORPUS_FACTS, from->folder);
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0600, err));
    for (int64_t i = 0; i < from->parts.count; i++) {
        path_of(&path, from, i, "json");
        (void)unlink(path.data); /* facts.json has their sums */
    }
out:
    json_decref(facts);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

static dt_status finish(tokenizing *from, dt_error *err)
{
    sums all = {.names = json_array()};
    dt_status st = DT_OK;

    dt_strbuf_init(&all.words);
    for (int64_t i = 0; i < from->parts.count; i++)
        DT_TRY(add_up(&all, from, i, err));
    if (all.broken > all.named && all.named > 0)
        dt_strbuf_add_fmt(&all.words, " and %lld more", (long long)all.broken - all.named);
    DT_TRY(check_sums(&all, from->options, err));
    DT_TRY(write_facts(from, &all, err));
out:
    dt_strbuf_release(&all.words);
    json_decref(all.names);
    return st;
}

/* Writes the missing parts of the folder, then its facts. Errors as in corpus.h. */
static dt_status corpus_work(const char *folder, const dt_data_files *files,
                             const dt_prepare_options *options, dt_error *err)
{
    tokenizing all = {
        .folder = folder, .options = options, .bpe = dt_tokenizer_bpe(options->tokenizer)};
    dt_corpus_job job = {.doing = "making tokens",
                         .parts = &all.parts,
                         .threads = options->threads,
                         .tell = options->tell,
                         .context = &all,
                         .open = open_encoder,
                         .part = encode_part,
                         .close = close_encoder};
    dt_status st = DT_OK;

    DT_TRY(dt_corpus_parts_open(&all.parts, files, options->field, all.bpe, err));
    DT_TRY(dt_corpus_run(&job, err));
    DT_TRY(finish(&all, err));
out:
    dt_corpus_parts_release(&all.parts);
    return st;
}

#define KEY_VERSION \
    "1 " DT_VERSION /* changes with the format and with the version, which may tokenize differently */
#define FACTS_MAX    ((size_t)1 << 16)
#define POLL_SECONDS 0.2

/* --- the key */

static dt_status make_key(char *hex, const dt_data_files *files, const dt_prepare_options *options,
                          const char *cache, dt_error *err)
{
    json_t *json = dt_tokenizer_to_json(options->tokenizer);
    dt_status st = DT_OK;
    char digest[DT_DIGEST_SIZE];
    dt_strbuf all;

    dt_strbuf_init(&all);
    dt_strbuf_add_fmt(&all, KEY_VERSION " %s %s %d\n",
                      json_string_value(json_object_get(json, "xxh3_128")), options->field,
                      (int)dt_tokenizer_end_of_text(options->tokenizer));
    for (int64_t i = 0; i < files->count; i++) {
        DT_TRY(dt_content_digest(digest, files->items[i].path, cache, NULL, NULL, NULL, err));
        dt_strbuf_add_fmt(&all, "%d %lld %s\n", (int)dt_corpus_kind_of(files->items[i].path),
                          (long long)files->items[i].bytes, digest);
    }
    dt_digest_of(hex, all.data, all.length);
out:
    json_decref(json);
    dt_strbuf_release(&all);
    return st;
}

/* --- existing files */

static dt_status read_facts(dt_prepared *out, const char *folder, dt_arena *arena, dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/" DT_CORPUS_FACTS, folder), *name;
    json_t *facts = NULL, *parts, *part;
    dt_chat_tally tally = {0};
    const char **items;
    dt_status st = DT_OK;
    size_t i;

    DT_TRY(dt_json_read(&facts, path, DT_CORPUS_FACTS_MAX, err));
    DT_TRY(dt_json_get_int(&out->facts.documents, facts, "documents", path, err));
    DT_TRY(dt_json_get_int(&out->facts.tokens, facts, "tokens", path, err));
    DT_TRY(dt_json_get_int(&out->facts.bytes, facts, "bytes", path, err));
    DT_TRY(dt_json_get_int(&out->facts.broken, facts, "broken", path, err));
    DT_TRY(dt_json_get_int_or(&out->facts.unknown, facts, "unknown", 0, path, err));
    if (out->chats) {
        DT_TRY(dt_chat_tally_add(&tally, facts, path, err));
        out->facts.chats = dt_chat_counts_of(&tally);
    }
    DT_TRY(dt_json_get_array(&parts, facts, "parts", path, err));
    items = dt_arena_alloc_array(arena, json_array_size(parts) + 1, sizeof(*items));
    json_array_foreach(parts, i, part) {
        name = json_string_value(part);
        if (name == NULL || strchr(name, '/') != NULL)
            DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'parts' is malformed; remove the folder", path);
        items[i] = dt_arena_printf(arena, "%s/%s", folder, name);
    }
    if (json_is_string(json_object_get(facts, DT_CORPUS_LEFT_OUT)))
        out->left_out =
            dt_arena_strdup(arena, json_string_value(json_object_get(facts, DT_CORPUS_LEFT_OUT)));
    out->files.items = items;
    out->files.count = out->facts.parts = (int64_t)json_array_size(parts);
out:
    json_decref(facts);
    return st;
}

static bool is_whole(const char *folder)
{
    dt_strbuf path;
    bool out;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" DT_CORPUS_FACTS, folder);
    out = dt_file_exists(path.data);
    dt_strbuf_release(&path);
    return out;
}

/* --- creating the files */

static dt_status wait_for_lock(int *fd, const char *path, const dt_prepared_job *job, dt_error *err)
{
    dt_error busy = DT_ERROR_INIT;
    bool told = false;
    dt_status st;

    while ((st = dt_file_lock(fd, path, &busy)) == DT_ERR_BUSY) {
        if (!told && job->tell != NULL)
            job->tell("waiting for another dtrun that tokenizes the same data");
        told = true;
        dt_error_clear(&busy);
        dt_clock_sleep_seconds(POLL_SECONDS);
    }
    return st == DT_OK ? st : DT_FAIL(err, st, "%s", busy.message);
}

static dt_status make(const char *folder, const dt_prepared_job *job, dt_arena *arena,
                      dt_error *err)
{
    const char *lock = dt_arena_printf(arena, "%s.lock", folder);
    dt_status st = DT_OK;
    int fd = -1;

    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(wait_for_lock(&fd, lock, job, err));
    if (!is_whole(folder))
        DT_TRY(job->work(job->context, folder, err));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

dt_status dt_prepared_folder(dt_prepared *out, const dt_prepared_job *job, bool make_it,
                             dt_arena *arena, dt_error *err)
{
    const char *cache, *folder;
    dt_status st = DT_OK;

    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    folder = dt_arena_printf(arena, "%s/tokens/%s", cache, job->key);
    out->found = is_whole(folder);
    if (!out->found && !make_it)
        goto out;
    if (!out->found)
        DT_TRY(make(folder, job, arena, err));
    DT_TRY(read_facts(out, folder, arena, err));
    if (out->left_out != NULL && job->tell != NULL)
        job->tell(out->left_out);
out:
    return st;
}

typedef struct text_work {
    const dt_data_files *files;
    const dt_prepare_options *options;
} text_work;

static dt_status work_on_text(void *context, const char *folder, dt_error *err)
{
    const text_work *work = context;

    return corpus_work(folder, work->files, work->options, err);
}

static void add_token(dt_strbuf *out, const dt_bpe *bpe, int32_t id)
{
    dt_strbuf_add_str(out, " '");
    dt_bpe_decode(out, bpe, id);
    dt_strbuf_add_char(out, '\'');
}

/* Describes how documents become texts, ", each as '<s>' TEXT '</s>'", and which settings of the
 * tokenizer's file are ignored. */
static const char *describe_texts(const dt_bpe *bpe, dt_arena *arena)
{
    dt_bpe_around around = dt_bpe_get_around(bpe);
    int32_t end = dt_bpe_end_of_text(bpe);
    bool closed = around.after_count > 0 && around.after[around.after_count - 1] == end;
    const char *described;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (around.before_count + around.after_count > 0 || end >= 0) {
        dt_strbuf_add_str(&text, ", each as");
        for (size_t i = 0; i < around.before_count; i++)
            add_token(&text, bpe, around.before[i]);
        dt_strbuf_add_str(&text, " TEXT");
        for (size_t i = 0; i < around.after_count; i++)
            add_token(&text, bpe, around.after[i]);
        if (end >= 0 && !closed)
            add_token(&text, bpe, end);
    }
    if (dt_bpe_ignores_limits(bpe))
        dt_strbuf_add_str(&text, "; truncation and padding of the tokenizer are ignored");
    described = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
    return described;
}

/* --- without preparing */

/* Text that is read of each file, and of all together: a fraction of a second. */
#define HEAD_BYTES      ((size_t)2 << 20)
#define HEAD_MOST_BYTES ((int64_t)16 << 20)

/* Tokenizes the beginning of the files, for errors that a launch would report. Counts the tokens if that was all. */
static dt_status check_heads(dt_prepared *out, const dt_data_files *files,
                             const dt_prepare_options *options, dt_error *err)
{
    const dt_bpe *bpe = dt_tokenizer_bpe(options->tokenizer);
    dt_bpe_encoder *head_encoder = NULL;
    dt_documents documents = {0};
    bool all = true, whole = true;
    dt_status st = DT_OK;
    dt_ids ids = {0};

    DT_TRY(dt_bpe_encoder_open(&head_encoder, bpe, err));
    for (int64_t i = 0; i < files->count && documents.bytes < HEAD_MOST_BYTES; i++) {
        DT_TRY(dt_corpus_head_encode(&ids, &documents, &whole, files->items[i].path, HEAD_BYTES,
                                     options->field, head_encoder, bpe, err));
        all = all && whole;
        out->facts.tokens += (int64_t)ids.count;
        ids.count = 0;
    }
    out->counted = all && documents.bytes < HEAD_MOST_BYTES;
    out->facts.documents = documents.documents;
    if (out->counted && dt_documents_too_broken(documents.broken, documents.lines))
        DT_THROW(err, DT_ERR_RECIPE,
                 "%lld of %lld lines have no text under '%s' (%s); correct them, or set data.field",
                 (long long)documents.broken, (long long)documents.lines, options->field,
                 documents.broken_why);
    if (out->counted && out->facts.tokens == 0)
        DT_THROW(err, DT_ERR_RECIPE, "the data have no text under '%s': all documents are empty",
                 options->field);
out:
    dt_bpe_encoder_close(head_encoder);
    dt_ids_release(&ids);
    return st;
}

dt_status dt_prepared_open(dt_prepared *out, const dt_string_list *patterns, const char *name,
                           const dt_prepare_options *options, bool make_it, dt_arena *arena,
                           dt_error *err)
{
    dt_data_files files;
    text_work work = {&files, options};
    dt_prepared_job job = {.context = &work, .work = work_on_text, .tell = options->tell};
    dt_status st = DT_OK;
    const char *cache;

    *out = (dt_prepared){.vocab = dt_tokenizer_vocab(options->tokenizer)};
    if (patterns->count == 0)
        return DT_OK;
    DT_TRY(dt_data_files_find(&files, patterns, DT_TOKENS_BYTE, name, arena, err));
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    DT_TRY(make_key(job.key, &files, options, cache, err));
    DT_TRY(dt_prepared_folder(out, &job, make_it, arena, err));
    if (out->files.count == 0)
        DT_TRY(check_heads(out, &files, options, err));
    out->texts = describe_texts(dt_tokenizer_bpe(options->tokenizer), arena);
out:
    return st;
}
