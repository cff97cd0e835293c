/* rules_data: checks rules about data, evaluations and kept checkpoints (recipes/rules/rules.h). */
#include <fnmatch.h>
#include <string.h>

#include "base/file.h"
#include "recipes/architecture/architecture.h"
#include "recipes/fields/nodes.h"
#include "recipes/read/reading.h"
#include "recipes/rules/rules.h"

/* --- URLs --- */

/* Requires a digest, which alone makes the data trusted (runner/fetch/fetch.h parses the rest). */
static void look_at_url(const dt_rule_case *c, const char *path, int64_t index, const char *url)
{
    static const char key[] = "#sha256=";
    const char *digest = strstr(url, key), *secret = dt_url_secret(url, DT_URL_DATA);

    if (secret != NULL && !dt_reading_resolved(c->reading, path))
        dt_rule_broken_item(
            c, path, index,
            "'%s' has a URL that contains %s, which would be stored and shown with the recipe: put "
            "a name and password into ~/.netrc, or download the file and name its path",
            path, secret);
    else if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
        dt_rule_broken_item(c, path, index, "'%s' has a URL that is neither https:// nor http://",
                            path);
    else if (digest == NULL || strspn(digest + sizeof(key) - 1, "0123456789abcdefABCDEF") != 64 ||
             digest[sizeof(key) - 1 + 64] != '\0')
        dt_rule_broken_item(
            c, path, index,
            "'%s' has a URL without a digest: append '#sha256=' and the 64 digits from "
            "its publisher, or from 'sha256sum' of a trusted copy",
            path);
}

static void look_at_urls(const dt_rule_case *c, const char *path, const dt_string_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        if (strstr(list->items[i], "://") != NULL)
            look_at_url(c, path, i, list->items[i]);
}

void dt_rule_urls(const dt_rule_case *c)
{
    look_at_urls(c, "data.train", &c->recipe->data.train);
    look_at_urls(c, "data.validation", &c->recipe->data.validation);
}

/* --- mixtures --- */

/* Returns whether data.train has the files of the parts, as in a recipe that was written out completely. */
static bool has_files_of_parts(const dt_recipe *recipe)
{
    int64_t at = 0;

    for (int64_t i = 0; i < recipe->data.mixture.count; i++) {
        const dt_string_list *files = &dt_recipe_part(recipe, i)->files;

        for (int64_t f = 0; f < files->count; f++, at++)
            if (at >= recipe->data.train.count ||
                strcmp(recipe->data.train.items[at], files->items[f]) != 0)
                return false;
    }
    return at == recipe->data.train.count;
}

/* Broken only within one layer; of two layers the later wins (derive_mixture.c). */
void dt_rule_mixture(const dt_rule_case *c)
{
    if (c->recipe->data.mixture.count > 0 && !has_files_of_parts(c->recipe))
        dt_rule_broken(c, "data.mixture", "'data.train' and 'data.mixture' cannot be combined");
}

void dt_rule_mixture_names(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    for (int64_t i = 1; i < recipe->data.mixture.count; i++)
        for (int64_t k = 0; k < i; k++) {
            const char *name = dt_recipe_part(recipe, i)->name;
            dt_strbuf shown;

            if (strcmp(name, dt_recipe_part(recipe, k)->name) != 0)
                continue;
            dt_strbuf_init(&shown);
            dt_text_show(&shown, name);
            dt_rule_broken_item(c, "data.mixture", i, "two parts of 'data.mixture' are named %s",
                                shown.data);
            dt_strbuf_release(&shown);
            return;
        }
}

void dt_rule_mixture_kind(const dt_rule_case *c)
{
    const dt_architecture *kind = dt_architecture_find(c->recipe->model.kind);

    if (c->recipe->data.mixture.count > 0 && (kind->reads_rows || kind->reads_pairs))
        dt_rule_broken(c, "data.mixture", "a model of kind '%s' cannot train on a mixture",
                       kind->name);
}

/* --- validation --- */

/* Checked only within one layer; of two layers the later wins (derive.c). An earlier, resolved
 * recipe has all fields. */
void dt_rule_split(const dt_rule_case *c)
{
    if (c->recipe->data.validation.count > 0 && c->reading->resolved == NULL &&
        dt_reading_given(c->reading, "data.split") &&
        dt_reading_later(c->reading, "data.validation", "data.split") == 0)
        dt_rule_broken(c, "data.split", "'data.split' and 'data.validation' cannot be combined");
}

/* Returns the first validation file that is also a training file, by name or by a pattern; NULL: none. */
static const char *find_shared(const char **train_item, const dt_recipe *recipe, bool by_pattern)
{
    const dt_string_list *train = &recipe->data.train, *validation = &recipe->data.validation;

    for (int64_t v = 0; v < validation->count; v++)
        for (int64_t t = 0; t < train->count; t++) {
            const char *item = *train_item = train->items[t], *file = validation->items[v];

            if (by_pattern ? strpbrk(item, "*?[") != NULL && strcmp(item, file) != 0 &&
                                 fnmatch(item, file, FNM_PATHNAME) == 0
                           : strcmp(item, file) == 0)
                return file;
        }
    return NULL;
}

