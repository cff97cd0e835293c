/* pair_prepared: tokenizes sentence pairs into one file of ids. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/version.h"
#include "engine/data/sides.h"
#include "runner/corpus/corpus.h"
#include "runner/corpus/corpus_int.h"
#include "runner/node_setup/workdir/contents.h"

#define HEAD_LINES   50000 /* pairs that are read without preparing: a fraction of a second */
#define KEY_VERSION  "pairs 1 " DT_VERSION /* as in token_files.c */
#define FILE_NAME    "all.pairs"
#define TELL_SECONDS 5.0

typedef struct work {
    const dt_pair_files *files;
    const dt_sides *sides;
    const char *const *names; /* names of the languages */
    const char *field;
    dt_empty_kind empty;
    void (*tell)(const char *text);
    /* The results. */
    dt_side_encoder encoders[DT_LANGUAGES];
    dt_ids one[DT_LANGUAGES];       /* ids of the current pair */
    dt_strbuf ids[DT_LANGUAGES];    /* ids of all pairs, in the file's width */
    dt_strbuf starts[DT_LANGUAGES]; /* start of each sentence, int64 */
    int64_t totals[DT_LANGUAGES];
    int64_t pairs, unknown;
    int width_bytes;
    double told_seconds;
    dt_pair_tally counts;
} work;

static const dt_side *side_of(const work *all, int language)
{
    return language == DT_SOURCE ? all->sides->source : all->sides->target;
}

/* --- one pair */

static void tell_progress(work *all)
{
    double now = dt_clock_monotonic_seconds();
    char text[96];

    if (all->tell == NULL || all->pairs % 1024 != 0 || now - all->told_seconds < TELL_SECONDS)
        return;
    all->told_seconds = now;
    snprintf(text, sizeof(text), "%s: tokenized %lld sentence pairs", all->field,
             (long long)all->pairs);
    all->tell(text);
}

static void keep(work *all)
{
    for (int i = 0; i < DT_LANGUAGES; i++) {
        const dt_ids *ids = &all->one[i];

        dt_strbuf_add(&all->starts[i], &all->totals[i], sizeof(all->totals[i]));
        dt_sentences_ids(&all->ids[i], all->width_bytes, ids->items, (int64_t)ids->count);
        all->totals[i] += (int64_t)ids->count;
        for (size_t t = 0; t < ids->count && side_of(all, i)->bpe == NULL; t++)
            all->unknown += ids->items[t] == DT_DICTIONARY_UNKNOWN;
    }
    all->pairs++;
    tell_progress(all);
}

static dt_status add_text(void *context, const dt_pair_text *pair, dt_language *side, bool *empty,
                          dt_error *err)
{
    work *all = context;
    dt_status st = DT_OK;

    for (int i = 0; i < DT_LANGUAGES; i++) {
        *side = (dt_language)i;
        all->one[i].count = 0;
        DT_TRY(
            dt_side_encode(&all->one[i], &all->encoders[i], pair->text[i], pair->length[i], err));
        *empty = all->one[i].count < 2; /* only the end token */
        if (*empty)
            goto out;
    }
    keep(all);
out:
    return st;
}

/* Adds a pair of a data-bin, whose ids usually end with </s> already. */
static dt_status add_ids(void *context, int32_t *const ids[DT_LANGUAGES],
                         const int64_t count[DT_LANGUAGES], bool *empty, dt_error *err)
{
    work *all = context;
    dt_status st = DT_OK;

    for (int i = 0; i < DT_LANGUAGES; i++) {
        const dt_side *side = side_of(all, i);

        all->one[i].count = 0;
        for (int64_t t = 0; t < count[i]; t++) {
            if (ids[i][t] >= side->vocab)
                DT_THROW(err, DT_ERR_RECIPE,
                         "%s: sentence %lld of '%s' has the id %d, but the dictionary has %lld "
                         "words: it was binarized with another dictionary",
                         all->field, (long long)(all->counts.lines), all->names[i], ids[i][t],
                         (long long)side->vocab);
            DT_TRY(dt_ids_add(&all->one[i], ids[i][t], err));
        }
        if (count[i] == 0 || ids[i][count[i] - 1] != side->end)
            DT_TRY(dt_ids_add(&all->one[i], side->end, err));
        *empty = *empty || all->one[i].count < 2;
    }
    if (!*empty)
        keep(all);
out:
    return st;
}

/* --- the file */

