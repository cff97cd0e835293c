#include "runner/corpus/corpus.h"

#include <stdlib.h>

#include "runner/corpus/corpus_int.h"

#include "base/memory.h"

typedef struct counting {
    const dt_learned_options *options;
    dt_split split;
    dt_corpus_parts parts;
    dt_words words;         /* counts of all threads that have ended */
    dt_documents documents; /* of all threads that have ended */
} counting;

typedef struct counter {
    const counting *all;
    dt_words words;
    dt_documents documents;
} counter;

/* --- one thread */

static dt_status open_counter(void **worker, void *context, dt_error *err)
{
    counter *made = dt_calloc(1, sizeof(*made));

    *worker = made;
    made->all = context;
    dt_words_init(&made->words);
    return DT_OK;
}

static dt_status add_document(void *context, const char *text, size_t length, dt_error *err)
{
    counter *own = context;

    return dt_words_add_text(&own->words, &own->all->split, text, length, err);
}

static dt_status count_part(void *worker, void *context, int64_t index, dt_error *err)
{
    counter *own = worker;
    const counting *all = context;

    return dt_corpus_part_read(&own->documents, &all->parts.items[index], all->options->field,
                               add_document, own, err);
}

static dt_status close_counter(void *worker, void *context, dt_error *err)
{
    counting *all = context;
    counter *own = worker;

    if (own == NULL)
        return DT_OK;
    all->documents.documents += own->documents.documents;
    all->documents.bytes += own->documents.bytes;
    all->documents.lines += own->documents.lines;
    all->documents.broken += own->documents.broken;
    if (own->words.used > 0)
        dt_words_add_all(&all->words, &own->words);
    dt_words_release(&own->words);
    free(own);
    return DT_OK;
}

/* --- all threads */

static dt_status check_documents(const counting *all, dt_error *err)
{
    const dt_documents *found = &all->documents;

    if (dt_documents_too_broken(found->broken, found->lines))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "%lld of %lld lines have no text under '%s'; correct them, or give --field",
                       (long long)found->broken, (long long)found->lines, all->options->field);
    if (all->words.used == 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "the files hold no text under '%s'",
                       all->options->field);
    return DT_OK;
}

/* Divides the files with a byte-level tokenizer without merges, since no tokenizer exists yet. */
static dt_status open_parts(counting *all, const dt_data_files *files, const dt_bpe_draft *draft,
                            dt_error *err)
{
    json_t *bytes = dt_bpe_draft_json(draft);
    dt_bpe *bpe = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write(&text, bytes);
    DT_TRY(dt_bpe_parse(&bpe, text.data, text.length, "tokenizer.json", err));
    DT_TRY(dt_corpus_parts_open(&all->parts, files, all->options->field, bpe, err));
out:
    json_decref(bytes);
    dt_bpe_free(bpe);
    dt_strbuf_release(&text);
    return st;
}

static dt_status count_words(counting *all, dt_error *err)
{
    dt_corpus_job job = {.doing = "counting words",
                         .parts = &all->parts,
                         .threads = all->options->threads,
                         .tell = all->options->tell,
                         .context = all,
                         .open = open_counter,
                         .part = count_part,
                         .close = close_counter};
    dt_status st = DT_OK;

    dt_words_init(&all->words);
    DT_TRY(dt_corpus_run(&job, err));
    DT_TRY(check_documents(all, err));
out:
    return st;
}

dt_status dt_learn_tokenizer(dt_learned *out, const dt_data_files *files,
                             const dt_learned_options *options, dt_error *err)
{
    counting all = {.options = options, .split = {{{.kind = options->split}}, 1}};
    dt_learn_options learn = {options->vocab, options->least_count, options->tell};
    dt_bpe_merge *merges = NULL;
    dt_bpe_draft draft;
    dt_status st = DT_OK;

    *out = (dt_learned){0};
    DT_TRY(
        dt_bpe_draft_begin(&draft, options->special, options->special_count, options->split, err));
    DT_TRY(open_parts(&all, files, &draft, err));
    DT_TRY(count_words(&all, err));
    DT_TRY(dt_learn_merges(&draft, &merges, &all.words, &learn, err));
    out->vocab = draft.vocab.size;
    out->documents = all.documents.documents;
    out->bytes = all.documents.bytes;
    out->broken = all.documents.broken;
    out->words = (int64_t)all.words.used;
    out->tokenizer = dt_bpe_draft_json(&draft);
    if (out->tokenizer == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a tokenizer of %lld tokens",
                 (long long)out->vocab);
out:
    free(merges);
    dt_bpe_draft_release(&draft);
    dt_corpus_parts_release(&all.parts);
    dt_words_release(&all.words);
    return st;
}
