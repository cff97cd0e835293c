/* tokenizer_config: reads the files next to a tokenizer.json: the token that ends documents, and the
 * settings with which transformers' AutoTokenizer makes other ids than tokenizer.json alone
 * (tokenization_utils_tokenizers.py). */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "engine/tokens/tokens_int.h"

#define CONFIG_MAX ((size_t)64 << 20) /* a vocabulary of added tokens, and chat templates */

static const char config_name[] = "tokenizer_config.json";

/* Keys that do not change the ids of a text, or that tokenizer.json has too. */
static const char *const known[] = {
    "add_bos_token",
    "add_eos_token",
    "add_prefix_space",
    "added_tokens_decoder",
    "additional_special_tokens",
    "auto_map",
    "backend",
    "boi_token",
    "bos_token",
    "chat_template",
    "clean_up_tokenization_spaces",
    "cls_token",
    "continuing_subword_prefix",
    "device_map",
    "do_basic_tokenize",
    "do_lower_case",
    "eoi_token",
    "eos_token",
    "errors",
    "extra_ids",
    "extra_special_tokens",
    "from_slow",
    "image_token",
    "is_local",
    "keep_accents",
    "legacy",
    "legacy_behaviour",
    "local_files_only",
    "mask_token",
    "max_length",
    "max_len",
    "merges_file",
    "model_input_names",
    "model_max_length",
    "model_specific_special_tokens",
    "name_or_path",
    "never_split",
    "pad_to_multiple_of",
    "pad_token",
    "pad_token_type_id",
    "padding_side",
    "processor_class",
    "remove_space",
    "response_schema",
    "return_token_type_ids",
    "sep_token",
    "sp_model_kwargs",
    "spaces_between_special_tokens",
    "special_tokens_map_file",
    "split_special_tokens",
    "src_lang",
    "stride",
    "strip_accents",
    "tgt_lang",
    "tokenize_chinese_chars",
    "tokenizer_class",
    "tokenizer_file",
    "trim_offsets",
    "truncation_side",
    "truncation_strategy",
    "trust_remote_code",
    "unk_id",
    "unk_token",
    "use_default_system_prompt",
    "use_fast",
    "vocab_file",
    "vocab_size",
};

/* Named special tokens; AutoTokenizer adds those that the vocabulary lacks. */
static const char *const named[] = {"bos_token", "eos_token",  "unk_token",  "sep_token",
                                    "pad_token", "cls_token",  "mask_token", "boi_token",
                                    "eoi_token", "image_token"};

/* Begins a line of the warnings. */
static dt_strbuf *warn(dt_bpe *bpe)
{
    if (bpe->warnings.length > 0)
        dt_strbuf_add_char(&bpe->warnings, '\n');
    return &bpe->warnings;
}