static dt_status write_file(const char *path, const work *all, dt_error *err)
{
    const int64_t *starts[DT_LANGUAGES];
    dt_strbuf head, temporary;
    dt_status st = DT_OK;
    int fd = -1;

    dt_strbuf_init(&head);
    dt_strbuf_init(&temporary);
    dt_strbuf_add_fmt(&temporary, "%s.tmp", path);
    for (int i = 0; i < DT_LANGUAGES; i++)
        starts[i] = (const int64_t *)(const void *)all->starts[i].data;
    dt_sentences_head(&head, all->pairs, all->width_bytes, starts);
    fd = open(temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", temporary.data, strerror(errno));
    DT_TRY(dt_file_write_all(fd, head.data, head.length, err));
    for (int i = 0; i < DT_LANGUAGES; i++)
        DT_TRY(dt_file_write_all(fd, all->ids[i].data, all->ids[i].length, err));
    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    DT_TRY(dt_file_name(temporary.data, path, true, err));
out:
    if (st != DT_OK && fd >= 0) {
        dt_error_prefix(err, "'%s'", path);
        (void)unlink(temporary.data);
    }
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&head);
    dt_strbuf_release(&temporary);
    return st;
}

static dt_status write_facts(const char *folder, const work *all, dt_error *err)
{
    json_t *facts =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:[s]}", "documents", (json_int_t)all->pairs, "tokens",
                  (json_int_t)(all->totals[0] + all->totals[1]), "bytes",
                  (json_int_t)all->counts.bytes, "broken", (json_int_t)all->counts.broken,
                  "unknown", (json_int_t)all->unknown, "parts", FILE_NAME);
    dt_status st = DT_OK;
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (all->counts.broken > 0) {
        dt_strbuf_add_fmt(&text, "%s: left out %lld pairs with an empty or missing side: %s",
                          all->field, (long long)all->counts.broken, all->counts.broken_words.data);
        if (all->counts.broken > DT_PAIRS_NAMED)
            dt_strbuf_add_fmt(&text, " and %lld more",
                              (long long)all->counts.broken - DT_PAIRS_NAMED);
        json_object_set_new(facts, DT_CORPUS_LEFT_OUT, dt_json_text(text.data));
        dt_strbuf_reset(&text);
    }
    dt_json_write(&text, facts);
    dt_strbuf_add_fmt(&path, "%s/" DT_CORPUS_FACTS, folder);
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0600, err));
out:
    json_decref(facts);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

static dt_status check(const work *all, dt_error *err)
{
    const dt_pair_tally *counts = &all->counts;

    if (all->empty == DT_EMPTY_REFUSE && dt_documents_too_broken(counts->broken, counts->lines))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "%s: %lld of %lld pairs have an empty or missing side, the first ones %s; "
                       "correct them, "
                       "or set data.empty: drop",
                       all->field, (long long)counts->broken, (long long)counts->lines,
                       counts->broken_words.data);
    if (all->pairs == 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "%s has no sentence pair%s%s", all->field,
                       counts->broken > 0 ? ": " : "", counts->broken_words.data);
    return DT_OK;
}

/* Reads at most `most` lines of the files into memory; 0: all. */
static dt_status read_pairs(work *all, int64_t most, dt_error *err)
{
    dt_pair_sink sink = {all, add_text, add_ids, most};
    dt_status st = DT_OK;

    all->told_seconds = dt_clock_monotonic_seconds();
    all->width_bytes =
        all->sides->source->vocab > 65536 || all->sides->target->vocab > 65536 ? 4 : 2;
    for (int i = 0; i < DT_LANGUAGES; i++)
        DT_TRY(dt_side_encoder_open(&all->encoders[i], side_of(all, i), err));
    for (int64_t i = 0; i < all->files->count && !dt_pair_sink_is_full(&sink, &all->counts); i++)
        DT_TRY(dt_pairs_read(&all->counts, &all->files->items[i], all->names, &sink, err));
    if (!dt_pair_sink_is_full(&sink, &all->counts))
        DT_TRY(check(all, err));
out:
    return st;
}

