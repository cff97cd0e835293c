#include <string.h>

#include "base/json.h"
#include "runner/convert/fairseq.h"

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
