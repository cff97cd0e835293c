/* bleu: computes BLEU of translations (engine/bleu/bleu.h) and prints it as sacreBLEU does, or as JSON:
 *   {"bleu", "precisions", "brevity_penalty", "ratio", "hypothesis_words", "reference_words", "lines", "signature"}
 */
#ifndef DT_RUNNER_VIEW_BLEU_H
#define DT_RUNNER_VIEW_BLEU_H

#include "base/json.h"
#include "base/memory.h"
#include "engine/bleu/bleu.h"

#define DT_BLEU_FILE_MOST ((size_t)1 << 30)

extern const char *const dt_bleu_tokenizers[]; /* for an option; ends with NULL */

typedef struct dt_bleu_report {
    dt_bleu_counts counts;
    dt_bleu bleu;
    int64_t lines;
    const char *signature; /* in the arena */
} dt_bleu_report;

/* Compares line by line. `names` name the two texts in messages. DT_ERR_USAGE if the numbers of
 * lines differ or are 0. */
dt_status dt_bleu_compare(dt_bleu_report *out, const dt_strbuf *ours, const dt_strbuf *theirs,
                          const char *const names[2], const char *tokenizer, dt_arena *arena,
                          dt_error *err);
/* Checks the numbers of lines before the translation, with the file `input` that will be
 * translated. A pipe is not checked. */
dt_status dt_bleu_expect(const char *input, const char *reference, dt_error *err);
/* Adds one line with its line break. */
void dt_bleu_add_text(dt_strbuf *out, const dt_bleu_report *report);
void dt_bleu_add_json(json_t *object, const dt_bleu_report *report);

#endif