static dt_status make(void *context, const char *folder, dt_error *err)
{
    work *all = context;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" FILE_NAME, folder);
    DT_TRY(read_pairs(all, 0, err));
    for (int i = 0; i < DT_LANGUAGES; i++)
        dt_strbuf_add(&all->starts[i], &all->totals[i], sizeof(all->totals[i]));
    DT_TRY(write_file(path.data, all, err));
    DT_TRY(write_facts(folder, all, err));
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- the data of a recipe */

static dt_status make_key(char *hex, const dt_pair_files *files, const dt_tokenizer *tokenizer,
                          const char *const names[], dt_empty_kind empty, dt_arena *arena,
                          dt_error *err)
{
    json_t *json = dt_tokenizer_to_json(tokenizer);
    char digest[DT_DIGEST_SIZE];
    dt_status st = DT_OK;
    const char *cache;
    dt_strbuf all;

    dt_strbuf_init(&all);
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    dt_strbuf_add_fmt(&all, KEY_VERSION " %s %s %s\n",
                      json_string_value(json_object_get(json, "xxh3_128")), names[0], names[1]);
    for (int64_t i = 0; i < files->count; i++) {
        const dt_pair_file *file = &files->items[i];
        const char *paths[] = {file->paths[0], file->paths[1], file->indexes[0], file->indexes[1]};

        dt_strbuf_add_fmt(&all, "%d", (int)file->format);
        for (int p = 0; p < 4; p++)
            if (paths[p] != NULL) {
                DT_TRY(dt_content_digest(digest, paths[p], cache, NULL, NULL, NULL, err));
                dt_strbuf_add_fmt(&all, " %s", digest);
            }
        dt_strbuf_add_char(&all, '\n');
    }
    if (empty == DT_EMPTY_DROP) /* what one recipe accepts, another may refuse */
        dt_strbuf_add_str(&all, "drop\n");
    dt_digest_of(hex, all.data, all.length);
out:
    json_decref(json);
    dt_strbuf_release(&all);
    return st;
}

static dt_status open_list(dt_prepared *out, const dt_recipe *recipe, const dt_string_list *entries,
                           const char *field, const dt_tokenizer *tokenizer, bool make_it,
                           void (*tell)(const char *text), dt_arena *arena, dt_error *err)
{
    const char *const names[] = {recipe->data.source, recipe->data.target};
    dt_pair_files files;
    work all = {.files = &files,
                .sides = dt_tokenizer_sides(tokenizer),
                .names = names,
                .field = field,
                .empty = recipe->data.empty,
                .tell = tell};
    dt_prepared_job job = {.context = &all, .work = make, .tell = tell};
    dt_status st = DT_OK;

    *out = (dt_prepared){.vocab = dt_tokenizer_vocab(tokenizer), .pairs = true};
    if (entries->count == 0)
        return DT_OK;
    dt_strbuf_init(&all.counts.broken_words);
    for (int i = 0; i < DT_LANGUAGES; i++) {
        dt_strbuf_init(&all.ids[i]);
        dt_strbuf_init(&all.starts[i]);
    }
    DT_TRY(dt_pair_files_find(&files, entries, names, field, arena, err));
    DT_TRY(make_key(job.key, &files, tokenizer, names, recipe->data.empty, arena, err));
    DT_TRY(dt_prepared_folder(out, &job, make_it, arena, err));
    if (out->files.count == 0) /* find what preparing would refuse */
        DT_TRY(read_pairs(&all, HEAD_LINES, err));
out:
    dt_strbuf_release(&all.counts.broken_words);
    for (int i = 0; i < DT_LANGUAGES; i++) {
        dt_side_encoder_close(&all.encoders[i]);
        dt_ids_release(&all.one[i]);
        dt_strbuf_release(&all.ids[i]);
        dt_strbuf_release(&all.starts[i]);
    }
    return st;
}

/* Sets the fields of the model that depend on the tokenizers. */
static dt_status tell_model(dt_recipe *recipe, const dt_sides *sides, dt_error *err)
{
    int64_t given = recipe->model.source_vocab, vocab = sides->source->vocab;

    if (given > 0 && given < vocab)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model.source_vocab is %lld, but data.tokenizer has %lld tokens of the "
                       "source; leave it out, or set it to %lld or more",
                       (long long)given, (long long)vocab, (long long)vocab);
    if (given == 0 && vocab != sides->target->vocab)
        recipe->model.source_vocab = vocab;
    recipe->model.pad = sides->target->pad;
    return DT_OK;
}

dt_status dt_prepare_pairs(dt_recipe *recipe, const dt_tokenizer *tokenizer, bool make_it,
                           void (*tell)(const char *text), dt_prepared made[2], dt_arena *arena,
                           dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(tell_model(recipe, dt_tokenizer_sides(tokenizer), err));
    if (recipe->data.tokens == DT_TOKENS_PAIRS) /* the recipe was already prepared */
        goto out;
    if (recipe->data.target == NULL || recipe->data.target[0] == '\0')
        DT_THROW(err, DT_ERR_RECIPE, "data.source is '%s', but data.target is not set",
                 recipe->data.source);
    DT_TRY(open_list(&made[0], recipe, &recipe->data.train, "data.train", tokenizer, make_it, tell,
                     arena, err));
    DT_TRY(open_list(&made[1], recipe, &recipe->data.validation, "data.validation", tokenizer,
                     make_it, tell, arena, err));
    if (made[0].files.count > 0 &&
        (recipe->data.validation.count == 0 || made[1].files.count > 0)) {
        recipe->data.train = made[0].files;
        recipe->data.validation = made[1].files;
        recipe->data.tokens = DT_TOKENS_PAIRS;
    }
out:
    return st;
}
