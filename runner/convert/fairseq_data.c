/* fairseq_data: converts the data of a fairseq-train command line, its evaluation with BLEU, and its
 * checkpoints. */
#include <string.h>

#include "base/json.h"
#include "runner/convert/convert_int.h"

/* Converts --eval-bleu-args, such as {"beam": 5, "max_len_a": 1.2, ...}. */
static void take_arguments(dt_draft *draft, const dt_flags *flags)
{
    const char *text = dt_flags_text(flags, "--eval-bleu-args", "{}"), *key;
    const char *about = dt_flags_about(flags, "--eval-bleu-args");
    json_t *args = json_loads(text, 0, NULL), *value;

    if (!json_is_object(args)) {
        dt_draft_left(draft, about, "it is not a JSON object");
    } else {
        json_object_foreach(args, key, value) {
            if (strcmp(key, "beam") == 0 && json_is_integer(value))
                dt_draft_number(draft, "evaluate.beam", (double)json_integer_value(value), "%s",
                                about);
            else if (strncmp(key, "max_len_", 8) == 0)
                dt_draft_left(draft, about, "'%s': a translation is at most 'batch.tokens' long",
                              key);
            else
                dt_draft_left(draft, about, "'%s': dtrun has one kind of search", key);
        }
    }
    json_decref(args);
}

static void set_best(dt_draft *draft, const dt_flags *flags, bool bleu)
{
    const char *metric = dt_flags_text(flags, "--best-checkpoint-metric", "loss");
    bool highest = dt_flags_given(flags, "--maximize-best-checkpoint-metric");

    if (bleu && highest && strcmp(metric, "bleu") == 0)
        dt_draft_word(draft, "checkpoint.best_by", "valid_bleu", "%s, %s",
                      dt_flags_from(flags, "--best-checkpoint-metric"),
                      dt_flags_from(flags, "--maximize-best-checkpoint-metric"));
    else if (highest || (strcmp(metric, "loss") != 0 && strcmp(metric, "nll_loss") != 0))
        dt_draft_left(draft,
                      highest ? "--maximize-best-checkpoint-metric"
                              : dt_flags_about(flags, "--best-checkpoint-metric"),
                      "the best checkpoint has the lowest validation loss, or with --eval-bleu the "
                      "highest BLEU");
}

void dt_fairseq_bleu(dt_draft *draft, const dt_flags *flags)
{
    bool bleu = dt_flags_given(flags, "--eval-bleu") && dt_draft_find(draft, "data.source") != NULL;

    if (bleu) {
        dt_draft_word(draft, "evaluate.bleu", "true", "--eval-bleu");
        take_arguments(draft, flags);
    }
    set_best(draft, flags, bleu);
}

static const char *joined(dt_draft *draft, const char *folder, size_t length, const char *subset,
                          size_t subset_length, const char *ending)
{
    return dt_arena_printf(draft->arena, "%.*s%s%.*s%s", (int)length, folder,
                           length > 0 && folder[length - 1] == '/' ? "" : "/", (int)subset_length,
                           subset, ending);
}

void dt_fairseq_files(dt_draft *draft, const char *path, const char *folders, const char *subsets,
                      const char *ending, const char *from)
{
    enum { MOST = 64 };
    const char *files[MOST];
    size_t count = 0, folder, subset;

    for (const char *f = folders; *f != '\0'; f += folder + (f[folder] != '\0')) {
        folder = strcspn(f, ":");
        for (const char *s = subsets; *s != '\0'; s += subset + (s[subset] != '\0')) {
            subset = strcspn(s, ",");
            if (folder > 0 && subset > 0 && count < MOST)
                files[count++] = joined(draft, f, folder, s, subset, ending);
        }
    }
    if (count > 0)
        dt_draft_texts(draft, path, files, count, from);
}