/* Adds the file's name without folders, in quotes; URLs are not shown. */
static void show_file(dt_strbuf *out, const char *path)
{
    const char *slash = strrchr(path, '/');

    dt_strbuf_init(out);
    dt_text_show(out, strstr(path, "://") != NULL ? "URL" : slash != NULL ? slash + 1 : path);
}

void dt_rule_own_validation(const dt_rule_case *c)
{
    const char *item, *file = find_shared(&item, c->recipe, false);
    dt_strbuf shown;

    if (file == NULL)
        return;
    show_file(&shown, file);
    dt_rule_broken(c, "data.validation", "%s is in 'data.validation' and in 'data.train'",
                   shown.data);
    dt_strbuf_release(&shown);
}

void dt_rule_glob(const dt_rule_case *c)
{
    const char *item, *file = find_shared(&item, c->recipe, true);
    dt_strbuf shown, pattern;

    if (file == NULL)
        return;
    show_file(&shown, file);
    show_file(&pattern, item);
    dt_rule_broken(c, "data.train", "the pattern %s matches %s, which is in 'data.validation'",
                   pattern.data, shown.data);
    dt_strbuf_release(&pattern);
    dt_strbuf_release(&shown);
}

void dt_rule_jsonl(const dt_rule_case *c)
{
    const dt_string_list *train = &c->recipe->data.train;

    if (c->recipe->data.tokens != DT_TOKENS_AUTO || c->recipe->data.tokenizer[0] != '\0' ||
        dt_architecture_find(c->recipe->model.kind)->reads_rows ||
        c->recipe->data.source[0] != '\0' || c->recipe->data.format == DT_DATA_CHAT)
        return;
    for (int64_t i = 0; i < train->count; i++) {
        const char *path = train->items[i];
        size_t length = strcspn(path, "#");
        dt_strbuf shown;

        if ((length < 6 || strncmp(path + length - 6, ".jsonl", 6) != 0) &&
            (length < 5 || strncmp(path + length - 5, ".json", 5) != 0))
            continue;
        show_file(&shown, path);
        dt_rule_broken(c, "data.train",
                       "%s is read character by character, including keys, quotes and braces",
                       shown.data);
        dt_strbuf_release(&shown);
        return;
    }
}

/* Refuses ids of characters or bytes, which mean nothing to a published model. */
void dt_rule_weights_tokens(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    const char *from = recipe->model.from;
    dt_strbuf config;

    if (from[0] == '\0' || recipe->data.train.count == 0 || recipe->data.tokenizer[0] != '\0' ||
        dt_reading_trains_on_ids(c->reading))
        return;
    dt_strbuf_init(&config);
    dt_strbuf_add_fmt(&config, "%s/config.json", from);
    if (dt_file_exists(config.data)) /* a checkpoint includes its tokenizer */
        dt_rule_broken(
            c, dt_reading_written(c->reading, "data.tokens") ? "data.tokens" : "data.train",
            "the text is read %s, but the weights need the tokens of their own tokenizer",
            recipe->data.tokens == DT_TOKENS_BYTE ? "byte by byte" : "character by character");
    dt_strbuf_release(&config);
}

/* --- sentence pairs --- */

/* Returns true if batch.sequences is set to another value than the derived one, which a recipe
 * that was written out completely contains. */
static bool says_sequences(const dt_recipe *recipe)
{
    int64_t tokens = recipe->batch.tokens;

    return tokens > 0 &&
           recipe->batch.sequences != (recipe->batch.max_tokens + tokens - 1) / tokens;
}

void dt_rule_pairs(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    const char *source = recipe->data.source, *target = recipe->data.target;

    if (!dt_architecture_find(recipe->model.kind)->reads_pairs) {
        if (recipe->data.tokens == DT_TOKENS_PAIRS) /* other fields have no effect on this kind */
            dt_rule_broken(c, "data.tokens",
                           "'data.tokens: pairs' and a model of kind '%s' cannot be combined",
                           dt_architecture_find(recipe->model.kind)->name);
        return;
    }
    if (recipe->data.tokens != DT_TOKENS_PAIRS && (source[0] == '\0' || target[0] == '\0'))
        dt_rule_broken(c, source[0] == '\0' ? "data.source" : "data.target",
                       "'%s' is missing: the language to translate %s, as in 'source: de, target: "
                       "en' for train.de and train.en",
                       source[0] == '\0' ? "data.source" : "data.target",
                       source[0] == '\0' ? "from" : "to");
    if (source[0] != '\0' && strcmp(source, target) == 0)
        dt_rule_broken(c, "data.target", "'data.source' and 'data.target' are both '%s'", source);
    if (recipe->batch.max_tokens == 0)
        dt_rule_broken(c, "batch.max_tokens",
                       "'batch.max_tokens' is missing (largest number of tokens in a batch of "
                       "sentence pairs): 4096 is usual");
    else if (says_sequences(recipe))
        dt_rule_broken(c, "batch.sequences",
                       "'batch.sequences' and 'batch.max_tokens' cannot be combined: remove one");
}

