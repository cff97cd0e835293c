/* forms: the rows of published benchmarks, and the rows of tasks that are made of them, by one table. */
#include <string.h>

#include "engine/evaluation/evaluation.h"
#include "runner/benchmarks/benchmarks_int.h"

enum { HELLASWAG, ARC, PIQA, MMLU, GSM8K, GSM8K_FLEXIBLE, FORMS };

enum { LETTERS = 4, TEXTS_MOST = 4 }; /* LETTERS: choices of MMLU */

const char *const dt_benchmark_names[FORMS + 1] = {
    [HELLASWAG] = "hellaswag", [ARC] = "arc",     [PIQA] = "piqa",
    [MMLU] = "mmlu",           [GSM8K] = "gsm8k", [GSM8K_FLEXIBLE] = "gsm8k-flexible",
};

typedef dt_status convert_fn(dt_conversion *c);

typedef struct benchmark {
    const char *texts[TEXTS_MOST]; /* fields that must be text */
    const char *prompt;            /* Jinja; its variables are the fields */
    const char *id;                /* field that becomes `id`; NULL: none */
    const char *defaults;          /* JSON; NULL: none */
    const char *unlabelled;
    convert_fn *arrange; /* MAY: moves fields to where the others expect them */
    convert_fn *add;     /* adds choices and answer */
    bool clean;          /* remove the marks of WikiHow from prompt and choices */
    bool csv;            /* can be a .csv of question, four choices and the answer */
} benchmark;

static convert_fn arrange_arc, arrange_mmlu, add_hellaswag, add_arc, add_piqa, add_mmlu, add_gsm8k;

#define QUESTION "{{ 'Question: ' ~ question ~ '\\nAnswer:' }}"
/* Texts before which a generated answer ends: the model would go on with another question. */
#define GSM8K_DEFAULTS(extract)                                            \
    "{\"until\": [\"Question:\", \"</s>\", \"<|im_end|>\"], " extract ", " \
    "\"ignore_case\": true, \"remove\": [\",\", \"\\\\$\", \"\\\\.$\"]}"

static const benchmark forms[FORMS] = {
    [HELLASWAG] = {.texts = {"activity_label", "ctx_a", "ctx_b"},
                   .prompt = "{{ activity_label ~ ': ' ~ ctx_a ~ ' ' ~ ctx_b.capitalize() }}",
                   .id = "ind",
                   .unlabelled = "the test file has no labels: use the one of validation",
                   .add = add_hellaswag,
                   .clean = true},
    [ARC] = {.texts = {"question"},
             .prompt = QUESTION,
             .id = "id",
             .unlabelled = "it names the right one of 'choices'",
             .arrange = arrange_arc,
             .add = add_arc},
    [PIQA] = {.texts = {"goal", "sol1", "sol2"},
              .prompt = "{{ 'Question: ' ~ goal ~ '\\nAnswer:' }}",
              .id = "id",
              .unlabelled = "add the labels, which PIQA has in a file of their own, to the rows "
                            "(docs/evaluation.md has the command)",
              .add = add_piqa},
    /* the sentence is part of MMLU's published form: another one gives other numbers */
    [MMLU] = {.texts = {"question"},
              .prompt = "{{ 'The following are multiple choice questions (with answers) about ' ~ "
                        "subject.replace('_', ' ') ~ '.\\n\\n' if subject is defined else '' }}"
                        "{{ question.strip() ~ '\\nA. ' ~ choices[0] ~ '\\nB. ' ~ choices[1] ~ "
                        "'\\nC. ' ~ choices[2] ~ '\\nD. ' ~ choices[3] ~ '\\nAnswer:' }}",
              .id = "id",
              .unlabelled = "it is the index or the letter of the right choice",
              .arrange = arrange_mmlu,
              .add = add_mmlu,
              .csv = true},
    [GSM8K] = {.texts = {"question", "answer"},
               .prompt = QUESTION,
               .id = "id",
               .defaults = GSM8K_DEFAULTS("\"extract\": \"#### (-?[0-9.,]+)\""),
               .add = add_gsm8k},
    /* the last number of the text, instead of the first after '#### ' */
    [GSM8K_FLEXIBLE] = {.texts = {"question", "answer"},
                        .prompt = QUESTION,
                        .id = "id",
                        .defaults = GSM8K_DEFAULTS("\"extract\": \"(-?[$0-9.,]{2,})|(-?[0-9]+)\", "
                                                   "\"extract_last\": true"),
                        .add = add_gsm8k},
};

const char *dt_benchmark_defaults(int form)
{
    return forms[form].defaults;
}

bool dt_benchmark_has_csv(int form)
{
    return forms[form].csv;
}

dt_status dt_benchmark_template(dt_jinja **out, int form, dt_error *err)
{
    return dt_jinja_parse(out, forms[form].prompt, strlen(forms[form].prompt),
                          dt_benchmark_names[form], err);
}

/* --- each benchmark */

static dt_status add_hellaswag(dt_conversion *c)
{
    const json_t *endings = json_object_get(c->from, "endings");
    dt_status st = dt_conversion_add_list(c, endings, true, "endings");

    return st == DT_OK ? dt_conversion_add_index(c, "label", json_array_size(endings), false) : st;
}

/* {"question": {"stem", "choices"}} has what others have as question and choices. */
static dt_status arrange_arc(dt_conversion *c)
{
    json_t *question = json_incref(json_object_get(c->from, "question"));

    if (json_is_object(question)) {
        json_object_set(c->from, "choices", json_object_get(question, "choices"));
        json_object_set(c->from, "question", json_object_get(question, "stem"));
    }
    json_decref(question);
    return DT_OK;
}