const char *dt_fairseq_folder(dt_draft *draft, const dt_flags *flags)
{
    const dt_shell_command *operands = &flags->operands;
    const char *folder = "DATA";

    for (size_t i = 0; i < operands->count; i++)
        if (strcmp(folder, "DATA") == 0)
            folder = operands->words[i].text;
        else
            dt_draft_left(draft, operands->words[i].text,
                          "it is neither a flag nor the data folder");
    if (strcmp(folder, "DATA") == 0) {
        dt_draft_note(draft, "data", "the data folder is missing: put the files into 'data'");
        folder = "data";
    }
    return folder;
}

void dt_fairseq_data(dt_draft *draft, const dt_flags *flags)
{
    const char *folder = dt_fairseq_folder(draft, flags), *first;

    first = dt_arena_strndup(draft->arena, folder, strcspn(folder, ":"));
    dt_fairseq_files(draft, "data.train", folder, dt_flags_text(flags, "--train-subset", "train"),
                     ".bin", "the data folder");
    dt_fairseq_files(draft, "data.validation", first,
                     dt_flags_text(flags, "--valid-subset", "valid"), ".bin", "in the data folder");
    dt_draft_note(draft, folder,
                  "fairseq's .bin files are read as they are; their .idx files give the width of "
                  "an id, and dict.txt the number of ids");
}

/* Sets how many checkpoints are kept: all are -1 in fairseq, and 0 in dtrun. */
static void set_keep(dt_draft *draft, const dt_flags *flags, const char *path, const char *flag)
{
    double keep = dt_flags_number(flags, flag, -1);

    dt_draft_number(draft, path, keep > 0 ? keep : 0, "%s", dt_flags_from(flags, flag));
}

void dt_fairseq_evaluation(dt_draft *draft, const dt_flags *flags)
{
    const char *by = dt_flags_number(flags, "--validate-interval-updates", 0) > 0
                         ? "--validate-interval-updates"
                         : "--save-interval-updates";
    double every = dt_flags_number(flags, by, 0);

    if (dt_flags_given(flags, "--disable-validation")) {
        dt_draft_number(draft, "evaluate.every", 0, "--disable-validation");
        dt_draft_left(draft, "--disable-validation", "the end of a run is always validated");
    } else {
        dt_draft_number(draft, "evaluate.every", every, "%s%s", dt_flags_from(flags, by),
                        every > 0 ? ": it also validates" : "");
        dt_flags_set_number(draft, flags, "evaluate.every_epoch", "--validate-interval", 1);
    }
    dt_draft_number(draft, "evaluate.sequences", 0, "fairseq's: all of them");
}

void dt_fairseq_checkpoints(dt_draft *draft, const dt_flags *flags)
{
    bool none = dt_flags_given(flags, "--no-save");
    bool by_epoch = !none && !dt_flags_given(flags, "--no-epoch-checkpoints");
    double every = none ? 0 : dt_flags_number(flags, "--save-interval-updates", 0);
    double best = dt_flags_number(flags, "--keep-best-checkpoints", -1);

    dt_draft_number(draft, "checkpoint.every", every, "%s",
                    none ? "--no-save" : dt_flags_from(flags, "--save-interval-updates"));
    if (every > 0)
        set_keep(draft, flags, "checkpoint.keep", "--keep-interval-updates");
    if (by_epoch) {
        dt_flags_set_number(draft, flags, "checkpoint.every_epoch", "--save-interval", 1);
        set_keep(draft, flags, "checkpoint.keep_epochs", "--keep-last-epochs");
    } else if (!none) {
        dt_draft_number(draft, "checkpoint.every_epoch", 0, "--no-epoch-checkpoints");
    }
    if (none || dt_flags_given(flags, "--disable-validation"))
        dt_draft_number(draft, "checkpoint.keep_best", 0, "%s",
                        none ? "--no-save" : "--disable-validation");
    else
        dt_draft_number(draft, "checkpoint.keep_best", best > 1 ? best : 1, "%s",
                        best > 1 ? dt_flags_from(flags, "--keep-best-checkpoints")
                                 : "checkpoint_best.pt");
    if (none)
        dt_draft_left(draft, "--no-save", "the last step's checkpoint is always kept");
}
