#include "runner/corpus/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "runner/corpus/threads.h"

#define PART_NAME_SIZE 32

typedef struct work {
    const char *folder;
    const dt_prepare_options *options;
    const dt_bpe *bpe;
    dt_corpus_parts parts;
} work;

static void name_part(char *out, int64_t index, const char *tail)
{
    snprintf(out, PART_NAME_SIZE, "part-%05lld.%s", (long long)index, tail);
}

static void path_of(dt_strbuf *out, const work *all, int64_t index, const char *tail)
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

static dt_status make_part(work *all, int64_t index, dt_ids *ids, dt_bpe_encoder *encoder,
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
    const work *all = context;
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

static dt_status add_up(sums *all, const work *from, int64_t index, dt_error *err)
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

static dt_status write_facts(const work *from, const sums *all, dt_error *err)
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

static dt_status finish(work *from, dt_error *err)
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

dt_status dt_corpus_work(const char *folder, const dt_data_files *files,
                         const dt_prepare_options *options, dt_error *err)
{
    work all = {.folder = folder, .options = options, .bpe = dt_tokenizer_bpe(options->tokenizer)};
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