static bool is_label(const json_t *label, const json_t *key)
{
    return json_equal(label, key) || (dt_conversion_number(key) >= 0 &&
                                      dt_conversion_number(label) == dt_conversion_number(key));
}

/* choices: {"text": [...], "label": [...]}, or a list of {"text", "label"}. */
static dt_status add_arc(dt_conversion *c)
{
    const json_t *choices = json_object_get(c->from, "choices"), *label, *text;
    const json_t *texts = json_object_get(choices, "text"), *labels;
    const json_t *key = json_object_get(c->from, "answerKey");
    bool columns = json_is_object(choices);
    size_t count = json_array_size(columns ? texts : choices), right = count;
    dt_status st = DT_OK;

    labels = json_object_get(choices, "label");
    if (count < 2 || (columns && json_array_size(labels) != count))
        return dt_conversion_refuse(
            c, "choices",
            "{\"text\": [...], \"label\": [...]}, or a list of {\"text\", \"label\"}");
    for (size_t i = 0; i < count && st == DT_OK; i++) {
        const json_t *item = columns ? NULL : json_array_get(choices, i);

        text = columns ? json_array_get(texts, i) : json_object_get(item, "text");
        label = columns ? json_array_get(labels, i) : json_object_get(item, "label");
        st = dt_conversion_add_choice(c, text, false, "choices");
        if (right == count && label != NULL && is_label(label, key))
            right = i;
    }
    if (st == DT_OK && right == count)
        return dt_conversion_refuse_label(c, "answerKey", "the label of one of the choices");
    json_object_set_new(c->to, "answer", json_integer((json_int_t)right));
    return st;
}

static dt_status add_piqa(dt_conversion *c)
{
    dt_status st = dt_conversion_add_choice(c, json_object_get(c->from, "sol1"), false, "sol1");

    if (st == DT_OK)
        st = dt_conversion_add_choice(c, json_object_get(c->from, "sol2"), false, "sol2");
    return st == DT_OK ? dt_conversion_add_index(c, "label", 2, false) : st;
}

static dt_status arrange_mmlu(dt_conversion *c)
{
    const json_t *choices = json_object_get(c->from, "choices");
    const json_t *subject = json_object_get(c->from, "subject");

    if (subject != NULL && !json_is_null(subject) && !json_is_string(subject))
        return dt_conversion_refuse(c, "subject", "text");
    if (json_string_length(subject) == 0) {
        json_object_del(c->from, "subject");
        c->counts->unnamed++;
    }
    for (size_t i = 0; i < LETTERS; i++)
        if (json_array_size(choices) != LETTERS || !json_is_string(json_array_get(choices, i)))
            return dt_conversion_refuse(c, "choices", "a list of four texts");
    return DT_OK;
}

static dt_status add_mmlu(dt_conversion *c)
{
    json_t *letters = json_object_get(c->to, "choices");

    for (char letter = 'A'; letter < 'A' + LETTERS; letter++)
        json_array_append_new(letters, json_stringn(&letter, 1));
    return dt_conversion_add_index(c, "answer", LETTERS, true);
}

static dt_status add_gsm8k(dt_conversion *c)
{
    static const char mark[] = "#### ";
    const char *at = json_string_value(json_object_get(c->from, "answer")), *last = NULL;

    while ((at = strstr(at, mark)) != NULL) {
        at += sizeof(mark) - 1;
        last = at;
    }
    if (last == NULL || *last == '\0')
        return dt_conversion_refuse(c, "answer", "text that ends in '#### ' and the right number");
    json_object_del(c->to, "choices");
    json_object_set_new(c->to, "answer", json_string(last));
    return DT_OK;
}

/* --- a row */

static dt_status add_prompt(dt_conversion *c, const dt_jinja *prompt, bool clean, dt_arena *arena)
{
    dt_jinja_run *run = dt_jinja_begin(prompt, 0, arena);
    dt_jinja_output output;
    dt_status st = DT_OK;
    const char *name;
    json_t *value;

    json_object_foreach(c->from, name, value) {
        dt_jinja_set(run, name, dt_jinja_from_json(run, value, 1));
    }
    st = dt_jinja_render(&output, run, c->err);
    if (st != DT_OK) {
        dt_error_prefix(c->err, "%s", c->where);
        return st;
    }
    json_object_set_new(c->to, "prompt",
                        clean ? dt_conversion_clean(output.text)
                              : json_stringn(output.text, output.length));
    return DT_OK;
}

dt_status dt_benchmark_row(json_t **out, dt_converted *counts, int form, const dt_jinja *prompt,
                           json_t *row, const char *where, dt_arena *arena, dt_error *err)
{
    const benchmark *f = &forms[form];
    dt_conversion c = {row, json_object(), where, f->unlabelled, counts, err};
    dt_evaluation_row checked;
    dt_status st = DT_OK;

    *out = NULL;
    if (!json_is_object(row))
        DT_THROW(err, DT_ERR_USAGE, "%s: expected a JSON object", where);
    if (f->arrange != NULL)
        DT_TRY(f->arrange(&c));
    for (size_t i = 0; i < TEXTS_MOST && f->texts[i] != NULL; i++)
        if (!json_is_string(json_object_get(row, f->texts[i])))
            DT_TRY(dt_conversion_refuse(&c, f->texts[i], "text"));
    DT_TRY(add_prompt(&c, prompt, f->clean, arena));
    json_object_set_new(c.to, "choices", json_array());
    DT_TRY(f->add(&c));
    if (f->id != NULL && json_object_get(row, f->id) != NULL)
        json_object_set(c.to, "id", json_object_get(row, f->id));
    DT_TRY(dt_evaluation_row_read(&checked, c.to, where, arena, err));
    *out = json_incref(c.to);
    counts->rows++;
out:
    json_decref(c.to);
    return st;
}