/* Returns the text of a token, "</s>" or {"content": "</s>", ...}; NULL: not a token. */
static const char *content_of(const json_t *token)
{
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

/* Returns the id of a token by its whole text; -1: none. Added tokens cannot be found by their bytes, and usually have
 * the last ids. */
static int64_t id_of(const dt_bpe *bpe, const char *text)
{
    size_t length = strlen(text), its_length;

    for (int64_t id = dt_bpe_vocab(bpe) - 1; id >= 0; id--) {
        const char *its = dt_vocab_text(&bpe->vocab, id, &its_length);

        if (its != NULL && its_length == length && memcmp(its, text, length) == 0)
            return id;
    }
    return -1;
}

static dt_status read_file(json_t **out, const char *folder, const char *name, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;

    *out = NULL;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    if (!dt_file_exists(path.data))
        goto out;
    DT_TRY(dt_json_read_foreign(out, path.data, CONFIG_MAX, err));
    if (!json_is_object(*out))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is not a JSON object", path.data);
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- the token that ends documents */

/* Takes the eos_token of a file. Returns false if the file does not set one that the tokenizer has. */
static bool take_named_end(dt_bpe *bpe, const json_t *file)
{
    const char *text = content_of(json_object_get(file, "eos_token"));

    return text != NULL && dt_bpe_set_end_of_text(bpe, id_of(bpe, text));
}

static dt_status find_end(dt_bpe *bpe, const json_t *config, const char *folder, dt_error *err)
{
    json_t *special = NULL, *model = NULL;
    const json_t *id;
    dt_status st = DT_OK;

    if (take_named_end(bpe, config))
        return DT_OK;
    DT_TRY(read_file(&special, folder, "special_tokens_map.json", err));
    if (take_named_end(bpe, special))
        goto out;
    DT_TRY(read_file(&model, folder, "config.json", err));
    id = json_object_get(model, "eos_token_id");
    id = json_is_array(id) ? json_array_get(id, 0) : id;
    if (json_is_integer(id))
        (void)dt_bpe_set_end_of_text(bpe, json_integer_value(id));
out:
    json_decref(special);
    json_decref(model);
    return st;
}

/* --- settings that AutoTokenizer applies */

/* Tokens that the tokenizer lacks, for one warning. */
typedef struct missing {
    dt_strbuf shown;
    int64_t count;
} missing;

enum { SHOWN_MOST = 5 };

static void check_token(missing *lacks, const dt_bpe *bpe, const json_t *token)
{
    const char *text = content_of(token);
    dt_strbuf quoted;

    if (text == NULL || text[0] == '\0' || id_of(bpe, text) >= 0)
        return;
    dt_strbuf_init(&quoted);
    dt_strbuf_add_fmt(&quoted, "'%.80s'", text);
    if (strstr(lacks->shown.data, quoted.data) == NULL && lacks->count++ < SHOWN_MOST)
        dt_strbuf_add_fmt(&lacks->shown, "%s%s", lacks->count > 1 ? ", " : "", quoted.data);
    dt_strbuf_release(&quoted);
}

/* Checks a list of tokens, or an object with a token a key. */
static void check_tokens(missing *lacks, const dt_bpe *bpe, json_t *tokens)
{
    const char *key;
    json_t *token;
    size_t i;

    json_array_foreach(tokens, i, token)
        check_token(lacks, bpe, token);
    json_object_foreach(tokens, key, token)
        check_token(lacks, bpe, token);
}

static void warn_of_tokens(dt_bpe *bpe, const json_t *config)
{
    missing lacks = {.count = 0};

    dt_strbuf_init(&lacks.shown);
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        check_token(&lacks, bpe, json_object_get(config, named[i]));
    check_tokens(&lacks, bpe, json_object_get(config, "added_tokens_decoder"));
    check_tokens(&lacks, bpe, json_object_get(config, "additional_special_tokens"));
    check_tokens(&lacks, bpe, json_object_get(config, "extra_special_tokens"));
    if (lacks.count > SHOWN_MOST)
        dt_strbuf_add_fmt(&lacks.shown, " and %lld more", (long long)(lacks.count - SHOWN_MOST));
    if (lacks.count > 0)
        dt_strbuf_add_fmt(warn(bpe),
                          "%s has tokens that tokenizer.json lacks: %s; dtrun reads them as "
                          "ordinary text, AutoTokenizer adds them to the vocabulary",
                          config_name, lacks.shown.data);
    dt_strbuf_release(&lacks.shown);
}

static bool puts_space_first(const dt_bpe *bpe)
{
    bool puts = bpe->prefix_space ||
                (bpe->metaspace.mark != NULL && bpe->metaspace.prepend != DT_PREPEND_NEVER);

    for (int i = 0; i < bpe->step_count; i++)
        puts = puts || bpe->steps[i].kind == DT_NORMAL_PREPEND;
    return puts;
}

/* Warns if the file sets a boolean to another value than tokenizer.json has. */
static void check_flag(dt_bpe *bpe, const json_t *config, const char *key, bool is,
                       const char *effect)
{
    const json_t *value = json_object_get(config, key);

    if (json_is_boolean(value) && json_is_true(value) != is)
        dt_strbuf_add_fmt(warn(bpe),
                          "%s sets '%s' to %s, but tokenizer.json %s %s; dtrun follows "
                          "tokenizer.json",
                          config_name, key, is ? "false" : "true", is ? "puts" : "does not put",
                          effect);
}

static bool is_known(const char *key)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i], key) == 0)
            return true;
    return false;
}

static void warn_of_settings(dt_bpe *bpe, json_t *config)
{
    const char *key;
    json_t *value;

    check_flag(bpe, config, "add_prefix_space", puts_space_first(bpe), "a space before a text");
    check_flag(bpe, config, "add_bos_token", bpe->before.count > 0, "a token before a text");
    check_flag(bpe, config, "add_eos_token", bpe->after.count > 0, "a token after a text");
    if (json_is_true(json_object_get(config, "split_special_tokens")))
        dt_strbuf_add_fmt(warn(bpe),
                          "%s sets 'split_special_tokens', which dtrun does not support: "
                          "special tokens in a text are not split",
                          config_name);
    json_object_foreach(config, key, value)
        if (!is_known(key))
            dt_strbuf_add_fmt(warn(bpe),
                              "%s has '%.80s', which dtrun does not know: it may change "
                              "the tokens",
                              config_name, key);
}

dt_status dt_bpe_read_folder(dt_bpe *bpe, const char *folder, dt_error *err)
{
    json_t *config = NULL;
    dt_status st = DT_OK;

    DT_TRY(read_file(&config, folder, config_name, err));
    DT_TRY(find_end(bpe, config, folder, err));
    if (config == NULL)
        goto out;
    warn_of_tokens(bpe, config);
    warn_of_settings(bpe, config);
out:
    json_decref(config);
    return st;
}