/* --- conversations */

void dt_rule_chat(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    const char *tokenizer = recipe->data.tokenizer;
    bool chat = recipe->data.format == DT_DATA_CHAT;

    if (recipe->data.tokens == DT_TOKENS_CHATS && !chat)
        dt_rule_broken(c, "data.tokens", "'data.tokens: chats' needs 'data.format: chat'");
    if (recipe->data.too_long == DT_TOO_LONG_CUT && !chat)
        dt_rule_broken(
            c, "data.too_long",
            "'data.too_long: cut' needs 'data.format: chat': only conversations are cut");
    if (!chat || dt_architecture_find(recipe->model.kind)->reads_rows ||
        dt_architecture_find(recipe->model.kind)->reads_pairs)
        return; /* other kinds of models refuse the field itself */
    if (recipe->data.tokens != DT_TOKENS_AUTO && recipe->data.tokens != DT_TOKENS_CHATS)
        dt_rule_broken(c, "data.tokens",
                       "'data.format: chat' and this 'data.tokens' cannot be combined: remove it");
    if (tokenizer[0] == '\0' || strcmp(tokenizer, "char") == 0 || strcmp(tokenizer, "byte") == 0)
        dt_rule_broken(c, tokenizer[0] == '\0' ? "data.format" : "data.tokenizer",
                       "'data.format: chat' needs a tokenizer with control tokens: set "
                       "'data.tokenizer' to a tokenizer.json or its folder, or 'model.from' to the "
                       "weights to tune");
}

/* --- evaluations and checkpoints */

/* Checks CPU ranks on named nodes, whose number is known. */
void dt_rule_batch(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    int64_t ranks = recipe->nodes.count * recipe->ranks, sequences = recipe->evaluate.sequences;

    if (recipe->gpus > 0 || dt_node_is_slurm(recipe->nodes.items[0]) ||
        !dt_reading_written(c->reading, "evaluate.sequences") || sequences == 0 ||
        sequences >= ranks)
        return;
    dt_rule_broken(c, "evaluate.sequences",
                   "'evaluate.sequences' %lld is less than the %lld ranks: some ranks have nothing "
                   "to evaluate",
                   (long long)sequences, (long long)ranks);
}

static bool validates(const dt_recipe *recipe)
{
    return recipe->data.validation.count > 0 || recipe->data.split > 0;
}

void dt_rule_epoch_evaluation(const dt_rule_case *c)
{
    if (c->recipe->evaluate.every_epoch > 0 && !validates(c->recipe))
        dt_rule_broken(c, "evaluate.every_epoch",
                       "'evaluate.every_epoch' %lld has no data to evaluate on: 'data.split' is 0",
                       (long long)c->recipe->evaluate.every_epoch);
}

void dt_rule_samples(const dt_rule_case *c)
{
    const dt_architecture *kind = dt_architecture_find(c->recipe->model.kind);

    if (c->recipe->evaluate.samples.count > 0 && (kind->reads_rows || kind->reads_pairs))
        dt_rule_broken(c, "evaluate.samples",
                       "'evaluate.samples' needs a model that predicts the next token of a text, "
                       "and '%s' does not",
                       kind->name);
}

void dt_rule_best(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    bool on_the_way =
        recipe->evaluate.every_epoch > 0 ||
        (recipe->evaluate.every > 0 &&
         (recipe->schedule.steps == 0 || recipe->evaluate.every < recipe->schedule.steps));

    if (recipe->checkpoint.keep_best == 0 || (validates(recipe) && on_the_way) ||
        !dt_reading_written(c->reading, "checkpoint.keep_best"))
        return;
    dt_rule_broken(c, "checkpoint.keep_best",
                   "'checkpoint.keep_best' %lld keeps nothing: nothing is evaluated %s",
                   (long long)recipe->checkpoint.keep_best,
                   validates(recipe) ? "before the end" : "('data.split' is 0)");
}

void dt_rule_best_by(const dt_rule_case *c)
{
    if (c->recipe->checkpoint.best_by == DT_BEST_BY_VALID_BLEU && !c->recipe->evaluate.bleu)
        dt_rule_broken(c, "checkpoint.best_by",
                       "'checkpoint.best_by' is 'valid_bleu', which is not measured");
}

static void look_at_interval(const dt_rule_case *c, const char *path, int64_t every)
{
    if (every > c->recipe->schedule.steps && dt_reading_written(c->reading, path))
        dt_rule_broken(c, path, "'%s' %lld is above 'schedule.steps' %lld and never happens", path,
                       (long long)every, (long long)c->recipe->schedule.steps);
}

void dt_rule_late(const dt_rule_case *c)
{
    if (c->recipe->schedule.steps == 0)
        return;
    look_at_interval(c, "evaluate.every", c->recipe->evaluate.every);
    look_at_interval(c, "checkpoint.every", c->recipe->checkpoint.every);
    look_at_interval(c, "log.every", c->recipe->log.every);
}
